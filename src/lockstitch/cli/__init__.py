"""The command line. `main` is the entry point; everything else is imported when it is needed."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the exit code says how it went."""
    try:
        from lockstitch.cli.app import run
    except KeyboardInterrupt:  # from then on `run` takes care of it
        sys.exit(130)
    sys.exit(run())


__all__ = ["main"]
