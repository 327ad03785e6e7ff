"""A conversation as its client knows it: what it must hold, and where it can be gone on from."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from soak.echoes import Item, Plan, marks
from soak.provider import TOOL

TOOLS = [
    {
        "type": "function",
        "name": TOOL,
        "parameters": {"type": "object", "properties": {}},
        "strict": False,
    }
]
_numbers = count(1)


def user(plan: Plan) -> dict[str, Any]:
    """A message that nobody has sent before."""
    return {"type": "message", "role": "user", "content": f"word {next(_numbers)} {plan}"}


def output(call: Item) -> dict[str, Any]:
    said = f"seen {next(_numbers)}"
    return {"type": "function_call_output", "call_id": call["call_id"], "output": said}


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a conversation: a response, and all that stands up to its end."""

    tip: str | None = None
    held: tuple[str, ...] = ()
    calls: tuple[Item, ...] = ()
    """Those that wait for their outputs."""
    seen: int = 0
    """How many of what it holds the last response was given; the rest it said."""
    items: tuple[Item, ...] = ()
    """The whole of it, where a client sends that."""
    model: str = ""
    settings: tuple[tuple[str, Any], ...] = ()

    def after(self, sent: Sequence[Item], response: Item) -> Point:
        said = response["output"]
        calls = tuple(
            item
            for item in said
            if item["type"] == "function_call" and item["status"] == "completed"
        )
        given = (*self.held, *marks(sent))
        return replace(
            self,
            tip=response["id"],
            held=(*given, *marks(said)),
            seen=len(given),
            calls=calls,
            items=(*self.items, *sent, *said),
        )


@dataclass(slots=True)
class Talk:
    """One conversation, with every point it went through."""

    start: Point
    turns_left: int
    points: list[Point] = field(default_factory=list)
    conversation: str | None = None

    @property
    def here(self) -> Point:
        return self.points[-1] if self.points else self.start

    def next_items(self, here: Point, plan: Plan) -> list[dict[str, Any]]:
        return [output(call) for call in here.calls] or [user(plan)]


class Sample:
    """A fair sample of points, however many there are."""

    def __init__(self, most: int, chance: random.Random) -> None:
        self._most = most
        self._chance = chance
        self._offered = 0
        self.points: list[Point] = []

    def offer(self, point: Point) -> None:
        self._offered += 1
        if len(self.points) < self._most:
            self.points.append(point)
        elif (at := self._chance.randrange(self._offered)) < self._most:
            self.points[at] = point

    def all(self) -> Iterable[Point]:
        return list(self.points)
