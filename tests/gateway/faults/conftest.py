"""Waits that a test cannot afford, and a real PostgreSQL."""

from __future__ import annotations

import pytest

from lockstitch.gateway.deciding import retrying
from tests.store.conftest import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(retrying, "WAITS_SECONDS", (0.0, 0.01))
    monkeypatch.setattr(retrying, "LOCKED_WAITS_SECONDS", (0.01,))
    monkeypatch.setattr(retrying, "LATE_LISTING_SECONDS", 0.01)
    # The emulator asks for a whole second with 429: more than a client waits for, in here.
    monkeypatch.setattr(retrying, "LONGEST_WAIT_SECONDS", 0.5)
