"""The user's messages as Anthropic's API wants them: the results of one turn in one message.

A ledger sends a message for each output, then what the user said. The results must stand together
in the message right behind their calls, before anything else in it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

Message = Mapping[str, Any]


def joined_user_turns(messages: Iterable[Message]) -> list[Message]:
    """The messages, with the user's joined where there are results among several in a row.

    All others stay as they are, so that a prompt cache still knows them."""
    return list(_joined(messages))


def _joined(messages: Iterable[Message]) -> Iterator[Message]:
    for role, run in groupby(messages, key=lambda message: message.get("role")):
        turn = list(run)
        if role != "user" or not any(map(_is_result, _blocks(turn))):
            yield from turn
            continue
        blocks = list(_blocks(turn))
        # A stable order: results as they came, then the rest as it came.
        ordered = sorted(blocks, key=lambda block: not _is_result(block))
        if len(turn) == 1 and ordered == blocks:
            yield turn[0]
        else:
            yield {**turn[0], "content": ordered}


def _blocks(turn: Sequence[Message]) -> Iterator[Any]:
    for message in turn:
        content = message.get("content")
        if isinstance(content, str):
            if content:
                yield {"type": "text", "text": content}
        elif isinstance(content, Sequence):
            yield from content


def _is_result(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_result"
