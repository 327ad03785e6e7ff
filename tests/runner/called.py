"""Calls of tools, for the tests of everything around a call."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.runner.calling import Cancelled, call
from lockstitch.runner.context import CallContext
from lockstitch.runner.tools import Tool

LONG_SECONDS = 60
"""Never waited for: a test that reaches it has failed."""


def context():
    return CallContext(key="key", call_id="call_1", thread="thread-42")


def run(function, arguments="{}", *, grace=LONG_SECONDS, **more):
    """Call a tool and wait for its result."""
    return asyncio.run(call(Tool.of(function), arguments, context(), grace=grace, **more))


def returning(value):
    def give():
        return value

    return give


def raising(error):
    def fail():
        raise error

    async def fail_async():
        raise error

    return [fail, fail_async]


async def cancelled(function, arguments="{}", *, begun, grace, threads=None):
    """Cancel a call after its tool has begun; what the caller learns."""
    more = {} if threads is None else {"threads": threads}
    task = asyncio.create_task(call(Tool.of(function), arguments, context(), grace=grace, **more))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as heard:
        await task
    assert isinstance(heard.value, Cancelled)
    return heard.value.result
