"""Turns the facts of a conversation into text for people: what was said, called and returned.

Items of every API are shown by their shape, so a store may hold any of them. Everything comes from
outside: texts are cut to a limit and control characters are replaced."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from lockstitch.core import facts as happened
from lockstitch.core.facts import MODEL_NOTE, AnyFact, By, Ending, Noted, Removal, Seq
from lockstitch.core.terminal import printable
from lockstitch.dialects.reading import UNREADABLE

SHOWN_CHARACTERS: Final = 2_000
"""How much of one text is shown: a screen or two. JSON has all of it."""

FIRST_WORDS_CHARACTERS: Final = 80
"""How much of the first user message is listed."""

_ASKED: Final = "gateway.asked"
_RETRIED: Final = "gateway.same_as"
_REMOVED: Final = "gateway.conversation_item_removed"
_ITEM_FACTS: Final = (happened.ItemAdded, happened.ItemCompleted, happened.CallSettled)

_object: Final = msgspec.json.Decoder(dict[str, Any])


class Entry(Struct, kw_only=True):
    """One thing to show: a message, a call, an output, or an event."""

    seq: Seq
    what: str
    """A role, ``call``, ``output``, ``reasoning``, the type of another item, or ``event``."""
    name: str = ""
    """The name of a tool."""
    call: str = ""
    """The id that joins a call and its output."""
    text: str = ""
    slot: int = 0
    """Which call of an item it is, counted as its dialect counts."""
    remark: str = ""
    """What became of a call; who put an item there."""

    @property
    def heading(self) -> str:
        words = [f"[{self.seq}]", self.what, self.name, self.call]
        return " ".join(word for word in words if word) + (
            f" ({self.remark})" if self.remark else ""
        )


class Head(Struct):
    """What a list shows of a conversation, read from its first records. None: not found there."""

    model: str | None = None
    words: str | None = None

    def add(self, fact: AnyFact) -> None:
        """Look at the next fact."""
        if self.model is None and isinstance(fact, Noted):
            self.model = _model(fact) or None
        elif self.words is None and isinstance(fact, happened.ItemAdded):
            for entry in _of_item(0, fact.item):
                if entry.what == "user" and entry.text.strip():
                    self.words = first_words(entry.text)
                    return

    @property
    def complete(self) -> bool:
        return self.model is not None and self.words is not None


def first_words(text: str) -> str:
    """The beginning of a text, on one line."""
    words = " ".join(text[: FIRST_WORDS_CHARACTERS * 4].split())
    if len(words) <= FIRST_WORDS_CHARACTERS:
        return words
    return f"{words[: FIRST_WORDS_CHARACTERS - 1].rstrip()}…"


def entries(facts: Iterable[AnyFact]) -> list[Entry]:
    """What a conversation consists of, in order. A call says what became of it."""
    shown: list[Entry] = []
    calls: dict[str, Entry] = {}
    of_fact: dict[Seq, list[Entry]] = {}
    for seq, fact in enumerate(facts, 1):
        if isinstance(fact, happened.CallStarted):
            for made in of_fact.get(fact.call, ()):
                if made.slot == fact.slot:
                    made.remark = "started, no output"
            continue
        new = list(_of_fact(seq, fact))
        for entry in new:
            if entry.what == "call":
                entry.remark = entry.remark or "no output"
                calls[entry.call] = entry
            elif entry.what == "output" and entry.call in calls:
                settled = isinstance(fact, happened.CallSettled)
                calls[entry.call].remark = entry.remark if settled else "has an output"
        of_fact[seq] = [entry for entry in new if entry.what == "call"]
        shown += new
    return shown


def model_of(facts: Iterable[AnyFact]) -> str | None:
    """The model that was asked last."""
    models = [_model(fact) for fact in facts if isinstance(fact, Noted)]
    return next((model for model in reversed(models) if model), None)


def lines(entry: Entry) -> Iterator[str]:
    """One entry as lines that are safe for a terminal."""
    yield printable(entry.heading)
    text = entry.text[:SHOWN_CHARACTERS]
    for line in text.splitlines():
        yield f"  {printable(line.expandtabs(4))}".rstrip()
    if len(entry.text) > SHOWN_CHARACTERS:
        left = len(entry.text) - SHOWN_CHARACTERS
        yield f"  … {left:,} more characters. --output json prints all of them."


def fit(text: str, cells: int) -> str:
    """A printable text in so many cells of a terminal: padded, or cut with an ellipsis."""
    wide = width(text)
    if wide <= cells:
        return text + " " * (cells - wide)
    kept, used = "", 0
    for character in text:
        used += width(character)
        if used > cells - 1:
            break
        kept += character
    return kept + "…" + " " * (cells - 1 - width(kept))


def width(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


# From facts to entries


def _of_fact(seq: Seq, fact: AnyFact) -> Iterator[Entry]:
    if isinstance(fact, _ITEM_FACTS):
        for entry in _of_item(seq, fact.item):
            if isinstance(fact, happened.CallSettled) and entry.what == "output":
                entry.remark = fact.outcome.value
            elif isinstance(fact, happened.ItemAdded) and fact.by is By.REWRITE:
                entry.remark = "sent in place of other items"
            yield entry
    elif event := _event(fact):
        yield Entry(seq=seq, what="event", text=event)


def _event(fact: AnyFact) -> str:
    """One sentence for what is no item; empty for what is not worth one."""
    match fact:
        case happened.ResponseEnded() if fact.ending is not Ending.COMPLETED:
            return f"The response is {_ENDINGS[fact.ending]}."
        case happened.RequestRejected():
            return f"The provider rejected the request: {fact.reason or 'no reason given'}"
        case happened.RequestLost():
            return f"The request had no answer: {fact.reason or 'no reason given'}"
        case happened.ItemsRemoved(by=Removal.ROLLBACK):
            return f"The conversation was rolled back to entry {fact.to}."
        case happened.ItemsRemoved():
            return f"Everything up to entry {fact.to} was replaced by a summary."
        case happened.AnchorAdopted():
            return f"Continues {fact.anchor}, which is at the provider."
        case happened.AnchorLost():
            return f"The provider no longer has {fact.anchor}."
        case Noted():
            return _noted(fact)
    return ""


_ENDINGS: Final = {
    Ending.INCOMPLETE: "incomplete: a limit ended it",
    Ending.FAILED: "failed",
    Ending.CUT: "cut off: its stream broke",
}


def _noted(note: Noted) -> str:
    if note.kind == _RETRIED:
        return f"The request was retried. Its response is {_text(note.note)}."
    if note.kind == _REMOVED:
        return f"Entry {_decoded(note.note).get('seq')} was deleted from the conversation."
    if note.kind == _ASKED:
        asked = _decoded(note.note)
        told = [
            f"{said} {asked[name]}"
            for name, said in (("model", "model"), ("upstream", "upstream"), ("base", "continues"))
            if asked.get(name)
        ]
        return f"Request: {', '.join(told)}" if told else ""
    return f"Model: {_model(note)}" if note.kind == MODEL_NOTE else ""


def _model(note: Noted) -> str:
    if note.kind == MODEL_NOTE:
        return _text(note.note)
    if note.kind == _ASKED:
        model = _decoded(note.note).get("model")
        return model if isinstance(model, str) else ""
    return ""


# From items to entries


def _of_item(seq: Seq, item: bytes) -> Iterator[Entry]:
    wire = _decoded(item)
    if not wire:
        yield Entry(seq=seq, what="item", text=_text(item))
        return
    role, kind = wire.get("role"), str(wire.get("type") or "item")
    if isinstance(role, str):
        yield from _of_message(seq, role, wire)
    elif kind == "reasoning":
        yield Entry(seq=seq, what="reasoning", text=_parts(wire.get("summary")))
    elif kind.endswith("_output"):
        yield _output(seq, wire.get("call_id"), wire.get("output", wire.get("tools")))
    elif "arguments" in wire or "input" in wire or "action" in wire or "call_id" in wire:
        given = next((wire[name] for name in ("arguments", "input", "action") if name in wire), "")
        yield _call(seq, wire.get("name") or kind, wire.get("call_id") or wire.get("id"), given)
        if wire.get("output") is not None:  # a tool of the provider's own: both in one item
            yield _output(seq, wire.get("call_id") or wire.get("id"), wire["output"])
    else:
        yield Entry(seq=seq, what=kind, text=_written(wire))


def _of_message(seq: Seq, role: str, wire: Mapping[str, Any]) -> Iterator[Entry]:
    if role == "tool":  # Chat Completions
        yield _output(seq, wire.get("tool_call_id"), wire.get("content"))
        return
    content = wire.get("content")
    blocks: Sequence[Any] = content if isinstance(content, list) else []
    texts = [content] if isinstance(content, str) else []
    others: list[Entry] = []
    for slot, block in enumerate(blocks):
        match block:
            case {"type": "tool_use" | "server_tool_use", "name": name}:
                others.append(_call(seq, name, block.get("id"), block.get("input"), slot))
            case {"tool_use_id": key}:
                others.append(_output(seq, key, block.get("content")))
            case {"type": "thinking", "thinking": str(thought)}:
                others.append(Entry(seq=seq, what="reasoning", text=thought))
            case _:
                texts.append(_part(block))
    if texts:
        yield Entry(seq=seq, what=role, text="\n".join(texts))
    yield from others
    calls = wire.get("tool_calls")
    for slot, call in enumerate(calls if isinstance(calls, list) else ()):
        made = call if isinstance(call, dict) else {}
        inner = made.get("function") or made.get("custom")
        inner = inner if isinstance(inner, dict) else {}
        given = inner.get("arguments", inner.get("input"))
        yield _call(seq, inner.get("name"), made.get("id"), given, slot)


def _call(seq: Seq, name: object, key: object, arguments: object, slot: int = 0) -> Entry:
    return Entry(
        seq=seq,
        what="call",
        name=str(name or "?"),
        call=str(key or ""),
        text=_written(arguments),
        slot=slot,
    )


def _output(seq: Seq, key: object, output: object) -> Entry:
    text = _parts(output) if isinstance(output, str | list) else _written(output)
    return Entry(seq=seq, what="output", call=str(key or ""), text=text)


def _parts(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(map(_part, content))
    return _written(content)


def _part(part: object) -> str:
    """The text of one part of a content; of an image or a file, its type."""
    if isinstance(part, dict):
        for name in ("text", "refusal", "transcript"):
            if isinstance(part.get(name), str):
                return str(part[name])
        return f"[{part.get('type') or 'part'}]"
    return _written(part)


def _written(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        return _object.decode(data)
    except UNREADABLE:
        return {}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
