"""What a try was sent as, how it failed, and a no, in the words of `deciding`.

What follows from them is decided there, and done in `answering`. What of a request is sent is
`deciding.sending`."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from lockstitch.dialects.reading import UNREADABLE
from lockstitch.gateway.deciding import refusals
from lockstitch.gateway.deciding.reading_back import can_be_found
from lockstitch.gateway.deciding.refusals import NOT_AGAIN, Refusal
from lockstitch.gateway.deciding.retrying import Sent
from lockstitch.gateway.lines import LineFailure
from lockstitch.gateway.responding.attempts import Attempt, Broken, Outcome, Refused
from lockstitch.gateway.responding.passing import Whole
from lockstitch.gateway.responding.preparing import Prepared
from lockstitch.gateway.responding.replaying import CannotReplay
from lockstitch.gateway.upstreams import Reached
from lockstitch.upstream.said import Said, said_in


def sent_as(found: Prepared, body: bytes) -> Sent:
    """What a try went on from, as its upstream saw it."""
    asked = found.asked
    if asked.previous_response_id is not None and body is found.body:
        return Sent.KNOWN_CHAIN if found.parent is not None else Sent.UNKNOWN_CHAIN
    if asked.conversation is not None and found.held is None:
        return Sent.CONVERSATION
    return Sent.UNANCHORED


def can_read_back(found: Prepared, upstream: Reached, attempt: Attempt) -> bool:
    """Can the upstream's conversation show whether a try arrived?"""
    return (
        found.asked.conversation is not None
        and found.held is None
        and upstream.speaks_http
        and attempt.recording.id is None  # or a response began, and that is no question
        and can_be_found(found.items)
    )


def failure_of(outcome: Outcome) -> Said | LineFailure:
    """How a try failed."""
    if isinstance(outcome, Broken):
        return outcome.failure
    if isinstance(outcome, Refused):
        return outcome.said
    assert isinstance(outcome, Whole)
    try:
        body = msgspec.json.decode(outcome.body)
    except UNREADABLE:
        body = None
    return said_in(body, status=outcome.status, headers=dict(outcome.headers))


def cannot(error: CannotReplay, found: Prepared) -> Refusal:
    """A no to a request that nobody can be asked in this form."""
    asked = found.asked
    if error.findings:
        return refusals.not_whole(error.findings, asked.api)
    if asked.previous_response_id is not None and error.unknown:
        return refusals.previous_response_not_found(asked.previous_response_id)
    return refusals.cannot_continue(error)


def as_refusal(said: Said) -> Refusal:
    """What an upstream said in an event, for a client that reads none."""
    return Refusal(
        status=said.status or 502,
        message=said.message,
        type=said.type or "server_error",
        code=said.code,
        retry_after=said.retry_after,
    )


def no(refusal: Refusal) -> Whole:
    """A no, as an answer."""
    return Whole(refusal.status, refusal.headers(), refusal.body())


def not_again(whole: Whole) -> Whole:
    """What an upstream said, and that nobody shall send it again without looking."""
    kept = [one for one in whole.headers if one[0].lower() != NOT_AGAIN[0]]
    return replace(whole, headers=[*kept, NOT_AGAIN])
