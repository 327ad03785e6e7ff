"""LiveKit's picture of the provider's context, in a mirror's order and under the agent's own ids.

An item that was changed is at the provider under an id of its own; here it keeps its name."""

from __future__ import annotations

from livekit.agents.llm import ChatItem
from livekit.agents.llm.remote_chat_context import RemoteChatContext, _RemoteChatItem

from lockstitch.dialects.base import Wire
from lockstitch.integrations.livekit.contexts import SeenContext, finished
from lockstitch.mirror import ROOT, Create, Delete, Mirror


class MirroredContext(RemoteChatContext):
    """What the provider has, and which of our edits are on their way there."""

    def __init__(self, mirror: Mirror, *, links: bool) -> None:
        super().__init__()
        self.mirror = mirror
        self._links = links
        self.gone: set[str] = set()
        """Names of items that somebody deleted without a plan: they are not made again."""
        self.former: dict[str, ChatItem] = {}
        """Items of the connection before this one, by name, until they are here again."""
        self._present: dict[str, Wire] = {}
        self._present_at = -1

    def __repr__(self) -> str:
        return f"<MirroredContext of {self.mirror!r}>"

    # --- ids and names -------------------------------------------------------------------------

    def name(self, id: str) -> str:
        """What the agent calls the item with this id."""
        names = self.mirror.names(id)
        return names[0] if names else id

    def id(self, name: str) -> str | None:
        """What the provider calls the item with this name; None if it is not there."""
        found: str | None = None
        for one in self.mirror.names(name) or (name,):
            if one not in self.mirror:
                continue
            if found is not None:
                kept = self.mirror.get(found)
                if kept is not None and kept["id"] == found:
                    return found  # it could not be taken away, and the copy goes
            found = one
        return found

    def present(self) -> dict[str, Wire]:
        """The provider's items by name, in order. Not to be changed."""
        version = self.mirror.version
        if self._present_at != version:
            self._present_at, self._present = version, self._by_name()
        return self._present

    def _by_name(self) -> dict[str, Wire]:
        items: dict[str, Wire] = {wire["id"]: wire for wire in self.mirror.items}
        if not self.mirror.has_names(items):
            return items
        found: dict[str, Wire] = {}
        for item_id, wire in items.items():
            names = self.mirror.names(item_id)
            if not names:
                found[item_id] = wire
            elif self.id(names[0]) == item_id:  # not one that a copy has replaced
                found[names[0]] = wire
        return found

    # --- LiveKit's own questions ---------------------------------------------------------------

    def get(self, item_id: str) -> _RemoteChatItem | None:
        return super().get(self.name(item_id))

    def to_chat_ctx(self) -> SeenContext:
        nodes = (super(MirroredContext, self).get(name) for name in self.present())
        items = [node.item for node in nodes if node is not None]
        return SeenContext(items, seen=finished(items), of_session=True)

    def insert(self, previous_item_id: str | None, message: ChatItem) -> None:
        """Where it stands in the list tells nothing: the mirror has the order. It is never lost."""
        known = previous_item_id is None or super().get(previous_item_id) is not None
        super().insert(previous_item_id if known else self.tail_id, message)

    def previous(self, id: str, told: str | None) -> str | None:
        """The name of the item in front of it, told by the provider or nearest to that."""
        if not told:
            return None if self._links else self.tail_id
        nearest = self.mirror.surviving(told)
        if nearest is not None and self.get(nearest) is not None:
            return self.name(nearest)
        before: str | None = None
        for name, wire in self.present().items():
            if wire["id"] == id:
                break
            if super().get(name) is not None:
                before = name
        return before

    # --- what is on its way --------------------------------------------------------------------

    def intended(self) -> list[Wire]:
        """The context as it would be if every edit on its way were carried out, by name; without
        what is still being said: nobody but this provider can bring it to its end."""
        wires = {wire["id"]: wire for wire in self.mirror.items if not _is_begun(wire)}
        order = list(wires)
        for edit in self.mirror.open_edits():
            if isinstance(edit, Create) and edit.item_id not in wires:
                wires[edit.item_id] = edit.item
                order.insert(_place(order, edit.previous_item_id), edit.item_id)
            elif isinstance(edit, Delete) and edit.item_id in wires:
                del wires[edit.item_id]
                order.remove(edit.item_id)
        named: dict[str, Wire] = {}
        for item_id in order:
            name = self.name(item_id)
            if name not in named or self.id(name) == item_id:
                named[name] = wires[item_id] | {"id": name}
        return list(named.values())


def _is_begun(wire: Wire) -> bool:
    """Is it an item of which nothing but its beginning was told?"""
    says = wire.get("content") or wire.get("arguments")
    return wire.get("status") == "in_progress" and not says


def _place(order: list[str], previous: str | None) -> int:
    if previous == ROOT:
        return 0
    return order.index(previous) + 1 if previous in order else len(order)
