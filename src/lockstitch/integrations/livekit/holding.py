"""What the agent's own context is known to hold, since when, and in which words.

It is looked at whenever something is heard or said. Two items that are new at one look came in an
order that nobody knows; what a caller makes and pushes came together, with that push."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final

from livekit.agents.llm import ChatItem

from lockstitch.integrations.livekit.inferring import Stay
from lockstitch.integrations.livekit.reading import Reader, Reading

CREATED: Final = frozenset({"message", "function_call", "function_call_output"})
"""Items that a push can create at the provider; the others never leave the agent."""


class Holdings:
    """The agent's context, as it was last seen."""

    def __init__(self) -> None:
        self._looks = 0
        self._last: list[ChatItem] = []
        self._held: list[Reading] = []
        self.reader = Reader()
        self._stays: dict[str, Stay] = {}
        self._first: dict[str, int] = {}
        """After which moment each item came for the first time. One that comes again, because a
        context without it was pushed in between, tells nothing newer of the copies it is in."""
        self._said: dict[str, Reading] = {}

    def __repr__(self) -> str:
        return f"<Holdings {len(self._stays)} items>"

    @property
    def stays(self) -> Mapping[str, Stay]:
        return self._stays

    @property
    def said(self) -> Mapping[str, Reading]:
        """The items as they were when they were new. Replaced, never changed."""
        return self._said

    def has(self, item: ChatItem) -> bool:
        """Is it this very object that the agent's context held?"""
        known = self._said.get(item.id)
        return known is not None and known.item is item

    def read(self, items: Sequence[ChatItem]) -> list[Reading]:
        return self.reader.read(items)

    def lacking(self, readings: list[Reading]) -> list[str]:
        """What the agent's context holds that this one does not have."""
        first, end = self.reader.ends_in_common(self._held, readings)
        names = {one.name for one in readings[first : len(readings) - end]}
        held = self._held[first : len(self._held) - end]
        return [name for one in held if (name := one.name) not in names]

    def look(self, items: Sequence[ChatItem]) -> None:
        """The agent's context, as it is now."""
        if items == self._last:
            return
        self._last = list(items)
        self._looks += 1
        self._keep(self.read(items), Stay(after=2 * self._looks - 1, by=2 * self._looks))

    def take(self, readings: list[Reading], there: Container[str], *, waited: bool) -> None:
        """A context was pushed: the agent's is this one from now on.

        ``there``: names of the items that the provider has. What nobody else can have put into
        the agent's context came with this push; all else since the last look. If the push has
        ``waited``, nobody knows what came when: LiveKit has gone on writing into it, also what
        the agent's context had held before, and this one did not."""
        self._looks += 1
        self._last = self.reader.items(readings)
        by = 2 * self._looks
        if waited:
            for one in readings:
                if not self.has(one.item):
                    self._stays.pop(one.name, None)
        self._keep(readings, Stay(by - 1, by), None if waited else Stay(by, by), there)

    def _keep(
        self,
        readings: list[Reading],
        since_last: Stay,
        pushed: Stay | None = None,
        there: Container[str] = (),
    ) -> None:
        first, end = self.reader.ends_in_common(self._held, readings)
        went = self._held[first : len(self._held) - end]
        came = readings[first : len(readings) - end]
        self._held = readings
        if not went and not came:
            return
        if went and came:  # where an item stands tells nothing here
            moved = set(went).intersection(came)
            went = [one for one in went if one not in moved]
            came = [one for one in came if one not in moved]
        stays, said = self._stays, self._said.copy()
        changed = {one.name for one in came}
        before: dict[str, tuple[Stay | None, Reading | None]] = {}
        for one in went:
            name = one.name
            stay, known = stays.pop(name, None), said.pop(name, None)
            if name in changed:
                before[name] = stay, known
        for one in came:
            name = one.name
            if one.silent:
                # A place that is kept: nobody can have made up their mind about it. But it is in
                # the copies, and gets its words there, too.
                self._first.setdefault(name, since_last.after)
                continue
            new = since_last
            if pushed is not None and one.kind in CREATED and name not in there:
                new = pushed
            after = self._first.setdefault(name, new.after)
            stay, known = before.get(name, (None, None))
            stays[name] = stay or (new if after == new.after else Stay(after, new.by))
            said[name] = known if known is not None and known.item is one.item else one
        self._said = said
