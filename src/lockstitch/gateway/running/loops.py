"""The event loop: uvloop where there is one; and how often it stops to look for garbage."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")


GARBAGE: Final = (20_000, 5, 2)
"""How many more objects there must be before cycles are looked for. With Python's own 700, looking
took a tenth of the time where answers are short. Answers leave no cycles, and a client's WebSocket
leaves one when it ends: of a thousand or two of them what is left may wait, and not of more."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a program on the fastest loop there is."""
    gc.collect()
    gc.freeze()  # what was imported stays; nobody need look at it again
    gc.set_threshold(*GARBAGE)
    with asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(main)


def _factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415  (there is none for Windows)
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop
