"""The kinds of clients, and how many there are of each: the table at the end."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import Sequence
from typing import Any

from soak.answers import Answer, is_passing
from soak.clients import ENCRYPTED, Client, Shared
from soak.conversing import InConversation
from soak.echoes import Item, Plan, text_of
from soak.talks import Point, Talk
from soak.wire import ANSWER_SECONDS, Lanes

LARGE_CHARACTERS = 800_000
"""Told five times in a stream: some megabytes, more than the buffers of two sockets."""
RESUMING_TRIES = 15
"""For the rest of a stream: an upstream that alone knows it may be killed, and is then down for as
long as a busy machine takes to start another."""
RESUMING_SECONDS = 1.0
"""Between two tries, as clients wait that were told to try again."""
_RESPONSE_ID = re.compile(rb'"id":\s?"(resp_[0-9a-f]+)"')


class Chained(Client):
    kind = "sse"


class Whole(Client):
    kind = "json"

    async def ask(self, talk: Talk, here: Point, items: Sequence[Item]) -> Answer:
        return await self.door.whole(self.body(here, items))


class Unstored(Client):
    """Nothing is to be kept at the upstream: each anchor is one that only the gateway knows."""

    kind = "store: false"

    def __init__(self, shared: Shared, number: int) -> None:
        super().__init__(shared, number)
        self.settings = {"store": False, "include": [ENCRYPTED]}


class FullHistory(Client):
    """As Codex over HTTP: the whole history each time, nothing stored, reasoning encrypted."""

    kind = "full history"

    def __init__(self, shared: Shared, number: int) -> None:
        super().__init__(shared, number)
        self.settings = {"store": False, "include": [ENCRYPTED]}

    def body(self, here: Point, items: Sequence[Item]) -> dict[str, Any]:
        body = super().body(here, [*here.items, *items])
        body.pop("previous_response_id", None)
        return body

    def kept(
        self, here: Point, items: Sequence[Item], answer: Answer, response: dict[str, Any]
    ) -> Point:
        point = super().kept(here, items, answer, response)
        if response["status"] == "incomplete":
            # What broke off is not sent back: such a client asks again from where it was.
            return here
        return point


class Laned(Client):
    """A WebSocket with lanes, each a conversation of its own."""

    kind = "websocket"

    def __init__(self, shared: Shared, number: int) -> None:
        super().__init__(shared, number)
        self.lanes = Lanes(self.door)
        if self.chance.random() < 0.4:
            self.settings = {"store": False}
        self._names: dict[int, str] = {}

    async def close(self) -> None:
        for stray in self.lanes.strays:
            self.findings.is_wrong("stray frame", f"{self.name}: {stray}")
        await self.lanes.close()
        await super().close()

    async def turns(self) -> None:
        async with asyncio.TaskGroup() as group:
            for lane in range(self.chance.randint(1, 3)):
                group.create_task(self._lane(f"lane-{lane}"))

    async def _lane(self, lane: str) -> None:
        while not self.stopped:
            talk = self.talk()
            self._names[id(talk)] = lane
            if self.chance.random() < 0.3:
                await self._warm_up(talk, lane)
            await self.talked(talk)
            del self._names[id(talk)]

    async def _warm_up(self, talk: Talk, lane: str) -> None:
        """The first words without an answer, so that the next one is quick."""
        items = talk.next_items(talk.start, Plan())
        body = self.body(talk.start, items) | {"generate": False}
        answer = await self.lanes.ask(lane, body)
        point = self.judged(talk.start, items, answer)
        if point is not None:
            self.findings.counts["warm-ups"] += 1
            talk.points.append(point)

    async def ask(self, talk: Talk, here: Point, items: Sequence[Item]) -> Answer:
        return await self.lanes.ask(self._names[id(talk)], self.body(here, items))


class Leaving(Client):
    """Goes away in mid-stream, and comes back for the rest."""

    kind = "leaving"

    async def ask(self, talk: Talk, here: Point, items: Sequence[Item]) -> Answer:
        body = self.body(here, items)
        heard = await self.door.streamed(body, leave_after=self.chance.randint(1, 25))
        if not heard.left or heard.created is None:
            return heard
        self.findings.counts["streams left"] += 1
        await asyncio.sleep(self.chance.choice((0.0, 0.2, 1.0, 3.0)))
        for _ in range(RESUMING_TRIES):
            whole = await self.door.rest(heard)
            if whole.status == 200 and not whole.broke:
                self.findings.counts["streams resumed"] += 1
                return whole
            if not is_passing(whole):
                break
            await asyncio.sleep(RESUMING_SECONDS)
        self.findings.is_wrong("stream not resumed", f"{self.name} {heard.created}: {whole}")
        return heard


class Slow(Client):
    """Reads, but slowly, what is far more than fits between it and the upstream."""

    kind = "slow reader"

    def plan(self) -> Plan:
        return Plan(0, 0, self.chance.choice((100_000, 300_000)), 0)

    def talk(self) -> Talk:
        talk = super().talk()
        talk.turns_left = 2
        return talk

    async def ask(self, talk: Talk, here: Point, items: Sequence[Item]) -> Answer:
        return await self.door.streamed(self.body(here, items), slowly=0.05)

    async def _pause(self, seconds: float) -> None:
        await super()._pause(3 * seconds)


class NeverReading(Client):
    """Asks for much, reads how it begins, and then nothing. Later it looks what became of it."""

    kind = "never reading"

    async def turns(self) -> None:
        while not self.stopped:
            await self._asked()
            await self._pause(3 * self.shared.think_seconds)

    async def _asked(self) -> None:
        here = self.talk().start
        items = Talk(here, 1).next_items(here, Plan(0, 0, LARGE_CHARACTERS, 0))
        body = json.dumps(self.body(here, items) | {"stream": True}).encode()
        shown = await self._begun(body)
        if shown is None or self.stopped:
            return
        self.findings.counts["streams never read"] += 1
        # The gateway takes the client for gone, and reads the answer to its end.
        for _ in range(8):
            await self._pause(3.0)
            status, told = await self.door.ask("GET", f"/responses/{shown}")
            if status == 200 and isinstance(told, dict) and told["status"] != "in_progress":
                break
        else:
            if not self.stopped:
                self.findings.is_wrong("response has no end", f"{self.name} {shown}: {told}")
            return
        self.findings.counts[f"never read, {told['status']}"] += 1
        if told["status"] == "completed":
            self.follows(here, items, told)
            if not text_of(told["output"][-1]["content"]).endswith(" end"):
                self.findings.is_wrong("half an answer kept", f"{self.name} {shown}")
            self.findings.was_seen(self.tenant, told, items)
            self.findings.counts["turns"] += 1
        self.done_at = time.monotonic()

    async def _begun(self, body: bytes) -> str | None:
        """Ask, and hear who answers; then read nothing for as long as the gateway puts up with."""
        host, port = self.shared.base.split("/")[2].split(":")
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await loop.sock_connect(made, (host, int(port)))
                head = [
                    "POST /v1/responses HTTP/1.1",
                    f"host: {host}",
                    f"authorization: Bearer {self.door.key}",
                    "content-type: application/json",
                    f"content-length: {len(body)}",
                ]
                await loop.sock_sendall(made, "\r\n".join([*head, "", ""]).encode() + body)
                heard = b""
                while (found := _RESPONSE_ID.search(heard)) is None:
                    more = await loop.sock_recv(made, 1024)
                    if not more or len(heard) > 16_000:
                        return None
                    heard += more
            await self._pause(self.shared.unread_seconds + 4.0)
            return found[1].decode()
        except TimeoutError:
            self.findings.is_wrong("not well formed", f"{self.name}: no beginning")
            return None
        except OSError:
            return None
        finally:
            made.close()


KINDS: dict[type[Client], int] = {
    Chained: 40,
    Whole: 24,
    Unstored: 16,
    FullHistory: 34,
    Laned: 36,
    InConversation: 22,
    Leaving: 18,
    Slow: 8,
    NeverReading: 2,
}
"""How many of each there are among 200."""


def clients(shared: Shared, number: int) -> list[Client]:
    """So many clients, of every kind at least one where there is room for that."""
    whole = sum(KINDS.values())
    made = [kind for kind, share in KINDS.items() for _ in range(max(1, share * number // whole))]
    while len(made) < number:
        made.append(Chained)
    return [kind(shared, n) for n, kind in enumerate(made[:number])]
