"""What all tests share."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a job in the background: a test's children would, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
