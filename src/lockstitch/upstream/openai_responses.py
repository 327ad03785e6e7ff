"""OpenAI's Responses API over HTTP, through the official client.

What its events mean is in `responses_answer`; the same over a WebSocket is `openai_websocket`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from openai import AsyncOpenAI, AsyncStream

from lockstitch.core.facts import Mode
from lockstitch.upstream import http_stream
from lockstitch.upstream.contract import Fate, Heard, Request
from lockstitch.upstream.failures import failure_of_ours, failure_raised, library_errors
from lockstitch.upstream.responses_answer import ResponsesAnswer, whole

ITEMS_ON_A_PAGE: Final = 100
"""The most that the provider gives at once."""

MOST_PAGES: Final = 1_000
"""What is listed is what was said behind a known item: a turn or two. A listing of more than
100,000 items is one that does not end."""


class _Page(Struct):
    data: list[dict[str, Any]]
    has_more: bool = False
    last_id: str | None = None


class _Made(Struct):
    id: str


_pages: Final = msgspec.json.Decoder(_Page)
_made: Final = msgspec.json.Decoder(_Made)

Read = TypeVar("Read")


class OpenAIResponses:
    """A client of the Responses API. The official client stays the caller's: to configure, and to
    close."""

    dialect = "responses"
    modes = frozenset(Mode)

    def __init__(self, client: AsyncOpenAI) -> None:
        # A retry is built anew from the ledger, or it is none: the client must not make one.
        self._client = client.with_options(max_retries=0)

    def stream(self, request: Request) -> AsyncGenerator[Heard, None]:
        return http_stream.hear(
            self._client,
            AsyncStream[object],
            "/responses",
            {**body_of(request), "stream": True},
            ResponsesAnswer(request.anchor),
            anchor=request.anchor,
        )

    async def retrieved(self, response: str) -> Sequence[Heard] | None:
        try:
            asked = self._client.responses.with_raw_response
            body = (await asked.retrieve(response)).content
        except library_errors() as error:
            if getattr(error, "status_code", None) == 404:
                return None
            raise failure_raised(error) from error
        return whole(body)

    async def new_conversation(self) -> str:
        try:
            body = (await self._client.conversations.with_raw_response.create()).content
        except library_errors() as error:
            raise failure_raised(error) from error
        return _read(_made, body).id

    async def listed(self, conversation: str, after: str | None) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        for _ in range(MOST_PAGES):
            page = await self._page(conversation, after)
            items += page.data
            if not page.has_more or page.last_id in {None, after}:
                return items
            after = page.last_id
        raise failure_of_ours(
            f"The conversation {conversation} has more than {MOST_PAGES * ITEMS_ON_A_PAGE:,} items "
            "after the last known one",
            Fate.REFUSED,
        )

    async def close(self) -> None:
        """Nothing is held between requests."""

    async def _page(self, conversation: str, after: str | None) -> _Page:
        listing = self._client.conversations.items.with_raw_response
        behind: Any = {} if after is None else {"after": after}
        try:
            # The type of the client says that this is a page; awaited, it is the raw response.
            asked: Any = listing.list(conversation, limit=ITEMS_ON_A_PAGE, order="asc", **behind)
            body = (await asked).content
        except library_errors() as error:
            raise failure_raised(error, anchor=conversation) from error
        return _read(_pages, body)

    def __repr__(self) -> str:
        return f"<OpenAIResponses {self._client.base_url}>"


def body_of(request: Request) -> dict[str, Any]:
    """The body of a request, but for what HTTP and WebSocket each add to it."""
    body = {**request.settings, "model": request.model, "input": list(request.items)}
    if request.anchor is not None and request.mode is not Mode.FULL:
        # The modes are named as the fields are.
        body[request.mode.value] = request.anchor
    return body


def _read(decoder: msgspec.json.Decoder[Read], body: bytes) -> Read:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = f"The provider's answer cannot be read: {error}"
        raise failure_of_ours(what, Fate.LOST) from error
