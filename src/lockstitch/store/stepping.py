"""Whether a write is in step with what is there, and the words of its refusal: alike in all
stores. Pure; finding out what is there is each store's own."""

from __future__ import annotations

from collections.abc import Sequence

from lockstitch.core.records import Record
from lockstitch.store.errors import ClaimLost, ConversationDeleted, OutOfStep


def check_numbers(
    url: str, conversation: str, records: Sequence[Record], *, after: int = 0
) -> None:
    """Raises `OutOfStep` if they are not numbered as what stands behind ``after``."""
    seq = after
    for record in records:
        seq += 1
        if record.seq != seq:
            raise OutOfStep(
                f"Record {seq} of conversation {conversation!r} in {url} is numbered {record.seq}"
                f" by its writer. Nothing was written. Number what is appended behind {after} from"
                f" {after + 1} on."
            )


def out_of_step(url: str, conversation: str, *, length: int, after: int, count: int) -> OutOfStep:
    """There are not as many records as the writer took for granted."""
    return OutOfStep(
        f"Conversation {conversation!r} in {url} has {length} records; the writer meant to append"
        f" {count} behind {after}. Nothing was written. Read what is there, and append behind it."
    )


def claim_lost(url: str, conversation: str, *, there: bool, owner: str | None) -> ClaimLost:
    """The claim is no more. ``there``: the conversation is; ``owner``: who holds it now."""
    if not there:
        what = "was deleted"
    elif owner is None:
        what = "was released"
    else:
        what = f"was taken over by {owner}"
    kind = ClaimLost if there else ConversationDeleted
    return kind(
        f"Conversation {conversation!r} in {url} {what}; nothing was written."
        " Claim it again, and read what is there before you write."
    )
