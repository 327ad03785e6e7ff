"""What is wrong with the exchanges in a gateway's journal, and with the conversations it keeps.

An answer ends with calls that a client is to run, and the exchange behind it begins with their
outputs: the pair is whole across both. Whether a client ran a call the journal does not say, and
so nothing is said of it here. Other conversations of a store are not known here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias
from urllib.parse import quote

from msgspec import Struct

from lockstitch.cli.reporting import Row, row_of
from lockstitch.core import rules
from lockstitch.core.facts import AnyFact, ItemAdded, ItemCompleted
from lockstitch.core.findings import Finding
from lockstitch.core.items import Part
from lockstitch.core.pairing import Pairing
from lockstitch.dialects.detection import DIALECTS
from lockstitch.dialects.examination import examine
from lockstitch.dialects.reading import READINGS, decoded
from lockstitch.gateway.keeping.conversation_facts import Conversation, conversation_of
from lockstitch.gateway.keeping.exchanges import Kept, kept

MOST_REMEMBERED_EXCHANGES: Final = 100_000
"""Of so many, what they leave open stays in memory. Others are read again when they are needed."""

_MAY_END_WITH: Final = rules.OPEN_CALL | {rules.REASONING_PARTED}
"""What an answer may leave to whatever follows it."""

_RESPONSES: Final = READINGS["responses"]

Waiting: TypeAlias = tuple[bytes, ...]
"""The calls that are open behind an exchange, each as it was said."""


class _Entry(Struct, frozen=True):
    """An item, and how its place is told."""

    item: bytes
    where: str


class GatewayChecks:
    """Checks what a gateway wrote into a store, each exchange behind the one it goes on from."""

    def __init__(self, read: Callable[[str], Awaitable[Sequence[AnyFact]]]) -> None:
        """``read`` gives the facts that are kept under a name; none if there are none."""
        self._read = read
        self._waiting: dict[str, Waiting | None] = {}

    async def rows(
        self, name: str, facts: Sequence[AnyFact], *, anchored: bool
    ) -> list[Row] | None:
        """What is wrong with what is kept under this name; None if it is not of a gateway."""
        one = kept(facts)
        if isinstance(one, str):
            return []  # it was tried again, and that is another exchange
        if one is not None:
            before = await self._before(name, one)
            return _exchange_rows(one, facts, before or (), anchored or before is None)
        conversation = conversation_of(name, facts)
        return None if conversation is None else _conversation_rows(conversation, anchored)

    async def _before(self, name: str, one: Kept) -> Waiting | None:
        """The calls that wait before this exchange; None where that is not known."""
        if one.asked.conversation is not None:
            return None
        tenant = name.rpartition("/")[0]
        path: list[str] = []
        seen: set[str] = set()
        base = one.asked.base
        known: Waiting | None = ()
        while base is not None:
            at = f"{tenant}/{quote(base, safe='')}"
            if at in self._waiting:
                known = self._waiting[at]
                break
            earlier = kept(await self._read(at)) if at not in seen else None
            seen.add(at)
            if isinstance(earlier, str):
                base = earlier  # it is kept under another id
                continue
            if earlier is None or not earlier.continues or earlier.asked.conversation is not None:
                known = None
                break
            path.append(at)
            base = earlier.asked.base
        for at in reversed(path):
            earlier = kept(await self._read(at))
            if known is not None and isinstance(earlier, Kept):
                known = _still_waiting([*known, *earlier.items, *earlier.said])
            self._remember(at, known)
        return known

    def _remember(self, name: str, waiting: Waiting | None) -> None:
        self._waiting[name] = waiting
        if len(self._waiting) > MOST_REMEMBERED_EXCHANGES:
            del self._waiting[next(iter(self._waiting))]


def _still_waiting(items: Sequence[bytes]) -> Waiting:
    pairing = Pairing(_RESPONSES.order)
    for at, item in enumerate(items):
        for part in _RESPONSES.read(item):
            pairing.add(part, at)
    places = sorted({call.at for call in pairing.open_calls() if not call.item.lone})
    return tuple(items[at] for at in places)


def _exchange_rows(
    one: Kept, facts: Sequence[AnyFact], before: Waiting, anchored: bool
) -> list[Row]:
    if not one.continues:
        return []  # nothing can go on from it
    given = [_Entry(call, "an earlier response") for call in before]
    said_from = len(before) + len(one.items)
    for kind in (ItemAdded, ItemCompleted):
        given += [
            _Entry(fact.item, f"entry {seq}")
            for seq, fact in enumerate(facts, 1)
            if isinstance(fact, kind)
        ]
    goes_on = len(given) > len(before)
    return [
        _row(finding, given)
        for finding in _findings(given, anchored)
        if not (finding.rule in _MAY_END_WITH and finding.place.at >= said_from)
        # Nothing was asked and nothing said: what waited still waits.
        if goes_on or finding.place.at >= len(before)
    ]


def _conversation_rows(conversation: Conversation, anchored: bool) -> list[Row]:
    given = [_Entry(entry.item, f"entry {entry.seq}") for entry in conversation.entries]
    last_input = max(
        (
            at
            for at, entry in enumerate(given)
            if any(part.part is Part.INPUT for part in _RESPONSES.read(entry.item))
        ),
        default=-1,
    )
    # Where an upstream keeps it, more may stand there than was seen here.
    findings = _findings(given, anchored or bool(conversation.upstream))
    return [
        _row(finding, given)
        for finding in findings
        if not (finding.rule in _MAY_END_WITH and finding.place.at > last_input)
    ]


def _findings(given: Sequence[_Entry], anchored: bool) -> list[Finding]:
    wires = [decoded(entry.item) for entry in given]
    return examine(DIALECTS["responses"], wires).finish(anchored=anchored)


def _row(finding: Finding, given: Sequence[_Entry]) -> Row:
    return row_of(finding, lambda place: given[place.at].where)
