"""Whether an error comes from a signal or from the code that was running.

Python runs a signal handler in the main thread, in the middle of whatever runs there. What the
handler raises comes out of a tool as if the tool had raised it, and still must end the program."""

from __future__ import annotations

import signal
import threading
import traceback
from functools import partial
from types import CodeType


def is_from_signal(error: BaseException) -> bool:
    """Did a signal raise this error, which is to end the program?

    Python's own handler of SIGINT leaves no frame, so in the main thread each `KeyboardInterrupt`
    is one. A `SystemExit` is one if a signal handler is in its traceback."""
    if threading.current_thread() is not threading.main_thread():
        return False
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_from_signal, error.exceptions))
    if isinstance(error, KeyboardInterrupt):
        return True
    if not isinstance(error, SystemExit):
        return False
    handlers = _handlers()
    return any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))


def _handlers() -> set[CodeType]:
    """The code of the signal handlers that are set now."""
    found: set[CodeType] = set()
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        while isinstance(handler, partial):
            handler = handler.func
        if callable(handler) and not hasattr(handler, "__code__"):
            handler = type(handler).__call__
        if isinstance(code := getattr(handler, "__code__", None), CodeType):
            found.add(code)
    return found
