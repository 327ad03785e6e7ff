"""A store in memory: the whole contract, for tests and for conversations that need not last.

Nothing outlives the process, and nothing is shared with another one. The time is an argument."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Self

import msgspec

from lockstitch.core.records import Name, Record
from lockstitch.store.bodies import is_large
from lockstitch.store.contract import Claim, Found, Stats, Summary
from lockstitch.store.errors import OutOfStep, StoreError
from lockstitch.store.stepping import check_numbers, claim_lost, conversation_busy, out_of_step

SCHEMA = 1
"""There is nothing to migrate: what is in memory was written by this version."""


class MemoryStore:
    """Conversations in this process alone."""

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        """``now`` gives the time in seconds since 1970. A claim that is waited for is looked at
        again when it is released, and when it should have run out by the event loop's clock."""
        self._now = now
        self._conversations: dict[str, _Conversation] = {}
        self._names: defaultdict[Name, list[Found]] = defaultdict(list)
        self._token = 0
        self._freed = asyncio.Condition()
        self._closed = False

    @property
    def url(self) -> str:
        return "memory:"

    # Claims

    async def claim(
        self, conversation: str, *, owner: str, seconds: float, wait: float = 0
    ) -> Claim:
        loop = asyncio.get_running_loop()
        patience_ends = loop.time() + wait
        async with self._freed:
            while True:
                self._check_open()
                kept = self._conversations.get(conversation)
                left = kept.held_until - self._now() if kept is not None else 0.0
                if kept is None or kept.claim is None or left <= 0:
                    return self._claimed(conversation, owner, seconds)
                patience = patience_ends - loop.time()
                if patience <= 0:
                    raise conversation_busy(
                        self.url,
                        conversation,
                        owner=kept.claim.owner,
                        token=kept.claim.token,
                        seconds_left=left,
                    )
                try:
                    async with asyncio.timeout(min(left, patience)):
                        await self._freed.wait()
                except TimeoutError:
                    pass

    def _claimed(self, conversation: str, owner: str, seconds: float) -> Claim:
        now = self._now()
        kept = self._conversations.get(conversation)
        if kept is None:
            kept = self._conversations[conversation] = _Conversation(now)
        # One count for all conversations: a claim from before a deletion stays lost when a
        # conversation of the same name begins.
        self._token += 1
        claim = Claim(conversation, owner, self._token, len(kept.records))
        kept.claim, kept.held_until = claim, now + seconds
        return claim

    async def begin(
        self,
        conversation: str,
        records: Sequence[Record],
        *,
        owner: str,
        seconds: float,
        release: bool = False,
    ) -> Claim | None:
        self._check_open()
        check_numbers(self.url, conversation, records)
        if conversation in self._conversations:
            return None
        claim = self._claimed(conversation, owner, seconds)
        kept = self._conversations[conversation]
        self._keep(conversation, kept, records)
        if release:
            kept.claim = None  # nobody can wait for it yet
        return claim

    async def renew(self, claim: Claim, *, seconds: float) -> None:
        self._check_open()
        self._held(claim).held_until = self._now() + seconds

    async def release(self, claim: Claim) -> None:
        self._check_open()
        kept = self._conversations.get(claim.conversation)
        if kept is not None and kept.claim is not None and kept.claim.token == claim.token:
            kept.claim = None
            await self._wake()

    def _held(self, claim: Claim) -> _Conversation:
        """The conversation, if the claim is still its claim."""
        kept = self._conversations.get(claim.conversation)
        if kept is None or kept.claim is None or kept.claim.token != claim.token:
            owner = kept.claim.owner if kept is not None and kept.claim is not None else None
            raise claim_lost(self.url, claim.conversation, there=kept is not None, owner=owner)
        return kept

    async def _wake(self) -> None:
        async with self._freed:
            self._freed.notify_all()

    # Writing

    async def append(
        self, claim: Claim, after: int, records: Sequence[Record], *, release: bool = False
    ) -> None:
        self._check_open()
        kept = self._held(claim)
        length = len(kept.records)
        if length != after:
            raise out_of_step(
                self.url, claim.conversation, length=length, after=after, count=len(records)
            )
        check_numbers(self.url, claim.conversation, records, after=after)
        self._keep(claim.conversation, kept, records)
        if release:
            kept.claim = None
            await self._wake()

    def _keep(self, conversation: str, kept: _Conversation, records: Sequence[Record]) -> None:
        now = self._now()
        for record in records:
            kept.add(record, now)
            for name in dict.fromkeys(record.names):
                self._names[name].append(Found(conversation, record.seq))
        if records:
            kept.changed = now

    async def replace(self, conversation: str, records: Sequence[Record]) -> None:
        self._check_open()
        kept = self._conversations.get(conversation)
        length = len(kept.records) if kept is not None else 0
        missing = [record.seq for record in records if not 1 <= record.seq <= length]
        if kept is None or missing:
            raise OutOfStep(
                f"Conversation {conversation!r} in {self.url} has {length} records: there is none"
                f" to replace at {missing[:1]}. Nothing was written."
            )
        kept.replace(records)

    # Reading

    async def read(
        self, conversation: str, *, after: int = 0, limit: int | None = None
    ) -> AsyncIterator[Record]:
        self._check_open()
        kept = self._conversations.get(conversation)
        if kept is not None:
            for record in kept.records[after : None if limit is None else after + limit]:
                self._check_open()
                yield record

    async def find(self, name: Name) -> list[Found]:
        self._check_open()
        return self._names.get(name, [])[::-1]

    async def conversations(self) -> AsyncIterator[Summary]:
        self._check_open()
        for name in sorted(self._conversations):
            kept = self._conversations.get(name)
            if kept is not None:
                yield Summary(name, len(kept.records), kept.created, kept.changed)

    async def stats(self) -> Stats:
        self._check_open()
        kept = self._conversations.values()
        return Stats(
            conversations=len(kept),
            records=sum(len(one.records) for one in kept),
            bodies=sum(len(one.large) for one in kept),
            size_bytes=sum(one.size_bytes() for one in kept),
            schema=SCHEMA,
        )

    # Forgetting

    async def delete(self, conversation: str) -> bool:
        self._check_open()
        kept = self._conversations.pop(conversation, None)
        if kept is None:
            return False
        for name in {name for record in kept.records for name in record.names}:
            left = [found for found in self._names[name] if found.conversation != conversation]
            if left:
                self._names[name] = left
            else:
                del self._names[name]
        await self._wake()
        return True

    async def delete_unchanged_since(self, moment: float) -> int:
        self._check_open()
        old = [name for name, kept in self._conversations.items() if kept.changed < moment]
        for name in old:
            await self.delete(name)
        return len(old)

    async def vacuum(self) -> None:
        self._check_open()

    async def close(self) -> None:
        self._closed = True
        await self._wake()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"The store {self.url} is closed. Open it again to use it.")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self._conversations)} conversations"
        return f"<MemoryStore {state}>"


