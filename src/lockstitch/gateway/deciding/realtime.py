"""What becomes of each frame of a realtime connection, decided by a mirror beside it.

Frames and time in, steps out; the door carries them out. The mirror knows what passed through this
connection. Of an id that it has not seen nothing is known, and what names it passes as it came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from lockstitch.gateway.deciding import realtime_frames as frames
from lockstitch.gateway.deciding.realtime_calls import Calls
from lockstitch.gateway.deciding.realtime_frames import ClientFrame, Item, ServerFrame
from lockstitch.mirror import Mirror

MOST_HELD: Final = 256
"""Deletes that one connection may have waiting. A summary of a long call deletes some hundred
items, and few of them are calls in flight."""

MOST_HELD_BYTES: Final = 256 * 1024
"""All of them together. A delete has about 100 bytes."""

MOST_ITEMS: Final = 20_000
"""Items that the mirror of one connection takes in; each costs about 700 bytes while it lives. A
session lives for an hour, and nobody says five things a second. What comes later is not known, and
passes."""

MOST_TOMBSTONES: Final = 2048
"""Deleted items, the newest, whose place is known. An event that names one comes soon after; a
summary deletes some thousand items while a response is on its way. The mirror keeps no fewer."""

MOST_OWN: Final = 1024
"""Deletes of the gateway's own, the newest, whose refusal is known for what it is. It comes soon
after, or not."""

MOST_CARRIED_OUT: Final = 1024
"""Calls, the newest, whose delete was carried out and not answered so far. The answer comes soon
after, or not."""

HEAD: Final = "root"
"""How a client's create names the head, where an event has null."""

IN_FLIGHT_CODE: Final = "item_delete_call_in_flight"
NO_CALL_CODE: Final = "invalid_tool_call_id"
"""As the provider has it."""


class Pass(Struct, frozen=True):
    """The frame goes on as it came."""


class Rewrite(Struct, frozen=True):
    """The client gets this instead: the same event with a predecessor that is there."""

    event: bytes


class Redirect(Struct, frozen=True):
    """The provider gets this instead: the client's create behind an item that is there."""

    frame: bytes


class LeaveOut(Struct, frozen=True):
    """The frame goes nowhere: it answers what the client never asked."""


class Hold(Struct, frozen=True):
    """A delete of a call in flight waits here."""


class Drop(Struct, frozen=True):
    """A delete goes nowhere, and the client is told so."""

    answer: bytes


class Refuse(Struct, frozen=True):
    """An output whose call is gone goes nowhere, and the client is told so."""

    answer: bytes


class CarryOut(Struct, frozen=True):
    """A delete that was held goes upstream, as it came."""

    frame: bytes


class DeleteOutput(Struct, frozen=True):
    """The output of a call whose delete was carried out is deleted, too."""

    frame: bytes


Step: TypeAlias = (
    Pass | Rewrite | Redirect | LeaveOut | Hold | Drop | Refuse | CarryOut | DeleteOutput
)
Steps: TypeAlias = tuple[Step, ...]

PASSING: Final[Steps] = (Pass(),)
"""What nearly every frame does."""


class _Held(Struct, frozen=True):
    item_id: str
    event_id: str | None
    frame: bytes
    until: float


