"""Anthropic's Messages, through the official client.

Everything is sent every time, and nothing is kept there. A message that the provider paused, to run
more of its own tools, is sent back until it is whole. What the events mean: `messages_answer`; how
the user's messages are joined: `user_turns`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from anthropic import AsyncAnthropic, AsyncStream

from lockstitch.upstream import http_stream
from lockstitch.upstream.contract import Fate, Heard, Request
from lockstitch.upstream.failures import Stage, failure_of_ours
from lockstitch.upstream.keeping_nothing import KeepsNothing
from lockstitch.upstream.messages_answer import MessagesAnswer
from lockstitch.upstream.user_turns import joined_user_turns

MOST_PAUSES: Final = 20
"""The provider pauses after some ten calls of its own tools; a turn of hundreds does not end."""


class AnthropicMessages(KeepsNothing):
    """A client of Messages. The official client stays the caller's."""

    dialect = "messages"

    def __init__(self, client: AsyncAnthropic) -> None:
        # A retry is built anew from the ledger, or it is none: the client must not make one.
        self._client = client.with_options(max_retries=0)

    async def stream(self, request: Request) -> AsyncGenerator[Heard, None]:
        self.check(request)
        messages = joined_user_turns(request.items)
        body = {**request.settings, "model": request.model, "messages": messages, "stream": True}
        answer = MessagesAnswer()
        for _ in range(MOST_PAUSES + 1):
            sent = http_stream.hear(self._client, AsyncStream[object], "/v1/messages", body, answer)
            async with aclosing(sent) as said:
                async for heard in said:
                    yield heard
            paused = answer.paused
            if paused is None:
                return
            so_far = {"role": "assistant", "content": paused.content}
            body = {**body, "messages": [*messages, so_far]}
            if paused.container is not None:
                body["container"] = paused.container
            answer = MessagesAnswer(paused)
        raise failure_of_ours(
            f"The provider paused the same turn {MOST_PAUSES} times", Fate.REFUSED, Stage.HEARD
        )

    def __repr__(self) -> str:
        return f"<AnthropicMessages {self._client.base_url}>"
