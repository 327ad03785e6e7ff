"""What the gateway notes beside the facts of an exchange: who asked whom, and how it was answered.

A note is JSON in a `Noted` fact. Fields may be added; a reader passes over those it does not know.
Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from lockstitch.core.errors import LockstitchError
from lockstitch.dialects.reading import UNREADABLE

ASKED: Final = "gateway.asked"
ANSWERED: Final = "gateway.answered"
SAME_AS: Final = "gateway.same_as"
"""The response of this name was tried again, and answered under another: the note is that id."""


class UnreadableNote(LockstitchError):
    """A note is not one that a gateway wrote."""


class AskedNote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was asked, apart from the items."""

    upstream: str
    """The name of the upstream that answers."""
    local: bool = False
    """The gateway itself answered: no upstream has the response."""
    model: str = ""
    base: str | None = None
    """The response whose whole context stands before the items."""
    anchored: bool = False
    """The client named `base` itself; otherwise it was found in the history that it sent."""
    conversation: str | None = None
    store: bool | None = None
    """Did the client want it kept? None where that was not noted."""
    stored: bool = True
    """Was the upstream asked to keep the response?"""
    away: bool = False
    """What belongs to another upstream was left out of what stands before the items."""
    created: float = 0.0

    def asked_for(self) -> dict[str, Any]:
        """What a response is to say of its request, also where the upstream was asked otherwise."""
        fields: dict[str, Any] = {}
        if self.anchored:
            fields["previous_response_id"] = self.base
        if self.conversation is not None:
            fields["conversation"] = {"id": self.conversation}
        if self.store is not None and self.store != self.stored:
            fields["store"] = self.store
        return fields


class AnsweredNote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How it was answered, apart from the items."""

    numbers: list[int | None] = []
    """The sequence number of each item's last event, in the order of the items."""
    order: list[int] = []
    """Which of the items, as they were written down, stands first, second and so on, where they
    were not written down in their order."""
    last: int | None = None
    """The sequence number of the event that ended it."""
    ended_by: str = ""
    """The type of that event."""
    response: Raw = Raw(b"null")
    """The response, without its output."""
    began_as: str | None = None
    """The id that was shown at its beginning, where it was tried again: that leads here, too."""


_asked: Final = msgspec.json.Decoder(AskedNote)
_answered: Final = msgspec.json.Decoder(AnsweredNote)


def written(note: AskedNote | AnsweredNote) -> bytes:
    return msgspec.json.encode(note)


def asked_note(note: bytes) -> AskedNote:
    return _read(_asked, note)  # type: ignore[no-any-return]


def answered_note(note: bytes) -> AnsweredNote:
    return _read(_answered, note)  # type: ignore[no-any-return]


def _read(decoder: msgspec.json.Decoder[Any], note: bytes) -> Any:
    try:
        return decoder.decode(note)
    except UNREADABLE as error:
        raise UnreadableNote(
            f"A note of the gateway cannot be read: {error}. It was written by a newer version of "
            "Lockstitch, or is damaged. Upgrade, or restore a backup."
        ) from None
