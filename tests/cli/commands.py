"""Running the command line, in this process and as a program."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from lockstitch.cli.app import run

PROGRAM = Path(sys.executable).with_name("lockstitch")


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def lockstitch(*arguments: object) -> Ran:
    """The command line, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    return Ran(code, out.getvalue(), err.getvalue())


def program(*arguments: object, stdin: bytes = b"", **options) -> subprocess.CompletedProcess:
    """The command line, as people run it."""
    command = [PROGRAM, *(str(argument) for argument in arguments)]
    return subprocess.run(
        command, input=stdin, capture_output=True, timeout=60, check=False, **options
    )
