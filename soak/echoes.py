"""What a conversation holds, as marks, and the echo by which an answer shows what it was given.

A mark stands for one item, however it was written: whatever a gateway may leave out on the way to
another upstream (ids, reasoning) is in none. Clients and upstreams make them the same way. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

Item = Mapping[str, Any]

_ECHO = re.compile(r"echo (\d+) ([0-9a-f]{16})\b")
_PLAN = re.compile(r"calls=(\d+) words=(\d+) large=(\d+) pace=(\d+)")


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content or ())


def mark(item: Item) -> str | None:
    """The mark of one item; None for what does not count."""
    match item.get("type", "message"):
        case "message":
            return f"{item['role']}: {_short(text_of(item['content']))}"
        case "function_call" if item.get("status") != "incomplete":
            # One that broke off half-way is no call: nobody answers it.
            arguments = json.dumps(json.loads(item["arguments"]), sort_keys=True)
            return f"call {item['call_id']} {item['name']} {arguments}"
        case "function_call_output":
            return f"output {item['call_id']} {text_of(item['output'])}"
    return None


def marks(items: Iterable[Item]) -> list[str]:
    return [one for one in map(mark, items) if one is not None]


def echo(held: Sequence[str]) -> str:
    """What an answer says that was given a context with these marks."""
    return f"echo {len(held)} {sha256(chr(10).join(held).encode()).hexdigest()[:16]}"


def echo_in(text: str) -> str | None:
    found = _ECHO.search(text)
    return found[0] if found else None


def _short(text: str) -> str:
    """Large texts by their digest, so that a mark stays small."""
    if len(text) <= 400:
        return text
    return f"{text[:60]}… {len(text)} {sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What an answer is to be; it travels in the user's text."""

    calls: int = 0
    words: int = 12
    large: int = 0
    """Characters of one more text: enough of them fill every buffer on the way."""
    pace_ms: int = 0

    def __str__(self) -> str:
        return f"calls={self.calls} words={self.words} large={self.large} pace={self.pace_ms}"

    @staticmethod
    def found_in(text: str) -> Plan:
        found = _PLAN.search(text)
        return Plan(*map(int, found.groups())) if found else Plan()
