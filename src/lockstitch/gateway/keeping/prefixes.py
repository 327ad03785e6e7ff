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
"""About 2 MB."""


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
    """The contexts that responses left, by tenant."""

    def __init__(self, most: int = RESPONSES_REMEMBERED) -> None:
        self._most = most
        self._responses: OrderedDict[tuple[str, bytes], str] = OrderedDict()
        self._states: OrderedDict[tuple[str, str], bytes] = OrderedDict()

    def find(
        self, tenant: str, items: Sequence[Mapping[str, Any]]
    ) -> tuple[str | None, int, bytes]:
        """The response that a history goes on from, how many of its items are before that, and
        the digest of all."""
        running = Running()
        base, at = None, 0
        for n, item in enumerate(items, 1):
            state = running.add(item)
            # Reasoning behind a response has the same digest, and belongs to it.
            known = self._responses.get((tenant, state))
            if known is not None:
                base, at = known, n
                self._responses.move_to_end((tenant, state))
        return base, at, running.state

    def state(self, tenant: str, response: str) -> bytes | None:
        """The digest of everything up to the end of a response."""
        state = self._states.get((tenant, response))
        if state is not None:
            self._states.move_to_end((tenant, response))
        return state

    def forget(self, tenant: str, response: str) -> None:
        """It was deleted: nothing is kept behind it any more."""
        state = self._states.pop((tenant, response), None)
        if state is not None and self._responses.get((tenant, state)) == response:
            del self._responses[tenant, state]

    def remember(self, tenant: str, response: str, state: bytes) -> None:
        self._responses[tenant, state] = response
        self._states[tenant, response] = state
        while len(self._responses) > self._most:
            self._responses.popitem(last=False)
        while len(self._states) > self._most:
            self._states.popitem(last=False)
