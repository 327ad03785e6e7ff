"""The door: server events in, plans out, and the edits of a plan followed to their end.

mirror.apply(event)                             whatever the server says
seen = mirror.snapshot()                        before deciding anything
plan = mirror.plan(target, base=seen, new_id=…)
mirror.commit(plan)
for edit in mirror.due(at=now): send(edit.client_event())   # again after each event"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lockstitch.dialects.base import Wire, text_of
from lockstitch.mirror import planning
from lockstitch.mirror.context import Context
from lockstitch.mirror.drafting import NewId
from lockstitch.mirror.edits import Edit, Plan
from lockstitch.mirror.errors import ForeignSnapshot, StalePlan
from lockstitch.mirror.flight import Standing
from lockstitch.mirror.hearing import HANDLERS
from lockstitch.mirror.remembering import Recent

MOST_EVENT_IDS_REMEMBERED = 4096
"""An event that comes twice comes soon: a proxy's resend, two listeners on one connection."""


class Snapshot:
    """The provider's context as it was at one moment. It costs nothing until it is read.

    While it lives, its mirror keeps what it shows, as a list of the items would."""

    __slots__ = ("_context", "_items", "_moment")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._items: tuple[Wire, ...] | None = None
        self._moment = context.moments.hold(context.version)

    def __repr__(self) -> str:
        return f"<Snapshot at {self.version}>"

    @property
    def version(self) -> int:
        return self._moment.version

    @property
    def items(self) -> tuple[Wire, ...]:
        """The items, in order; also those that are not finished. Not to be changed."""
        if self._items is None:
            context, version = self._context, self.version
            if version == context.version:
                self._items = tuple(context.chain.wires())
            else:
                then = context.chain.at_version(version)
                self._items = tuple(record.wire_at(version) for record in then)
        return self._items

    def belongs_to(self, context: Context) -> bool:
        return self._context is context


