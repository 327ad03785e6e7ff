"""From the context that a caller wants to a plan for the mirror."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from livekit.agents.llm import ChatContext
from msgspec import Struct, structs

from lockstitch.dialects.base import Wire
from lockstitch.integrations.livekit import inferring
from lockstitch.integrations.livekit.contexts import SeenContext
from lockstitch.integrations.livekit.holding import Holdings
from lockstitch.integrations.livekit.reading import Reader, Reading
from lockstitch.integrations.livekit.translating import (
    Said,
    alike,
    is_speech,
    said_by,
    same,
    to_wire,
)
from lockstitch.integrations.livekit.viewing import MirroredContext
from lockstitch.mirror import Plan
from lockstitch.mirror.ordering import ends_in_common


class Wanted(Struct, frozen=True, eq=False):
    """A context that a caller wants, and what it had seen when it made up its mind."""

    readings: list[Reading]
    """All of it, also what is LiveKit's own business."""
    reader: Reader
    seen: frozenset[str]
    """Of what it does not want."""
    copied: Sequence[str]
    """The ids in the context that it was made from, in their order, so far as it is known."""
    known: Callable[[str], Said | None]
    """What an item said when the caller saw it, by name; None if that is not known."""
    of_session: bool
    """It was read from the session and changed, not from the agent's own context."""

    def read_again(self) -> Wanted:
        """The same, as its items are now: they may have been changed while it waited."""
        items = self.reader.items(self.readings)
        return structs.replace(self, readings=self.reader.read(items))


def wanted(
    chat_ctx: ChatContext,
    reader: Reader,
    holdings: Holdings,
    view: MirroredContext,
    *,
    waited: bool,
) -> Wanted:
    """What a caller wants that pushes this context.

    ``waited``: items may have come into it since it was pushed. Only those that are the very
    objects that the agent's context had were in the copy for certain."""
    of_session = isinstance(chat_ctx, SeenContext) and chat_ctx.of_session
    readings = reader.read(chat_ctx.items)
    copied: Sequence[str] = ()  # who moved what, the caller or LiveKit, is in doubt
    seen: frozenset[str] = frozenset()
    if isinstance(chat_ctx, SeenContext):
        seen, copied = chat_ctx.seen, chat_ctx.order
    elif waited:
        shared = [one.name for one in readings if holdings.has(one.item)]
        if shared:
            seen = inferring.seen(holdings.lacking(readings), shared, holdings.stays)
    elif lacking := holdings.lacking(readings):
        seen = inferring.seen(lacking, [one.name for one in readings], holdings.stays)
    held = holdings.said

    def in_the_agents_words(name: str) -> Said | None:
        known = held.get(name)
        return None if known is None else known.said

    def in_the_sessions_words(name: str) -> Said | None:
        node = view.get(name)
        return None if node is None else said_by(node.item)

    known = in_the_sessions_words if of_session else in_the_agents_words
    return Wanted(readings, reader, seen, copied, known, of_session)


def planned(
    wanted: Wanted, view: MirroredContext, changed: set[str], new_id: Callable[[str], str]
) -> Plan:
    """The plan. ``changed``: names of items that callers have changed; it grows.

    What is LiveKit's own business (instructions, handoffs, settings) is no part of it. Both ends
    that are known to say what the provider's say are not looked at again."""
    there = view.present()
    remote, wires = list(there), list(there.values())
    readings = [one for one in wanted.readings if not one.own]
    first, end = ends_in_common([one.agrees for one in readings], wires)
    stop, last = len(readings) - end, len(wires) - end
    between = set(remote[first:last])
    target: dict[str, Wire] = {}
    for one in readings[first:stop]:
        name = one.name
        if name in between:
            wire = there[name]
            if one.agrees is wire or one.silent or same(one.item, wire):
                one.agrees = target[name] = wire
            else:
                target[name] = _wire(one, wire, wanted, view, changed)
        elif name not in there and not _is_place(one, wanted) and name not in view.gone:
            target[name] = to_wire(one.item, one.fields)
    asked = _in_place(target, remote[first:last], between, wanted.seen)
    if asked is not None:
        whole = wires[:first] + asked + wires[last:]
    else:
        order = remote[:first] + list(target) + remote[last:]
        order = inferring.unmoved(order, remote, wanted.copied)
        order = inferring.with_unseen(order, remote, wanted.seen)
        whole = [target[name] if name in target else there[name] for name in order]
    mirror = view.mirror
    return mirror.plan(whole, base=mirror.snapshot(), new_id=new_id)


def _in_place(
    target: dict[str, Wire], remote: list[str], there: set[str], seen: AbstractSet[str]
) -> list[Wire] | None:
    """The target as it is, if nothing stands elsewhere in it and nothing that is there is unseen.

    ``there``: the same as ``remote``. `inferring` would come to the same, in more steps."""
    if not there - target.keys() <= seen:
        return None
    if [name for name in target if name in there] != [name for name in remote if name in target]:
        return None
    return list(target.values())


def _is_place(reading: Reading, wanted: Wanted) -> bool:
    """Is it a message without content, or a call without arguments that nobody has answered?
    LiveKit keeps such places for what is being said, also if its end was never heard."""
    if not reading.silent:
        return False
    if reading.kind == "message":
        return not reading.fields[-1]
    _, call_id, *_ = reading.fields
    return not any(
        one.kind == "function_call_output" and one.fields[1] == call_id for one in wanted.readings
    )


def _wire(
    reading: Reading, wire: Wire, wanted: Wanted, view: MirroredContext, changed: set[str]
) -> Wire:
    """What an item is to say that is there in other words: those, unless the caller changed it.

    What was played and what was generated differ in a word or two. Where it is not known what the
    caller saw, speech stays as it is: made again it would be text."""
    item, name = reading.item, reading.name
    if name not in changed:
        node = view.get(name)
        if wanted.of_session and node is not None and node.item is item:
            return wire
        known = wanted.known(name)
        if is_speech(wire) if known is None else alike(known, reading.said):
            return wire
        changed.add(name)
    return to_wire(item, reading.fields) | {"id": wire["id"]}
