"""Clients of `/v1/conversations`: after an error only a look tells whether the turn was taken."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from soak.answers import Answer
from soak.clients import TRIES, Client, Shared
from soak.echoes import Item, marks
from soak.talks import Point, Talk


class InConversation(Client):
    """A conversation that somebody keeps: after an error the client looks what is in it."""

    kind = "conversation"
    models = ("both", "cedar")
    """A conversation is made before anybody says a model, and may be at either upstream."""
    looks_back = 1.0

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
            if self._is_gone(answer):
                self.findings.counts["conversations lost"] += 1
                if self.model == "cedar":
                    self.findings.is_wrong("conversation lost", f"{self.name}: {answer}")
                return False
            if self.stopped:
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
        return answer.error_status in (404, 400) and "not found" in str(answer.error)

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
