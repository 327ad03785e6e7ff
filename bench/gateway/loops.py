"""uvloop for the bench's own processes. It may come from the bench's cache, so it is looked up when
it is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from importlib import import_module
from typing import Any, TypeVar

Returned = TypeVar("Returned")


def run_on_uvloop(main: Coroutine[Any, Any, Returned]) -> Returned:
    with asyncio.Runner(loop_factory=import_module("uvloop").new_event_loop) as runner:
        return runner.run(main)
