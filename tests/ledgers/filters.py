"""What a caller's filter does to the items of a request: some change it, and some would break it.

Each takes the items and a number that chooses where, and gives other items; the same items where
there is nothing for it to do."""

from __future__ import annotations

from tests.ledgers.strict_server import (
    ANSWERS,
    OUTPUTS,
    Wire,
    is_user_message,
    kind_of,
    named,
    names,
    said_by_model,
    stands_alone,
)

CLIENT_RUN = sorted(set(ANSWERS) - {"program"})
"""The calls that somebody on our side answers."""


def redacted(items: list[Wire], at: int) -> list[Wire]:
    """One of the user's messages says something else."""
    places = [n for n, item in enumerate(items) if is_user_message(item)]
    if places:
        n = places[at % len(places)]
        items = [*items[:n], {**items[n], "content": "redacted"}, *items[n + 1 :]]
    return items


def without_a_message(items: list[Wire], at: int) -> list[Wire]:
    places = [n for n, item in enumerate(items) if is_user_message(item)]
    if places and len(items) > 1:
        n = places[at % len(places)]
        items = [*items[:n], *items[n + 1 :]]
    return items


def with_a_message(items: list[Wire], at: int) -> list[Wire]:
    """One more message, somewhere where it parts no reasoning from what follows it."""
    places = [n for n in range(len(items) + 1) if n == 0 or kind_of(items[n - 1]) != "reasoning"]
    n = places[at % len(places)]
    return [*items[:n], {"role": "developer", "content": "<inserted 1>"}, *items[n:]]


def without_a_group(items: list[Wire], at: int) -> list[Wire]:
    """All that the model said at once, with the outputs of its calls."""
    places = [n for n, item in enumerate(items) if is_clients(item)]
    if not places:
        return items
    first = last = places[at % len(places)]
    while first > 0 and said_by_model(items[first - 1]):
        first -= 1
    while last + 1 < len(items) and said_by_model(items[last + 1]):
        last += 1
    group = items[first : last + 1]
    if any(kind_of(item) in ("program", "compaction") for item in group):
        return items
    pairs, _ = pairs_of(items)
    gone = {id(item) for item in group}
    gone |= {id(output) for call, output in pairs if id(call) in gone}
    left = [item for item in items if id(item) not in gone]
    return left or items


FILTERS = [redacted, without_a_message, with_a_message, without_a_group]


def without_an_output(items: list[Wire], at: int) -> list[Wire]:
    n = an_output(items, at)
    return items if n is None else [*items[:n], *items[n + 1 :]]


def with_an_output_twice(items: list[Wire], at: int) -> list[Wire]:
    n = an_output(items, at)
    return items if n is None else [*items, items[n]]


def without_a_call(items: list[Wire], at: int) -> list[Wire]:
    pairs, _ = pairs_of(items)
    if not pairs:
        return items
    call, _ = pairs[at % len(pairs)]
    return [item for item in items if item is not call]


def with_an_output_before_its_call(items: list[Wire], at: int) -> list[Wire]:
    pairs, _ = pairs_of(items)
    if not pairs:
        return items
    _, output = pairs[at % len(pairs)]
    return [output, *(item for item in items if item is not output)]


BREAKING = [
    without_an_output,
    with_an_output_twice,
    without_a_call,
    with_an_output_before_its_call,
]


def is_clients(item: Wire) -> bool:
    return kind_of(item) in CLIENT_RUN and not stands_alone(item)


def an_output(items: list[Wire], at: int) -> int | None:
    places = [
        n
        for n, item in enumerate(items)
        if kind_of(item) in OUTPUTS and kind_of(item) != "program_output" and not stands_alone(item)
    ]
    return places[at % len(places)] if places else None


def pairs_of(items: list[Wire]) -> tuple[list[tuple[Wire, Wire]], list[Wire]]:
    """The pairs within a delta, in which outputs of earlier calls may stand too."""
    pairs, waiting = [], []
    for item in items:
        if is_clients(item):
            waiting.append(item)
        elif kind_of(item) in OUTPUTS:
            for call in waiting:
                if named(item) in names(call) and kind_of(item) in ANSWERS[kind_of(call)]:
                    pairs.append((call, item))
                    waiting.remove(call)
                    break
    return pairs, waiting
