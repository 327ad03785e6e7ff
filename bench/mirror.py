"""A mirror's plans against LiveKit's building of edit events, on the same items.

Theirs is `_create_update_chat_ctx_events` as its plugin calls it, and gives event objects; ours is
`Mirror.plan` and the client events of its edits. Neither is encoded. LiveKit's items are its own
models and are made into wire items only where one is created; an integration that keeps no wire
items has to make all of them, which is measured on its own, with our mirror and their models."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from livekit.agents import llm
from livekit.agents.llm.remote_chat_context import RemoteChatContext
from livekit.plugins.openai.realtime.realtime_model import RealtimeSession

from bench.harness import Result, compare
from lockstitch.mirror import Mirror, Snapshot, fresh_ids
from lockstitch.mirror.comparing import difference

SIZES = (200, 1_000, 3_000)
LARGEST = SIZES[-1]
REPEATS = 9
DIFF_REPEATS = 25
"""It is short: a neighbour on the machine is a large part of it."""

EVENTS_TARGET = 1 / 3
MANY_TARGET = 1 / 20
"""Push all and reorder, at the largest size: theirs grows with the square."""
DIFF_TARGET = 1 / 2
LINEAR_TARGET = 1.25
"""Memory for each item, at the largest size compared with the middle one."""
FLAT_TARGET = 1.5
CONVERTED_TARGET = 1.0
"""With every item made, also those that nobody changed: no slower than theirs."""

CHANGES_SIZES = (200, 3_000, 30_000)
CHANGES_ROUNDS = 300

Item = llm.ChatMessage | llm.FunctionCall | llm.FunctionCallOutput
Wire = dict[str, Any]


def run() -> Iterator[Result]:
    for result in _results():
        short = result.unit == "s"
        thousand = 1000 if short else 1
        yield replace(
            result,
            ours=result.ours * thousand,
            peer=result.peer * thousand,
            unit="ms" if short else result.unit,
        )


def _results() -> Iterator[Result]:
    for size in SIZES:
        for name, change in CHANGES.items():
            yield _events(size, name, change)
    for name, change in CHANGES.items():
        yield _diff(name, change)
    for name, change in CHANGES.items():
        yield _converted(name, change)
    yield _memory()
    yield from _named_changes()


# --- the same context on both sides --------------------------------------------------------------


def item(number: int) -> Item:
    """Exchanges of four: a question, a call, its output, an answer."""
    name = f"item_{number}"
    match number % 4:
        case 0:
            text = f"Question {number}: which way is the wind, and how strong?"
            return llm.ChatMessage(id=name, role="user", content=[text])
        case 1:
            arguments = f'{{"city":"Oslo","question":{number}}}'
            return llm.FunctionCall(
                id=name, call_id=f"call_{number}", name="wind", arguments=arguments
            )
        case 2:
            return llm.FunctionCallOutput(
                id=name, call_id=f"call_{number - 1}", name="wind", output="NW 7", is_error=False
            )
    return llm.ChatMessage(id=name, role="assistant", content=["From the north-west, 7 m/s."])


def wire(one: Item) -> Wire:
    """The wire item; what an integration would write for itself, without a model in between."""
    if isinstance(one, llm.FunctionCall):
        return {
            "id": one.id,
            "type": "function_call",
            "call_id": one.call_id,
            "name": one.name,
            "arguments": one.arguments,
        }
    if isinstance(one, llm.FunctionCallOutput):
        return {
            "id": one.id,
            "type": "function_call_output",
            "call_id": one.call_id,
            "output": one.output,
        }
    kind = "output_text" if one.role == "assistant" else "input_text"
    content = [{"type": kind, "text": part} for part in one.content if isinstance(part, str)]
    return {"id": one.id, "type": "message", "role": one.role, "content": content}


class Sides(NamedTuple):
    """What is at the provider and what shall be, for them and for us."""

    remote: RemoteChatContext
    target: llm.ChatContext
    mirror: Mirror
    base: Snapshot
    wires: list[Wire]

    def theirs(self) -> list[Any]:
        """As `update_chat_ctx` calls it; of the session it reads the remote context, no more."""
        session = cast("RealtimeSession", SimpleNamespace(_remote_chat_ctx=self.remote))
        return list(RealtimeSession._create_update_chat_ctx_events(session, self.target))

    def ours(self, wires: list[Wire] | None = None) -> list[Wire]:
        plan = self.mirror.plan(wires or self.wires, base=self.base, new_id=fresh_ids("bench"))
        return [edit.client_event() for edit in plan.edits]

    def ours_converted(self) -> list[Wire]:
        return self.ours([wire(cast("Item", one)) for one in self.target.items])


def sides(there: list[Item], target: list[Item]) -> Sides:
    """Each side has its own objects for what is there, as if it had come over the wire."""
    remote, mirror = RemoteChatContext(), Mirror()
    previous: str | None = None
    for one in there:
        remote.insert(previous, one.model_copy(deep=True))
        mirror.apply(
            {
                "type": "conversation.item.added",
                "item": wire(one),
                "previous_item_id": previous,
            }
        )
        previous = one.id
    wires = [wire(one) for one in target]
    return Sides(remote, llm.ChatContext(list(target)), mirror, mirror.snapshot(), wires)


# --- what a caller does --------------------------------------------------------------------------


def append_one(items: list[Item]) -> Sides:
    return sides(items, [*items, item(4 * len(items))])


def drop_the_oldest_half(items: list[Item]) -> Sides:
    return sides(items, items[len(items) // 2 :])


def replace_one(items: list[Item]) -> Sides:
    at = len(items) // 8 * 4
    changed = items[at].model_copy(update={"content": ["Another question?"]})
    return sides(items, [*items[:at], changed, *items[at + 1 :]])


def push_all(items: list[Item]) -> Sides:
    return sides([], items)


def reorder(items: list[Item]) -> Sides:
    """All exchanges in another order, each whole."""
    exchanges = [items[at : at + 4] for at in range(0, len(items), 4)]
    random.Random(1).shuffle(exchanges)
    return sides(items, [one for exchange in exchanges for one in exchange])


CHANGES: dict[str, Callable[[list[Item]], Sides]] = {
    "append one": append_one,
    "drop half": drop_the_oldest_half,
    "replace one": replace_one,
    "push all": push_all,
    "reorder": reorder,
}


# --- what is measured ----------------------------------------------------------------------------


def rounds_of(size: int) -> int:
    """How often in a row it is done on the clock, so that this runs as long for a small context as
    for a large one. A fraction of a millisecond by itself, right behind a look through the whole
    heap for garbage, tells how cold the processor's caches are."""
    return LARGEST // size


