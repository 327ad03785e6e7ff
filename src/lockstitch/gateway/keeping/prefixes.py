"""Which response a history that was sent in full goes on from, so that only its end is kept.

A digest runs along the items, by their likeness, in order; the digest of everything up to the end
of a response is remembered with its id. It serves to find, never to tell apart: what is not found,
or was forgotten, is kept in full, and nothing is lost. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from lockstitch.dialects.likeness import likeness

RESPONSES_REMEMBERED = 10_000
"""Of each tenant: about 2 MB."""


class Running:
    """The digest of a context, item by item. Reasoning is passed over: clients drop it."""

    __slots__ = ("_state",)

    def __init__(self, state: bytes = b"") -> None:
        self._state = state

    def add(self, item: Mapping[str, Any]) -> bytes:
        if item.get("type") != "reasoning":
            self._state = sha256(self._state + sha256(likeness(item)).digest()).digest()
        return self._state

    def add_all(self, items: Iterable[Mapping[str, Any]]) -> bytes:
        for item in items:
            self.add(item)
        return self._state

    @property
    def state(self) -> bytes:
        return self._state


class Prefixes:
    """The contexts that responses left, by tenant. What one tenant does pushes nothing of another
    tenant's out."""

    def __init__(self, most: int = RESPONSES_REMEMBERED) -> None:
        self._most = most
        self._tenants: dict[str, _OfTenant] = {}

    def find(
        self, tenant: str, items: Sequence[Mapping[str, Any]]
    ) -> tuple[str | None, int, bytes]:
        """The response that a history goes on from, how many of its items are before that, and
        the digest of all."""
        responses = self._of(tenant).responses
        running = Running()
        base, at = None, 0
        for n, item in enumerate(items, 1):
            state = running.add(item)
            # Reasoning behind a response has the same digest, and belongs to it.
            known = responses.get(state)
            if known is not None:
                base, at = known, n
                responses.move_to_end(state)
        return base, at, running.state

    def state(self, tenant: str, response: str) -> bytes | None:
        """The digest of everything up to the end of a response."""
        states = self._of(tenant).states
        state = states.get(response)
        if state is not None:
            states.move_to_end(response)
        return state

    def forget(self, tenant: str, response: str) -> None:
        """It was deleted: nothing is kept behind it any more."""
        mine = self._of(tenant)
        state = mine.states.pop(response, None)
        if state is not None and mine.responses.get(state) == response:
            del mine.responses[state]

    def remember(self, tenant: str, response: str, state: bytes) -> None:
        mine = self._of(tenant)
        mine.responses[state] = response
        mine.states[response] = state
        while len(mine.responses) > self._most:
            mine.responses.popitem(last=False)
        while len(mine.states) > self._most:
            mine.states.popitem(last=False)

    def _of(self, tenant: str) -> _OfTenant:
        return self._tenants.setdefault(tenant, _OfTenant())


class _OfTenant:
    """What is remembered of one tenant."""

    __slots__ = ("responses", "states")

    def __init__(self) -> None:
        self.responses: OrderedDict[bytes, str] = OrderedDict()
        self.states: OrderedDict[str, bytes] = OrderedDict()
