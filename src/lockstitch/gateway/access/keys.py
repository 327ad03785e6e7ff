"""Keys of the gateway's own: making one, and finding whose a presented one is.

A key is shown once, when it is made. What is kept is its hash, in the configuration; a key that is
taken out of there is revoked."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from lockstitch.gateway.config.model import Key
from lockstitch.gateway.lines import Headers, first

PREFIX: Final = "lsk_"
"""Tells where a key belongs, to people and to scanners for lost secrets."""
KEY_BYTES: Final = 32
LONGEST_KEY_CHARACTERS: Final = 1024
"""More is no key of ours, and need not be hashed."""


KEY_SUBPROTOCOL: Final = "openai-insecure-api-key."
"""Pages cannot set headers of a WebSocket: OpenAI's client for browsers offers a subprotocol that
is the key behind these words."""


def new_key() -> str:
    """A key that nobody has."""
    return PREFIX + secrets.token_urlsafe(KEY_BYTES)


def hash_of(key: str) -> str:
    """What is kept of a key.

    A slow hash protects what people choose, because that can be guessed. 256 random bits cannot, at
    any speed; and this one is computed for each request."""
    return f"sha256:{sha256(key.encode()).hexdigest()}"


def presented(headers: Headers) -> str | None:
    """The key that a request shows, as clients of OpenAI, of Anthropic or in a browser do."""
    authorization = first(headers, "authorization")
    if authorization is not None:
        scheme, _, key = authorization.partition(" ")
        return key.strip() or None if scheme.lower() == "bearer" else None
    return first(headers, "x-api-key") or in_subprotocol(headers)


def in_subprotocol(headers: Headers) -> str | None:
    """The key that a page shows when it opens a WebSocket."""
    offered = first(headers, "sec-websocket-protocol")
    if offered is None:
        return None
    shown = (one.strip() for one in offered.split(","))
    keys = (one.removeprefix(KEY_SUBPROTOCOL) for one in shown if one.startswith(KEY_SUBPROTOCOL))
    return next(keys, None) or None


class Keyring:
    """Every key that is taken."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys = tuple((bytes.fromhex(key.hash.removeprefix("sha256:")), key) for key in keys)

    def __bool__(self) -> bool:
        return bool(self._keys)

    def holder(self, key: str | None, *, now: float) -> Key | None:
        """Whose key it is; None: nobody's, or one that has expired.

        All are compared, each in constant time: how long it takes tells nothing."""
        if not key or len(key) > LONGEST_KEY_CHARACTERS or not self._keys:
            return None
        hashed = sha256(key.encode(errors="surrogateescape")).digest()
        found = None
        for known, holder in self._keys:
            if hmac.compare_digest(hashed, known):
                found = holder
        if found is None or (found.expires is not None and now >= found.expires):
            return None
        return found

    def __repr__(self) -> str:
        return f"<Keyring of {len(self._keys)}>"
