"""What a call asks for, and what its output says: read from their wire items, for people and
tools."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from lockstitch.core.calls import Call
from lockstitch.dialects.base import Wire
from lockstitch.dialects.reading import decoded
from lockstitch.ledgers.ledger import Ledger


class Asked(Struct, frozen=True):
    """One call, as a tool sees it."""

    name: str
    arguments: str
    """JSON, or the raw text of a custom tool."""


def asked_of(ledger: Ledger, call: Call) -> Asked:
    """What this call asks for."""
    wire = ledger.wire(call.seq)
    name = call.item.name or ""
    if ledger.dialect.name == "chat":
        made = wire["tool_calls"][call.slot]
        bodies = (made.get("function"), made.get("custom"))
        body: Wire = next((body for body in bodies if body and isinstance(body, dict)), {})
        return Asked(name, _text(body.get("arguments", body.get("input"))))
    if ledger.dialect.name == "messages":
        block: Wire = wire["content"][call.slot]
        return Asked(name, _text(block.get("input")))
    return Asked(name or str(wire.get("type")), _text(wire.get("arguments", wire.get("input"))))


def said_in(output: bytes) -> str:
    """What an output says, as a text: its own, or its parts as JSON."""
    wire = decoded(output)
    blocks = wire.get("content")
    if isinstance(blocks, list) and len(blocks) == 1 and isinstance(blocks[0], dict):
        (block,) = blocks
        if str(block.get("type")).endswith("tool_result"):
            wire = block  # a message with the output as its block
    for field in ("output", "content", "result", "tools", "reason"):
        if wire.get(field) is not None:
            return _text(wire[field])
    return ""


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode({} if value is None else value).decode()
