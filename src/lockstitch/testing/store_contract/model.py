"""Random operations on a store, and on plain dictionaries beside it: they must agree throughout.

Needs hypothesis. Derive from `StoreMachine`, say in `place` where a store is to be opened, and run
its `TestCase`. The promises one by one, and those about time and many at once, are `CHECKS`."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from lockstitch.core.records import Name, Naming, Record
from lockstitch.store.bodies import LARGE_BODY_BYTES, is_large
from lockstitch.store.contract import Claim, Found, Store
from lockstitch.store.errors import ClaimLost, ConversationBusy, OutOfStep
from lockstitch.testing.store_contract.opened import LONG_SECONDS, Opened, untimed

_CONVERSATIONS = st.sampled_from(["a", "b", "c\0", "\U0001f9f5"])
_NAMES = st.builds(Name, st.sampled_from(Naming), st.sampled_from(["1", "2", "3", "\0"]))
_BODIES = (
    st.none()
    | st.binary(max_size=20)
    | st.sampled_from([LARGE_BODY_BYTES, LARGE_BODY_BYTES + 1, 100_000]).map(bytes)
)
_DRAFTS = st.lists(
    st.builds(
        Record,
        seq=st.just(0),
        payload=st.binary(max_size=20),
        body=_BODIES,
        names=st.lists(_NAMES, max_size=3, unique=True).map(tuple),
    ),
    max_size=4,
)


class StoreMachine(RuleBasedStateMachine):
    """One store, and what it should hold."""

    claims: ClassVar[Bundle[Claim]] = Bundle("claims")
    lasts: ClassVar[bool] = False
    """Is it the same store when it is opened again?"""

    def place(self) -> Opened:
        """Where the store of one run is opened; a new and empty one each time."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._open = AsyncExitStack()
        self._held: dict[str, Claim] = {}
        self._kept: dict[str, list[Record]] = {}
        self._found: dict[Name, list[Found]] = {}
        self._newest_token = 0

    @initialize()
    def begin(self) -> None:
        self._opened = self.place()
        self._store: Store = self._do(self._open.enter_async_context(self._opened()))

    def teardown(self) -> None:
        self._do(self._open.aclose())
        self._runner.close()

    def _do(self, work: Any) -> Any:
        return self._runner.run(work)

    # Who may write

    @rule(target=claims, conversation=_CONVERSATIONS)
    def claim(self, conversation: str) -> Claim:
        return self._claim(conversation)

    def _claim(self, conversation: str) -> Claim:
        work = self._store.claim(conversation, owner="model", seconds=LONG_SECONDS)
        holder = self._held.get(conversation)
        if holder is not None:
            self._refused(ConversationBusy, work)
            return holder
        claim: Claim = self._do(work)
        assert claim.token > self._newest_token
        assert claim.length == len(self._kept.setdefault(conversation, []))
        self._newest_token = claim.token
        self._held[conversation] = claim
        return claim

    @rule(target=claims, conversation=_CONVERSATIONS, drafts=_DRAFTS, release=st.booleans())
    def begin_with(self, conversation: str, drafts: list[Record], release: bool) -> Any:
        records = _placed(drafts, 0)
        claim: Claim | None = self._do(
            self._store.begin(
                conversation, records, owner="model", seconds=LONG_SECONDS, release=release
            )
        )
        assert (claim is None) is (conversation in self._kept)
        if claim is None:
            return multiple()
        assert claim.token > self._newest_token
        self._newest_token = claim.token
        self._kept[conversation] = []
        self._keep(conversation, records)
        if not release:
            self._held[conversation] = claim
        return claim

    @rule(target=claims, conversation=_CONVERSATIONS)
    def take_over(self, conversation: str) -> Claim:
        holder = self._held.pop(conversation, None)
        if holder is not None:
            self._do(self._store.renew(holder, seconds=0))
        return self._claim(conversation)

    @rule(claim=claims)
    def renew(self, claim: Claim) -> None:
        work = self._store.renew(claim, seconds=LONG_SECONDS)
        if self._is_held(claim):
            self._do(work)
        else:
            self._refused(ClaimLost, work)

    @rule(claim=consumes(claims))
    def release(self, claim: Claim) -> None:
        self._do(self._store.release(claim))
        if self._is_held(claim):
            del self._held[claim.conversation]

    def _is_held(self, claim: Claim) -> bool:
        holder = self._held.get(claim.conversation)
        return holder is not None and holder.token == claim.token

    # Writing

    @rule(claim=claims, drafts=_DRAFTS, release=st.booleans())
    def append(self, claim: Claim, drafts: list[Record], release: bool) -> None:
        after = len(self._kept.get(claim.conversation, []))
        records = _placed(drafts, after)
        work = self._store.append(claim, after, records, release=release)
        if not self._is_held(claim):
            self._refused(ClaimLost, work)
            return
        self._do(work)
        self._keep(claim.conversation, records)
        if release:
            del self._held[claim.conversation]

    def _keep(self, conversation: str, records: list[Record]) -> None:
        self._kept[conversation] += records
        for record in records:
            for name in record.names:
                self._found.setdefault(name, []).insert(0, Found(conversation, record.seq))

    @rule(claim=claims, drafts=_DRAFTS, off=st.sampled_from([-2, -1, 1, 2]))
    def append_out_of_step(self, claim: Claim, drafts: list[Record], off: int) -> None:
        after = len(self._kept.get(claim.conversation, [])) + off
        if after < 0:
            return
        kind = OutOfStep if self._is_held(claim) else ClaimLost
        self._refused(kind, self._store.append(claim, after, _placed(drafts, after)))

    @rule(conversation=_CONVERSATIONS, drafts=_DRAFTS, first=st.integers(0, 3))
    def replace(self, conversation: str, drafts: list[Record], first: int) -> None:
        kept = self._kept.get(conversation, [])
        records = [
            Record(old.seq, draft.payload, draft.body, old.names)
            for old, draft in zip(kept[first:], drafts, strict=False)
        ]
        if records:
            self._do(self._store.replace(conversation, records))
            kept[first : first + len(records)] = records

    # Forgetting

    @rule(conversation=_CONVERSATIONS)
    def delete(self, conversation: str) -> None:
        was_there = self._do(self._store.delete(conversation))
        assert was_there is (conversation in self._kept)
        self._kept.pop(conversation, None)
        self._held.pop(conversation, None)
        self._found = {
            name: [one for one in where if one.conversation != conversation]
            for name, where in self._found.items()
        }

    @rule()
    def vacuum(self) -> None:
        self._do(self._store.vacuum())
        large = sum(
            len({one.body for one in kept if is_large(one.body)}) for kept in self._kept.values()
        )
        assert self._do(self._store.stats()).bodies == large

    @rule()
    def open_again(self) -> None:
        if self.lasts:
            self._do(self._open.aclose())
            self._store = self._do(self._open.enter_async_context(self._opened()))

    # Reading

    @rule(name=_NAMES)
    def find(self, name: Name) -> None:
        assert self._do(self._store.find(name)) == self._found.get(name, [])

    @rule(conversation=_CONVERSATIONS, after=st.integers(0, 5))
    def read(self, conversation: str, after: int) -> None:
        kept = self._kept.get(conversation, [])
        assert self._do(_read(self._store, conversation, after)) == kept[after:]

    @invariant()
    def everything_is_there(self) -> None:
        stats = self._do(self._store.stats())
        assert stats.conversations == len(self._kept)
        assert stats.records == sum(map(len, self._kept.values()))
        listed = self._do(_listed(self._store))
        assert listed == sorted((name, len(kept)) for name, kept in self._kept.items())

    def _refused(self, kind: type[Exception], work: Any) -> None:
        try:
            result = self._do(work)
        except kind:
            return
        raise AssertionError(f"{kind.__name__} was not raised; the result was {result!r}")


def _placed(drafts: list[Record], after: int) -> list[Record]:
    return [
        Record(seq, draft.payload, draft.body, draft.names)
        for seq, draft in enumerate(drafts, start=after + 1)
    ]


async def _read(store: Store, conversation: str, after: int) -> list[Record]:
    return [untimed(one) async for one in store.read(conversation, after=after)]


async def _listed(store: Store) -> list[tuple[str, int]]:
    return [(one.conversation, one.length) async for one in store.conversations()]
