"""What all tests share."""

import signal

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)  # a loaded machine is no failure
settings.load_profile("no deadline")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a job in the background: a test's children would, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
