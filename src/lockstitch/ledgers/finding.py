"""After a lost send to a conversation: what the provider really has, as facts.

A conversation is a list, so a request must not be sent there again before it is known whether it
arrived. The driver lists the items behind the last one that was known (`ReadBack`); this says
what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockstitch.core import continuation
from lockstitch.core.arranging import Sending
from lockstitch.core.continuation import ReadBack
from lockstitch.core.errors import LockstitchError
from lockstitch.core.facts import (
    AnyFact,
    RequestAccepted,
    RequestRejected,
    ResponseEnded,
    ResponseOpened,
)
from lockstitch.dialects.likeness import likeness
from lockstitch.ledgers.ledger import Ledger
from lockstitch.ledgers.making import item_completed


class ConversationChanged(LockstitchError):
    """Somebody else wrote to the provider's conversation; nothing was recorded."""


def found(of: Ledger, asked: ReadBack, listed: Sequence[Mapping[str, Any]]) -> list[AnyFact]:
    """What became of a lost request, given the items that the provider lists, oldest first."""
    request = of.exchange(asked.request)
    expected = continuation.listed(of, request)
    if not _begins_with(of, listed, expected.known):
        raise _changed(asked, len(listed))
    news = listed[len(expected.known) :]
    if not news:
        reason = "its items are not in the conversation"
        return [RequestRejected(request=request.seq, reason=reason)]
    sent = expected.sent
    heard = [Sending(seq) for seq in request.said]
    if not _begins_with(of, news, [*sent, *heard]):
        raise _changed(asked, len(news))
    if len(news) == len(sent):
        return [RequestAccepted(request=request.seq)]
    opened = ResponseOpened(request=request.seq, id=request.id)
    said = news[len(sent) + len(request.said) :]
    items = [item_completed(request.seq, item) for item in said]
    return [opened, *items, ResponseEnded(request=request.seq)]


def _begins_with(
    of: Ledger, listed: Sequence[Mapping[str, Any]], sendings: Sequence[Sending]
) -> bool:
    return len(listed) >= len(sendings) and all(
        likeness(item) == likeness(of.rendered(sending))
        for item, sending in zip(listed, sendings, strict=False)
    )


def _changed(asked: ReadBack, count: int) -> ConversationChanged:
    return ConversationChanged(
        f"Conversation {asked.conversation} lists {count} items that are not what was sent and "
        "heard here. Continue in a new conversation, and let one writer at a time use it."
    )
