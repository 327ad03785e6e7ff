"""The context of a session as its thread has it: what is written down of it, and read again.

What was said is a fact of its own; where it stands, what it says by now and what went are notes.
Pure: a memory is a fold over the facts of a ledger, and gives facts for what it does not know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Any, Final, TypeAlias
from zlib import crc32

import msgspec
from msgspec import Struct

from lockstitch.core import families
from lockstitch.core.arranging import history
from lockstitch.core.calls import Call, Life
from lockstitch.core.facts import START, AnyFact, By, CallSettled, ItemAdded, Noted, Seq
from lockstitch.dialects.base import Wire, text_of
from lockstitch.ledgers.ledger import Ledger
from lockstitch.ledgers.making import call_settled, item_added
from lockstitch.mirror.ordering import longest_run
from lockstitch.mirror.saying import same, speech
from lockstitch.realtime.origins import Origins

KIND: Final = "realtime.context"
"""What the notes of a session are filed under."""


class Placed(Struct, frozen=True, tag="placed"):
    """An item stands behind another: not at the end, or no longer where it stood."""

    item: Seq
    after: Seq
    """`START`: at the head."""


class Changed(Struct, frozen=True, tag="changed"):
    """An item says something else now: its words came, or it was truncated."""

    item: Seq
    now: Seq
    """The entry that holds it as it is."""


class Removed(Struct, frozen=True, tag="removed"):
    """Items left the context. They stay in the ledger; the output of a call goes with it."""

    items: tuple[Seq, ...]


Note: TypeAlias = Placed | Changed | Removed

_notes = msgspec.json.Decoder(tuple[Note, ...])

_CALL, _OUTPUT = families.FUNCTION.call_type, families.FUNCTION.output_type


class Memory:
    """The context, as far as the ledger has it. An item is known by the position of its fact."""

    def __init__(self, ledger: Ledger, thread: str = "") -> None:
        self._ledger = ledger
        self._thread = thread
        self.run_here: set[Seq] = set()
        """Calls that tools of ours answer: what others say to them is not their output."""
        self._read = 0
        self._order: list[Seq] = []
        self._by_id: dict[str, Seq] = {}
        self._wires: dict[Seq, Wire] = {}
        """What each says; the provider's own dictionary, once it was found to say the same."""
        self._changed: dict[Seq, Seq] = {}
        """The entry that holds an item as it is by now, also of those that went."""
        self.catch_up()

    def __repr__(self) -> str:
        return f"<Memory {len(self._order)} items>"

    def __contains__(self, id: str) -> bool:
        return id in self._by_id

    def catch_up(self) -> None:
        """Take what was appended to the ledger since."""
        facts = self._ledger.facts
        for seq in range(self._read + 1, len(facts) + 1):
            fact = facts[seq - 1]
            if isinstance(fact, ItemAdded) and fact.by is not By.REWRITE:
                self._enter(seq, len(self._order))
            elif isinstance(fact, CallSettled):
                self.run_here.discard(fact.call)
            elif isinstance(fact, Noted) and fact.kind == KIND:
                for note in _notes.decode(fact.note):
                    self._take(note)
        self._read = len(facts)

    def _take(self, note: Note) -> None:
        match note:
            case Placed(item, after):
                if item in self._wires:
                    self._order.remove(item)
                self._enter(item, self._order.index(after) + 1 if after != START else 0)
            case Changed(item, now):
                self._wires[item] = self._ledger.wire(now)
                self._changed[item] = now
            case Removed(items):
                for item in items:
                    self._order.remove(item)
                    del self._by_id[self._wires.pop(item)["id"]]

    def _enter(self, item: Seq, at: int) -> None:
        if item not in self._wires:
            self._wires[item] = self._ledger.wire(item)
        self._order.insert(at, item)
        self._by_id[self._wires[item]["id"]] = item

    # --- what is known -------------------------------------------------------------------------

    def call_of(self, item: Seq) -> Call | None:
        """The call that this item is, if it is the model's."""
        return self._ledger.calls.get((item, 0))

    def unsettled_of(self, ids: AbstractSet[str]) -> list[Call]:
        """Those of the items with these ids that are calls without an output."""
        items = (self._by_id[item_id] for item_id in ids if item_id in self._by_id)
        calls = (self.call_of(item) for item in items)
        return [call for call in calls if call is not None and call.output is None]

    def unsettled(self) -> list[Call]:
        """Calls of the context that have no output."""
        calls = (self.call_of(item) for item in self._order)
        return [call for call in calls if call is not None and call.output is None]

    def forsaken(self) -> list[Call]:
        """Calls without an output that are in the context no more: nobody waits for them."""
        waiting = {call.seq for call in self.unsettled()}
        calls = self._ledger.calls.values()
        return [call for call in calls if call.output is None and call.seq not in waiting]

    def context(self) -> list[Wire]:
        """The items in their order, each settled call with its output behind it."""
        items: list[Wire] = []
        copies: set[str] = set()
        for item in self._order:
            wire, call = self._wires[item], self.call_of(item)
            items.append(wire)
            if call is not None and call.output is not None:
                items.append(self.output_of(call))
            elif call is None and wire.get("type") == _CALL:
                copies.add(wire["id"])
        return _without_halves(items, copies) if copies else items

    def output_of(self, call: Call) -> Wire:
        """The output of a settled call, as it is created at the provider: as a text, which is all
        that realtime takes, under an id that is always the same, and that of no other thread."""
        assert call.output is not None
        wire = self._ledger.wire(call.output)
        item_id = f"ls_output_{crc32(self._thread.encode()):08x}_{call.seq}"
        return wire | {"id": item_id, "output": _text(wire.get("output"))}

    def history(self) -> list[Wire]:
        """Everything that was said, also what is no longer in the context."""
        said = history(self._ledger)
        return [self._ledger.wire(self._changed.get(item, item)) for item in said]

    # --- what is not known ---------------------------------------------------------------------

    def news(self, now: Sequence[Wire], origins: Origins, gone: AbstractSet[str]) -> list[AnyFact]:
        """The facts that take the memory to what the provider has ``now``; ``gone`` are ids of
        items that it had and has no more. Append them, and catch up."""
        facts: list[AnyFact] = []
        notes: list[Note] = []
        first = len(self._ledger) + 1
        removed = tuple(self._by_id[item_id] for item_id in gone if item_id in self._by_id)
        if removed:
            notes.append(Removed(removed))
        away = self._moved(now)
        leaving = away.union(removed)
        end = next((item for item in reversed(self._order) if item not in leaving), START)
        previous = START
        calls: dict[str, Seq] = {}
        """The calls of the model so far: their outputs are theirs, and no items of their own."""
        for wire in now:
            item = self._by_id.get(wire["id"])
            by = None if item is not None else self._maker(wire, origins)
            key = text_of(wire.get("call_id")) or ""
            if item is None and wire.get("type") == _OUTPUT and key in calls:
                facts += self._settled(self.call_of(calls[key]), wire)
                continue
            if item is None:
                if by is None:
                    continue
                item = first + len(facts)
                facts.append(item_added(wire, by))
                if by is By.REWRITE or previous != end:
                    notes.append(Placed(item, previous))
                if previous == end:
                    end = item
            else:
                if item in away:
                    notes.append(Placed(item, previous))
                if _says_otherwise(self._wires[item], wire):
                    notes.append(Changed(item, first + len(facts)))
                    facts.append(item_added(wire, By.REWRITE))
                elif wire.get("status") != "in_progress":
                    self._wires[item] = wire
            if wire.get("type") == _CALL:
                calls.pop(key, None)
                if by is By.MODEL or self.call_of(item) is not None:
                    calls[key] = item
            previous = item
        if notes:
            facts.append(Noted(kind=KIND, note=msgspec.json.encode(notes)))
        return facts

    def _moved(self, now: Sequence[Wire]) -> set[Seq]:
        """Known items that stand elsewhere now."""
        rank = {item: at for at, item in enumerate(self._order)}
        known = [self._by_id[wire["id"]] for wire in now if wire["id"] in self._by_id]
        stay = longest_run([rank[item] for item in known])
        return {item for item in known if rank[item] not in stay}

    def _settled(self, call: Call | None, wire: Wire) -> list[AnyFact]:
        """The output of a call that somebody else has given; ours are in the ledger."""
        if call is None or call.life is not Life.ANNOUNCED or call.seq in self.run_here:
            return []
        return [call_settled(self._ledger, call, wire)]

    def _maker(self, wire: Wire, origins: Origins) -> By | None:
        """Who made an item that is new here; None if it is not to be remembered, or not yet.

        What a client created in place of another, and what is neither a message nor a call of the
        model, is part of the context and on no path of the ledger: nothing is to be run for it."""
        if wire.get("status") == "in_progress":
            return None
        kind, item_id = wire.get("type", "message"), wire["id"]
        if origins.is_ours(item_id):
            if kind != "message" or origins.is_copy(item_id):
                return By.REWRITE
            return By.IMPORT if wire.get("role") == "assistant" else By.USER
        if kind == _CALL:
            # One that was cut short is never run, and nobody will answer it.
            whole = wire.get("status") != "incomplete"
            fresh = whole and origins.is_spoken(item_id) and not self._was_made(wire)
            return By.MODEL if fresh else None
        if kind == "message":
            return By.MODEL if wire.get("role") == "assistant" else By.USER
        return By.REWRITE

    def _was_made(self, wire: Wire) -> bool:
        """A call that went and is told of again is no second call: nobody runs it twice."""
        calls = (self.call_of(seq) for seq in self._ledger.entries_with_id(wire["id"]))
        return any(call is not None and call.item.key == wire.get("call_id") for call in calls)


