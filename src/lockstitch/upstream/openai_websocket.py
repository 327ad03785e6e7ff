"""OpenAI's Responses API over a WebSocket, through the official client.

The provider keeps the newest response of a connection with the connection, stored or not: so a
request goes where the response it continues was said. One connection has one answer at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec
from openai import AsyncOpenAI

from lockstitch.upstream.contract import Fate, Heard, Request, UpstreamFailure
from lockstitch.upstream.failures import Stage, failure_of_ours
from lockstitch.upstream.openai_responses import OpenAIResponses, body_of
from lockstitch.upstream.responses_answer import ResponsesAnswer
from lockstitch.upstream.sockets import Socket

MOST_IDLE_SOCKETS: Final = 8
"""Answers at the same time take a connection each. More than this many are not kept open for
later: the provider counts them."""

_NOT_IN_A_FRAME: Final = ("background", "stream")

_encode = msgspec.json.Encoder().encode


class OpenAIWebSocket(OpenAIResponses):
    """A client of the Responses API that speaks over WebSockets, and asks over HTTP for what was
    kept. `close` closes the connections; the official client stays the caller's."""

    def __init__(self, client: AsyncOpenAI) -> None:
        super().__init__(client)
        # The one that was used last is last.
        self._idle: list[Socket] = []

    async def stream(self, request: Request) -> AsyncGenerator[Heard, None]:
        frame = _frame_of(request)
        socket = await self._socket(request.anchor)
        answer = ResponsesAnswer(request.anchor, framed=True, unlike=socket.newest)
        failure: UpstreamFailure | None = None
        stays = False
        try:
            await socket.send(frame)
            try:
                while not answer.said_all:
                    for heard in answer.hear(await socket.receive()):
                        stays = answer.said_all
                        yield heard
            except UpstreamFailure as raised:
                failure = raised
                stays = _stays_after(raised, answer)
            if failure is not None:
                for heard in answer.last():
                    yield heard
                raise failure
        finally:
            socket.newest = answer.id or socket.newest
            await self._put_back(socket) if stays else await socket.close()

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for socket in idle:
            await socket.close()

    async def _socket(self, anchor: str | None) -> Socket:
        """The idle connection that said the anchor, or the newest idle one, or a new one."""
        # A stable order: among equals the one that was used last is taken.
        self._idle.sort(key=lambda socket: anchor is not None and socket.newest == anchor)
        while self._idle:
            socket = self._idle.pop()
            usable = False
            try:
                usable = await socket.is_usable()
            finally:
                if not usable:
                    await socket.close()
            if usable:
                return socket
        return await Socket.opened(self._client)

    async def _put_back(self, socket: Socket) -> None:
        self._idle.append(socket)
        if len(self._idle) > MOST_IDLE_SOCKETS:
            await self._idle.pop(0).close()

    def __repr__(self) -> str:
        return f"<OpenAIWebSocket {self._client.base_url}, {len(self._idle)} idle>"


def _frame_of(request: Request) -> str:
    body: dict[str, Any] = {"type": "response.create", **body_of(request)}
    for name in _NOT_IN_A_FRAME:
        body.pop(name, None)
    try:
        return _encode(body).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise failure_of_ours(
            f"The request cannot be written as JSON: {error}", Fate.REFUSED, Stage.UNSENT
        ) from error


def _stays_after(failure: UpstreamFailure, answer: ResponsesAnswer) -> bool:
    """Is the connection as good as before? Only after a plain no: whoever broke off in the middle
    may go on in the middle of the next answer."""
    refused = failure.status is not None and not answer.opened
    return refused and failure.fate not in {Fate.NEW_CONNECTION, Fate.LOST}
