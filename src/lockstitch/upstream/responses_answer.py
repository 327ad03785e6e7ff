"""One answer of the Responses API: the JSON of its events in, what was heard out.

The same over HTTP and WebSocket. Of each event only what is needed is read; items are handed on
as the bytes that came. No I/O here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from lockstitch.core.facts import Ending
from lockstitch.upstream.answers import DONE, failed, read
from lockstitch.upstream.contract import Delta, Ended, Heard, ItemDone, Opened
from lockstitch.upstream.item_order import ItemOrder
from lockstitch.upstream.said import said_in, said_in_frame

_KIND_OF_DELTA: Final = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "arguments",
}

ENDING_OF_EVENT: Final = {
    "response.completed": Ending.COMPLETED,
    "response.incomplete": Ending.INCOMPLETE,
    "response.failed": Ending.FAILED,
    "response.cancelled": Ending.FAILED,
}

ENDING_OF_STATUS: Final = {
    "completed": Ending.COMPLETED,
    "incomplete": Ending.INCOMPLETE,
    "failed": Ending.FAILED,
    "cancelled": Ending.FAILED,
}
"""A status that is not here is one of a response that goes on."""


class _Event(Struct):
    """What is read of any event. Where a field may be of another type in an event that nobody
    knows, it is anything."""

    type: str = ""
    delta: Any = None
    item_id: Any = None
    output_index: Any = None
    item: Raw = Raw(b"")
    response: Raw = Raw(b"")
    error: Raw = Raw(b"")


class _Response(Struct):
    """What is read of a response."""

    id: str | None = None
    status: str | None = None
    output: list[Raw] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    incomplete_details: Any = None


_events: Final = msgspec.json.Decoder(_Event)
_responses: Final = msgspec.json.Decoder(_Response)
_anything: Final = msgspec.json.Decoder(dict[str, Any])


class ResponsesAnswer:
    """One response, while it is being said."""

    __slots__ = ("_anchor", "_framed", "_id", "_not", "_opened", "_order", "said_all")

    def __init__(
        self, anchor: str | None = None, *, framed: bool = False, unlike: str | None = None
    ) -> None:
        self._anchor = anchor
        # In a frame of a WebSocket, an error has its status in itself.
        self._framed = framed
        # The response before this one on the same connection: its last words may come late.
        self._not = unlike
        self._id: str | None = None
        self._opened = False
        self._order = ItemOrder()
        self.said_all = False

    @property
    def id(self) -> str | None:
        return self._id

    @property
    def opened(self) -> bool:
        return self._opened

    def hear(self, data: bytes) -> Sequence[Heard]:
        if self.said_all or data == DONE:
            return ()
        event = read(_events, data, heard=self._opened)
        kind = _KIND_OF_DELTA.get(event.type)
        if kind is not None:
            # Nothing belongs to an answer before it began; what came too early comes again in
            # the whole of it.
            if not self._opened or not event.delta or not isinstance(event.delta, str):
                return ()
            item = event.item_id if isinstance(event.item_id, str) else None
            return (Delta(event.delta, kind, item),)
        if event.type == "response.output_item.done":
            if not self._opened or not event.item:
                return ()
            index = event.output_index if isinstance(event.output_index, int) else None
            return [ItemDone(item) for item in self._order.done(index, bytes(event.item))]
        if event.type == "response.created":
            return self._begun(read(_responses, bytes(event.response) or b"{}", heard=self._opened))
        ending = ENDING_OF_EVENT.get(event.type)
        if ending is not None:
            response = read(_responses, bytes(event.response) or b"{}", heard=self._opened)
            return self._ended(ending, response)
        if event.type == "error" or (not event.type and event.error):
            raise failed(self._error(data), heard=self._opened, anchor=self._anchor)
        return ()

    def last(self) -> Sequence[Heard]:
        """Items that waited for one before them, which will not come."""
        return [] if self.said_all else [ItemDone(item) for item in self._order.rest()]

    def _begun(self, response: _Response) -> Sequence[Heard]:
        if self._opened or self._is_another(response):
            return ()
        self._opened = True
        self._id = response.id
        return (Opened(response.id),)

    def _ended(self, ending: Ending, response: _Response) -> Sequence[Heard]:
        if not self._opened and self._is_another(response):
            return ()
        heard = [*self._begun(response)]
        items = self._order.rest([bytes(item) for item in response.output or ()])
        self.said_all = True
        return [*heard, *map(ItemDone, items), _end(ending, response)]

    def _is_another(self, response: _Response) -> bool:
        return response.id is not None and response.id == self._not

    def _error(self, data: bytes) -> Any:
        body = read(_anything, data, heard=self._opened)
        return said_in_frame(body) if self._framed else said_in(body)


def whole(body: bytes) -> Sequence[Heard] | None:
    """A response that was asked for by its id; None if it goes on."""
    response = read(_responses, body, heard=True)
    ending = ENDING_OF_STATUS.get(response.status or "")
    if ending is None:
        return None
    items = [ItemDone(bytes(item)) for item in response.output or ()]
    return [Opened(response.id), *items, _end(ending, response)]


def _end(ending: Ending, response: _Response) -> Ended:
    return Ended(ending, response.usage, _detail(ending, response))


def _detail(ending: Ending, response: _Response) -> str:
    if ending is Ending.COMPLETED:
        return ""
    details = response.incomplete_details
    if ending is Ending.INCOMPLETE and isinstance(details, dict):
        return str(details.get("reason") or "")
    if isinstance(response.error, dict):
        said = (response.error.get("code"), response.error.get("message"))
        return ": ".join(str(part) for part in said if part)
    return response.status or ""
