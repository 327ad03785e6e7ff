"""One upstream, a process of its own: an emulator whose answers say what context they were given.

`python -m soak.provider PORT IDS MINT`. Started again it has other ids and knows nothing, and still
reads what it has encrypted: a provider that lost its state. Besides the emulator's faults it can
answer with what is no error of any API (`POST /_soak/garbage`)."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from lockstitch.emulator import Emulator, Reply, Settings, call, reasoning, record, reply
from lockstitch.emulator.responses import store
from lockstitch.emulator.responses.context import Context
from lockstitch.emulator.responses.minting import Mint
from soak.echoes import Plan, echo, marks, text_of

TOOL = "look"
_KEPT_RESPONSES = 4_000
"""Older ones are forgotten, as by a provider with a retention period."""
_RECORDED_BYTES = 32 * 1024 * 1024
_LARGE_PIECE_CHARACTERS = 4_000
"""One delta of a large text."""

GARBAGE: dict[str, tuple[int, str, bytes]] = {
    "html": (502, "text/html", b"<html><body>502 Bad Gateway (soak)</body></html>"),
    "empty": (500, "application/json", b""),
    "torn": (503, "application/json", b'{"error": {"message": "soak, half an er'),
    "text": (429, "text/plain", b"slow down (soak)"),
    "list": (500, "application/json", b'["soak", null, 3]'),
    "null": (503, "application/json", b'{"error": null, "soak": true}'),
    "string": (502, "application/json", b'{"error": "soak: a string where an object belongs"}'),
}
"""Errors that no API has: status, type and body. All say `soak`, or nothing."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Provider(Emulator):
    """An emulator that echoes, and can be told to answer garbage."""

    def __init__(self, *, ids: int, mint: int) -> None:
        super().__init__(settings=Settings(seed=ids))
        self.responses.mint = Mint(mint)
        self.responses._reply = self._echoed  # type: ignore[method-assign]
        self._garbage: deque[str] = deque()
        self._given = 0

    def _echoed(self, request: dict[str, Any], context: Context, triggered: bool) -> Reply:
        """What the model says: what it was given, then words, or calls if the user wants them."""
        held = list(context)
        said = echo(marks(held))
        users = [item for item in held if item.get("role") == "user"]
        plan = Plan.found_in(text_of(users[-1]["content"])) if users else Plan()
        pace = plan.pace_ms / 1000
        if plan.calls and held and held[-1].get("role") == "user":
            calls = [call(TOOL, {"at": n, "after": said}) for n in range(plan.calls)]
            return reply(reasoning("Where to look?"), said, *calls, pace=pace)
        words = " and so on" * (plan.words // 3)
        if plan.large:
            piece = "x" * (_LARGE_PIECE_CHARACTERS - 1)
            words = f" {piece}" * (plan.large // _LARGE_PIECE_CHARACTERS)
        return reply(f"{said}{words} end", pace=pace)

    def _application(self) -> web.Application:
        application = super()._application()
        application.middlewares.append(self._garbled)
        application.router.add_post("/_soak/garbage", self._arm)
        application.router.add_get("/_soak/garbage", self._tell)
        return application

    async def _arm(self, request: web.Request) -> web.StreamResponse:
        self._garbage += (await request.json())["kinds"]
        return await self._tell(request)

    async def _tell(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"given": self._given, "armed": len(self._garbage)})

    @web.middleware
    async def _garbled(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = request.path == "/v1/responses"
        if not asked or not self._garbage:
            return await handler(request)
        await request.read()
        status, kind, body = GARBAGE[self._garbage.popleft()]
        self._given += 1
        return web.Response(status=status, content_type=kind, body=body)


async def main() -> None:
    port, ids, mint = map(int, sys.argv[1:])
    record.MOST_RECORDED_BYTES = _RECORDED_BYTES  # type: ignore[attr-defined]
    store.MOST_STORED_RESPONSES = _KEPT_RESPONSES  # type: ignore[attr-defined]
    provider = Provider(ids=ids, mint=mint)
    await provider.start(port=port)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    await provider.stop()


if __name__ == "__main__":
    asyncio.run(main())
