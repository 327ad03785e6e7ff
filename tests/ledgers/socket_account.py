"""What a conversation must hold in the end, kept by the driver beside the ledger.

It knows the texts of the users and the ids of the calls on the path, and what each tool really
did; it never asks the ledger what to expect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lockstitch.core.calls import Call
from lockstitch.core.exchanges import Exchange
from lockstitch.facts import Seq
from tests.ledgers.socket_model import Wire
from tests.ledgers.socket_provider import Refusal


class Account:
    def __init__(self) -> None:
        self.users: list[str] = []
        self.calls: list[str] = []
        self.maybe: set[str] = set()
        """Texts and calls from before a compaction: there once, or not at all."""
        self.snapshots: dict[Seq, tuple[list[str], list[str], set[str]]] = {}
        """The path as it was when each answer was taken."""
        self.effects: Counter[str] = Counter()
        self.outputs: dict[str, Wire] = {}
        """What each tool gave back."""
        self.unknown: set[str] = set()
        self.never_started: set[str] = set()
        self.redacted: set[str] = set()
        self.dropped: set[str] = set()
        """Calls that a filter took out of a request."""
        self.forgotten: set[str] = set()
        """Anchors that a fault made the provider forget."""
        self._missed: set[str] = set()
        self.allowed: Counter[str] = Counter()
        """Refusals that a fault, or a question after one, brought about."""

    def allow(self, rule: str) -> None:
        self.allowed[rule] += 1

    def missed(self, anchor: str, said: Refusal) -> None:
        """The provider does not know an anchor: right once, if a fault made it forget."""
        assert anchor in self.forgotten, f"{said}, and nothing was forgotten"
        assert anchor not in self._missed, f"{said}, for the second time"
        self._missed.add(anchor)
        is_response = said.code == "previous_response_not_found"
        self.allow("anchor-not-found" if is_response else "not-found")

    def joined(self, calls: Iterable[Call]) -> None:
        """These calls are part of the conversation from here on."""
        for call in calls:
            key = call.item.key or ""
            if key not in self.calls:
                self.calls.append(key)

    def accepted(self, exchange: Exchange) -> None:
        if exchange.seq in self.snapshots:
            return  # it was known before the process died
        self.joined(exchange.calls)
        self.snapshots[exchange.seq] = list(self.users), list(self.calls), set(self.maybe)

    def back_to(self, place: Seq) -> None:
        users, calls, maybe = self.snapshots[place]
        self.users, self.calls, self.maybe = list(users), list(calls), set(maybe)

    def compacted(self) -> None:
        self.maybe.update(self.users, self.calls)
        self.users, self.calls = [], []
