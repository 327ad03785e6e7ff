"""What may enter a context: pairs, order, ids and reasoning, as the provider enforces them.

The items are scanned once, in order, and bound one to one. The first rule broken is the one
that is told. Shapes are checked before (`shapes`); anchors by whoever keeps them."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lockstitch.emulator import refusals, tokens
from lockstitch.emulator.limits import MOST_REMEMBERED_ITEM_IDS
from lockstitch.emulator.responses.context import Context, Item
from lockstitch.emulator.responses.minting import Mint
from lockstitch.emulator.responses.pairs import (
    BORROWED_IDS,
    CALLS,
    OUTPUTS,
    calls_for_answer,
    key_of,
    stands_alone,
)

_SEALED = ("reasoning", "compaction")
# A reference names the very item: named twice, it is there twice.
_NOT_THEIR_OWN_IDS = BORROWED_IDS - {"item_reference"}

OpenCalls = dict[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Bond:
    """What an item that the model made needs beside it in any later input."""

    # The reasoning it was made with.
    reasoning: str | None
    # For reasoning: the item that followed it.
    follower: str | None


class Made:
    """The items the model made, by id, the newest so many of them."""

    def __init__(self) -> None:
        self._bonds: OrderedDict[str, Bond] = OrderedDict()

    def remember(self, output: Sequence[Item]) -> None:
        """The items of one response, in their order."""
        reasoning: str | None = None
        for place, item in enumerate(output):
            made = item.get("id")
            if not made:
                continue
            if item["type"] == "reasoning":
                following = output[place + 1].get("id") if place + 1 < len(output) else None
                self._bonds[made] = Bond(None, following)
                reasoning = made
            else:
                self._bonds[made] = Bond(reasoning, None)
        while len(self._bonds) > MOST_REMEMBERED_ITEM_IDS:
            self._bonds.popitem(last=False)

    def bond(self, id: str) -> Bond | None:
        return self._bonds.get(id)

    def clear(self) -> None:
        self._bonds.clear()


def admitted(
    context: Context, items: Sequence[Item], made: Made, mint: Mint, *, sent: Sequence[Item]
) -> Context:
    """The context with `items` after it; raises `Refused` if they may not enter.

    `sent` are the same items as the client sent them: only an id that the client gave can be a
    duplicate, or need its neighbours."""
    given = _ids_given(context, sent)
    for place, item in enumerate(sent):
        _check_order(place, item, sent)
        _check_bonds(place, items, sent, given, context, made, mint)
    still_open = paired(dict(context.open), items)
    return context.extended(items, still_open, tokens.of_items(items))


def paired(open: OpenCalls, items: Sequence[Item]) -> OpenCalls:
    """The calls that are open after these items; raises for an output that answers none."""
    for item in items:
        call = CALLS.get(item["type"])
        if call is not None:
            key = key_of(item, call.key)
            if key is not None and calls_for_answer(item):
                made = item["type"], key
                open[made] = open.get(made, 0) + 1
        elif item["type"] in OUTPUTS:
            _answer(open, item)
    return open


def announced(open: OpenCalls, items: Sequence[Item]) -> OpenCalls:
    """The same for what the model said: the provider takes its own word."""
    for item in items:
        try:
            paired(open, (item,))
        except refusals.Refused:
            continue
    return open


def _answer(open: OpenCalls, item: Item) -> None:
    output = OUTPUTS[item["type"]]
    key = key_of(item, output.key)
    for answered in output.answers:
        count = open.pop((answered, key or ""), 0)
        if count > 1:
            open[answered, key or ""] = count - 1
        if count:
            return
    if not stands_alone(item):
        raise refusals.output_without_call(output.words, key or "null", output.key)


def check_answered(context: Context) -> None:
    """A response can be generated only when every call has its output."""
    for made, key in context.open:
        if made == "program" and _is_running(context, key):
            continue
        raise refusals.call_without_output(CALLS[made].words, key)


def _is_running(context: Context, program: str) -> bool:
    """A program that made calls of its own goes on when they are answered: the server's turn."""
    for item in context.backwards():
        if item["type"] == "program" and item.get("call_id") == program:
            return False
        caller = item.get("caller")
        if isinstance(caller, dict) and caller.get("caller_id") == program:
            return True
    return False


def _ids_given(context: Context, sent: Sequence[Item]) -> set[str]:
    given: set[str] = set()
    for item in sent:
        own = item.get("id")
        if not own or item.get("type") in _NOT_THEIR_OWN_IDS:
            continue
        if own in given or context.has(own):
            raise refusals.duplicate_item(own)
        given.add(own)
    return given


def _check_order(place: int, item: Item, sent: Sequence[Item]) -> None:
    if item.get("type") == "compaction_trigger" and place != len(sent) - 1:
        raise refusals.trigger_not_last()


def _check_bonds(  # noqa: PLR0917
    place: int,
    items: Sequence[Item],
    sent: Sequence[Item],
    given: set[str],
    context: Context,
    made: Made,
    mint: Mint,
) -> None:
    kind, own = items[place]["type"], sent[place].get("id")
    if kind in _SEALED:
        sealed = items[place].get("encrypted_content")
        if isinstance(sealed, str) and not mint.genuine(sealed):
            raise refusals.unverified_reasoning(own or "")
        if kind == "reasoning" and own:
            _check_follower(own, items[place + 1 : place + 2], sent[place + 1 : place + 2], made)
        return
    bond = made.bond(own) if own else None
    if bond is None or bond.reasoning is None or own is None:
        return
    if bond.reasoning not in given and not context.has(bond.reasoning):
        raise refusals.item_without_reasoning(own, kind, bond.reasoning)


def _check_follower(id: str, rest: Sequence[Item], sent: Sequence[Item], made: Made) -> None:
    """Reasoning is followed by what followed it, or at least by something the model made."""
    if not rest:
        raise refusals.reasoning_without_follower(id)
    bond, named = made.bond(id), sent[0].get("id")
    if bond is not None and bond.follower is not None and named:
        if named != bond.follower:
            raise refusals.reasoning_without_follower(id)
    elif not _is_of_the_model(rest[0]):
        raise refusals.reasoning_without_follower(id)


def _is_of_the_model(item: dict[str, Any]) -> bool:
    kind = item["type"]
    if kind == "message":
        return item.get("role") == "assistant"
    return kind not in OUTPUTS and kind != "compaction_trigger"
