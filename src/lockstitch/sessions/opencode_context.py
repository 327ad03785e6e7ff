"""Which messages of an opencode session are sent when it continues.

A revert takes away what comes after it, once the user goes on. A compaction puts a summary in place
of what comes before it, except for a tail that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lockstitch.dialects.base import text_of


class Head(NamedTuple):
    """What decides whether a message is sent."""

    id: str
    from_user: bool
    summary_of: str | None
    """The message that asked for a compaction, if this one is its complete summary."""
    compaction: bool = False
    """Does this message ask for a compaction?"""
    tail: str | None = None
    """The first message that its compaction leaves as it is."""


class Revert(NamedTuple):
    """From where on a session is reverted."""

    message: str
    part: str | None = None
    """The first part that goes; None if all of the message goes."""


def head_of(message: str, info: Mapping[str, Any], parts: Sequence[Any]) -> Head:
    """The head of a message with these parts."""
    from_user = info.get("role") == "user"
    parent = text_of(info.get("parentID"))
    complete = info.get("summary") and info.get("finish") and not info.get("error")
    summary_of = parent if info.get("role") == "assistant" and complete else None
    if from_user:
        for part in parts:
            if isinstance(part, dict) and part.get("type") == "compaction":
                tail = text_of(part.get("tail_start_id"))
                return Head(message, from_user, summary_of, compaction=True, tail=tail)
    return Head(message, from_user, summary_of)


def revert_of(value: object) -> Revert | None:
    """The `revert` of a session."""
    message = text_of(value.get("messageID")) if isinstance(value, dict) else None
    if message is None or not isinstance(value, dict):
        return None
    return Revert(message, text_of(value.get("partID")))


def sent(heads: Sequence[Head], revert: Revert | None) -> range:
    """The positions of the messages that are sent, from 0 on. Of a message that is reverted from
    one of its parts on, `parts_sent` tells which."""
    end = len(heads)
    if revert is not None:
        at = next((n for n, head in enumerate(heads) if head.id == revert.message), None)
        if at is not None:
            end = at if revert.part is None else at + 1
    summarised: set[str] = set()
    tail: str | None = None
    start = 0
    for at in range(end - 1, -1, -1):
        head = heads[at]
        if tail is None:
            if head.summary_of is not None:
                summarised.add(head.summary_of)
            if not (head.from_user and head.compaction and head.id in summarised):
                continue
            tail = head.tail
            if tail is None:
                start = at
                break
        if head.id == tail:
            start = at
            break
    return range(start, end)


def parts_sent(parts: list[Any], message: str, revert: Revert | None) -> list[Any]:
    """The parts of a message that are sent."""
    if revert is None or revert.part is None or revert.message != message:
        return parts
    for n, part in enumerate(parts):
        if isinstance(part, dict) and part.get("id") == revert.part:
            return parts[:n]
    return parts
