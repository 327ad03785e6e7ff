"""From the context that a caller wants to a plan for the mirror."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from livekit.agents.llm import ChatContext, ChatItem
from livekit.agents.utils import shortuuid
from livekit.agents.voice.generation import remove_instructions
from msgspec import Struct

from lockstitch.dialects.base import Wire
from lockstitch.integrations.livekit import inferring
from lockstitch.integrations.livekit.contexts import SeenContext, says_nothing
from lockstitch.integrations.livekit.holding import Holdings
from lockstitch.integrations.livekit.translating import Said, is_speech, said_by, same, to_wire
from lockstitch.integrations.livekit.viewing import MirroredContext
from lockstitch.mirror import Plan

_PREFIXES: Mapping[str, str] = {"item": "item_", "event": "chat_ctx_", "group": "group_"}


class Wanted(Struct, frozen=True, eq=False):
    """A context that a caller wants, and what it had seen when it made up its mind."""

    items: list[ChatItem]
    seen: frozenset[str]
    copied: Sequence[str]
    """The ids in the context that it was made from, in their order, so far as it is known."""
    known: Callable[[str], Said | None]
    """What an item said when the caller saw it, by name; None if that is not known."""
    of_session: bool
    """It was read from the session and changed, not from the agent's own context."""


def wanted(
    chat_ctx: ChatContext, holdings: Holdings, view: MirroredContext, *, waited: bool
) -> Wanted:
    """The context without what is LiveKit's own business: instructions, handoffs, settings.

    ``waited``: items may have come into it since it was pushed. Only those that are the very
    objects that the agent's context had were in the copy for certain."""
    of_session = isinstance(chat_ctx, SeenContext) and chat_ctx.of_session
    if isinstance(chat_ctx, SeenContext):
        seen, copied = chat_ctx.seen, chat_ctx.order
    else:
        shared = [item.id for item in chat_ctx.items if not waited or holdings.has(item)]
        seen = inferring.seen(shared, holdings.stays) if shared or not waited else frozenset()
        copied = ()  # who moved what, the caller or LiveKit, is in doubt: so nothing moves
    kept = chat_ctx.copy(exclude_handoff=True, exclude_config_update=True)
    remove_instructions(kept)
    held = holdings.said

    def in_the_agents_words(name: str) -> Said | None:
        known = held.get(name)
        return None if known is None else known[1]

    def in_the_sessions_words(name: str) -> Said | None:
        node = view.get(name)
        return None if node is None else said_by(node.item)

    known = in_the_sessions_words if of_session else in_the_agents_words
    return Wanted(kept.items, seen, copied, known, of_session)


def planned(wanted: Wanted, view: MirroredContext, changed: set[str]) -> Plan:
    """The plan. ``changed``: names of items that callers have changed; it grows."""
    there = view.present()
    target: dict[str, Wire] = {}
    for item in wanted.items:
        wire = there.get(item.id)
        if wire is not None:
            target[item.id] = _wire(item, wire, wanted, view, changed)
        elif not _is_place(item) and item.id not in view.gone:
            target[item.id] = to_wire(item)
    remote = list(there)
    order = inferring.unmoved(list(target), remote, wanted.copied)
    order = inferring.with_unseen(order, remote, wanted.seen)
    mirror = view.mirror
    return mirror.plan(
        [target[name] if name in target else there[name] for name in order],
        base=mirror.snapshot(),
        new_id=new_id,
    )


def _is_place(item: ChatItem) -> bool:
    """Is it a message without content? LiveKit keeps such places for what is being said."""
    return item.type == "message" and not item.content


def new_id(kind: str) -> str:
    return shortuuid(_PREFIXES[kind])


def _wire(
    item: ChatItem, wire: Wire, wanted: Wanted, view: MirroredContext, changed: set[str]
) -> Wire:
    """What an item that is there is to say: what it says, unless the caller changed that.

    What was played and what was generated differ in a word or two. Where it is not known what the
    caller saw, speech stays as it is: made again it would be text."""
    if says_nothing(item) or same(item, wire):
        return wire
    if item.id in changed:
        return to_wire(item) | {"id": wire["id"]}
    node = view.get(item.id)
    if wanted.of_session and node is not None and node.item is item:
        return wire
    known = wanted.known(item.id)
    if known == said_by(item) or (known is None and is_speech(wire)):
        return wire
    changed.add(item.id)
    return to_wire(item) | {"id": wire["id"]}