class _Conversation:
    """What is kept of one."""

    __slots__ = ("changed", "claim", "created", "held_until", "large", "records")

    def __init__(self, now: float) -> None:
        self.records: list[Record] = []
        self.large: dict[bytes, bytes] = {}
        """Large bodies, each by itself: equal ones are one object."""
        self.claim: Claim | None = None
        self.held_until = now
        self.created = now
        self.changed = now

    def add(self, record: Record, now: float) -> None:
        at = now if record.at is None else record.at
        self.records.append(msgspec.structs.replace(record, body=self._once(record.body), at=at))

    def replace(self, records: Sequence[Record]) -> None:
        for record in records:
            old = self.records[record.seq - 1]
            self.records[record.seq - 1] = msgspec.structs.replace(
                old, payload=record.payload, body=self._once(record.body)
            )
        used = {one.body for one in self.records}
        self.large = {body: body for body in self.large if body in used}

    def _once(self, body: bytes | None) -> bytes | None:
        if body is None or not is_large(body):
            return body
        return self.large.setdefault(body, body)

    def size_bytes(self) -> int:
        """Payloads and bodies, a large body once."""
        small = sum(len(one.body or b"") for one in self.records if not is_large(one.body))
        return small + sum(len(one.payload) for one in self.records) + sum(map(len, self.large))
