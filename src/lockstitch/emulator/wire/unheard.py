"""A stream that nobody hears: an answer given as one body, or a response in the background.

Faults strike it all the same: a cut ends the connection with no answer at all."""

import asyncio

from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault
from lockstitch.emulator.wire.delivery import tear_down
from lockstitch.emulator.wire.reception import Exchange


class Unheard:
    __slots__ = ("_exchange",)

    def __init__(self, exchange: Exchange | None) -> None:
        self._exchange = exchange

    def framed(self, event: Event) -> bytes:
        return event.data

    async def send(self, *events: Event) -> None:
        pass

    async def write(self, data: bytes) -> None:
        await asyncio.sleep(0)

    async def cut(self, how: str, rest: bytes, fault: Fault) -> None:
        self.struck(fault)
        if self._exchange is None:
            return
        transport = self._exchange.request.transport
        if how == "reset":
            tear_down(transport)
        elif transport is not None:
            transport.close()

    async def close(self, code: int, fault: Fault) -> None:
        await self.cut("close", b"", fault)

    def struck(self, fault: Fault, data: bytes = b"") -> None:
        if self._exchange is not None:
            self._exchange.world.record.struck_by(
                self._exchange.connection, fault.text, str(fault.point), data
            )
