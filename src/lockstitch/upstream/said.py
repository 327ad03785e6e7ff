"""What a provider said of a failure, wherever it stands: a body, an event, a frame, an exception.

What that means is in `failures`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from lockstitch.upstream.retry_after import retry_after


class Said(Struct, frozen=True, kw_only=True):
    """What a provider said of a failure."""

    status: int | None = None
    code: str | None = None
    type: str | None = None
    message: str = ""
    retry_after: float | None = None


def said_in(
    body: object, *, status: int | None = None, headers: Mapping[str, Any] | None = None
) -> Said:
    """What the body of an error, or an `error` event, says: `{"error": {…}}`, or that flat."""
    error = body
    if isinstance(body, Mapping):
        inner = body.get("error")
        error = inner if inner else body
    waits = retry_after(headers or {})
    if not isinstance(error, Mapping):
        return Said(status=status, message=_text(error) or "", retry_after=waits)
    # The flat form has `type: error`, which says nothing.
    kind = _text(error.get("type"))
    return Said(
        status=status,
        code=_text(error.get("code")),
        type=None if kind == "error" else kind,
        message=_text(error.get("message")) or "",
        retry_after=waits,
    )


def said_in_frame(frame: Mapping[str, Any]) -> Said:
    """What an error frame of a WebSocket says. It has the status and the headers in itself."""
    status = frame.get("status", frame.get("status_code"))
    error = frame.get("error")
    inner = error.get("headers") if isinstance(error, Mapping) else None
    headers = frame.get("headers") or inner
    return said_in(
        frame,
        status=status if isinstance(status, int) else None,
        headers=headers if isinstance(headers, Mapping) else None,
    )


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    # Some servers give numbers as codes.
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def said_by(error: BaseException) -> Said | None:
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    if not isinstance(status, int) or not 400 <= status < 600:
        return None
    body = getattr(error, "body", None)
    if body is None:
        # A refused handshake of a WebSocket keeps the bytes with its response.
        body = _decoded(getattr(response, "body", None))
    return said_in(body, status=status, headers=getattr(response, "headers", None))


def _decoded(body: object) -> object:
    if not isinstance(body, bytes | bytearray):
        return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return bytes(body).decode("utf-8", "replace")
