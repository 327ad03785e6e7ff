"""The event loop: the fastest there is, or Python's own."""

from __future__ import annotations

import asyncio
import sys

import pytest

from lockstitch.gateway.running import run


async def loop():
    return type(asyncio.get_running_loop()).__module__


def test_it_is_uvloop_where_there_is_one():
    pytest.importorskip("uvloop")
    assert run(loop()).startswith("uvloop")


def test_it_is_asyncio_where_there_is_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert run(loop()).startswith("asyncio")