class RealtimeConversation:
    """One connection. ``carries_out``: a delete of a call in flight is held, for
    ``held_seconds`` at most, and carried out once the call is settled; if not, it is dropped."""

    def __init__(self, *, carries_out: bool, held_seconds: float) -> None:
        self._carries_out = carries_out
        self._held_seconds = held_seconds
        self._mirror = Mirror(transcribes=False)
        self._calls = Calls()
        self._tombstones: dict[str, int] = {}
        """The deleted items by id, the oldest first, each with its number among all of them."""
        self._buried = 0
        self._entered = 0
        self._held: list[_Held] = []
        """In the order in which they came, and so in that in which their time is up."""
        self._held_bytes = 0
        self._carried_out: dict[str, str | None] = {}
        """Calls whose outputs follow them, once the provider says that they are deleted; with the
        client's event id, the oldest first."""
        self._own: dict[str, str] = {}
        """The item of each delete of our own, by event id, the oldest first."""
        self._leaving: set[str] = set()
        """Items with such a delete on its way."""
        self._said = 0

    def __repr__(self) -> str:
        return f"<RealtimeConversation {len(self._mirror)} items, {len(self._held)} deletes held>"

    @property
    def deadline(self) -> float | None:
        """When the next delete has been held for long enough."""
        return self._held[0].until if self._held else None

    # --- what the client says --------------------------------------------------------------------

    def from_client(self, payload: bytes, now: float) -> Steps:
        frame = frames.from_client(payload)
        if frame is None:
            return PASSING
        if frame.type == frames.DELETE and self._calls.in_flight(frame.item_id or ""):
            return self._delete(frame, payload, now)
        if frame.type == frames.CREATE and frame.item is not None:
            return self._create(frame, frame.item, payload)
        return PASSING

    def _delete(self, frame: ClientFrame, payload: bytes, now: float) -> Steps:
        item_id = frame.item_id or ""
        if (
            not self._carries_out
            or len(self._held) >= MOST_HELD
            or self._held_bytes + len(payload) > MOST_HELD_BYTES
            or frames.is_too_long(frame.event_id)
        ):
            return (self._drop(item_id, frame.event_id),)
        held = _Held(item_id, frame.event_id, payload, now + self._held_seconds)
        self._held.append(held)
        self._held_bytes += len(payload)
        return (Hold(),)

    def _create(self, frame: ClientFrame, item: Item, payload: bytes) -> Steps:
        key = item.call_id
        if key is not None and item.type == frames.CALL:
            self._calls.asked_for(key)
        elif key is not None and item.type == frames.OUTPUT and self._calls.is_gone(key):
            message = (
                f"Tool call ID '{key}' not found in conversation: the call was deleted. "
                "Create the call again before its output, or leave both out."
            )
            answer = self._error(frame.event_id, code=NO_CALL_CODE, message=message)
            return (Refuse(answer),)
        instead = self._place_of(frame.previous_item_id)
        moved = None if instead is None else frames.behind(payload, instead)
        return PASSING if moved is None else (Redirect(moved),)

    def _place_of(self, previous: str | None) -> str | None:
        """What a create behind this item goes behind instead; None if that is not to be changed."""
        found = previous
        while found is not None and (found in self._leaving or found in self._tombstones):
            if not self._mirror.has_place(found):
                return None
            found = self._mirror.before(found) or HEAD
        return None if found == previous else found

    def expire(self, now: float) -> Steps:
        """Deletes that have been held for long enough are dropped: their calls are in flight."""
        late = self._taken(lambda held: held.until <= now)
        return tuple(self._drop(held.item_id, held.event_id) for held in late)

    # --- what the provider says ------------------------------------------------------------------

    def from_upstream(self, payload: bytes) -> Steps:
        frame = frames.from_upstream(payload)
        if frame is None:
            return PASSING
        if frame.error is not None and frame.error.event_id is not None:
            return self._refused(frame.error.event_id)
        deletes = self._hear(frame)
        if self._held:
            deletes += self._settled()
        event = self._for_client(frame, payload)
        return (event, *deletes) if deletes or not isinstance(event, Pass) else PASSING

    def _refused(self, event_id: str) -> Steps:
        for call, asked in self._carried_out.items():
            if asked == event_id:
                del self._carried_out[call]  # the call stays, and so does its output
                break
        own = self._own.pop(event_id, None)
        if own is not None:
            # Somebody was quicker. The client asked for nothing here that could be refused.
            self._leaving.discard(own)
            return (LeaveOut(),)
        return PASSING

    def _hear(self, frame: ServerFrame) -> Steps:
        """Take an event in. Gives what the delete of a call takes along."""
        calls = self._calls
        if frame.type in frames.TELLING:
            self._told(frame)
        elif frame.type == frames.DELETED and frame.item_id is not None:
            return self._deleted(frame.item_id)
        elif frame.item is not None and frame.type.startswith("response."):
            if frame.response_id is not None and frame.type == frames.OUTPUT_ADDED:
                calls.is_said_by(frame.response_id, frame.item)
            calls.told_further(frame.item)
        elif frame.response is not None and frame.response.id is not None:
            calls.response_ended(frame.response.id, frame.response.output or ())
        return ()

    def _told(self, frame: ServerFrame) -> None:
        item = frame.item
        if item is None or item.id is None:
            return
        is_new = self._mirror.get(item.id) is None
        if is_new and self._entered >= MOST_ITEMS:
            return
        # Order and pairs are all that is asked of it: what items say stays out of memory. No event
        # ids: each event comes once here, and there are providers that give one id to many.
        known = {"id": item.id, "type": item.type, "status": item.status, "call_id": item.call_id}
        self._mirror.apply(
            {
                "type": frame.type,
                "previous_item_id": frame.previous_item_id,
                "item": {name: value for name, value in known.items() if value is not None},
            }
        )
        if self._mirror.get(item.id) is not None:
            self._entered += is_new
            self._tombstones.pop(item.id, None)
            self._calls.told(item, self._in_front_of(item.id))

    def _in_front_of(self, item_id: str) -> Iterator[str]:
        found = self._mirror.before(item_id)
        while found is not None:
            yield found
            found = self._mirror.before(found)

    def _deleted(self, item_id: str) -> Steps:
        self._leaving.discard(item_id)
        if self._mirror.get(item_id) is None:
            return ()
        self._mirror.apply({"type": frames.DELETED, "item_id": item_id})
        self._bury(item_id)
        outputs = self._calls.outputs_of(item_id)
        self._calls.deleted(item_id)
        if item_id not in self._carried_out:
            return ()
        del self._carried_out[item_id]
        # The client asked for the call alone, before there was an output: without its call that
        # one would be an orphan. It goes last, so that a pair that cannot go whole stays whole.
        return tuple(self._own_delete(output) for output in outputs)

    def _bury(self, item_id: str) -> None:
        self._buried += 1
        self._tombstones[item_id] = self._buried
        oldest, buried = next(iter(self._tombstones.items()))
        if buried <= self._buried - MOST_TOMBSTONES:
            del self._tombstones[oldest]

    def _settled(self) -> Steps:
        """Deletes whose calls are not in flight any more: answered, cut short, or gone."""
        ready = self._taken(lambda held: not self._calls.in_flight(held.item_id))
        for held in ready:
            if self._mirror.get(held.item_id) is not None:
                self._carried_out[held.item_id] = held.event_id
                if len(self._carried_out) > MOST_CARRIED_OUT:
                    del self._carried_out[next(iter(self._carried_out))]
        return tuple(CarryOut(held.frame) for held in ready)

    def _for_client(self, frame: ServerFrame, payload: bytes) -> Pass | Rewrite:
        previous = frame.previous_item_id
        if (
            previous is None
            or previous not in self._tombstones
            or not self._mirror.has_place(previous)
        ):
            return Pass()
        surviving = self._mirror.surviving(previous)
        if frame.item is not None and surviving == frame.item.id:
            return Pass()  # it was there before what it is said to follow
        event = frames.behind(payload, surviving)
        return Pass() if event is None else Rewrite(event)

    # --- what is made here -----------------------------------------------------------------------

    def _taken(self, ready: Callable[[_Held], bool]) -> list[_Held]:
        """The deletes that are held no longer, in their order."""
        taken = [held for held in self._held if ready(held)]
        if taken:
            self._held = [held for held in self._held if not ready(held)]
            self._held_bytes -= sum(len(held.frame) for held in taken)
        return taken

    def _drop(self, item_id: str, event_id: str | None) -> Drop:
        message = (
            f"Error deleting item: the item with id '{item_id}' is a call in flight, and was not "
            "deleted. Create its output first, then delete both."
        )
        return Drop(self._error(event_id, code=IN_FLIGHT_CODE, message=message))

    def _own_delete(self, item_id: str) -> DeleteOutput:
        own = self._event_id("delete")
        self._own[own] = item_id
        self._leaving.add(item_id)
        if len(self._own) > MOST_OWN:
            self._leaving.discard(self._own.pop(next(iter(self._own))))
        return DeleteOutput(frames.delete_of(item_id, own))

    def _error(self, event_id: str | None, *, code: str, message: str) -> bytes:
        own = self._event_id("error")
        return frames.error_for(event_id, own, code=code, message=message)

    def _event_id(self, kind: str) -> str:
        self._said += 1
        return f"lockstitch_{kind}_{self._said}"
