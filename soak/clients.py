"""The clients: each runs turns in a loop, and knows what its conversation must hold.

The kinds and how many there are of each: the table at the end. A client asks again after an error
that an upstream in trouble may cause; every other error, and every answer that does not follow from
the whole conversation, is a finding."""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from soak.answers import Answer, is_passing, problems
from soak.echoes import Item, Plan, echo, echo_in, marks, text_of
from soak.findings import Findings
from soak.processes import EVERYBODY, KEYS, STATELESS
from soak.talks import TOOLS, Point, Sample, Talk
from soak.wire import ANSWER_SECONDS, Door, Lanes

MODELS = ("ash", "birch", "both", "both", "cedar")
"""One upstream, the other, both with the first before the second, and one without state."""
ENCRYPTED = "reasoning.encrypted_content"
LARGE_CHARACTERS = 800_000
"""Told five times in a stream: some megabytes, more than the buffers of two sockets."""
_RESPONSE_ID = re.compile(rb'"id":\s?"(resp_[0-9a-f]+)"')
TRIES = 8
"""For one turn, before the client gives its conversation up and begins another."""


@dataclass(slots=True)
class Shared:
    """What all clients have in common."""

    base: str
    findings: Findings
    sample: Sample
    seed: int
    think_seconds: float
    stop: asyncio.Event
    longest_stall_seconds: float
    unread_seconds: float


def tenant_of(model: str) -> str:
    return STATELESS if model == "cedar" else EVERYBODY


