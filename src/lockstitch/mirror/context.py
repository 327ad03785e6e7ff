"""The state of a mirror: what the provider has, what is on its way there, who is speaking.

Changed by `hearing` (events) and by committing a plan; read by `planning`."""

from __future__ import annotations

from collections.abc import Iterator

from lockstitch.dialects.base import Wire
from lockstitch.mirror.chain import Chain, Record
from lockstitch.mirror.edits import Create, Plan
from lockstitch.mirror.flight import Flight
from lockstitch.mirror.moments import Moments
from lockstitch.mirror.naming import Names
from lockstitch.mirror.pairs import Pairs
from lockstitch.mirror.remembering import Recent
from lockstitch.mirror.saying import awaits_words, has_speech, read

MOST_ENDED_RESPONSES_REMEMBERED = 1024
"""A word about a response that has ended comes soon after, or not."""

MOST_RESPONSES_AT_ONCE = 64
"""One in the conversation and some beside it; of more than these we have missed the ends."""


class Context:
    """Everything a mirror knows."""

    def __init__(self, *, links: bool, transcribes: bool) -> None:
        self.links = links
        self.transcribes = transcribes
        self.version = 0
        self.moments = Moments()
        self.chain = Chain(self.moments)
        self.pairs = Pairs()
        self.flight = Flight()
        self.names = Names()
        self.speaking: dict[str, list[str]] = {}
        """The items of each response that goes on."""
        self.spoken_by: dict[str, str] = {}
        """The response that goes on, by item."""
        self.ended = Recent(MOST_ENDED_RESPONSES_REMEMBERED)
        self.questioned: dict[str, None] = {}
        """Items that are here, and of which the provider says otherwise: the next plan asks."""
        self.tail: str | None = None
        """The item that was sent last to stand last."""

    def resolve(self, id: str) -> str:
        """The id under which an item is at the provider, or will be."""
        found: str | None = None
        for name in self.names.current(id):
            if not self._is_there(name):
                continue
            if found is not None and not self._is_leaving(found):
                break
            found = name
        return id if found is None else found

    def _is_there(self, id: str) -> bool:
        """Or will it be?"""
        return self.chain.lives(id) or self.flight.creating(id) is not None

    def _is_leaving(self, id: str) -> bool:
        return self.chain.alive(id) is None or self.flight.deleting(id) is not None

    def is_stray(self, record: Record) -> bool:
        """Is it a copy of ours whose original could not be taken away?"""
        original = record.copy_of
        return (
            original is not None
            and self.chain.alive(original) is not None
            and self.resolve(original) == original
        )

    def unsettled(self) -> Iterator[Record]:
        """Items that are being replaced, what replaces them, and copies that were left over."""
        for name in self.names.unsettled(self._is_there):
            record = self.chain.alive(name)
            if record is not None:
                yield record

    # --- what is on its way --------------------------------------------------------------------

    def commit(self, plan: Plan) -> None:
        self.version += 1  # a second plan of the same version would create everything twice
        for edit in plan.edits:
            if isinstance(edit, Create) and edit.copy_of is not None:
                self.names.join(edit.copy_of, edit.item["id"], self._is_there)
        if plan.tail is not None:
            self.tail = plan.tail
        self.flight.commit(plan.edits)

    # --- who is speaking -----------------------------------------------------------------------

    def begins(self, response: str) -> list[str] | None:
        """The items of a response that goes on; None if it has ended."""
        if response in self.ended:
            return None
        if response not in self.speaking and len(self.speaking) >= MOST_RESPONSES_AT_ONCE:
            for record in self.ends(next(iter(self.speaking))):
                self.consider(record)
        return self.speaking.setdefault(response, [])

    def speaks(self, response: str, item_id: str) -> None:
        """An item of a response, if that one goes on."""
        items = self.begins(response)
        if items is None or item_id in self.spoken_by:
            return
        items.append(item_id)
        self.spoken_by[item_id] = response
        record = self.chain.alive(item_id)
        if record is not None and record.known_at is None:
            record.response = response

    def ends(self, response: str) -> list[Record]:
        """The response has ended. Gives its items that are there."""
        self.ended.add(response)
        items = self.speaking.pop(response, [])
        for item_id in items:
            self.spoken_by.pop(item_id, None)
        records = [one for item_id in items if (one := self.chain.alive(item_id)) is not None]
        for record in records:
            record.response = None
        return records

    # --- what happens to items -----------------------------------------------------------------

    def enter(self, wire: Wire) -> Record:
        """A record for an item that is new; the caller gives it its place in the chain."""
        record = Record(wire["id"], read(wire), wire, self.version)
        create = self.flight.creating(record.id)
        record.spoken = has_speech(wire)
        record.unheard = self.transcribes and create is None and awaits_words(wire)
        if create is not None and isinstance(create.edit, Create):
            record.copy_of = create.edit.copy_of
        record.response = self.spoken_by.get(record.id)
        self.pairs.enter(record)
        self.consider(record)
        return record

    def rewrite(self, record: Record, wire: Wire) -> None:
        """It says something else now."""
        if wire == record.wire:
            return
        self.chain.rewrite(record, wire, self.version)
        record.spoken = has_speech(wire)
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

    def question(self, item_id: str | None) -> None:
        """Something was refused because this item is not there. If it has not gone here meanwhile,
        we have missed its end."""
        if item_id is not None and self.chain.alive(item_id) is not None:
            self.questioned[item_id] = None

    def bury(self, record: Record) -> None:
        self.questioned.pop(record.id, None)
        self.pairs.leave(record)
        self.chain.bury(record, self.version)
