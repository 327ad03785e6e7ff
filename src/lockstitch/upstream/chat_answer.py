"""One answer of Chat Completions: the JSON of its chunks in, what was heard out. No I/O here.

The message is put together from its pieces and is one item. It is told when the choice finished;
what was used may come after that, so the end is told last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import uuid4

import msgspec
from msgspec import Struct

from lockstitch.core.facts import Ending
from lockstitch.upstream.answers import DONE, failed, grow, read
from lockstitch.upstream.contract import Delta, Ended, Heard, ItemDone, Opened

_ENDING_OF_REASON: Final = {
    "length": Ending.INCOMPLETE,
    "content_filter": Ending.FAILED,
    # Routers say this of the provider behind them.
    "error": Ending.FAILED,
}
"""Any other reason is that all was said."""

_TEXTS: Final = frozenset(
    {"content", "refusal", "reasoning", "reasoning_content", "arguments", "input"}
)
"""What comes in pieces. A name or an id that comes again is the same one again."""

_KIND_OF_FIELD: Final = {
    "content": "text",
    "refusal": "refusal",
    "reasoning": "reasoning",
    "reasoning_content": "reasoning",
}


class _Choice(Struct):
    index: int = 0
    delta: dict[str, Any] | None = None
    finish_reason: str | None = None


class _Chunk(Struct):
    id: str | None = None
    choices: list[_Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_chunks: Final = msgspec.json.Decoder(_Chunk)
_objects: Final = msgspec.json.Decoder(dict[str, Any])
_encode = msgspec.json.Encoder().encode


class ChatAnswer:
    """One completion, while it is being said. Of several choices, the first is the answer."""

    __slots__ = ("_calls", "_ended", "_message", "_opened", "_reason", "_usage", "said_all")

    def __init__(self) -> None:
        self._opened = False
        self._message: dict[str, Any] = {}
        self._calls: dict[int, list[dict[str, Any]]] = {}
        self._reason: str | None = None
        self._usage: dict[str, Any] | None = None
        self._ended = False
        self.said_all = False

    def hear(self, data: bytes) -> Sequence[Heard]:
        if data == DONE:
            return [] if self.said_all or not self._opened else self._finished("stop")
        chunk = read(_chunks, data, heard=self._opened)
        if chunk.error:
            raise failed({"error": chunk.error}, heard=self._opened)
        if chunk.usage is not None:
            self._usage = chunk.usage
        heard: list[Heard] = []
        if not self._opened:
            self._opened = True
            heard.append(Opened(chunk.id))
        for choice in chunk.choices or ():
            if choice.index == 0 and not self.said_all:
                heard += self._pieces(choice.delta or {})
                if choice.finish_reason is not None:
                    heard += self._finished(choice.finish_reason)
        return heard

    def last(self) -> Sequence[Heard]:
        if not self.said_all or self._ended:
            return ()
        self._ended = True
        ending = _ENDING_OF_REASON.get(self._reason or "", Ending.COMPLETED)
        detail = "" if ending is Ending.COMPLETED else self._reason or ""
        return (Ended(ending, self._usage, detail),)

    def _pieces(self, delta: dict[str, Any]) -> Iterator[Heard]:
        calls = delta.pop("tool_calls", None)
        grow(self._message, delta, _TEXTS)
        for field, kind in _KIND_OF_FIELD.items():
            text = delta.get(field)
            if text and isinstance(text, str):
                yield Delta(text, kind)
        for place, piece in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(piece, dict):
                yield from self._piece_of_call(piece, place)

    def _piece_of_call(self, piece: dict[str, Any], place: int) -> Iterator[Heard]:
        index = piece.pop("index", None)
        calls = self._calls.setdefault(index if isinstance(index, int) else place, [{}])
        if _is_another(piece, calls[-1]):
            calls.append({})
        call = calls[-1]
        grow(call, piece, _TEXTS)
        text = _given(piece)
        if text:
            named = call.get("id")
            yield Delta(text, "arguments", named if isinstance(named, str) else None)

    def _finished(self, reason: str) -> Sequence[Heard]:
        self.said_all = True
        self._reason = reason
        ending = _ENDING_OF_REASON.get(reason, Ending.COMPLETED)
        if ending is Ending.FAILED:
            return ()
        calls = _named_calls([call for at in sorted(self._calls) for call in self._calls[at]])
        if ending is Ending.INCOMPLETE:
            calls = _whole_calls(calls)
        return (ItemDone(_encode(_message(self._message, calls))),)


def _named_calls(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Calls with an id each. Some servers give none, or all the same, and no output could say which
    call it answers. They keep nothing, so they take ours."""
    named: dict[str, dict[str, Any]] = {}
    for call in calls:
        own = call.get("id")
        if not own or not isinstance(own, str) or own in named:
            own = f"call_{uuid4().hex}"
        named[own] = {**call, "id": own}
    return list(named.values())


def _is_another(piece: dict[str, Any], call: dict[str, Any]) -> bool:
    """Does a piece begin a call of its own? Some servers give all calls the same index; some give
    every piece of a call a new id, but its name only once."""
    known, own = call.get("id"), piece.get("id")
    return bool(known and own and own != known and _named(piece))


def _named(call: dict[str, Any]) -> bool:
    bodies = (call.get(word) for word in ("function", "custom"))
    return any(isinstance(body, dict) and body.get("name") for body in bodies)


def _message(said: dict[str, Any], calls: list[dict[str, Any]]) -> dict[str, Any]:
    """The message as it can be sent back."""
    message = {"role": "assistant", "content": None} | said
    if message.get("refusal") is None:
        message.pop("refusal", None)
    if calls:
        return message | {"tool_calls": calls}
    if message["content"] is None and "refusal" not in message:
        message["content"] = ""  # null is refused where nothing else is said
    return message


def _whole_calls(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls that were said to their end, when a limit cut the message. A JSON object that
    ends is whole; of free text nobody can tell, so the last one counts as cut."""
    return [
        call
        for place, call in enumerate(calls)
        if (_is_object(_given(call)) if "function" in call else place + 1 < len(calls))
    ]


def _given(call: dict[str, Any]) -> str:
    """What a call, or a piece of one, is given."""
    for word, field in (("function", "arguments"), ("custom", "input")):
        body = call.get(word)
        if isinstance(body, dict):
            text = body.get(field)
            return text if isinstance(text, str) else ""
    return ""


def _is_object(text: str) -> bool:
    try:
        _objects.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
    return True
