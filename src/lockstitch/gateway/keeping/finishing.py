"""The end of a response that nobody heard: in the background, or while no gateway was listening.

An upstream that is asked for it later shows how it ended; here that becomes the facts that are
missing in its exchange. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Raw

from lockstitch.core.facts import AnyFact, Ending, ItemCompleted, ResponseOpened
from lockstitch.dialects.reading import decoded
from lockstitch.gateway.deciding.listing import id_of
from lockstitch.gateway.events import body_of
from lockstitch.gateway.keeping.exchanges import Kept, ended, without_output
from lockstitch.gateway.keeping.notes import AnsweredNote
from lockstitch.upstream.responses_answer import ENDING_OF_EVENT

NOTHING_HEARD: Final[Mapping[bytes, int | None]] = {}


def finished(
    kept: Kept,
    response: bytes,
    *,
    ended_by: str = "",
    last: int | None = None,
    heard: Mapping[bytes, int | None] = NOTHING_HEARD,
) -> list[AnyFact]:
    """What is missing in an exchange whose response is over; nothing where it is not over, or
    where the exchange has the end itself. ``ended_by`` is the type of the last event, which says
    so whatever the response in it says; ``last`` is its number. ``heard`` are items that were heard
    since, each with the number of its event. Raises `NotAnItem`."""
    body = body_of(response)
    if not ended_by and body.id == kept.id:
        ended_by = f"response.{body.status}"
    ending = ENDING_OF_EVENT.get(ended_by)
    if ending is None or kept.end_known:
        return []
    # Some tell of their items only as they are said.
    listed = [bytes(item) for item in body.output or ()] or _with(kept.said, heard)
    for item in listed:
        decoded(item)  # an upstream may list anything
    places = _places(kept.said, listed)
    new = [at for at in range(len(listed)) if at not in places]
    items = [*kept.said, *(listed[at] for at in new)]
    by_place = sorted(range(len(items)), key=[*places, *new].__getitem__)
    in_order = [items[at] for at in by_place]
    numbers = dict(zip(kept.said, kept.answered.numbers, strict=False))
    numbers |= {item: number for item, number in heard.items() if number is not None}
    note = AnsweredNote(
        numbers=[numbers.get(item) for item in in_order],
        order=by_place if by_place != list(range(len(items))) else [],
        last=last,
        ended_by=ended_by,
        response=Raw(without_output(response, brief=True)),
    )
    request = kept.request
    # Whoever heard it stopped before its end, and wrote that down: it was lost, and is found.
    found = [ResponseOpened(request=request, id=kept.id)] if kept.ending is Ending.CUT else []
    return [
        *found,
        *(ItemCompleted(request=request, item=listed[at]) for at in new),
        *ended(request, ending, note),
    ]


def _with(said: Sequence[bytes], heard: Iterable[bytes]) -> list[bytes]:
    """What was said, and then heard."""
    known = {id_of(item) or item for item in said}
    return [*said, *(item for item in heard if (id_of(item) or item) not in known)]


def _places(said: Sequence[bytes], listed: Sequence[bytes]) -> list[int]:
    """Where each item that was said is listed. It is the next one of its id; where none has that
    (some servers give another one in the end, or none) it is the one in its place."""
    by_id: dict[str | None, list[int]] = {}
    for at, item in enumerate(listed):
        by_id.setdefault(id_of(item), []).append(at)
    by_id.pop(None, None)
    places: list[int] = []
    for at, item in enumerate(said):
        of_its_id = by_id.get(id_of(item))
        places.append(of_its_id.pop(0) if of_its_id else at)
    return places
