"""One exchange, a request and its answer, as the facts that are kept of it, and back.

Each is a ledger of its own, so that one process writes it and nobody waits: what came before it is
adopted by the id of the response it goes on from. `chains` puts them together again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from lockstitch.core.facts import (
    START,
    AnchorAdopted,
    AnyFact,
    By,
    Ending,
    ItemAdded,
    ItemCompleted,
    Mode,
    Noted,
    RequestPrepared,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
    Seq,
)
from lockstitch.core.items import Item, Part
from lockstitch.dialects.reading import READINGS, UNREADABLE
from lockstitch.gateway.events import changed
from lockstitch.gateway.keeping.notes import (
    ANSWERED,
    ASKED,
    SAME_AS,
    AnsweredNote,
    AskedNote,
    answered_note,
    asked_note,
    written,
)

_FROM_OUTSIDE = frozenset({Part.INPUT, Part.OUTPUT})
_OPENED: Seq = 1
"""Every ledger begins with its opening."""


class Beginning(Struct, frozen=True):
    """The first facts of an exchange, and where its request stands among them."""

    facts: list[AnyFact]
    request: Seq


def begun(note: AskedNote, items: Sequence[bytes], response: str) -> Beginning:
    """The facts of a request that is being answered."""
    facts: list[AnyFact] = [Noted(kind=ASKED, note=written(note))]
    base = START
    if note.base is not None:
        facts.append(AnchorAdopted(mode=Mode.CHAIN, anchor=note.base))
        base = _OPENED + len(facts)
    sent: list[Seq] = []
    for item in items:
        facts.append(ItemAdded(item=item, by=giver(item)))
        sent.append(_OPENED + len(facts))
    covers = sent[-1] if sent else base
    facts.append(
        RequestPrepared(
            mode=Mode.CHAIN if note.anchored else Mode.FULL,
            base=base,
            covers=covers,
            sent=tuple(sent),
            anchor=note.base if note.anchored else None,
        )
    )
    request = _OPENED + len(facts)
    facts += [RequestSent(request=request), ResponseOpened(request=request, id=response)]
    return Beginning(facts, request)


def giver(item: bytes) -> By:
    """Who gave an item of an input: what only a model says, the client brought with it."""
    parts = READINGS["responses"].read(item)
    return By.USER if all(part.part in _FROM_OUTSIDE for part in parts) else By.IMPORT


def ended(request: Seq, ending: Ending, note: AnsweredNote) -> list[AnyFact]:
    """The facts that an answer is over."""
    return [
        ResponseEnded(request=request, ending=ending),
        Noted(kind=ANSWERED, note=written(note)),
    ]


def same_as(response: str) -> Noted:
    """The fact that an answer which broke off was tried again, and came as this one."""
    return Noted(kind=SAME_AS, note=response.encode())


class OpenCall(Struct, frozen=True):
    """A call that waits for an output from outside."""

    call: Item
    item: bytes
    """What it was made with."""


def open_calls(said: Iterable[bytes]) -> list[OpenCall]:
    """The calls of an answer that wait."""
    waiting: dict[tuple[str, int], OpenCall] = {}
    for at, item in enumerate(said):
        for part in READINGS["responses"].read(item):
            if part.key is None:
                continue
            if part.part is Part.CALL and not part.lone:
                waiting[part.key, at] = OpenCall(part, item)
            elif part.part is Part.OUTPUT:
                waiting = {place: one for place, one in waiting.items() if place[0] != part.key}
    return list(waiting.values())


def is_call(item: bytes) -> bool:
    """Does somebody have to run something for this item?"""
    return any(p.part is Part.CALL and not p.lone for p in READINGS["responses"].read(item))


REPEATED: Final = ("instructions", "tools", "text")
"""What a response only repeats of its request. It is large, and is kept only where the gateway is
asked for responses in its upstream's place."""


def without_output(response: bytes, *, brief: bool) -> bytes:
    """A response without its output, which is kept item by item; ``brief``: and without what it
    only repeats."""
    try:
        return changed(response, {"output": []}, drop=REPEATED if brief else ())
    except UNREADABLE:
        return b"null"


CONTINUES: Final = frozenset({Ending.COMPLETED, Ending.INCOMPLETE})
"""Endings that something can go on from."""


class Kept(Struct, frozen=True, kw_only=True):
    """One exchange, as it was kept."""

    id: str
    asked: AskedNote
    items: list[bytes]
    """What the client added to what `asked.base` left."""
    said: list[bytes]
    """The items of the answer that are whole."""
    ending: Ending | None = None
    """None while it is being said, or if whoever heard it died."""
    answered: AnsweredNote = AnsweredNote()
    request: Seq = START

    @property
    def continues(self) -> bool:
        """Can anything go on from it?"""
        return self.ending in CONTINUES

    @property
    def end_known(self) -> bool:
        """Is it known how it ended? If not, its end may still be found, by anybody."""
        return self.ending is not None and self.ending is not Ending.CUT


def kept(facts: Sequence[AnyFact]) -> Kept | str | None:
    """The exchange that these facts tell of; the id it is kept under, where it was tried again;
    None where they are no exchange of the gateway."""
    asked: AskedNote | None = None
    answered = AnsweredNote()
    name, request = "", START
    items: list[bytes] = []
    said: list[bytes] = []
    ending: Ending | None = None
    for fact in facts:
        if isinstance(fact, ItemAdded):
            items.append(fact.item)
        elif isinstance(fact, ItemCompleted):
            said.append(fact.item)
        elif isinstance(fact, ResponseOpened):
            name, request = fact.id or "", fact.request
        elif isinstance(fact, ResponseEnded):
            ending = fact.ending
        elif isinstance(fact, Noted):
            if fact.kind == SAME_AS:
                return fact.note.decode("utf-8", "replace")
            if fact.kind == ASKED:
                asked = asked_note(fact.note)
            elif fact.kind == ANSWERED:
                answered = answered_note(fact.note)
    if asked is None or not name:
        return None
    return Kept(
        id=name,
        asked=asked,
        items=items,
        said=_in_order(said, answered.order),
        ending=ending,
        answered=answered,
        request=request,
    )


def _in_order(said: list[bytes], order: Sequence[int]) -> list[bytes]:
    if sorted(order) != list(range(len(said))):
        return said  # it says nothing, or nothing of these
    return [said[at] for at in order]
