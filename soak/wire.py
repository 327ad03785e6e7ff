"""How a client asks: HTTP with one body or a stream, and a WebSocket with lanes.

Nothing here judges what comes; `answers` does. Nothing waits for ever either: an answer that has no
end in `ANSWER_SECONDS` is given as broken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp

from soak.answers import TERMINAL, Answer, Event

ANSWER_SECONDS = 75.0
"""Three tries at each of two upstreams, each silent for a few seconds, with waits in between."""
NO_END = f"there was no end within {ANSWER_SECONDS:g} s"
Body = Mapping[str, Any]


class Door:
    """HTTP, with connections of this client's own."""

    def __init__(self, base: str, key: str) -> None:
        self.base = base
        self.key = key
        self.session = aiohttp.ClientSession(
            headers={"authorization": f"Bearer {key}"},
            connector=aiohttp.TCPConnector(limit=64),
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=16 * 1024,
        )

    async def close(self) -> None:
        await self.session.close()

    async def whole(self, body: Body) -> Answer:
        status, said = await self.ask("POST", "/responses", body)
        return Answer("json", status, body=said, broke=said if status == 0 else "")

    async def ask(self, method: str, path: str, body: Body | None = None) -> tuple[int, Any]:
        """The status, 0 for a connection that broke, and the JSON or text of the body."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                async with self.session.request(method, self.base + path, json=body) as answer:
                    raw = await answer.read()
        except TimeoutError:
            return 0, NO_END
        except (aiohttp.ClientError, OSError) as error:
            return 0, repr(error)
        try:
            return answer.status, json.loads(raw)
        except ValueError:
            return answer.status, raw.decode(errors="replace")

    async def streamed(
        self, body: Body, *, leave_after: int | None = None, slowly: float = 0.0
    ) -> Answer:
        """``leave_after``: go away behind so many events; ``slowly``: wait before each read."""
        heard = Answer("sse")
        asked = ("POST", "/responses", {**body, "stream": True})
        await self._read(asked, heard, leave_after, slowly)
        return heard

    async def rest(self, heard: Answer) -> Answer:
        """The same answer with what the client has not seen of it."""
        whole = Answer("sse", events=list(heard.events), resumed=True)
        last = whole.events[-1]["sequence_number"]
        path = f"/responses/{heard.created}?stream=true&starting_after={last}"
        await self._read(("GET", path, None), whole)
        return whole

    async def _read(
        self,
        asked: tuple[str, str, Body | None],
        heard: Answer,
        leave_after: int | None = None,
        slowly: float = 0.0,
    ) -> None:
        method, path, body = asked
        try:
            async with asyncio.timeout(ANSWER_SECONDS + 1000 * slowly):
                async with self.session.request(method, self.base + path, json=body) as answer:
                    heard.status = answer.status
                    if answer.status != 200:
                        heard.body = _json(await answer.read())
                        return
                    await _events(answer, heard, leave_after, slowly)
        except TimeoutError:
            heard.broke = NO_END
        except (aiohttp.ClientError, OSError) as error:
            heard.broke = repr(error)


async def _events(
    answer: aiohttp.ClientResponse, heard: Answer, leave_after: int | None, slowly: float
) -> None:
    kind = answer.headers.get("content-type", "")
    if not kind.startswith("text/event-stream"):
        heard.broke = f"a stream of {kind}: {(await answer.read())[:300]!r}"
        return
    left = b""
    async for data in answer.content.iter_any():
        *blocks, left = (left + data).split(b"\n\n")
        for block in blocks:
            event = _event(block)
            if event is not None:
                heard.events.append(event)
            if leave_after is not None and len(heard.events) >= leave_after:
                heard.left = heard.events[-1]["type"] not in (*TERMINAL, "error")
                answer.close()
                return
        if slowly:
            await asyncio.sleep(slowly)
    if left:
        heard.broke = f"half an event: {left[:200]!r}"


def _event(block: bytes) -> Event | None:
    data = [line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")]
    if not data:
        return None  # a comment, to keep the connection awake
    event: Event = json.loads(b"\n".join(data))
    return event


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


class Lanes:
    """A WebSocket, opened anew when it is gone; each lane is asked by one task at a time."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._reading: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._lanes: dict[str, asyncio.Queue[Event | str]] = {}
        self.strays: list[str] = []
        """Frames that belong to no answer under way."""

    async def ask(self, lane: str, body: Body) -> Answer:
        heard = Answer("websocket")
        queue = self._lanes[lane] = asyncio.Queue()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                socket = await self._opened()
                frame = {"type": "response.create", "stream_id": lane, **body}
                await socket.send_str(json.dumps(frame))
                while True:
                    event = await queue.get()
                    if isinstance(event, str):
                        heard.broke = event
                        break
                    heard.events.append(event)
                    if event["type"] in (*TERMINAL, "error"):
                        break
        except TimeoutError:
            heard.broke = NO_END
            await self.close()  # what comes late must not be taken for the next answer
        except aiohttp.WSServerHandshakeError as error:
            heard.status, heard.body = error.status, {"error": {"message": error.message}}
        except (aiohttp.ClientError, OSError) as error:
            heard.broke = repr(error)
        finally:
            self._lanes.pop(lane, None)
        return heard

    async def close(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._reading = None

    async def _opened(self) -> aiohttp.ClientWebSocketResponse:
        async with self._opening:
            if self._socket is None or self._socket.closed:
                self._socket = await self._door.session.ws_connect(
                    f"{self._door.base}/responses", max_msg_size=0
                )
                self._reading = asyncio.create_task(self._read(self._socket))
            return self._socket

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                continue
            event: Event = json.loads(message.data)
            queue = self._lanes.get(str(event.get("stream_id")))
            if queue is None:
                self.strays.append(message.data[:300])
            else:
                queue.put_nowait(event)
        said = f"the WebSocket was closed: {socket.close_code}"
        for queue in self._lanes.values():
            queue.put_nowait(said)
