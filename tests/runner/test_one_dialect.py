"""A thread has one dialect."""

from __future__ import annotations

import asyncio

import pytest
from openai import AsyncOpenAI

from lockstitch import Runner
from lockstitch.runner import CannotContinue
from lockstitch.store.memory import MemoryStore
from lockstitch.upstream.openai_chat import OpenAIChat


def test_a_client_of_another_dialect_is_told_before_anything_is_sent(emulator):
    async def work():
        store = MemoryStore()
        async with AsyncOpenAI(base_url=emulator.base_url, api_key="any") as client:
            first = Runner(client=client, model="gpt-5.5", store=store)
            second = Runner(client=OpenAIChat(client), model="gpt-5.5", store=store)
            said = [event async for event in first.turn("t", "hello")]
            with pytest.raises(CannotContinue, match="begun in the dialect responses"):
                async for _ in second.turn("t", "hello"):
                    pass
            # The thread is not held by the one that could not go on.
            again = [event async for event in first.turn("t", "again")]
        return said[-1].text, again[-1].text

    assert asyncio.run(work()) == ("You said: hello", "You said: again")
    assert emulator.requests("POST /v1/chat/completions") == []