class Client:
    """One client. `live` runs until it is told to stop."""

    kind = "chain"
    models: tuple[str, ...] = MODELS
    settings: dict[str, Any]

    def __init__(self, shared: Shared, number: int) -> None:
        self.shared = shared
        self.findings = shared.findings
        self.name = f"{self.kind} {number}"
        self.chance = random.Random(f"{shared.seed}/{number}")
        self.settings = {}
        self.done_at = 0.0
        """When it last got an answer that was as it should be."""
        self.model = self.chance.choice(self.models)
        self.tenant = tenant_of(self.model)
        self.door = Door(shared.base, KEYS[self.tenant])

    async def live(self) -> None:
        try:
            await self._pause(self.shared.think_seconds)
            await self.turns()
        except Exception as error:  # a mistake of the soak's own, or an answer nobody foresaw
            self.findings.is_wrong("client failed", f"{self.name}: {error!r}")
            raise
        finally:
            await self.close()

    async def close(self) -> None:
        await self.door.close()

    async def turns(self) -> None:
        while not self.stopped:
            talk = self.talk()
            await self.talked(talk)

    def talk(self) -> Talk:
        start = Point(model=self.model, settings=tuple(self.settings.items()))
        return Talk(start, turns_left=self.chance.randint(3, 12))

    async def talked(self, talk: Talk) -> None:
        while talk.turns_left and not self.stopped:
            talk.turns_left -= 1
            if not await self.turn(talk):
                self.findings.counts["conversations given up"] += 1
                return
            await self._pause(self.shared.think_seconds)
        self.findings.counts["conversations ended"] += 1
        if talk.points and self.chance.random() < 0.3 and not self.stopped:
            await self.look_back(talk.here)

    async def turn(self, talk: Talk) -> bool:
        here = self.place(talk)
        items = talk.next_items(here, self.plan())
        for attempt in range(TRIES):
            answer = await self.ask(talk, here, items)
            point = self.judged(here, items, answer)
            if point is not None:
                talk.points.append(point)
                return True
            if not self.goes_on(answer) or self.stopped:
                return False
            await self._pause(0.5 + attempt)
        self.findings.counts["turns given up"] += 1
        return False

    def place(self, talk: Talk) -> Point:
        """Where to go on from: now and then from an earlier response."""
        if talk.points and self.chance.random() < 0.1:
            self.findings.counts["forks"] += 1
            return self.chance.choice(talk.points)
        return talk.here

    def plan(self) -> Plan:
        calls = self.chance.choice((0, 0, 1, 2, 3))
        return Plan(
            calls, self.chance.choice((6, 12, 30, 60)), 0, self.chance.choice((0, 0, 5, 30))
        )

    async def ask(self, talk: Talk, here: Point, items: Sequence[Item]) -> Answer:
        return await self.door.streamed(self.body(here, items))

    def body(self, here: Point, items: Sequence[Item]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": here.model, "input": list(items), "tools": TOOLS}
        body |= dict(here.settings)
        return body | ({"previous_response_id": here.tip} if here.tip else {})

    # What must be true

    def judged(self, here: Point, items: Sequence[Item], answer: Answer) -> Point | None:
        """Where the conversation stands now; None if the turn is to be asked for again."""
        findings = self.findings
        findings.counts["answers"] += 1
        findings.counts[f"answers {answer.said}"] += 1
        for problem in problems(answer):
            findings.is_wrong("not well formed", f"{self.name} {here.model}: {problem}: {answer}")
        response = answer.response
        if response is None or response["status"] == "failed":
            if answer.broke or answer.left or is_passing(answer) or self.may_be_told(answer):
                return None
            findings.is_wrong("error", f"{self.name} {here.model} {here.tip}: {answer}")
            return None
        self.follows(here, items, response)
        return self.kept(here, items, answer, response)

    def kept(
        self, here: Point, items: Sequence[Item], answer: Answer, response: dict[str, Any]
    ) -> Point:
        self.findings.was_seen(self.tenant, response, items)
        if answer.created not in (None, response["id"]):
            self.findings.counts["answered under another id"] += 1
            self.findings.seen[str(answer.created)] = self.findings.seen[response["id"]]
        self.findings.counts["turns"] += 1
        self.findings.counts[f"turns of {self.kind}"] += 1
        self.done_at = time.monotonic()
        point = here.after(items, response)
        if answer.created is not None and self.chance.random() < 0.5:
            # Both ids can be gone on from.
            point = replace(point, tip=answer.created)
        self.offer(point)
        return point

    def offer(self, point: Point) -> None:
        self.shared.sample.offer(point)

    def follows(self, here: Point, items: Sequence[Item], response: Item) -> None:
        """The answer says what it was given: the whole of the conversation, in order."""
        anchor = self.body(here, items).get("previous_response_id")
        if response["previous_response_id"] != anchor:
            self.findings.is_wrong(
                "anchor not echoed",
                f"{self.name}: {response['previous_response_id']} in place of {anchor}",
            )
        texts = [text_of(one["content"]) for one in response["output"] if one["type"] == "message"]
        if not texts:
            return  # it broke off before a word was said
        held = (*here.held, *marks(items))
        said = echo_in(texts[0])
        if said is None and response["status"] == "incomplete":
            return
        if said != echo(held):
            self.findings.is_wrong(
                "context lost",
                f"{self.name} {here.model} {response['id']} after {here.tip}: it says {said},"
                f" and was to say {echo(held)}; the end of it: {held[-4:]}",
            )

    def may_be_told(self, answer: Answer) -> bool:
        """Whether this error is of this client's own making."""
        return False

    def goes_on(self, answer: Answer) -> bool:
        """Whether it makes sense to ask again."""
        return not self.may_be_told(answer)

    async def look_back(self, here: Point) -> None:
        """All that the last response saw, as it is listed, is what the client sent and was told."""
        for _ in range(3):
            path = f"/responses/{here.tip}/input_items?limit=100&order=asc"
            status, body = await self.door.ask("GET", path)
            if status == 200 and isinstance(body, dict) and not body.get("has_more"):
                listed = tuple(marks(body["data"]))
                self.findings.counts["inputs listed"] += 1
                if listed != here.held[: here.seen]:
                    self.findings.is_wrong(
                        "another input listed", f"{self.name} {here.tip}: {listed} of {here.held}"
                    )
                return
            if status == 404:
                # It was lost, or never kept, at its upstream; the journal has it all the same.
                self.findings.is_wrong("input not found", f"{self.name} {here.tip}: {body}")
                return
            await self._pause(1.0)

    @property
    def stopped(self) -> bool:
        return self.shared.stop.is_set()

    async def _pause(self, seconds: float) -> None:
        """Wait for about so long, or until it is over."""
        try:
            async with asyncio.timeout(seconds * self.chance.uniform(0.5, 1.5)):
                await self.shared.stop.wait()
        except TimeoutError:
            pass


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


class InConversation(Client):
    """A conversation that somebody keeps: after an error the client looks what is in it."""

    kind = "conversation"
    models = ("ash", "both", "cedar")

    def __init__(self, shared: Shared, number: int) -> None:
        super().__init__(shared, number)
        self.in_one = self.chance.random() < 0.4
        self._conversation: str | None = None

    def place(self, talk: Talk) -> Point:
        return talk.here

    def offer(self, point: Point) -> None:
        """One of its responses can be gone on from, but what it saw is the conversation's."""

    def body(self, here: Point, items: Sequence[Item]) -> dict[str, Any]:
        body = super().body(here, items) | {"conversation": self._conversation}
        body.pop("previous_response_id", None)
        return body

    async def turns(self) -> None:
        while not self.stopped:
            status, body = await self.door.ask("POST", "/conversations", {})
            if status != 200 or not isinstance(body, dict):
                if status not in (429, 500, 502, 503, 504, 529):
                    self.findings.is_wrong("error", f"{self.name}: {status} {body}")
                await self._pause(1.0)
                continue
            self._conversation = body["id"]
            await self.talked(self.talk())

    async def turn(self, talk: Talk) -> bool:
        here = talk.here
        items = talk.next_items(here, self.plan())
        for _ in range(TRIES):
            answer = await self.ask(talk, here, items)
            point = self.judged(here, items, answer)
            if point is not None:
                talk.points.append(point)
                return True
            if self._is_gone(answer) or self.stopped:
                return False
            # Whatever still runs there is over by then, and the answer is in it, or not.
            await asyncio.sleep(self.shared.longest_stall_seconds + 1.0)
            held = await self._held()
            if held is None:
                return False
            found = tuple(marks(held))
            if found == here.held:
                continue
            expected = (*here.held, *marks(items))
            if found[: len(expected)] != expected:
                self.findings.is_wrong(
                    "conversation holds something else",
                    f"{self.name} {self._conversation}: {found} in place of {expected}",
                )
                return False
            self.findings.counts["answers found in a conversation"] += 1
            said = held[len(held) - _trailing(held) :]
            calls = tuple(
                item
                for item in said
                if item["type"] == "function_call" and item.get("status") != "incomplete"
            )
            talk.points.append(replace(here, held=found, calls=calls))
            return True
        self.findings.counts["turns given up"] += 1
        return False

    async def ask(self, talk: Talk, here: Point, items: Sequence[Item]) -> Answer:
        if self.in_one:
            return await self.door.whole(self.body(here, items))
        return await super().ask(talk, here, items)

    def may_be_told(self, answer: Answer) -> bool:
        return self._is_gone(answer) or answer.error.get("code") == "conversation_locked"

    def goes_on(self, answer: Answer) -> bool:
        return not self._is_gone(answer)

    def _is_gone(self, answer: Answer) -> bool:
        """Its upstream has lost everything, and with it what only that one kept."""
        gone = answer.error_status in (404, 400) and "not found" in str(answer.error)
        if gone:
            self.findings.counts["conversations lost"] += 1
            if self.model == "cedar":
                self.findings.is_wrong("conversation lost", f"{self.name}: {answer}")
        return gone

    async def look_back(self, here: Point) -> None:
        held = await self._held()
        if held is None:
            return
        self.findings.counts["conversations listed"] += 1
        if tuple(marks(held)) != here.held:
            self.findings.is_wrong(
                "conversation holds something else",
                f"{self.name} {self._conversation}: {marks(held)} in place of {here.held}",
            )

    async def _held(self) -> list[Any] | None:
        """What is in it now; None if nobody can tell, or it is gone."""
        path = f"/conversations/{self._conversation}/items?limit=100&order=asc"
        for _ in range(4):
            status, body = await self.door.ask("GET", path)
            if status == 200 and isinstance(body, dict):
                data: list[Any] = body["data"]
                return None if body.get("has_more") else data
            if status == 404:
                return None
            await self._pause(1.0)
        return None


def _trailing(held: Sequence[Item]) -> int:
    """How many items at the end are the model's."""
    said = 0
    for item in reversed(held):
        if item.get("role") == "user" or item["type"] == "function_call_output":
            break
        said += 1
    return said


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
        for _ in range(4):
            whole = await self.door.rest(heard)
            if whole.status == 200 and not whole.broke:
                self.findings.counts["streams resumed"] += 1
                return whole
            if not is_passing(whole):
                break
            await asyncio.sleep(1.0)
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
