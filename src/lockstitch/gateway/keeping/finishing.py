"""The end of a response that nobody heard: in the background, or while no gateway was listening.

An upstream that is asked for it later shows how it ended; here that becomes the facts that are
missing in its exchange. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Raw

from lockstitch.core.facts import AnyFact, Ending, ItemCompleted, ResponseOpened
from lockstitch.dialects.reading import decoded
from lockstitch.gateway.deciding.listing import id_of
from lockstitch.gateway.events import body_of
from lockstitch.gateway.keeping.exchanges import Kept, ended, without_output
from lockstitch.gateway.keeping.notes import AnsweredNote
from lockstitch.upstream.responses_answer import ENDING_OF_STATUS

NOTHING_HEARD: Final[Mapping[bytes, int]] = {}


def finished(
    kept: Kept,
    response: bytes,
    *,
    last: int | None = None,
    numbers: Mapping[bytes, int] = NOTHING_HEARD,
) -> list[AnyFact]:
    """What is missing in an exchange whose response is over; nothing where it is not over, or
    where the exchange has the end itself. ``numbers`` are those of the items' events that were
    heard, ``last`` that of the last event. Raises `NotAnItem`."""
    body = body_of(response)
    ending = ENDING_OF_STATUS.get(body.status or "")
    if ending is None or body.id != kept.id or kept.end_known:
        return []
    output = [bytes(item) for item in body.output or ()]
    for item in output:
        decoded(item)  # an upstream may list anything
    new = _unsaid(kept.said, output)
    note = AnsweredNote(
        numbers=[numbers.get(item) for item in (*kept.said, *new)],
        last=last,
        ended_by=f"response.{body.status}",
        response=Raw(without_output(response, brief=True)),
    )
    request = kept.request
    # Whoever heard it stopped before its end, and wrote that down: it was lost, and is found.
    found = [ResponseOpened(request=request, id=kept.id)] if kept.ending is Ending.CUT else []
    return [
        *found,
        *(ItemCompleted(request=request, item=item) for item in new),
        *ended(request, ending, note),
    ]


def _unsaid(said: Sequence[bytes], output: Sequence[bytes]) -> list[bytes]:
    """The items that are not written down yet. One that was heard has the id of one that is listed;
    where none has it (some servers give another one in the end, or none) it is the one in its
    place."""
    ids = [id_of(item) for item in output]
    heard = [id_of(item) for item in said]
    in_place = {at for at, named in enumerate(heard) if named is None or named not in ids}
    return [
        item
        for at, item in enumerate(output)
        if at not in in_place and (ids[at] is None or ids[at] not in heard)
    ]
