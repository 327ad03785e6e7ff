"""Facts made from wire items. Nothing here changes a ledger: append what is returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lockstitch.core import families
from lockstitch.core.calls import Call
from lockstitch.core.errors import NotAnItem
from lockstitch.core.facts import By, CallSettled, ItemAdded, ItemCompleted, Seq
from lockstitch.core.outcomes import Evidence, Outcome, Settlement, settlement
from lockstitch.dialects.base import Wire
from lockstitch.ledgers.ledger import Ledger

_encoder = msgspec.json.Encoder()

SMALL_ITEM_BYTES = 4096
"""Below this, room that is left behind an item is not worth a copy."""

_MORE_THAN_TEXT = (families.MCP_APPROVAL, families.COMPUTER, families.TOOL_SEARCH)
"""Outputs that are a decision, a picture or tools."""


def encoded(item: Mapping[str, Any] | bytes | str) -> bytes:
    """A wire item as the bytes that a fact holds. A text is a user's message, in every dialect but
    that of the Realtime API."""
    if type(item) is not dict:  # mostly it is
        if isinstance(item, bytes):
            return item
        if isinstance(item, str):
            item = {"role": "user", "content": item}
    try:
        written = _encoder.encode(item)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotAnItem(f"This item cannot be written as JSON: {error}.") from None
    # An encoder leaves room behind what it wrote; a ledger would hold on to that.
    return written if len(written) < SMALL_ITEM_BYTES else memoryview(written).tobytes()


def several(items: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Items, if they are several: a text alone would be taken for its characters."""
    if isinstance(items, list):
        return items  # mostly; and an abstract type is slow to ask about
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Sequence):
        raise NotAnItem(f"This is no list of items: {items!r:.80}. Pass a list, also of one.")
    return items


def item_added(
    item: Mapping[str, Any] | bytes | str, by: By | str = By.USER, *, after: Seq | None = None
) -> ItemAdded:
    """The fact that somebody gave an item."""
    return ItemAdded(item=encoded(item), by=By(by), after=after)


def item_completed(request: Seq, item: Mapping[str, Any] | bytes) -> ItemCompleted:
    """The fact that the model said an item to its end."""
    if isinstance(item, str):
        raise NotAnItem("A text alone is a user's message. Pass the item that the model said.")
    return ItemCompleted(request=request, item=encoded(item))


def call_settled(
    of: Ledger,
    call: Call,
    output: Mapping[str, Any] | Sequence[Mapping[str, Any]] | bytes | str,
    *,
    failed: bool = False,
) -> CallSettled:
    """The fact that a call has its output: a wire item, or the text or the content parts of one."""
    if isinstance(output, dict):
        pass  # a wire item, mostly; and an abstract type is slow to ask about
    elif isinstance(output, Sequence) and not isinstance(output, str | bytes):
        output = _with_content(_output(of, call, Settlement(Outcome.FINISHED, "", failed)), output)
    elif isinstance(output, str):
        if call.item.family in _MORE_THAN_TEXT:
            raise NotAnItem(
                f"A text is no output of {call.named}. Pass the {call.output_type} item."
            )
        output = _output(of, call, Settlement(Outcome.FINISHED, output, failed))
    return CallSettled(call=call.seq, slot=call.item.slot, item=encoded(output))


def call_settled_honestly(of: Ledger, call: Call, evidence: Evidence | None = None) -> CallSettled:
    """The fact that a call gets an output that says what is known of it, and no more.

    Without evidence: never started, if that is known; outcome unknown, if it was started, or
    brought along, or if it is the provider who runs it."""
    if evidence is None and of.is_unstarted(call):
        evidence = Evidence(Outcome.NEVER_STARTED, "was never started")
    said = settlement(evidence)
    item = encoded(_output(of, call, said))
    return CallSettled(call=call.seq, slot=call.slot, item=item, outcome=said.outcome)


def _with_content(output: Wire, content: Sequence[Mapping[str, Any]]) -> Wire:
    """An output item that holds content parts in place of a text."""
    if isinstance(output.get("content"), list):  # a message with the output as its block
        (block,) = output["content"]
        return {**output, "content": [{**block, "content": list(content)}]}
    field = "content" if "content" in output else "output"
    return {**output, field: list(content)}


def _output(of: Ledger, call: Call, said: Settlement) -> Wire:
    assert call.item.family is not None
    wire = of.dialect.output(call.item.family, call.item.key, said, call.item.name)
    return of.dialect.put([wire])[0]
