"""What a client saw of one answer, and whether it may look like that. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

TERMINAL = ("response.completed", "response.incomplete", "response.failed")
OWN_MISTAKES = ("gateway_error", "journal_unavailable")
"""What the gateway says when it did wrong, or its journal did: there is no reason for either."""
PASSING_STATUSES = (429, 500, 502, 503, 504, 529)
"""What an upstream in trouble says; the client asks again."""

Event = dict[str, Any]


@dataclass(slots=True)
class Answer:
    """One answer, over any transport."""

    transport: str
    status: int = 200
    events: list[Event] = field(default_factory=list)
    body: Any = None
    """Of an answer that is no stream: JSON, or its text."""
    broke: str = ""
    """How it ended, where it should not have ended so."""
    left: bool = False
    """The client went away by itself."""
    resumed: bool = False
    """It came back: what was said in between may be told without deltas."""

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def response(self) -> dict[str, Any] | None:
        """The response at its end; None where there was none."""
        if self.transport == "json":
            whole = self.status == 200 and isinstance(self.body, dict)
            return self.body if whole else None
        last = self.events[-1] if self.events else {}
        return last.get("response") if last.get("type") in TERMINAL else None

    @property
    def said(self) -> str:
        """completed, incomplete, failed, or error."""
        response = self.response
        return str(response["status"]) if response is not None else "error"

    @property
    def created(self) -> str | None:
        """The id that the response was first shown with."""
        for event in self.events:
            if event["type"] == "response.created":
                return str(event["response"]["id"])
        return None

    @property
    def error(self) -> dict[str, Any]:
        """The error in it, as well as it can be told."""
        if self.response is not None:
            found = self.response.get("error")
        elif self.events and self.events[-1]["type"] == "error":
            found = self.events[-1].get("error", self.events[-1])
        else:
            found = self.body.get("error") if isinstance(self.body, dict) else None
        return found if isinstance(found, dict) else {}

    @property
    def error_status(self) -> int:
        if self.events and self.events[-1]["type"] == "error":
            return int(self.events[-1].get("status") or 500)
        return self.status

    def __str__(self) -> str:
        body = str(self.body)[:300] if self.body is not None else ""
        last = self.events[-1] if self.events and not self.response else self.error
        return (
            f"{self.transport} {self.status} {self.said} {_shortened(self.types)} {body}"
            f" {str(last)[:300] if last else ''} {self.broke}"
        )


def _shortened(types: list[str]) -> str:
    return " ".join(f"{name.removeprefix('response.')}*{n}" for name, n in Counter(types).items())


def problems(answer: Answer) -> Iterator[str]:
    """What is wrong with the form of an answer, whatever it says."""
    if answer.broke:
        yield f"it broke: {answer.broke}"
        return
    code = answer.error.get("code")
    if code in OWN_MISTAKES:
        yield f"a mistake of the gateway: {answer.error}"
    if answer.transport == "json" or answer.status != 200:
        if answer.status == 200 and answer.said not in ("completed", "incomplete", "failed"):
            yield f"a response with the status {answer.said}"
        return
    if answer.left:
        return
    yield from _of_events(answer)


def _of_events(answer: Answer) -> Iterator[str]:
    types = answer.types
    if types == ["error"]:
        return
    if not types:
        yield "no event at all"
        return
    ends = [n for n, name in enumerate(types) if name in (*TERMINAL, "error")]
    if ends != [len(types) - 1]:
        yield f"ends at {ends} of {len(types)} events"
    if types[0] != "response.created":
        yield f"begins with {types[0]}"
    if types.count("response.created") != 1 or types.count("response.in_progress") > 1:
        yield "begins twice"
    # An error has no number over a WebSocket.
    numbers = [e["sequence_number"] for e in answer.events if "sequence_number" in e]
    if any(a >= b for a, b in pairwise(numbers)):
        yield f"sequence numbers {numbers}"
    yield from _of_items(answer)


def _of_items(answer: Answer) -> Iterator[str]:
    """The end says what was said on the way: nothing of another try, nothing twice."""
    done = [e["item"] for e in answer.events if e["type"] == "response.output_item.done"]
    added = [e["item"]["id"] for e in answer.events if e["type"] == "response.output_item.added"]
    if len(set(added)) != len(added):
        yield f"items added twice: {added}"
    if not answer.resumed and not {item["id"] for item in done} <= set(added):
        yield "items are done that were never added"
    response = answer.response
    if response is None or response["status"] == "failed":
        return
    output = {item["id"]: item for item in response["output"]}
    for item in done:
        if output.get(item["id"]) != item:
            yield f"the end has another {item['id']} than its event"
    if response["status"] == "completed" and set(output) != {item["id"] for item in done}:
        yield "the end has items that no event had"
    if answer.resumed:
        return
    deltas: Counter[str] = Counter()
    for event in answer.events:
        if event["type"] == "response.output_text.delta":
            deltas[event["item_id"]] += len(event["delta"])
    for item in done:
        if item["type"] == "message":
            length = sum(len(part.get("text", "")) for part in item["content"])
            if deltas[item["id"]] != length:
                yield f"{deltas[item['id']]} characters in deltas, {length} in the item"


def is_passing(answer: Answer) -> bool:
    """Whether a client may be told this while upstreams are in trouble, and ask again."""
    if answer.said == "failed":
        return True
    if answer.events and answer.events[0]["type"] == "response.created":
        return True  # it broke off behind its beginning, and says so
    return answer.error_status in PASSING_STATUSES
