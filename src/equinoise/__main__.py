"""``python -m equinoise`` is the command ``equinoise``."""

import sys

from equinoise.cli import main

if __name__ == "__main__":
    sys.exit(main())
