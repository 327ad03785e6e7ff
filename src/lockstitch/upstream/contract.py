"""What a client of a provider is to the rest: a request out, and what is heard, as data.

A failure says what became of the request, because that decides what may be done next; which
failure of which library means what is decided in each client, by tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from lockstitch.core.errors import LockstitchError
from lockstitch.core.facts import Ending, Mode


class Request(Struct, frozen=True, kw_only=True):
    """What is sent."""

    model: str
    items: Sequence[Mapping[str, Any]]
    """Wire items in the client's dialect: everything, or what goes behind the anchor."""
    mode: Mode = Mode.FULL
    anchor: str | None = None
    """A response id or a conversation id, by the mode; None where everything is sent."""
    settings: Mapping[str, Any] = {}
    """Everything else that goes into the body: tools, instructions, temperature …"""


class Opened(Struct, frozen=True):
    """The provider began to answer."""

    id: str | None


class Delta(Struct, frozen=True):
    """A piece of what is being said, for a user interface. It may still come to nothing."""

    text: str
    kind: str = "text"
    """``text``, ``reasoning``, ``refusal`` or ``arguments``."""
    item: str | None = None
    """The id of the item it belongs to, where the provider tells."""


class ItemDone(Struct, frozen=True):
    """An item was said to its end."""

    item: bytes
    """As it came, where the client can have it so."""


class Ended(Struct, frozen=True):
    """The answer is over."""

    ending: Ending
    usage: Mapping[str, Any] | None = None
    detail: str = ""
    """Why it ended early, or what failed."""


Heard: TypeAlias = Opened | Delta | ItemDone | Ended


class Fate(Enum):
    """What became of a request that failed."""

    REFUSED = "refused"
    """The provider will not take it, now or later: 400, 401, 403, 404, 422."""
    BUSY = "not taken"
    """Try again later: no connection, 429, 503 and the like, before anything was heard."""
    LOST = "lost"
    """Nobody knows: the connection broke, no answer came in time, 500, 502, 504."""
    ANCHOR_LOST = "anchor lost"
    """It was not taken, because the provider no longer has what it goes on from."""
    LOCKED = "locked"
    """It was not taken: another response runs on this conversation, maybe an earlier send."""
    NEW_CONNECTION = "new connection"
    """It was not taken: the connection has reached a limit. Send it on a new one, at once."""


class UpstreamFailure(LockstitchError):
    """A request failed, and what became of it."""

    def __init__(
        self,
        message: str,
        *,
        fate: Fate,
        retry_after: float | None = None,
        status: int | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.fate = fate
        self.retry_after = retry_after
        """Seconds, as the provider asked."""
        self.status = status
        self.code = code


@runtime_checkable
class Upstream(Protocol):
    """A client of one provider."""

    dialect: str
    """How it writes items."""
    modes: frozenset[Mode]
    """The ways of continuing it offers."""

    def stream(self, request: Request) -> AsyncIterator[Heard]:
        """Send a request and hear its answer. Ends after `Ended`, or raises `UpstreamFailure`;
        closing the iterator early lets go of the connection."""
        ...

    async def retrieved(self, response: str) -> Sequence[Heard] | None:
        """What the provider kept of a response by this id: all of it, if it has ended; None if
        it is not there, or not over."""
        ...

    async def new_conversation(self) -> str: ...

    async def listed(self, conversation: str, after: str | None) -> list[dict[str, Any]]:
        """The items of a conversation behind one, oldest first."""
        ...

    async def close(self) -> None: ...
