"""Token counts: no tokenizer, but numbers that grow with the text and never change for the same."""

from collections.abc import Iterable
from typing import Any

import msgspec

# About what tokenizers come to in English text and JSON.
_CHARACTERS_A_TOKEN = 4
# What a message costs beside its text.
_ITEM_TOKENS = 3


def of_text(text: str) -> int:
    return -(-len(text) // _CHARACTERS_A_TOKEN)


def of_items(items: Iterable[Any]) -> int:
    return sum(of_item(item) for item in items)


def of_item(item: Any) -> int:
    return _ITEM_TOKENS + -(-len(msgspec.json.encode(item)) // _CHARACTERS_A_TOKEN)


def usage(input: int, output: int, *, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    """The `usage` of a response."""
    return {
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": input + output,
    }
