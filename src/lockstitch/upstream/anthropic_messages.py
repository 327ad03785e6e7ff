"""Anthropic's Messages, through the official client.

Everything is sent every time, and nothing is kept there. What the events mean: `messages_answer`;
how the user's messages are joined: `user_turns`."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from anthropic import AsyncAnthropic, AsyncStream

from lockstitch.upstream import http_stream
from lockstitch.upstream.contract import Heard, Request
from lockstitch.upstream.keeping_nothing import KeepsNothing
from lockstitch.upstream.messages_answer import MessagesAnswer
from lockstitch.upstream.user_turns import joined_user_turns


class AnthropicMessages(KeepsNothing):
    """A client of Messages. The official client stays the caller's."""

    dialect = "messages"

    def __init__(self, client: AsyncAnthropic) -> None:
        # A retry is built anew from the ledger, or it is none: the client must not make one.
        self._client = client.with_options(max_retries=0)

    def stream(self, request: Request) -> AsyncGenerator[Heard, None]:
        self.check(request)
        body = {
            **request.settings,
            "model": request.model,
            "messages": joined_user_turns(request.items),
            "stream": True,
        }
        return http_stream.hear(
            self._client, AsyncStream[object], "/v1/messages", body, MessagesAnswer()
        )

    def __repr__(self) -> str:
        return f"<AnthropicMessages {self._client.base_url}>"
