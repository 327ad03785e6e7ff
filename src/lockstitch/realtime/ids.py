"""Ids that a session gives."""

from __future__ import annotations

import secrets


def new_id(what: str) -> str:
    """An id that was never used. The provider takes at most 32 characters."""
    return f"ls_{what}_{secrets.token_hex(9)}"
