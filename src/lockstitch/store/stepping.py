"""Checks that a write is in step with what is stored, and words the errors when it is not.

The same for all stores. Pure; each store finds out for itself what it holds."""

from __future__ import annotations

from collections.abc import Sequence

from lockstitch.core.records import Record
from lockstitch.store.errors import ClaimLost, ConversationBusy, ConversationDeleted, OutOfStep
from lockstitch.store.owners import describe_owner


def check_numbers(
    url: str, conversation: str, records: Sequence[Record], *, after: int = 0
) -> None:
    """Raise `OutOfStep` if the records are not numbered from ``after + 1`` on."""
    seq = after
    for record in records:
        seq += 1
        if record.seq != seq:
            raise OutOfStep(
                f"Record {seq} of conversation {conversation!r} in {url} is numbered {record.seq}"
                f" by its writer. Nothing was written. Number the records to append after {after}"
                f" from {after + 1} on."
            )


def out_of_step(url: str, conversation: str, *, length: int, after: int, count: int) -> OutOfStep:
    """The error where there are not as many records as the writer expected."""
    return OutOfStep(
        f"Conversation {conversation!r} in {url} has {length} records, but the writer wanted to"
        f" append {count} after record {after}. Nothing was written. Read what is stored, and"
        " append after that."
    )


def conversation_busy(
    url: str, conversation: str, *, owner: str, token: int, seconds_left: float
) -> ConversationBusy:
    """The error where another process holds the conversation."""
    return ConversationBusy(
        f"Conversation {conversation!r} in {url} is held by {describe_owner(owner)} for"
        f" {seconds_left:.1f} s more. Wait for it, or stop it.",
        owner=owner,
        token=token,
    )


def claim_lost(url: str, conversation: str, *, there: bool, owner: str | None) -> ClaimLost:
    """The error of a claim that is lost. ``there``: the conversation still exists; ``owner``: who
    holds it now."""
    if not there:
        what = "was deleted"
    elif owner is None:
        what = "was released"
    else:
        what = f"was taken over by {describe_owner(owner)}"
    kind = ClaimLost if there else ConversationDeleted
    return kind(
        f"Conversation {conversation!r} in {url} {what}; nothing was written."
        " Claim it again, and read what is stored before you write."
    )
