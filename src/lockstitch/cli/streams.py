"""The three standard streams, as a command finds them: closed, full, or of a narrow encoding."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TextIO

import click

from lockstitch.core.terminal import printable


def make_ready() -> None:
    """Let every command read and print. What an encoding cannot say is escaped. A stream that is
    closed is one that holds nothing, and that takes nothing."""
    # Python has None for them. The next file that is opened would get the number, too, and whatever
    # is printed by its number.
    if sys.stdin is None:
        sys.stdin = os.fdopen(_nowhere(0, os.O_RDONLY), encoding="utf-8")
    if sys.stdout is None:
        # Opened for reading: what is written fails, as if the stream were full.
        sys.stdout = os.fdopen(_nowhere(1, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(_nowhere(2, os.O_WRONLY), "w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def finish() -> None:
    """Write what is left to be written. Python would do so, too, but take a failure for its own:
    the exit code would be lost."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            discard(stream)


def complain(text: str, *more: str) -> None:
    """Print an error on standard error, if it takes anything; ``more`` goes on lines of its own.
    Errors name files, threads and tools, so what could control a terminal is escaped."""
    message = "\n".join(map(printable, (text, *more)))
    try:
        click.echo(f"lockstitch: {message}", err=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Drop what is still to be written. Python would try again at exit and report a failure."""
    _nowhere(stream.fileno(), os.O_WRONLY)


def _nowhere(number: int, how: int) -> int:
    """Have the null device under this number."""
    nowhere = os.open(os.devnull, how)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)
    return number
