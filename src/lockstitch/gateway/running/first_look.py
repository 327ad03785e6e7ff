"""A look at the upstreams when a gateway begins, so that a mistyped address is in the log before
the first request fails. Nothing waits for it, and nothing follows from it but lines of the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from lockstitch.gateway.config.model import Upstream
from lockstitch.gateway.lines import LineFailure
from lockstitch.gateway.watching import logs
from lockstitch.gateway.wire import HttpLimits, HttpLines


@asynccontextmanager
async def first_look(upstreams: Iterable[Upstream]) -> AsyncIterator[Callable[[], None]]:
    """What to call when it is time to look; whoever has not answered at the end is not waited
    for."""
    looking: list[asyncio.Task[None]] = []
    try:
        yield lambda: looking.extend(asyncio.create_task(_look(one)) for one in upstreams)
    finally:
        for task in looking:
            task.cancel()


async def _look(upstream: Upstream) -> None:
    lines = HttpLines(upstream.url, limits=HttpLimits(connect_seconds=upstream.connect_seconds))
    try:
        await lines.connect()
    except LineFailure as failure:
        logs.careful("upstream cannot be reached", upstream=upstream.name, why=str(failure))
    finally:
        await lines.close()