class Mirror:
    """A provider's realtime context, as far as it has told.

    ``links``: the provider says what an item follows, and takes items anywhere (xAI: False).
    ``transcribes``: what the user says is transcribed, so speech without words will get some."""

    def __init__(self, *, links: bool = True, transcribes: bool = True) -> None:
        self._context = Context(links=links, transcribes=transcribes)
        self._heard = Recent(MOST_EVENT_IDS_REMEMBERED)

    def __repr__(self) -> str:
        context = self._context
        return f"<Mirror at {context.version}: {context.chain.living} items, {context.flight!r}>"

    def __len__(self) -> int:
        return self._context.chain.living

    def __contains__(self, id: str) -> bool:
        """Is an item there that has this very id?"""
        return self._context.chain.lives(id)

    @property
    def version(self) -> int:
        """Another one after every event, and after every plan that was committed."""
        return self._context.version

    @property
    def items(self) -> list[Wire]:
        """What the provider has, in its order."""
        return list(self._context.chain.wires())

    def get(self, id: str) -> Wire | None:
        """One item, also by the id of an item whose place it took."""
        record = self._context.chain.alive(self._context.resolve(id))
        return None if record is None else record.wire

    def names(self, id: str) -> Sequence[str]:
        """The ids that this item had, the first first, which a caller may go on with; of one that
        was never replaced none."""
        return self._context.names.of(id)

    def has_names(self, ids: Iterable[str]) -> bool:
        """Was any of these items ever replaced?"""
        return self._context.names.knows_any(ids)

    def surviving(self, id: str) -> str | None:
        """This item, or the nearest one before its tombstone that lives; None at the head."""
        record = self._context.chain.get(id)
        return None if record is None else self._context.chain.nearest(record)

    def before(self, id: str) -> str | None:
        """The nearest item in front of this one, or of its tombstone, that lives; None at the
        head."""
        record = self._context.chain.get(id)
        return None if record is None else self._context.chain.nearest(record.before)

    def has_place(self, id: str) -> bool:
        """Is `before` certain? It is not if the item, or a tombstone in front of it, stands where
        it does only because nobody has seen what it follows."""
        record = self._context.chain.get(id)
        return record is not None and self._context.chain.has_place(record)

    @property
    def transcribes(self) -> bool:
        """Will speech without words get some? It can change while the conversation goes on."""
        return self._context.transcribes

    @transcribes.setter
    def transcribes(self, transcribes: bool) -> None:
        self._context.transcribes = transcribes

    @property
    def responding(self) -> bool:
        """Is a response being generated?"""
        return bool(self._context.speaking)

    # --- what the provider says ----------------------------------------------------------------

    def apply(self, event: Mapping[str, Any]) -> bool:
        """Take one server event; False if it says nothing about items or was heard before."""
        handler = HANDLERS.get(text_of(event.get("type")) or "")
        if handler is None:
            return False
        event_id = text_of(event.get("event_id"))
        if event_id is not None:
            if event_id in self._heard:
                return False
            self._heard.add(event_id)
        self._context.version += 1
        handler(self._context, dict(event))
        return True

    def snapshot(self) -> Snapshot:
        """What a caller can see now: the base of the plan that follows from it."""
        return Snapshot(self._context)

    # --- what the caller wants -----------------------------------------------------------------

    def plan(self, target: Sequence[Wire], *, base: Snapshot, new_id: NewId) -> Plan:
        """The edits that take the provider's context to ``target``. Changes nothing.

        Only what ``base`` had and the target has not is deleted. O(n log n)."""
        return planning.plan(self._context, target, self._version_of(base), new_id)

    def plan_changes(
        self,
        *,
        base: Snapshot,
        new_id: NewId,
        added: Sequence[Wire] = (),
        inserted: Mapping[str, Sequence[Wire]] | None = None,
        changed: Sequence[Wire] = (),
        removed: Sequence[str] = (),
    ) -> Plan:
        """The same for a caller who knows what changed: O(k) for k changes.

        ``added`` goes to the end, ``inserted`` behind the items named (`ROOT`: to the head).
        All of it is one change: nothing is removed before everything new is there."""
        version = self._version_of(base)
        return planning.plan_changes(
            self._context,
            version,
            new_id,
            added=added,
            inserted=inserted or {},
            changed=changed,
            removed=removed,
        )

    def _version_of(self, base: Snapshot) -> int:
        if not base.belongs_to(self._context):
            raise ForeignSnapshot("This snapshot is of another mirror. Take one of this mirror.")
        return base.version

    # --- edits on their way --------------------------------------------------------------------

    def commit(self, plan: Plan) -> None:
        """The plan is carried out from now on. `StalePlan` if the mirror has changed since."""
        context = self._context
        if plan.version != context.version:
            raise StalePlan(
                f"The plan was made at version {plan.version}, and the mirror is at "
                f"{context.version}. Plan again."
            )
        if plan.edits:
            context.commit(plan)

    def due(self, *, at: float) -> Iterator[Edit]:
        """The edits to send now. Each counts as sent, ``at`` this time, once it is taken."""
        return self._context.flight.due(at)

    def expire(self, *, sent_before: float) -> list[Edit]:
        """Edits sent before then and not answered are in doubt: the next plan asks about them."""
        late = self._context.flight.expire(sent_before)
        if late:
            self._context.version += 1
        return [tracked.edit for tracked in late]

    def open_edits(self) -> list[Edit]:
        """The edits that have not ended, in the order in which they were planned."""
        return list(self._context.flight.open())

    def deleting(self, item_id: str | None) -> str | None:
        """The item whose delete the provider answers when it says that this one is deleted; a
        provider that does not say which answers the oldest. None if nobody asked for it."""
        flight = self._context.flight
        delete = flight.deleting(item_id) if item_id else flight.oldest_delete()
        return None if delete is None else delete.edit.item_id

    def standing(self, event_id: str) -> Standing | None:
        """How far an edit is; None if it was never committed, or ended long ago."""
        return self._context.flight.standing(event_id)

    @property
    def idle(self) -> bool:
        """Is no edit on its way, or in doubt?"""
        return self._context.flight.idle()
