"""Chat Completions, of OpenAI or of anyone who speaks it, through the official client.

Everything is sent every time, and nothing is kept there. What the chunks mean: `chat_answer`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from openai import AsyncOpenAI, AsyncStream

from lockstitch.upstream import http_stream
from lockstitch.upstream.chat_answer import ChatAnswer
from lockstitch.upstream.contract import Heard, Request
from lockstitch.upstream.keeping_nothing import KeepsNothing

_DEFAULTS: Final = {"stream_options": {"include_usage": True}}
"""What was used is told only if asked for. Settings win: some servers know no such option."""


class OpenAIChat(KeepsNothing):
    """A client of Chat Completions. The official client stays the caller's."""

    dialect = "chat"

    def __init__(self, client: AsyncOpenAI) -> None:
        # A retry is built anew from the ledger, or it is none: the client must not make one.
        self._client = client.with_options(max_retries=0)

    def stream(self, request: Request) -> AsyncGenerator[Heard, None]:
        self.check(request)
        body = {
            **_DEFAULTS,
            **request.settings,
            "model": request.model,
            "messages": list(request.items),
            "stream": True,
        }
        return http_stream.hear(
            self._client, AsyncStream[object], "/chat/completions", body, ChatAnswer()
        )

    def __repr__(self) -> str:
        return f"<OpenAIChat {self._client.base_url}>"
