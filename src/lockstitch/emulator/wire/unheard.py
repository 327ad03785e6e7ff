"""A stream that nobody hears: an answer given as one body, or a response in the background.

Faults strike it all the same: a cut ends the connection with no answer at all."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault
from lockstitch.emulator.record import Record
from lockstitch.emulator.wire.delivery import leave_unanswered


class Unheard:
    """`told` is called when events would have gone out."""

    __slots__ = ("_connection", "_record", "_request", "_told")

    def __init__(
        self,
        request: web.Request,
        record: Record,
        connection: int,
        told: Callable[[], None] | None = None,
    ) -> None:
        self._request = request
        self._record = record
        self._connection = connection
        self._told = told

    async def send(self, *events: Event) -> None:
        if self._told is not None:
            self._told()

    async def drip(self, event: Event, size: int, pause: Callable[[], Awaitable[None]]) -> None:
        for _ in range(0, len(event.data), size):
            await pause()

    async def cut(self, how: str, event: Event | None, fault: Fault) -> None:
        leave_unanswered(self._request.transport, how)

    async def close(self, code: int, fault: Fault) -> None:
        await self.cut("close", None, fault)

    def struck(self, fault: Fault) -> None:
        self._record.struck_by(self._connection, fault.text, str(fault.point))
