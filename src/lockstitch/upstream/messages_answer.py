"""One answer of Anthropic's Messages: the JSON of its events in, what was heard out. No I/O here.

The message is put together from its blocks and is one item, told with the reason it stopped. A
block that a limit cut is left out: half a call is no call, half a thought has no signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from lockstitch.core.facts import Ending
from lockstitch.upstream.answers import failed, grow, read
from lockstitch.upstream.contract import Delta, Ended, Heard, ItemDone, Opened

_ENDING_OF_REASON: Final = {
    "max_tokens": Ending.INCOMPLETE,
    "model_context_window_exceeded": Ending.INCOMPLETE,
    # The API asks that a refused turn be taken out before the conversation goes on.
    "refusal": Ending.FAILED,
}
"""Any other reason is that all was said."""

_PAUSED: Final = "pause_turn"
"""The provider has run its own tools for long enough. It goes on when the message is sent back."""

_KIND_OF_DELTA: Final = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "reasoning"),
    "input_json_delta": ("partial_json", "arguments"),
}


class _Event(Struct):
    type: str = ""
    index: int | None = None
    message: dict[str, Any] | None = None
    content_block: dict[str, Any] | None = None
    delta: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_events: Final = msgspec.json.Decoder(_Event)
_objects: Final = msgspec.json.Decoder(dict[str, Any])
_encode = msgspec.json.Encoder().encode


class _Block:
    """One block of the message, as far as it came."""

    __slots__ = ("fields", "given", "stopped")

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        # What a tool is given comes as text; joined it is JSON.
        self.given: list[str] = []
        self.stopped = False


class Paused(Struct, frozen=True):
    """What was said of a message when the provider paused, to be sent back as it is."""

    content: list[dict[str, Any]]
    usage: dict[str, Any]
    container: str | None = None
    """Where at the provider its tools have their files."""


_NOTHING: Final = Paused([], {})


class MessagesAnswer:
    """One message, while it is being said. ``before`` was said of it before a pause."""

    __slots__ = ("_before", "_blocks", "_container", "_opened", "_usage", "paused", "said_all")

    def __init__(self, before: Paused | None = None) -> None:
        self._opened = before is not None
        self._before = before or _NOTHING
        self._container = self._before.container
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, Any] = {}
        self.paused: Paused | None = None
        self.said_all = False

    def hear(self, data: bytes) -> Sequence[Heard]:
        if self.said_all:
            return ()
        event = read(_events, data, heard=self._opened)
        match event.type:
            case "content_block_delta":
                return self._grown(event)
            case "message_start":
                return self._begun(event.message or {})
            case "content_block_start" if event.index is not None:
                # One that comes twice is the same one.
                self._blocks.setdefault(event.index, _Block(event.content_block or {}))
            case "content_block_stop" if event.index in self._blocks:
                self._blocks[event.index].stopped = True
            case "message_delta":
                return self._changed(event)
            case "error":
                raise failed({"error": event.error}, heard=self._opened)
            case _:
                pass
        return ()

    def last(self) -> Sequence[Heard]:
        return ()

    def _begun(self, message: dict[str, Any]) -> Sequence[Heard]:
        usage, container = message.get("usage"), message.get("container")
        if isinstance(usage, dict):
            self._usage.update(usage)
        if isinstance(container, dict) and isinstance(container.get("id"), str):
            self._container = container["id"]
        if self._opened:
            return ()
        self._opened = True
        named = message.get("id")
        return (Opened(named if isinstance(named, str) else None),)

    def _grown(self, event: _Event) -> Sequence[Heard]:
        delta = event.delta or {}
        block = self._blocks.get(-1 if event.index is None else event.index)
        if block is None:
            return ()
        kind = delta.pop("type", None)
        field, told = _KIND_OF_DELTA.get(kind if isinstance(kind, str) else "", ("", ""))
        text = delta.get(field)
        if kind == "input_json_delta":
            block.given.append(text if isinstance(text, str) else "")
        elif kind == "citations_delta":
            cited = block.fields.get("citations") or []
            block.fields["citations"] = [*cited, delta.get("citation")]
        else:
            grow(block.fields, delta, None)
        if not text or not isinstance(text, str):
            return ()
        named = block.fields.get("id")
        return (Delta(text, told, named if isinstance(named, str) else None),)

    def _changed(self, event: _Event) -> Sequence[Heard]:
        self._usage.update(event.usage or {})
        reason = (event.delta or {}).get("stop_reason")
        if not isinstance(reason, str):
            return ()
        self.said_all = True
        ending = _ENDING_OF_REASON.get(reason, Ending.COMPLETED)
        usage = _sum(self._before.usage, self._usage)
        content = [*self._before.content, *self._content(cut=ending is Ending.INCOMPLETE)]
        if reason == _PAUSED:
            # Encoded and back: what a tool was given is still text.
            plain = msgspec.json.decode(_encode(content))
            self.paused = Paused(plain, usage, self._container)
            return ()
        heard: list[Heard] = [*self._begun({})]
        if content and ending is not Ending.FAILED:
            heard.append(ItemDone(_encode({"role": "assistant", "content": content})))
        detail = "" if ending is Ending.COMPLETED else reason
        return [*heard, Ended(ending, usage or None, detail)]

    def _content(self, *, cut: bool) -> list[dict[str, Any]]:
        """The blocks as they can be sent back."""
        blocks = (self._blocks[index] for index in sorted(self._blocks))
        return [_finished(block) for block in blocks if _is_whole(block, cut=cut)]


def _sum(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """What two parts of a message used; what is no number is told as it came last."""
    counts = {
        name: value + now[name]
        for name, value in before.items()
        if isinstance(value, int) and isinstance(now.get(name), int)
    }
    return {**before, **now, **counts}


def _is_whole(block: _Block, *, cut: bool) -> bool:
    fields = block.fields
    if fields.get("type") == "text":
        return bool(fields.get("text"))  # an empty text is refused when it comes back
    if not cut:
        return True
    if fields.get("type") == "thinking" and not fields.get("signature"):
        return False
    return block.stopped and (not block.given or _is_object("".join(block.given)))


def _finished(block: _Block) -> dict[str, Any]:
    given = "".join(block.given)
    if not given:
        return block.fields
    if _is_object(given):
        return block.fields | {"input": Raw(given.encode())}
    # So the API asks for it where a model wrote no JSON: an input must be an object.
    return block.fields | {"input": {"INVALID_JSON": given}}


def _is_object(text: str) -> bool:
    try:
        _objects.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
    return True