def _without_halves(items: list[Wire], copies: AbstractSet[str]) -> list[Wire]:
    """Without copies of calls whose outputs were not copied, because the connection was lost in
    between: the call itself is there, with its output."""
    calls = Counter(wire.get("call_id") for wire in items if wire.get("type") == _CALL)
    outputs = Counter(wire.get("call_id") for wire in items if wire.get("type") == _OUTPUT)
    whole: list[Wire] = []
    for wire, behind in pairwise([*items, {}]):
        key = wire.get("call_id")
        answered = behind.get("type") == _OUTPUT and behind.get("call_id") == key
        if wire["id"] in copies and not answered and calls[key] > max(outputs[key], 1):
            continue
        whole.append(wire)
    return whole


def _says_otherwise(known: Wire, wire: Wire) -> bool:
    if wire is known or wire == known or wire.get("status") == "in_progress":
        return False
    return not same(known, wire) or _is_wordless(known) != _is_wordless(wire)


def _is_wordless(wire: Wire) -> bool:
    return any(not part.get("transcript") for part in speech(wire))


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    if isinstance(output, list) and all(isinstance(part, dict) for part in output):
        texts = [part["text"] for part in output if isinstance(part.get("text"), str)]
        if texts and len(texts) == len(output):  # an image among them has no text
            return "\n".join(texts)
    return msgspec.json.encode(output).decode()
