"""The provider over real sockets: the few requests that a runner makes, with aiohttp.

It reads server-sent events as bytes, and gives whole ones alone: what a cut left half-said is
not there. What an answer means for a ledger is in `socket_driver`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

Wire = dict[str, Any]

MODEL = "gpt-5.5"
_KEY = {"Authorization": "Bearer any"}


class Said(Struct):
    """An event of a response: only what a runner looks at."""

    type: str
    response: Wire = {}
    item: msgspec.Raw = msgspec.Raw()
    output_index: int = -1


class Refusal(Exception):
    """The provider answered with an error."""

    def __init__(self, status: int, error: Wire) -> None:
        super().__init__(f"{status}: {error.get('message')}")
        self.status = status
        self.code = error.get("code")
        self.param = error.get("param")


_said = msgspec.json.Decoder(Said)
_object = msgspec.json.Decoder(Wire)


class Provider:
    """One base URL, and the connections to it."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str) -> None:
        self._session = session
        self._base = base_url

    def create(self, body: Wire) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """The answer to a request, to be read with `events`."""
        data = msgspec.json.encode({"model": MODEL, "stream": True, **body})
        headers = {**_KEY, "Content-Type": "application/json"}
        return self._session.post(f"{self._base}/responses", data=data, headers=headers)

    async def post(self, path: str, body: Wire) -> Wire:
        return await self._asked("POST", path, json=body)

    async def get(self, path: str, **query: str) -> Wire:
        return await self._asked("GET", path, params=query)

    async def listed(self, conversation: str, after: str | None, limit: int) -> list[Wire]:
        """The items of a conversation behind one of them, oldest first, page by page."""
        items: list[Wire] = []
        while True:
            query = {"order": "asc", "limit": str(limit)}
            if after is not None:
                query["after"] = after
            page = await self.get(f"/conversations/{conversation}/items", **query)
            items += page["data"]
            if not page["has_more"]:
                return items
            after = page["last_id"]

    async def _asked(self, method: str, path: str, **more: Any) -> Wire:
        url = f"{self._base}{path}"
        async with self._session.request(method, url, headers=_KEY, **more) as answer:
            data = await answer.read()
            if answer.status != 200:
                raise refusal(answer.status, data)
            return _object.decode(data)


def refusal(status: int, data: bytes) -> Refusal:
    return Refusal(status, _object.decode(data)["error"])


async def events(answer: aiohttp.ClientResponse) -> AsyncIterator[Said]:
    """The events of an answer, each as soon as it is whole."""
    rest = b""
    async for chunk in answer.content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n\n")
        for frame in whole:
            for line in frame.split(b"\n"):
                if line.startswith(b"data: "):
                    yield _said.decode(line[6:])
