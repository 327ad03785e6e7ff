"""What the agent's own context is known to hold, since when, and in which words.

It is looked at whenever something is heard or said. Two items that are new at one look came in an
order that nobody knows; what a caller makes and pushes came together, with that push."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final

from livekit.agents.llm import ChatItem

from lockstitch.integrations.livekit.contexts import says_nothing
from lockstitch.integrations.livekit.inferring import Stay
from lockstitch.integrations.livekit.translating import Said, said_by

CREATED: Final = frozenset({"message", "function_call", "function_call_output"})
"""Items that a push can create at the provider; the others never leave the agent."""


class Holdings:
    """The agent's context, as it was last seen."""

    def __init__(self) -> None:
        self._looks = 0
        self._last: list[ChatItem] = []
        self._stays: dict[str, Stay] = {}
        self._first: dict[str, int] = {}
        """After which moment each item came for the first time. One that comes again, because a
        context without it was pushed in between, tells nothing newer of the copies it is in."""
        self._said: dict[str, tuple[ChatItem, Said]] = {}

    def __repr__(self) -> str:
        return f"<Holdings {len(self._stays)} items>"

    @property
    def stays(self) -> Mapping[str, Stay]:
        return self._stays

    @property
    def said(self) -> Mapping[str, tuple[ChatItem, Said]]:
        """The items, and what they said when they were new. Replaced, never changed."""
        return self._said

    def has(self, item: ChatItem) -> bool:
        """Is it this very object that the agent's context held?"""
        known = self._said.get(item.id)
        return known is not None and known[0] is item

    def look(self, items: Sequence[ChatItem]) -> None:
        """The agent's context, as it is now."""
        if items == self._last:
            return
        self._last = list(items)
        self._looks += 1
        self._keep(items, Stay(after=2 * self._looks - 1, by=2 * self._looks))

    def take(self, items: Sequence[ChatItem], there: Container[str], *, waited: bool) -> None:
        """A context was pushed: the agent's is this one from now on.

        ``there``: names of the items that the provider has. What nobody else can have put into
        the agent's context came with this push; all else since the last look. If the push has
        ``waited``, nobody knows what came when."""
        self._looks += 1
        self._last = list(items)
        by = 2 * self._looks
        self._keep(items, Stay(by - 1, by), None if waited else Stay(by, by), there)

    def _keep(
        self,
        items: Sequence[ChatItem],
        since_last: Stay,
        pushed: Stay | None = None,
        there: Container[str] = (),
    ) -> None:
        stays: dict[str, Stay] = {}
        said: dict[str, tuple[ChatItem, Said]] = {}
        for item in items:
            if says_nothing(item):
                # A place that is kept: nobody can have made up their mind about it. But it is in
                # the copies, and gets its words there, too.
                self._first.setdefault(item.id, since_last.after)
                continue
            new = since_last
            if pushed is not None and item.type in CREATED and item.id not in there:
                new = pushed
            stays[item.id] = self._stays.get(item.id) or Stay(
                after=self._first.setdefault(item.id, new.after), by=new.by
            )
            known = self._said.get(item.id)
            said[item.id] = (
                known if known is not None and known[0] is item else (item, said_by(item))
            )
        self._stays, self._said = stays, said
