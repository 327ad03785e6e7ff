"""Frames on one WebSocket: the sink of the Responses and the Realtime socket."""

import asyncio

from aiohttp import WSMsgType, web

from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault
from lockstitch.emulator.record import Record
from lockstitch.emulator.wire.delivery import ABNORMAL, RESET_GRACE_SECONDS, tear_down

_TEXT_AND_LAST = 0x81
_TWO_BYTE_LENGTH = 126
_EIGHT_BYTE_LENGTH = 127


class FrameSink:
    """One WebSocket connection. Several streams may share it: a frame is sent whole or cut."""

    __slots__ = ("_record", "_request", "_socket", "connection", "ended")

    def __init__(
        self, socket: web.WebSocketResponse, request: web.Request, record: Record, connection: int
    ) -> None:
        self._socket = socket
        self._request = request
        self._record = record
        self.connection = connection
        # A fault ended the connection: nothing more goes out.
        self.ended = False

    def framed(self, event: Event) -> bytes:
        """A text frame as a server writes it: unmasked, in one piece."""
        return header(len(event.data)) + event.data

    async def send(self, *events: Event) -> None:
        for event in events:
            if self.ended:
                raise ConnectionResetError("The emulator cut this connection.")
            self._record.events(self.connection, "frame", (event,), len(event.data))
            await self._socket.send_frame(event.data, WSMsgType.TEXT)

    async def refuse(self, rule: str, data: bytes) -> None:
        """An error frame, recorded with the rule that the client broke."""
        if self.ended:
            return
        self._record.refused(self.connection, rule, "frame", "error", data)
        await self._socket.send_frame(data, WSMsgType.TEXT)

    async def write(self, data: bytes) -> None:
        if self.ended or self._request.transport is None:
            raise ConnectionResetError("The emulator cut this connection.")
        self._record.sent(self.connection, "frame", "", data)
        self._request.transport.write(data)
        await asyncio.sleep(0)

    async def cut(self, how: str, rest: bytes, fault: Fault) -> None:
        self.struck(fault, rest)
        if how == "close":
            await self._end(1000)
            return
        if rest and self._request.transport is not None:
            self._request.transport.write(rest)
        await asyncio.sleep(RESET_GRACE_SECONDS)
        self.ended = True
        tear_down(self._request.transport)

    async def close(self, code: int, fault: Fault) -> None:
        if code == ABNORMAL:
            await self.cut("reset", b"", fault)
            return
        self.struck(fault)
        await self._end(code)

    async def _end(self, code: int) -> None:
        self.ended = True
        self._record.sent(self.connection, "close", str(code))
        await self._socket.close(code=code)

    def struck(self, fault: Fault, data: bytes = b"") -> None:
        self._record.struck_by(self.connection, fault.text, str(fault.point), data)


def header(length: int) -> bytes:
    """The header of an unmasked text frame (RFC 6455, section 5.2)."""
    if length < _TWO_BYTE_LENGTH:
        return bytes((_TEXT_AND_LAST, length))
    if length < 1 << 16:
        return bytes((_TEXT_AND_LAST, _TWO_BYTE_LENGTH)) + length.to_bytes(2)
    return bytes((_TEXT_AND_LAST, _EIGHT_BYTE_LENGTH)) + length.to_bytes(8)