def _events(size: int, name: str, change: Callable[[list[Item]], Sides]) -> Result:
    both = change([item(number) for number in range(size)])
    assert len(both.ours()) == len(both.theirs())
    many = size == LARGEST and change in (push_all, reorder)
    rounds = rounds_of(size)
    result = compare(
        f"{size}, {name}",
        ours=lambda: [both.ours() for _ in range(rounds)],
        peer=lambda: [both.theirs() for _ in range(rounds)],
        target=MANY_TARGET if many else EVENTS_TARGET,
        peer_is="LiveKit's building of edit events",
        repeats=REPEATS,
    )
    return replace(result, ours=result.ours / rounds, peer=result.peer / rounds)


def _diff(name: str, change: Callable[[list[Item]], Sides]) -> Result:
    """Only what stays where it is, what goes and what comes."""
    both = change([item(number) for number in range(LARGEST)])
    remote, context = both.remote.to_chat_ctx(), both.mirror._context
    return compare(
        f"diff, {name}",
        ours=lambda: difference(context, both.wires),
        peer=lambda: llm.utils.compute_chat_ctx_diff(remote, both.target),
        target=DIFF_TARGET,
        peer_is="LiveKit's compute_chat_ctx_diff",
        repeats=DIFF_REPEATS,
    )


def _converted(name: str, change: Callable[[list[Item]], Sides]) -> Result:
    """From LiveKit's own items, every one of them made into a wire item first."""
    both = change([item(number) for number in range(LARGEST)])
    return compare(
        f"{LARGEST}, {name}, made",
        ours=both.ours_converted,
        peer=both.theirs,
        target=CONVERTED_TARGET,
        peer_is="LiveKit's building of edit events",
        repeats=REPEATS,
    )


def _memory() -> Result:
    """Peak memory of the plan that needs most, for each item."""

    def peak(size: int) -> float:
        both = reorder([item(number) for number in range(size)])
        both.ours()
        tracemalloc.start()
        both.ours()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most / size / 1000

    middle, largest = SIZES[1:]
    return Result(
        f"reorder, peak for each of {largest}",
        ours=peak(largest),
        peer=peak(middle),
        target=LINEAR_TARGET,
        unit="KB",
        peer_is=f"for each of {middle}",
    )


def _named_changes() -> Iterator[Result]:
    """A plan that is told what changed, in a context that is longer and longer."""
    smallest, *others = CHANGES_SIZES
    for size in others:
        few, many = _changing(smallest), _changing(size)
        yield compare(
            f"named changes among {size}",
            ours=many,
            peer=few,
            target=FLAT_TARGET,
            peer_is=f"among {smallest}",
            repeats=REPEATS,
        )


def _changing(size: int) -> Callable[[], object]:
    items = [item(number) for number in range(size)]
    mirror = sides(items, []).mirror
    base = mirror.snapshot()
    at = size // 8 * 4
    changed = wire(items[at]) | {"content": [{"type": "input_text", "text": "Another?"}]}
    added = wire(item(4 * size))
    removed = [one.id for one in items[at + 4 : at + 8]]
    new_id = fresh_ids("bench")

    def rounds() -> None:
        for _ in range(CHANGES_ROUNDS):
            plan = mirror.plan_changes(
                base=base, new_id=new_id, added=[added], changed=[changed], removed=removed
            )
            assert len(plan.edits) == 7

    return rounds
