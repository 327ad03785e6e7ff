"""The sink of one lane: a connection's frames, each marked with the lane's name."""

from collections.abc import Awaitable, Callable

import msgspec

from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault
from lockstitch.emulator.refusals import SERVER
from lockstitch.emulator.wire.frames import FrameSink

_encode = msgspec.json.Encoder().encode


class LaneSink:
    """A connection's sink, for the events of one lane."""

    __slots__ = ("_sink", "_tail", "lost")

    def __init__(self, sink: FrameSink, lane: str, lost: Fault | None) -> None:
        self._sink = sink
        self._tail = b',"stream_id":%b}' % _encode(lane) if lane else b""
        # The fault that keeps every event from the client.
        self.lost = lost

    def _marked(self, event: Event) -> Event:
        if event.name == "error":
            event = Event(event.name, event.number, _nested(event.data))
        if not self._tail:
            return event
        return Event(event.name, event.number, event.data[:-1] + self._tail)

    async def send(self, *events: Event) -> None:
        if self.lost is None:
            await self._sink.send(*map(self._marked, events))

    async def refuse(self, rule: str, event: Event) -> None:
        """An event that says no, recorded with the rule that the client broke."""
        await self._sink.refuse(rule, self._marked(event).data, event.name)

    async def drip(self, event: Event, size: int, pause: Callable[[], Awaitable[None]]) -> None:
        if self.lost is None:
            await self._sink.drip(self._marked(event), size, pause)

    async def cut(self, how: str, event: Event | None, fault: Fault) -> None:
        await self._sink.cut(how, None if event is None else self._marked(event), fault)

    async def close(self, code: int, fault: Fault) -> None:
        await self._sink.close(code, fault)

    def struck(self, fault: Fault) -> None:
        self._sink.struck(fault)


def _nested(data: bytes) -> bytes:
    """An `error` event, with what it says where error frames say it."""
    said = msgspec.json.decode(data)
    error = {
        "message": said["message"],
        "type": SERVER,
        "param": said["param"],
        "code": said["code"],
    }
    number = said["sequence_number"]
    # Codex CLI takes an error frame without a status for nothing, and goes on waiting.
    return _encode({"type": "error", "status": 500, "error": error, "sequence_number": number})
