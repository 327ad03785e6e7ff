"""Runs a script written in Python, and says where in it a mistake is.

It is the user's own code: it may do anything, and nothing of it is hidden."""

import runpy
from typing import Any

from lockstitch.emulator.errors import BadScript, EmulatorError

# What `__name__` is in a script: not `__main__`, so that a file can be a program as well.
MODULE = "lockstitch_script"


def run(path: str) -> dict[str, Any]:
    """What the file defines."""
    try:
        return runpy.run_path(path, run_name=MODULE)
    # A script that exits has failed to be one; only the user's own Ctrl-C passes.
    except (Exception, SystemExit) as error:
        raise BadScript(blamed(error, path)) from error


def blamed(error: BaseException, path: str) -> str:
    """`path:line: what happened`, with the line of the user's file where it did."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"{path}:{error.lineno}: {error.msg}"
    lines = []
    traced = error.__traceback__
    while traced is not None:
        if traced.tb_frame.f_code.co_filename == path:
            lines.append(traced.tb_lineno)
        traced = traced.tb_next
    where = f"{path}:{lines[-1]}" if lines else path
    return f"{where}: {_told(error)}" if where else _told(error)


def file_of(function: Any) -> str:
    """The file a function was written in, if it can be known."""
    code = getattr(function, "__code__", None)
    return str(getattr(code, "co_filename", ""))


def _told(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = ""
    if isinstance(error, EmulatorError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
