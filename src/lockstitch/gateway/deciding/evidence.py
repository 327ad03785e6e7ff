"""What the journal has seen of a call elsewhere: which calls to ask it about, and its answers.

An output that was sent on another branch is what really happened, so the client's history gets
that very output, its content and its failure with it. Only outputs that say something count: a
client's "aborted", or words of ours, are no evidence. Looking into the journal is the caller's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part
from lockstitch.core.outcomes import (
    Evidence,
    Outcome,
    Settlement,
    denies_running,
    stands_in,
)
from lockstitch.core.pairing import Pairing
from lockstitch.dialects import by_name
from lockstitch.dialects.base import Answers, Dialect, Wire
from lockstitch.dialects.rewriting import output_at

SUMMARY: Final = "has an output on another branch"
"""For people, after "it"."""


class Seen(Struct, frozen=True):
    """What is known of calls apart from the history at hand, by call id."""

    outputs: Mapping[str, tuple[Family, Wire]] = {}
    """The very output, without an id of its own: an item, a message or a block."""
    evidence: Mapping[str, Evidence] = {}


NOTHING: Final = Seen()


def parts_of(dialect: Dialect, wire: Any) -> Sequence[Item]:
    """The core items of what a client sent. A call that broke off half-way was never made: no
    output is asked for it, and none may be made up. What is no dictionary is passed over."""
    if not isinstance(wire, dict):
        return ()
    parts = dialect.read(wire)
    if wire.get("status") == "incomplete" and parts[0].part is Part.CALL:
        # A provider takes it as it is, without an output.
        return (replace(parts[0], lone=True, partial=False, arguments=None),)
    return parts


def wanted(
    items: Sequence[Any], *, dialect: str = "responses", open_calls: Sequence[Item] | None = None
) -> list[str]:
    """The ids of calls of which evidence is worth looking for: they have no output, or one that
    says they did not run. ``open_calls`` are those that wait behind the anchor."""
    chosen = by_name(dialect)
    pairing = Pairing(chosen.order)
    uses: Counter[str] = Counter()
    denied: list[str] = []
    for n, item in enumerate(open_calls or ()):
        if item.key is not None:
            uses[item.key] += 1
        pairing.wait_for(item, n)
    for at, wire in enumerate(items, len(open_calls or ())):
        for item in parts_of(chosen, wire):
            if item.key is not None:
                if item.part is Part.CALL:
                    uses[item.key] += 1
                elif item.note is not None and denies_running(item.note):
                    denied.append(item.key)
            pairing.add(item, at)
    keys = [call.item.key for call in pairing.open_calls() if not call.item.lone]
    # An id that was used twice names two calls, and nobody could tell whose output was found.
    found = (key for key in [*keys, *denied] if key is not None and uses[key] == 1)
    return list(dict.fromkeys(found))


def seen(found: Iterable[Any], *, dialect: str = "responses", keys: Sequence[str]) -> Seen:
    """What outputs that were found on other branches tell of the calls with these ids. Of several
    for one call the first counts that is more than a stand-in."""
    chosen = by_name(dialect)
    sought = set(keys)
    outputs: dict[str, tuple[Family, Wire]] = {}
    evidence: dict[str, Evidence] = {}
    for wire in found:
        for item in parts_of(chosen, wire):
            key, family = item.key, item.family
            if item.part is not Part.OUTPUT or family is None or key is None:
                continue
            if key not in sought or key in outputs or _is_stand_in(item):
                continue
            bare = chosen.strip_id(wire, item.slot) if item.id is not None else wire
            output = output_at(chosen, bare, item.slot)
            outputs[key] = (family, output)
            evidence[key] = _evidence(output)
    return Seen(outputs, evidence)


def _is_stand_in(output: Item) -> bool:
    return output.note is not None and stands_in(output.note)


def _evidence(output: Wire) -> Evidence:
    told = output.get("output", output.get("content", output.get("result")))
    text = told if isinstance(told, str) else msgspec.json.encode(told).decode() if told else ""
    failed = output.get("is_error") is True or output.get("status") in ("failed", "incomplete")
    return Evidence(Outcome.FINISHED, SUMMARY, text, failed=failed)


class _Answering:
    """A dialect that writes the outputs which were found, and its own for all other calls."""

    def __init__(self, dialect: Dialect, outputs: Mapping[str, tuple[Family, Wire]]) -> None:
        self._dialect = dialect
        self._outputs = outputs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dialect, name)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        found = self._outputs.get(key or "")
        if found is not None and family.accepts(found[0]):
            return dict(found[1])
        return self._dialect.output(family, key, said, name)

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        item = next((one for one in self._dialect.read(wire) if one.slot == slot), None)
        found = self._outputs.get(item.key or "") if item is not None else None
        if item is None or found is None or found[0] is not item.family:
            return self._dialect.reword(wire, slot, said)
        if self._dialect.answers is Answers.IN_TURN:
            blocks = wire["content"]
            return {**wire, "content": [*blocks[:slot], dict(found[1]), *blocks[slot + 1 :]]}
        return {**found[1], "id": wire["id"]} if "id" in wire else dict(found[1])


def answering(dialect: Dialect, known: Seen) -> Dialect:
    """The dialect, but that it writes what is known where it would make up an output."""
    if not known.outputs:
        return dialect
    return cast("Dialect", _Answering(dialect, known.outputs))
