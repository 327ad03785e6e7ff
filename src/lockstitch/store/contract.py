"""What every store promises. `lockstitch.testing` ships the same as a suite to run on one.

A store keeps records, in order, for each conversation; it knows nothing of facts. One process at
a time may write to a conversation: it holds a claim with a fencing token. An append is durable
when it returns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from msgspec import Struct

from lockstitch.core.records import Name, Record


class Claim(Struct, frozen=True):
    """The right to write to one conversation, until somebody else takes it over."""

    conversation: str
    owner: str
    """Who, for people: a host and a process."""
    token: int
    """Grows with every claim of the conversation. A write with an old one is refused."""
    length: int
    """How many records there were when it was claimed."""


class Found(Struct, frozen=True):
    """Where a name stands."""

    conversation: str
    seq: int


class Summary(Struct, frozen=True):
    """One conversation, in a listing."""

    conversation: str
    length: int
    created: float
    changed: float


class Stats(Struct, frozen=True):
    """How much a store holds."""

    conversations: int
    records: int
    bodies: int
    """Large bodies kept apart, each once."""
    size_bytes: int
    schema: int


@runtime_checkable
class Store(Protocol):
    """Where records are kept."""

    @property
    def url(self) -> str:
        """Where it is, without a password."""
        ...

    async def claim(
        self, conversation: str, *, owner: str, seconds: float, wait: float = 0
    ) -> Claim:
        """Become the writer of a conversation, which begins if there is none of that name.

        Another writer's claim is respected for the seconds it was made or renewed for; ``wait``
        that long for it, then raise `ConversationBusy`."""
        ...

    async def begin(
        self,
        conversation: str,
        records: Sequence[Record],
        *,
        owner: str,
        seconds: float,
        release: bool = False,
    ) -> Claim | None:
        """Become the writer of a conversation that is new, with its first records: in one write,
        all of it or nothing, synced to disk. ``release``: and let others write at once.

        None, and nothing is done, if there is one of that name. Raises `OutOfStep` if the records
        are not numbered from 1, whether there is one or not, `CannotWrite` if the disk or the
        connection failed. One whose waiting is cancelled is there whole, or not at all, and is
        held by nobody."""
        ...

    async def renew(self, claim: Claim, *, seconds: float) -> None:
        """Keep the conversation for longer. Raises `ClaimLost`."""
        ...

    async def release(self, claim: Claim) -> None:
        """Let others write. A claim that was lost is not an error."""
        ...

    async def append(
        self, claim: Claim, after: int, records: Sequence[Record], *, release: bool = False
    ) -> None:
        """Keep records behind the first ``after`` ones: all of them or none, synced to disk.
        ``release``: and let others write, in the same write.

        Raises `ClaimLost` if another has taken over, `OutOfStep` if there are not exactly
        ``after`` records, `CannotWrite` if the disk or the connection failed. One whose waiting is
        cancelled is there whole, or not at all: the next append tells."""
        ...

    def read(
        self, conversation: str, *, after: int = 0, limit: int | None = None
    ) -> AsyncIterator[Record]:
        """The records of a conversation, in order; none where there is none of that name.
        ``limit``: no more than so many, and no more are looked up."""
        ...

    async def find(self, name: Name) -> list[Found]:
        """Where this name stands, what was written last first."""
        ...

    def conversations(self) -> AsyncIterator[Summary]:
        """Every conversation, by name."""
        ...

    async def replace(self, conversation: str, records: Sequence[Record]) -> None:
        """Write other bytes for records that are there: for a change of keys, nothing else."""
        ...

    async def delete(self, conversation: str) -> bool:
        """Forget a conversation, whole; was it there? Its writer, if any, loses its claim."""
        ...

    async def delete_unchanged_since(self, moment: float) -> int:
        """Forget every conversation that was not written to since; how many they were."""
        ...

    async def vacuum(self) -> None:
        """Give the space of what was deleted back."""
        ...

    async def stats(self) -> Stats: ...

    async def close(self) -> None:
        """Finish what was begun, then let go. Closing twice is not an error."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        ...
