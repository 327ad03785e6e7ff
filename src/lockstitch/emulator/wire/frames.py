"""Frames on one WebSocket: the sink of the Responses and the Realtime socket."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import WSMsgType, web

from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault
from lockstitch.emulator.record import Record
from lockstitch.emulator.wire.delivery import (
    ABNORMAL,
    RESET_GRACE_SECONDS,
    part_of,
    tear_down,
)

_TEXT_AND_LAST = 0x81
_TWO_BYTE_LENGTH = 126
_EIGHT_BYTE_LENGTH = 127


class FrameSink:
    """One WebSocket connection. Several streams may share it: a frame is sent whole or cut."""

    __slots__ = ("_record", "_request", "_socket", "_whole", "connection", "ended")

    def __init__(
        self, socket: web.WebSocketResponse, request: web.Request, record: Record, connection: int
    ) -> None:
        self._socket = socket
        self._request = request
        self._record = record
        self.connection = connection
        # A fault ended the connection: nothing more goes out.
        self.ended = False
        # One frame at a time: a frame that drips must not have another inside it.
        self._whole = asyncio.Lock()

    def framed(self, event: Event) -> bytes:
        """A text frame as a server writes it: unmasked, in one piece."""
        return header(len(event.data)) + event.data

    async def send(self, *events: Event) -> None:
        for event in events:
            async with self._whole:
                self._check_open()
                self._record.events(self.connection, "frame", (event,), len(event.data))
                await self._socket.send_frame(event.data, WSMsgType.TEXT)

    async def refuse(self, rule: str, data: bytes, name: str = "error") -> None:
        """A frame that says no, recorded with the rule that the client broke."""
        async with self._whole:
            if self.ended:
                return
            self._record.refused(self.connection, rule, "frame", name, data)
            await self._socket.send_frame(data, WSMsgType.TEXT)

    async def drip(self, event: Event, size: int, pause: Callable[[], Awaitable[None]]) -> None:
        framed = self.framed(event)
        async with self._whole:
            self._record.events(self.connection, "frame", (event,), len(event.data))
            for start in range(0, len(framed), size):
                self._check_open()
                if self._request.transport is not None:
                    self._request.transport.write(framed[start : start + size])
                await pause()

    def _check_open(self) -> None:
        transport = self._request.transport
        if self.ended or transport is None or transport.is_closing():
            raise ConnectionResetError("The emulator cut this connection.")

    async def cut(self, how: str, event: Event | None, fault: Fault) -> None:
        if how == "close":
            await self._end(1000)
            return
        async with self._whole:
            self.ended = True
            part = part_of(how, self.framed(event), event.data) if event is not None else b""
            if part and self._request.transport is not None:
                self._request.transport.write(part)
            await asyncio.sleep(RESET_GRACE_SECONDS)
            tear_down(self._request.transport)

    async def close(self, code: int, fault: Fault) -> None:
        if code == ABNORMAL:
            await self.cut("reset", None, fault)
            return
        await self._end(code)

    async def _end(self, code: int) -> None:
        self.ended = True
        self._record.sent(self.connection, "close", str(code))
        await self._socket.close(code=code)

    def struck(self, fault: Fault) -> None:
        self._record.struck_by(self.connection, fault.text, str(fault.point))


def header(length: int) -> bytes:
    """The header of an unmasked text frame (RFC 6455, section 5.2)."""
    if length < _TWO_BYTE_LENGTH:
        return bytes((_TEXT_AND_LAST, length))
    if length < 1 << 16:
        return bytes((_TEXT_AND_LAST, _TWO_BYTE_LENGTH)) + length.to_bytes(2)
    return bytes((_TEXT_AND_LAST, _EIGHT_BYTE_LENGTH)) + length.to_bytes(8)
