"""Every test of the wire with a loop runs on both: the standard one, and the one it is made for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from tests.gateway.wire.playing import SECONDS

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine to its end; whatever a callback of the loop raised fails the test."""
    start = asyncio.run if request.param == "asyncio" else uvloop.run

    async def bounded(work: Coroutine[Any, Any, Any]) -> Any:
        raised: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
        async with asyncio.timeout(SECONDS):
            result = await work
        assert raised == []
        return result

    return lambda work: start(bounded(work))
