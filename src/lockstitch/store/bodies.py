"""Which bodies are kept apart, once for each conversation, and what they are found again by."""

from __future__ import annotations

from hashlib import sha256

LARGE_BODY_BYTES = 4_096
"""A body of at least this many bytes is kept once for each conversation, however often it comes.

Tools say the same large thing again and again: a file, a page, a screenshot. Below the size of a
database page the digest and the second row would cost more than they save."""


def is_large(body: bytes | None) -> bool:
    """Is it one that is kept apart?"""
    return body is not None and len(body) >= LARGE_BODY_BYTES


def digest(body: bytes) -> bytes:
    """What a large body is found by. It serves to keep it once; it is never an identity."""
    return sha256(body).digest()
