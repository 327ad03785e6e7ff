"""What a failure means, as tables: what a provider said, or a library raised, to a `Fate`.

Structure comes first, words second; what no row knows is LOST, because nobody knows. How far the
request had come decides the rest. What a provider said is read in `said`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from enum import Enum
from typing import Final

from lockstitch.upstream.contract import Fate, UpstreamFailure
from lockstitch.upstream.said import Said, said_by

LONGEST_MESSAGE_CHARACTERS: Final = 600
"""Some providers repeat the request in their error, and some proxies answer with a web page."""


class Stage(Enum):
    """How far a request had come when it failed."""

    UNSENT = "unsent"
    """It cannot have arrived: there was no connection for it yet."""
    SENT = "sent"
    HEARD = "heard"
    """The answer had begun."""


FATE_OF_CODE: Final = {
    "previous_response_not_found": Fate.ANCHOR_LOST,
    "conversation_not_found": Fate.ANCHOR_LOST,
    "conversation_locked": Fate.LOCKED,
    "websocket_connection_limit_reached": Fate.NEW_CONNECTION,
    "websocket_stream_limit_reached": Fate.NEW_CONNECTION,
    "rate_limit_exceeded": Fate.BUSY,
    "server_overloaded": Fate.BUSY,
    "slow_down": Fate.BUSY,
    # These come as 429 too, and waiting does not pay the bill.
    "insufficient_quota": Fate.REFUSED,
    "billing_hard_limit_reached": Fate.REFUSED,
}

FATE_OF_WORDS: Final = (
    (re.compile(r"Previous response with id .* not found", re.DOTALL), Fate.ANCHOR_LOST),
    (re.compile(r"Invalid `previous_response_id`"), Fate.ANCHOR_LOST),
    (re.compile(r"Conversation with id .* not found", re.DOTALL), Fate.ANCHOR_LOST),
    (re.compile(r"Another process is currently operating on this conversation"), Fate.LOCKED),
)

FATE_OF_STATUS: Final = {
    # The request, or a part of it, did not come in time; a proxy says so of its own upstream too.
    408: Fate.LOST,
    # It was not taken because of another one; which, is said by the code, and came before this.
    409: Fate.BUSY,
    425: Fate.BUSY,
    429: Fate.BUSY,
    499: Fate.LOST,
    503: Fate.BUSY,
    529: Fate.BUSY,
}
"""All others by their hundreds: 4xx will never be taken, of 5xx nobody knows."""

FATE_OF_TYPE: Final = {
    "invalid_request_error": Fate.REFUSED,
    "authentication_error": Fate.REFUSED,
    "billing_error": Fate.REFUSED,
    "permission_error": Fate.REFUSED,
    "not_found_error": Fate.REFUSED,
    "request_too_large": Fate.REFUSED,
    "rate_limit_error": Fate.BUSY,
    "overloaded_error": Fate.BUSY,
}
"""For errors in the middle of a stream, which have no status."""

FATE_OF_EXCEPTION: Final = {
    # There was no connection yet.
    ("httpx", "ConnectError"): Fate.BUSY,
    ("httpx", "ConnectTimeout"): Fate.BUSY,
    ("httpx", "PoolTimeout"): Fate.BUSY,
    ("httpx", "ProxyError"): Fate.BUSY,
    # It will never leave.
    ("httpx", "UnsupportedProtocol"): Fate.REFUSED,
    ("httpx", "InvalidURL"): Fate.REFUSED,
    ("httpx", "TooManyRedirects"): Fate.REFUSED,
    ("websockets", "InvalidURI"): Fate.REFUSED,
    ("websockets", "SecurityError"): Fate.REFUSED,
    # The other end is not there, or broke off; before a frame was sent that is `Stage.UNSENT`.
    ("websockets", "WebSocketException"): Fate.LOST,
    ("openai", "APIError"): Fate.LOST,
    ("anthropic", "APIError"): Fate.LOST,
    # What a client itself finds wrong, such as a missing key or library.
    ("openai", "OpenAIError"): Fate.REFUSED,
    ("anthropic", "AnthropicError"): Fate.REFUSED,
}
"""By library and class, nearest class first. Libraries are named, not imported: none has to be
installed. Both generations of httpx are one here."""

_FATE_BY_STAGE: Final = {
    (Stage.UNSENT, Fate.LOST): Fate.BUSY,
    (Stage.HEARD, Fate.BUSY): Fate.LOST,
    (Stage.HEARD, Fate.NEW_CONNECTION): Fate.LOST,
}
"""Where it had come to changes what the rows above say."""

_NEXT: Final = {
    Fate.REFUSED: "The request was rejected. Change it before you send it again.",
    Fate.BUSY: "The request was not processed. Send it again later.",
    Fate.LOST: "The request may have been processed. Check before you send it again.",
    Fate.ANCHOR_LOST: "The request was not processed. Send the full history, without"
    " previous_response_id or conversation.",
    Fate.LOCKED: "The request was not processed. Wait until the conversation is free.",
    Fate.NEW_CONNECTION: "The request was not processed. Send it on a new connection.",
}

_ROOTS: Final = {"httpx2": "httpx", "httpcore2": "httpcore"}

_RAISED_BY_LIBRARIES: Final = (
    ("httpx", "HTTPError"),
    ("httpx", "StreamError"),
    ("httpx", "InvalidURL"),
    ("httpx2", "HTTPError"),
    ("httpx2", "StreamError"),
    ("httpx2", "InvalidURL"),
    ("anyio", "EndOfStream"),
    ("anyio", "BrokenResourceError"),
    ("anyio", "ClosedResourceError"),
    ("openai", "OpenAIError"),
    ("anthropic", "AnthropicError"),
    ("websockets.exceptions", "WebSocketException"),
)


def library_errors() -> tuple[type[Exception], ...]:
    """What a client of a provider may raise on its way out and back. A library that is not loaded
    raises nothing."""
    loaded = ((sys.modules.get(module), name) for module, name in _RAISED_BY_LIBRARIES)
    found = (getattr(module, name, None) for module, name in loaded if module is not None)
    return (OSError, TimeoutError, EOFError, *(error for error in found if error is not None))


# What a provider said


def fate_of(said: Said, *, anchor: str | None = None) -> Fate:
    """What a failure means; `anchor` is what the request went on from."""
    if said.code in FATE_OF_CODE:
        return FATE_OF_CODE[said.code]
    for words, fate in FATE_OF_WORDS:
        if words.search(said.message):
            return fate
    # In whatever words a compatible server says it: the anchor, by its name, is not there.
    if anchor and said.status in {400, 404} and _is_missing(said.message, anchor):
        return Fate.ANCHOR_LOST
    if said.status is not None:
        by_hundreds = Fate.REFUSED if 400 <= said.status < 500 else Fate.LOST
        return FATE_OF_STATUS.get(said.status, by_hundreds)
    return FATE_OF_TYPE.get(said.type or "", Fate.LOST)


def _is_missing(message: str, anchor: str) -> bool:
    return anchor in message and "not found" in message.lower()


def failure_said(
    said: Said, *, stage: Stage = Stage.SENT, anchor: str | None = None
) -> UpstreamFailure:
    """The failure that a provider told of."""
    fate = fate_of(said, anchor=anchor)
    names = [str(name) for name in (said.status, said.code or said.type) if name is not None]
    what = "The provider returned an error" + (f" ({', '.join(names)})" if names else "")
    return _failure(
        f"{what}: {_shortened(said.message)}" if said.message else f"{what}.",
        fate,
        stage,
        retry_after=said.retry_after,
        status=said.status,
        code=said.code or said.type,
    )


# What a library raised


def failure_raised(
    error: BaseException, *, stage: Stage = Stage.SENT, anchor: str | None = None
) -> UpstreamFailure:
    """The failure that an exception of a client means. Attributes tell more than classes: an
    error that has a status is what a provider said."""
    said = said_by(error)
    if said is not None:
        return failure_said(said, stage=stage, anchor=anchor)
    fates = (FATE_OF_EXCEPTION.get(name) for name in _names(error))
    fate = next((fate for fate in fates if fate is not None), Fate.LOST)
    return _failure(f"The connection failed: {_told(error)}", fate, stage)


def failure_of_ours(message: str, fate: Fate, stage: Stage = Stage.SENT) -> UpstreamFailure:
    """A failure that nobody told of and we saw ourselves."""
    return _failure(message, fate, stage)


def _names(error: BaseException) -> Iterator[tuple[str, str]]:
    """What an exception is, nearest first: its causes before itself, for clients wrap them."""
    if error.__cause__ is not None:
        yield from _names(error.__cause__)
    for kind in type(error).__mro__:
        root = kind.__module__.partition(".")[0]
        yield _ROOTS.get(root, root), kind.__name__


def _told(error: BaseException) -> str:
    """An exception in words; many of a socket have none but their class."""
    inner = error
    # A timeout is caused by a cancellation, which says less.
    while isinstance(inner.__cause__, Exception):
        inner = inner.__cause__
    words = f"{type(inner).__name__}: {inner}" if str(inner) else type(inner).__name__
    return _shortened(words)


def _failure(
    message: str,
    fate: Fate,
    stage: Stage,
    *,
    retry_after: float | None = None,
    status: int | None = None,
    code: str | None = None,
) -> UpstreamFailure:
    fate = _FATE_BY_STAGE.get((stage, fate), fate)
    ended = message if message.endswith((".", "!", "?")) else f"{message}."
    return UpstreamFailure(
        f"{ended} {_NEXT[fate]}", fate=fate, retry_after=retry_after, status=status, code=code
    )


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_MESSAGE_CHARACTERS:
        return text
    return f"{text[:LONGEST_MESSAGE_CHARACTERS]} …"
