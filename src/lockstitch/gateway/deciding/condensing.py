"""A response that came whole, as the events that would have told it: without deltas. Pure.

For a client that reads nothing but events, where an upstream does not stream. Numbers are those
that the journal gives such a response when it is told again (`keeping.telling`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from lockstitch.gateway.events import CREATED, ITEM_DONE, Heard, body_of, changed, peeked
from lockstitch.upstream.responses_answer import ENDING_OF_STATUS


def condensed(response: bytes) -> Sequence[Heard]:
    """Its beginning, each of its items, and its end. Nothing, where it is no response that has
    ended."""
    body = body_of(response)
    if body.id is None or body.status not in ENDING_OF_STATUS:
        return ()
    begun = changed(response, {"status": "in_progress", "output": [], "usage": None})
    said: list[dict[str, Any]] = [{"type": CREATED, "response": msgspec.Raw(begun)}]
    for index, item in enumerate(body.output or ()):
        said.append({"type": ITEM_DONE, "output_index": index, "item": item})
    said.append({"type": f"response.{body.status}", "response": msgspec.Raw(response)})
    events = []
    for number, event in enumerate(said):
        data = msgspec.json.encode(event | {"sequence_number": number})
        events.append(Heard(peeked(data), data))
    return events
