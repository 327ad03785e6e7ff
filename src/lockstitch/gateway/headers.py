"""Which headers go on, in both directions. Pure.

A key goes only to whom it is for. What is about a single connection is left out by the wire;
everything else passes as it came."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from lockstitch.gateway.access.keys import in_subprotocol
from lockstitch.gateway.lines import Headers, first
from lockstitch.gateway.wire.heads import HOP_BY_HOP, named_by_connection

KEYS: Final = frozenset({"authorization", "x-api-key", "api-key", "cookie"})

OF_A_HANDSHAKE: Final = "sec-websocket-"

REQUEST_ID: Final = "lockstitch-request-id"
REPAIRED: Final = "x-lockstitch-repaired"
"""What the guard repaired in the request: rule codes, each with its call id."""
LONGEST_CALL_ID_CHARACTERS: Final = 100
"""Providers give ids of up to 64 characters."""
LONGEST_REPAIRED_CHARACTERS: Final = 1000
"""Many servers and clients refuse response headers of more than 8 KB in all."""

UNPACKED: Final = frozenset({"gzip", "deflate", "br", "zstd"})
"""What the server unpacks, or refuses. A body in any other coding is still packed."""

_NOT_TO_CLIENTS: Final = HOP_BY_HOP | {"content-length", "date", "server", REQUEST_ID, REPAIRED}


def to_upstream(
    headers: Headers, *, key: str | None, own: Iterable[tuple[str, str]] = (), keyed: bool
) -> Headers:
    """What of a client's request goes to an upstream. ``keyed``: the client's key is one of ours,
    and must not leave. ``key`` is the upstream's own; ``own`` are set in place of the client's."""
    # What is about the client's connection must not be able to name, and so to take away, what is
    # set here.
    names = [name.lower() for name, _ in headers]
    drop = {"connection", *(name.lower() for name, _ in own)}
    if "connection" in names:
        drop |= named_by_connection(headers)
    if (
        "content-encoding" in names
        and (first(headers, "content-encoding") or "").lower() in UNPACKED
    ):
        drop.add("content-encoding")
    if keyed or key is not None:
        drop |= KEYS
    kept = [
        one
        for name, one in zip(names, headers, strict=True)
        if name not in drop and not name.startswith(OF_A_HANDSHAKE)
    ]
    if key is None and not keyed and "sec-websocket-protocol" in names:
        shown = in_subprotocol(headers)
        if shown is not None and not has_key([*kept, *own]):
            kept.append(("authorization", f"Bearer {shown}"))
    if key is not None:
        anthropic = first(headers, "anthropic-version") is not None
        kept.append(("x-api-key", key) if anthropic else ("authorization", f"Bearer {key}"))
    return [*kept, *own]


def has_key(headers: Headers) -> bool:
    """Is a key in one of them?"""
    return not KEYS.isdisjoint(name.lower() for name, _ in headers)


def to_client(headers: Headers, own: Headers) -> Headers:
    """The headers of an upstream's answer that go to the client, and the gateway's ``own``."""
    kept = [(name, value) for name, value in headers if name.lower() not in _NOT_TO_CLIENTS]
    return [*kept, *own]


def repaired_value(repairs: Sequence[tuple[str, str | None]]) -> str:
    """The value of the header for these rule codes and call ids: `LS001 call_1; LS002 call_9`.
    Call ids come from clients, so what cannot stand in a header is replaced."""
    shown = []
    length = 0
    for n, (code, call) in enumerate(repairs):
        key = re.sub(r"[^!-:<-~]", "?", call or "")[:LONGEST_CALL_ID_CHARACTERS]
        text = f"{code} {key}".rstrip()
        length += len(text) + 2
        if length > LONGEST_REPAIRED_CHARACTERS:
            shown.append(f"and {len(repairs) - n} more")
            break
        shown.append(text)
    return "; ".join(shown)
