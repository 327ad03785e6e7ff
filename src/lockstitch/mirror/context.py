"""The state of a mirror: what the provider has, what is on its way there, who is speaking.

Changed by `hearing` (events) and by committing a plan; read by `planning`."""

from __future__ import annotations

from lockstitch.core.items import Item, Part
from lockstitch.dialects.base import Wire
from lockstitch.dialects.realtime import Realtime
from lockstitch.mirror.chain import Chain, Record
from lockstitch.mirror.edits import Create, Plan
from lockstitch.mirror.flight import Flight, Tracked
from lockstitch.mirror.pairs import Pairs
from lockstitch.mirror.saying import awaits_words

_dialect = Realtime()


def read(wire: Wire) -> Item:
    """The core item of a wire item."""
    (item,) = _dialect.read(wire)
    return item


class Context:
    """Everything a mirror knows."""

    def __init__(self, *, links: bool, transcribes: bool) -> None:
        self.links = links
        self.transcribes = transcribes
        self.version = 0
        self.chain = Chain()
        self.pairs = Pairs()
        self.flight = Flight()
        self.copies: dict[str, str] = {}
        """The item that takes the place of another, by the id of that one."""
        self.speaking: dict[str, list[str]] = {}
        """The items of each response that goes on."""
        self.spoken_by: dict[str, str] = {}
        """The response that goes on, by item."""
        self.ended: set[str] = set()
        self.tail: str | None = None
        """The item that was sent last to stand last."""
        self.calls_sent: dict[str, str] = {}
        self.outputs_sent: dict[str, str] = {}
        """Item ids of calls and outputs that we created, by key."""

    def resolve(self, id: str) -> str:
        """The id under which an item is at the provider, or will be."""
        name = id
        while (copy := self.copies.get(name)) is not None:
            there = self.chain.alive(copy) is not None or self.flight.creating(copy) is not None
            leaving = self.chain.alive(name) is None or self.flight.deleting(name) is not None
            if not there or not leaving:
                return name
            name = copy
        return name

    def is_stray(self, record: Record) -> bool:
        """Is it a copy of ours whose original could not be taken away?"""
        original = record.copy_of
        return (
            original is not None
            and self.chain.alive(original) is not None
            and self.resolve(original) == original
        )

    # --- what is on its way --------------------------------------------------------------------

    def commit(self, plan: Plan) -> None:
        self.version += 1  # a second plan of the same version would create everything twice
        for edit in plan.edits:
            if not isinstance(edit, Create):
                continue
            if edit.copy_of is not None:
                self.copies[edit.copy_of] = edit.item_id
            item = read(edit.item)
            if item.key is not None:
                sent = self.calls_sent if item.part is Part.CALL else self.outputs_sent
                sent[item.key] = edit.item_id
        if plan.tail is not None:
            self.tail = plan.tail
        self.flight.commit(plan.edits)

    def call_on_its_way(self, key: str) -> Tracked | None:
        return self.flight.creating(self.calls_sent.get(key, ""))

    def output_on_its_way(self, key: str) -> Tracked | None:
        return self.flight.creating(self.outputs_sent.get(key, ""))

    # --- what happens to items -----------------------------------------------------------------

    def enter(self, wire: Wire) -> Record:
        """A record for an item that is new; the caller gives it its place in the chain."""
        record = Record(wire["id"], read(wire), wire, self.version)
        create = self.flight.creating(record.id)
        record.unheard = self.transcribes and create is None and awaits_words(wire)
        if create is not None:
            record.copy_of = getattr(create.edit, "copy_of", None)
        record.response = self.spoken_by.get(record.id)
        self.pairs.enter(record)
        self.consider(record)
        return record

    def rewrite(self, record: Record, wire: Wire) -> None:
        """It says something else now."""
        if wire == record.wire:
            return
        record.wires.append((self.version, wire))
        item = read(wire)
        if (item.part, item.key) != (record.item.part, record.item.key):
            self.pairs.leave(record)
            record.item = item
            self.pairs.enter(record)
        if not awaits_words(wire):
            record.unheard = False

    def consider(self, record: Record) -> None:
        """Note when it is finished and heard."""
        if record.known_at is not None or record.unheard or record.response is not None:
            return
        if record.wire.get("status") != "in_progress":
            record.known_at = self.version

    def bury(self, record: Record) -> None:
        self.pairs.leave(record)
        self.chain.bury(record, self.version)
