"""What a caller gives a turn, checked before anything is written.

An output that nobody waits for would stay in the thread, and no whole request could be made from it
any more; what is neither yes nor no must not be taken for a yes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lockstitch.core.calls import Call
from lockstitch.core.errors import NotAnItem
from lockstitch.core.exchanges import Exchange
from lockstitch.core.facts import START, ItemAdded
from lockstitch.core.items import Item, Part
from lockstitch.ledgers.ledger import Ledger
from lockstitch.ledgers.making import item_added
from lockstitch.runner.errors import NoSuchCall

Wire = Mapping[str, Any]


def items_of(message: str | Wire | Iterable[Wire | str] | None) -> Sequence[Wire | str]:
    """The items of a message."""
    if message is None:
        return ()
    if isinstance(message, str | Mapping):
        return (message,)
    several = isinstance(message, Iterable) and not isinstance(message, bytes | bytearray)
    given: tuple[Any, ...] = tuple(message) if several else (message,)
    for item in given:
        if not isinstance(item, str | Mapping):
            raise NotAnItem(
                f"A message is a text, a wire item, or several of them; {item!r:.80} is neither."
            )
    return given


def decisions(approve: Mapping[str, bool]) -> dict[str, bool]:
    """What somebody decided about calls, by their ids."""
    if not isinstance(approve, Mapping):
        raise TypeError(f"approve={approve!r:.80}: say True or False of each call, by its id.")
    for key, decided in approve.items():
        if not isinstance(decided, bool):
            raise TypeError(f"approve says {decided!r:.80} of {key}. Say True or False.")
    return dict(approve)


def added(ledger: Ledger, given: Sequence[Wire | str]) -> list[ItemAdded]:
    """The facts that a caller gave these items. Raises `NoSuchCall` for an output that answers no
    call which waits for it."""
    facts = [item_added(item) for item in given]
    if ledger.adopted_anchor is not None:
        return facts  # it may answer a call that only the provider has
    made: dict[str, Call] = {}
    answered: list[Call] = []
    for part in (part for fact in facts for part in ledger.reading.read(fact.item)):
        if part.part is Part.CALL and part.key is not None:
            made[part.key] = made[part.alias or part.key] = Call(START, START, part)
        elif part.part is Part.OUTPUT and part.key is not None and not part.lone:
            call = made.get(part.key) or ledger.call(part.key)
            if call is None or call in answered or not _waits_for(ledger, call, part):
                raise NoSuchCall(
                    f"No call {part.key} waits for this output: it may have one already. Nothing "
                    "was added."
                )
            answered.append(call)
    return facts


def in_force(
    ledger: Ledger, approved: Mapping[str, bool], facts: Iterable[ItemAdded]
) -> dict[str, bool]:
    """Of these decisions: those about calls that wait, in the thread or among what is added. Raises
    `NoSuchCall` for an id that no call has.

    A call that was answered since is left out, so that a decision can be said again after a crash,
    and is none about a later call with the same id."""
    parts = [part for fact in facts for part in ledger.reading.read(fact.item)]
    waiting = {part.key for part in parts if part.part is Part.CALL}
    waiting.update(call.item.key for call in ledger.unsettled())
    unknown = [key for key in approved if key not in waiting and not ledger.calls_with_key(key)]
    if unknown:
        raise NoSuchCall(
            f"approve names calls that are not in the thread: {', '.join(unknown)}. Nothing was "
            "added, and nothing was run."
        )
    return {key: decided for key, decided in approved.items() if key in waiting}


def _waits_for(ledger: Ledger, call: Call, output: Item) -> bool:
    link = ledger.links[call.link]
    abandoned = isinstance(link, Exchange) and link.abandoned
    return call.output is None and call.is_answered_by(output) and not abandoned
