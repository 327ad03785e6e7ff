"""One long conversation, made the same for everybody: a call and its output in every turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

Wire = dict[str, Any]

QUESTION: Wire = {"role": "user", "content": "Look at every file, one after the other."}


def call(turn: int) -> Wire:
    return {
        "type": "function_call",
        "id": f"fc_{turn:06d}",
        "call_id": f"call_{turn:06d}",
        "name": "read_file",
        "arguments": f'{{"path": "src/file_{turn}.py"}}',
        "status": "completed",
    }


def output(turn: int, size_bytes: int) -> Wire:
    text = f"line {turn} of the file, " * (size_bytes // 20)
    return {
        "type": "function_call_output",
        "call_id": f"call_{turn:06d}",
        "output": text[:size_bytes],
    }


class Turn(NamedTuple):
    """What the model and its tool say in one turn."""

    response: str
    call: Wire
    output: Wire


def turns(count: int, output_bytes: int) -> Iterator[Turn]:
    """A conversation of so many turns, each made when it is asked for."""
    for turn in range(count):
        yield Turn(f"resp_{turn}", call(turn), output(turn, output_bytes))
