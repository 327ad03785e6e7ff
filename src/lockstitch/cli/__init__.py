"""The command line. `main` is the entry point; everything else is imported when it is needed."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the exit code says how it went."""
    try:
        from lockstitch.cli.app import run
        from lockstitch.cli.streams import finish, make_ready

        make_ready()
    except KeyboardInterrupt:  # from then on `run` takes care of it
        sys.exit(130)
    code = run()
    finish()
    sys.exit(code)


__all__ = ["main"]
