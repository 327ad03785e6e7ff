"""What Chat Completions and Messages say of a reply: its drafts, made into what both can say.

A draft of the Responses API that has no word in the dialect is a mistake in the script, not in
the request: `CannotSay` ends in a 500 and a line in the log."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from lockstitch.emulator import tokens
from lockstitch.emulator.errors import EmulatorError
from lockstitch.emulator.model.replies import Draft, json_text

# Arguments come in pieces of this size; they know nothing of words.
_PIECE_CHARACTERS = 8
_WORDS = re.compile(r"\s*\S+\s*|\s+")


class CannotSay(EmulatorError):
    """A reply holds a draft that this dialect has no word for."""


@dataclass(frozen=True, slots=True)
class Say:
    """One thing said. `kind`: text, refusal, thinking, function_call or custom_tool_call."""

    kind: str
    # As they are streamed; together they are the whole.
    pieces: tuple[str, ...]
    id: str = ""
    name: str = ""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def say(
    drafts: Iterable[Draft], new_id: Callable[[], str], *, dialect: str, sayable: frozenset[str]
) -> list[Say]:
    """What the drafts say, in order. A call's own `call_id` is kept."""
    said: list[Say] = []
    for draft in drafts:
        if draft["type"] not in sayable:
            raise CannotSay(
                f"A reply over {dialect} cannot say {draft['type']!r}: only "
                f"{', '.join(sorted(sayable))}. Change the script."
            )
        said += _SAYERS[draft["type"]](draft, new_id)
    return said


def shortened(said: list[Say], most: int | None) -> tuple[list[Say], bool]:
    """At most this many pieces, each of which counts as a token; and whether that cut something."""
    if most is None:
        return said, False
    kept: list[Say] = []
    for one in said:
        if len(one.pieces) > most:
            return ([*kept, replace(one, pieces=one.pieces[:most])] if most else kept), True
        most -= len(one.pieces)
        kept.append(one)
    return kept, False


def count(said: Iterable[Say], kinds: frozenset[str] | None = None) -> int:
    """The tokens of what was said, or of these kinds alone."""
    return sum(
        tokens.of_text(one.text) + tokens.of_text(one.name)
        for one in said
        if kinds is None or one.kind in kinds
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORDS.findall(text))


def _pieces(text: str) -> tuple[str, ...]:
    return tuple(
        text[start : start + _PIECE_CHARACTERS] for start in range(0, len(text), _PIECE_CHARACTERS)
    )


def _message(draft: Draft, _: Callable[[], str]) -> Iterator[Say]:
    content = draft.get("content") or []
    if isinstance(content, str):
        yield Say("text", _words(content))
        return
    for part in content:
        if part["type"] == "refusal":
            yield Say("refusal", _words(part["refusal"]))
        else:
            yield Say("text", _words(part.get("text", "")))


def _reasoning(draft: Draft, _: Callable[[], str]) -> Iterator[Say]:
    parts: list[Any] = [*(draft.get("summary") or []), *(draft.get("content") or [])]
    yield Say("thinking", _words("\n\n".join(part["text"] for part in parts)))


def _function_call(draft: Draft, new_id: Callable[[], str]) -> Iterator[Say]:
    arguments = draft.get("arguments", "{}")
    text = arguments if isinstance(arguments, str) else json_text(arguments)
    yield Say("function_call", _pieces(text), _id(draft, new_id), draft.get("name", "tool"))


def _custom_tool_call(draft: Draft, new_id: Callable[[], str]) -> Iterator[Say]:
    pieces = _pieces(draft.get("input", ""))
    yield Say("custom_tool_call", pieces, _id(draft, new_id), draft.get("name", "tool"))


def _id(draft: Draft, new_id: Callable[[], str]) -> str:
    return draft.get("call_id") or new_id()


_SAYERS: Final[dict[str, Callable[[Draft, Callable[[], str]], Iterator[Say]]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "custom_tool_call": _custom_tool_call,
}
