"""Input filters: what callers do to the items of a request before it is sent."""

from __future__ import annotations

from random import Random

from tests.ledgers.socket_account import Account
from tests.ledgers.socket_model import Wire

REDACTED = "[redacted]"
NOTE = {"role": "developer", "content": "A note of the filter."}


def filtered(items: list[Wire], rng: Random, account: Account) -> list[Wire]:
    """The items with a note, with outputs redacted, or without one pair."""
    match rng.choice(("note first", "note last", "redact", "drop")):
        case "note first":
            return [NOTE, *items]
        case "note last":
            return [*items, NOTE]
        case "redact":
            return [_redacted(item, account) for item in items]
    return _without_a_pair(items, rng, account)


def _redacted(item: Wire, account: Account) -> Wire:
    if item.get("type") not in ("function_call_output", "custom_tool_call_output"):
        return item
    account.redacted.add(item["call_id"])
    return {**item, "output": REDACTED}


def _without_a_pair(items: list[Wire], rng: Random, account: Account) -> list[Wire]:
    """One call and its output go, where nothing else of the same answer hangs on the call."""
    if any(item.get("type") == "reasoning" for item in items):
        return items
    calls = {item["call_id"] for item in items if item.get("type") == "custom_tool_call"}
    outputs = {item["call_id"] for item in items if item.get("type") == "custom_tool_call_output"}
    pairs = sorted(calls & outputs)
    if not pairs:
        return items
    gone = rng.choice(pairs)
    account.dropped.add(gone)
    return [item for item in items if item.get("call_id") != gone]
