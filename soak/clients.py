"""What all clients do: turns in a loop, each with its own idea of what the conversation must hold.

A client asks again after an error that an upstream in trouble may cause; every other error, and
every answer that does not follow from the whole conversation, is a finding. The kinds of clients
are in `kinds`, and in `conversing` those whose conversation somebody else keeps."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from soak.answers import Answer, is_passing, problems
from soak.echoes import Item, Plan, echo, echo_in, marks, text_of
from soak.findings import Findings
from soak.processes import EVERYBODY, KEYS, STATELESS
from soak.talks import TOOLS, Point, Sample, Talk
from soak.wire import Door

MODELS = ("ash", "birch", "both", "both", "cedar")
"""One upstream, the other, both with the first before the second, and one without state."""
ENCRYPTED = "reasoning.encrypted_content"
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
    looks_back = 0.3
    """How often it looks at the end what its conversation holds."""
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
        if talk.points and self.chance.random() < self.looks_back and not self.stopped:
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
