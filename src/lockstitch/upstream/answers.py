"""What every dialect's answer is to the clients: data of events in, what was heard out.

An answer holds the state of one stream and does no I/O. There is one for each dialect:
`responses_answer`, `chat_answer`, `messages_answer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from lockstitch.dialects.characters import read_whole
from lockstitch.dialects.reading import UNREADABLE
from lockstitch.upstream.contract import Fate, Heard, UpstreamFailure
from lockstitch.upstream.failures import Stage, failure_of_ours, failure_said
from lockstitch.upstream.said import Said, said_in

DONE: Final = b"[DONE]"
"""How some servers end a stream, in any dialect. It is no JSON."""

_SHOWN_BYTES: Final = 80

Read = TypeVar("Read")


class Answer(Protocol):
    """One answer, while it is being said."""

    said_all: bool
    """Nothing that matters comes any more."""

    def hear(self, data: bytes) -> Sequence[Heard]:
        """What one event tells. Raises `UpstreamFailure` if it is an error."""
        ...

    def last(self) -> Sequence[Heard]:
        """What is still to be told when nothing more comes, for whatever reason."""
        ...


def read(decoder: msgspec.json.Decoder[Read], data: bytes, *, heard: bool) -> Read:
    """One event. What cannot be read was said all the same, so nobody knows what it was."""
    try:
        return read_whole(decoder.decode, data)
    except UNREADABLE as error:
        shown = data[:_SHOWN_BYTES].decode("utf-8", "replace")
        raise failure_of_ours(
            f"The provider sent an event that cannot be read ({error}): {shown}",
            Fate.LOST,
            Stage.HEARD if heard else Stage.SENT,
        ) from None


def failed(error: Any, *, heard: bool, anchor: str | None = None) -> UpstreamFailure:
    """The failure that an `error` in a stream tells of."""
    said = error if isinstance(error, Said) else said_in(error)
    return failure_said(said, stage=Stage.HEARD if heard else Stage.SENT, anchor=anchor)


def grow(message: dict[str, Any], piece: dict[str, Any], texts: frozenset[str] | None) -> None:
    """Add a piece of a message to what came of it before.

    Texts of the fields named (None: of all) are joined, lists too; anything else is taken as it
    came last, so that fields nobody knows pass through. An empty text takes nothing away: some
    servers fill in every field of every piece."""
    for name, value in piece.items():
        before = message.get(name)
        if value is None or (value == "" and before):
            message.setdefault(name, value)
        elif (
            isinstance(value, str) and isinstance(before, str) and (texts is None or name in texts)
        ):
            message[name] = before + value
        elif isinstance(value, dict) and isinstance(before, dict):
            grow(before, value, texts)
        elif isinstance(value, list) and isinstance(before, list):
            before.extend(value)
        else:
            message[name] = value
