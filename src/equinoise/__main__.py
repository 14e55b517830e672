"""The command ``equinoise``, also as ``python -m equinoise``."""

import sys


def main() -> int:
    """Run the command and return its exit code, which Ctrl-C does not change while it is being imported."""
    try:
        from equinoise import cli

        return cli.main()
    except KeyboardInterrupt:
        print("equinoise: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
