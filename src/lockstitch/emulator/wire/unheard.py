"""A stream that nobody hears: an answer given as one body, or a response in the background.

Faults strike it all the same: a cut ends the connection with no answer at all."""

from collections.abc import Awaitable, Callable

from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault
from lockstitch.emulator.wire.delivery import tear_down
from lockstitch.emulator.wire.reception import Exchange


class Unheard:
    """`told` is called when events would have gone out."""

    __slots__ = ("_exchange", "_told")

    def __init__(self, exchange: Exchange, told: Callable[[], None] | None = None) -> None:
        self._exchange = exchange
        self._told = told

    async def send(self, *events: Event) -> None:
        if self._told is not None:
            self._told()

    async def drip(self, event: Event, size: int, pause: Callable[[], Awaitable[None]]) -> None:
        for _ in range(0, len(event.data), size):
            await pause()

    async def cut(self, how: str, event: Event | None, fault: Fault) -> None:
        transport = self._exchange.request.transport
        if how == "reset":
            tear_down(transport)
        elif transport is not None:
            transport.close()

    async def close(self, code: int, fault: Fault) -> None:
        await self.cut("close", None, fault)

    def struck(self, fault: Fault) -> None:
        self._exchange.world.record.struck_by(
            self._exchange.connection, fault.text, str(fault.point)
        )
