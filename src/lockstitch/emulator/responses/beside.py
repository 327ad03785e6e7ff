"""What the provider makes of a context beside responses: one item in place of many, and a count."""

from typing import Any

from lockstitch.emulator import tokens
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.model.replies import json_text
from lockstitch.emulator.responses.context import Context
from lockstitch.emulator.responses.minting import Mint


def compacted(context: Context, ids: Ids, mint: Mint, now: float) -> dict[str, Any]:
    """The user's messages, then one item that stands for everything."""
    users = [kept for kept in context if kept["type"] == "message" and kept.get("role") == "user"]
    made = {
        "id": ids.item("compaction"),
        "type": "compaction",
        "encrypted_content": mint.sealed(json_text(len(context))),
    }
    return {
        "id": ids.draw("resp"),
        "object": "response.compaction",
        "created_at": int(now),
        "output": [*users, made],
        "usage": tokens.usage(context.tokens, tokens.of_item(made)),
    }


def input_tokens(context: Context, request: dict[str, Any]) -> int:
    """What the input of this request costs."""
    instructions = tokens.of_text(str(request.get("instructions") or ""))
    return context.tokens + instructions + tokens.of_items(request.get("tools") or ())
