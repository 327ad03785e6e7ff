"""What the journal has of a response, told in the form of the upstream that has it no more.

The response itself: what its last event said of it, and its items. Its events again, condensed:
`response.created` for who has seen nothing, `response.output_item.done` for each item, and the
event that ended it; the deltas are gone. One that never ended is told as failed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from lockstitch.core.facts import Ending
from lockstitch.dialects.reading import UNREADABLE
from lockstitch.gateway.deciding.listing import Listed, listed
from lockstitch.gateway.deciding.refusals import Failing
from lockstitch.gateway.events import CREATED, FAILED, ITEM_DONE, as_sse, fields_of, peeked
from lockstitch.gateway.keeping.exchanges import Kept
from lockstitch.upstream.responses_answer import ENDING_OF_STATUS

BROKE_OFF: Final = (
    "The response is incomplete: the process that received it stopped before its end. The items "
    "received until then are stored. Send the request again."
)

_MISSING: Final[dict[str, Any]] = {
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "usage": None,
}
"""What clients expect in a response. What it only repeats of its request is not kept where an
upstream keeps it, and is told so when that has lost it."""

_UNDER_WAY: Final[dict[str, Any]] = {
    "status": "in_progress",
    "completed_at": None,
    "error": None,
    "incomplete_details": None,
    "usage": None,
}

_STATUS_OF_ENDING: Final = {
    Ending.COMPLETED: "completed",
    Ending.INCOMPLETE: "incomplete",
    Ending.FAILED: "failed",
}
"""One that was cut has none: nobody knows how it ended."""

_encode = msgspec.json.Encoder().encode


def response(kept: Kept, shown: str, *, under_way: bool = False) -> bytes:
    """The response, under the id that the client knows it by. ``under_way``: somebody hears it
    now, or writes its end down, so that it has not broken off."""
    if kept.end_known:
        return _encode(_ended(kept, shown))
    if under_way:
        return _encode(_known(kept, shown) | _UNDER_WAY | {"output": _output(kept)})
    return bytes(peeked(_failing(kept, shown, 0).frame()).response)


def events(kept: Kept, shown: str, after: int = -1) -> list[bytes]:
    """The events behind this sequence number, as SSE, to the end of the response. Nothing is left
    to tell to a client that has seen the end."""
    numbers, last = _numbers(kept)
    own_end = kept.end_known and kept.answered.last == last
    if own_end and after >= last:
        return []
    told: list[bytes] = []
    if after < 0 and 0 not in numbers and last > 0:
        begun = _known(kept, shown) | _UNDER_WAY | {"output": []}
        told.append(_event(CREATED, {"sequence_number": 0, "response": begun}))
    behind = [(n, at) for at, n in enumerate(numbers) if n is not None and n > after]
    for number, index in sorted(behind):
        item = Raw(kept.said[index])
        fields = {"sequence_number": number, "output_index": index, "item": item}
        told.append(_event(ITEM_DONE, fields))
    # A number that nobody gave is behind all that the client has seen.
    number = last if own_end else max(last, after + 1)
    if not kept.end_known:
        told.append(as_sse(FAILED, _failing(kept, shown, number).frame()))
        return told
    ended = _ended(kept, shown)
    told.append(
        _event(f"response.{ended['status']}", {"sequence_number": number, "response": ended})
    )
    return told


def unknown_end(shown: str, after: int) -> bytes:
    """The end of a stream of which nothing is kept."""
    failing = Failing(sequence_number=max(after + 1, 0), id=shown, message=BROKE_OFF)
    return as_sse(FAILED, failing.frame())


def input_items(path: Sequence[Kept]) -> list[Listed]:
    """All that the last response of a path saw, in order, as it is listed."""
    found: list[Listed] = []
    for n, one in enumerate(path, 1):
        items = one.items if n == len(path) else [*one.items, *one.said]
        found += [listed(item, f"{one.id}/{place}") for place, item in enumerate(items)]
    return found


def is_of_the_background(kept: Kept) -> bool:
    """Was it asked for in the background? Only such a response can be cancelled."""
    said = _said(kept).get("background")
    return said is not None and bytes(said) == b"true"


# --- the response ------------------------------------------------------------------------------


def _said(kept: Kept) -> dict[str, Raw]:
    """What the response's last event said of it."""
    try:
        return fields_of(kept.answered.response)
    except UNREADABLE:
        return {}


def _known(kept: Kept, shown: str) -> dict[str, Any]:
    asked = kept.asked
    known: dict[str, Any] = {"created_at": int(asked.created), "model": asked.model}
    known |= _MISSING
    known |= _said(kept)
    known |= asked.asked_for()
    return {"id": shown, "object": "response"} | known | {"id": shown, "object": "response"}


def _ended(kept: Kept, shown: str) -> dict[str, Any]:
    known = _known(kept, shown)
    assert kept.ending is not None
    status = kept.answered.ended_by.removeprefix("response.")
    if ENDING_OF_STATUS.get(status) is not kept.ending:
        status = _STATUS_OF_ENDING[kept.ending]
    known |= {"status": status, "output": _output(kept)}
    if status == "failed" and _is_null(known["error"]):
        known["error"] = {"code": "server_error", "message": "The response failed."}
    return known


def _output(kept: Kept) -> list[Raw]:
    return [Raw(item) for item in kept.said]


def _failing(kept: Kept, shown: str, number: int) -> Failing:
    return Failing(
        sequence_number=number,
        id=shown,
        response=_encode(_known(kept, shown)),
        output=kept.said,
        message=BROKE_OFF,
    )


def _is_null(value: object) -> bool:
    return value is None or (isinstance(value, Raw) and bytes(value) == b"null")


# --- events ------------------------------------------------------------------------------------


def _event(type: str, fields: dict[str, Any]) -> bytes:
    return as_sse(type, _encode({"type": type} | fields))


def _numbers(kept: Kept) -> tuple[list[int | None], int]:
    """The sequence number of each item, and of the end. An item that came with the end alone gets
    one that is free before it; where none is, only the end tells of it. The same every time, so
    that a client which breaks off goes on where it was."""
    given = kept.answered.numbers
    numbers: list[int | None] = [None] * len(kept.said)
    known: set[int] = set()
    for at, number in enumerate(given[: len(numbers)]):
        if number is not None and number >= 0 and number not in known:
            numbers[at] = number
            known.add(number)
    highest = max(known, default=0)
    last = kept.answered.last
    if last is None or last <= highest:
        last = highest + numbers.count(None) + 1
    ceilings = _lowest_behind(numbers, last)
    before = 0
    for at, number in enumerate(numbers):
        if number is not None:
            before = max(before, number)
        elif before + 1 < ceilings[at] and before + 1 not in known:
            numbers[at] = before = before + 1
    return numbers, last


def _lowest_behind(numbers: Sequence[int | None], last: int) -> list[int]:
    """For each place the lowest number that is known from there on."""
    found: list[int] = []
    lowest = last
    for number in reversed(numbers):
        if number is not None:
            lowest = min(lowest, number)
        found.append(lowest)
    return found[::-1]
