"""Trimming: where a history may be cut, and the newest part of it that fits.

A cut never splits a pair, a parallel group, or reasoning from what it led to; so the part that is
left has no finding that the whole did not have. Works on core items; `lockstitch.trim` is the
same for lists of wire items."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part
from lockstitch.core.pairing import KEYLESS

_PAIR: Final = frozenset({Part.CALL, Part.OUTPUT})


class _Waiting:
    """A call that waits for its output, and the threads that it waits in: one for each key."""

    __slots__ = ("by_name", "family", "threads")

    def __init__(self, family: Family | None, by_name: bool) -> None:
        self.family = family
        self.by_name = by_name
        """Does only the tool's name join it to its output?"""
        self.threads: list[_Thread] = []


class _Thread:
    """The items under one key, since the last point where every pair under it was whole."""

    __slots__ = ("by_name", "first", "last", "tangled", "waiting")

    def __init__(self, first: int) -> None:
        self.first = first
        self.last = first
        self.waiting: OrderedDict[_Waiting, None] = OrderedDict()
        """In the order of the calls, like `by_name`. The first is found, and any removed, at
        once."""
        self.by_name: OrderedDict[_Waiting, None] = OrderedDict()
        """Those that only a name joins to their output."""
        self.tangled = False

    @property
    def whole(self) -> bool:
        return not self.waiting and not self.tangled

    def ask(self, call: _Waiting) -> None:
        self.waiting[call] = None
        if call.by_name:
            self.by_name[call] = None
        call.threads.append(self)

    @property
    def without_id(self) -> _Waiting | None:
        """The first call that waits here and that only a name joins."""
        return next(iter(self.by_name), None)

    def answer(self, output: Item, call: _Waiting | None = None) -> None:
        """Take the output of a call that waits here: the first, if none is given."""
        call = call or next(iter(self.waiting), None)
        if call and call.family and output.family and call.family.accepts(output.family):
            for thread in call.threads:
                thread.waiting.pop(call, None)
                thread.by_name.pop(call, None)
        else:
            self.tangled = True  # an orphan, a second output, another family: stays together


def cut_points(history: Sequence[Sequence[Item]]) -> list[bool]:
    """For each position, and for the end: may the history begin there?

    ``history[n]`` holds the core items of wire item ``n``."""
    size = len(history)
    forbidden = [0] * (size + 2)

    def together(first: int, last: int) -> None:
        # No cut before any position in (first, last].
        if first < last:
            forbidden[first + 1] += 1
            forbidden[last + 1] -= 1

    threads: dict[str, _Thread] = {}
    group: int | None = None
    reasoning: int | None = None
    reference: int | None = None
    searching: int | None = None
    last_input = -1
    for at, items in enumerate(history):
        for item in items:
            part = item.part
            if item.lone and item.key is None:
                # The server ran it, and nothing names it: only what directly follows is its own.
                if part is Part.OUTPUT and searching is not None:
                    together(searching, at)
                searching = at if part is Part.CALL else None
                continue
            if part is Part.OUTPUT:
                key = item.key if item.key is not None else KEYLESS
                thread = threads.setdefault(key, _Thread(at))
                call = None
                if not thread.waiting and item.alias in threads:
                    call = threads[item.alias].without_id
                    thread = thread if call is None else threads[item.alias]
                elif item.family is not None and item.family.by_name:
                    call = thread.without_id
                together(thread.first, at)
                if not thread.waiting and reference is not None:
                    together(reference, at)  # its call may be behind the reference
                thread.answer(item, call)
                thread.last = at
                group = reasoning = None
            elif part is Part.CALL:
                by_name = item.family is not None and item.family.by_name
                waiting = _Waiting(item.family, by_name and item.key == item.name)
                if item.about is not None and item.about in threads:
                    together(threads[item.about].first, at)
                for key in {key for key in (item.key, item.alias) if key is not None} or {KEYLESS}:
                    thread = threads.setdefault(key, _Thread(at))
                    again = by_name and key == item.name and last_input > thread.last
                    if thread.whole or again:  # in a new turn a name means the new calls alone
                        thread = threads[key] = _Thread(at)
                    together(thread.first, at)
                    thread.ask(waiting)
                    thread.last = at
                if group is not None:
                    together(group, at)
                else:
                    group = at
            elif part is Part.REASONING:
                reasoning = at if reasoning is None else reasoning
            elif part is Part.INPUT:
                group = reasoning = None
                last_input = at
            elif part is Part.REFERENCE:
                reference = at
            if reasoning is not None:
                together(reasoning, at)
    allowed: list[bool] = []
    depth = 0
    for at in range(size + 1):
        depth += forbidden[at]
        allowed.append(depth == 0)
    return allowed


def newest(
    allowed: Sequence[bool],
    limits: Sequence[tuple[Callable[[int], int], int]],
    *,
    leading: int = 0,
    at_latest: int | None = None,
) -> int:
    """The first position of the newest part that fits all limits, counting ``leading`` items too.

    ``limits`` are pairs of the cost of one position and the most that all may cost. What is at or
    after ``at_latest`` stays, whatever it costs."""
    size = len(allowed) - 1
    left = [most - sum(cost(at) for at in range(leading)) for cost, most in limits]
    best = size if at_latest is None else at_latest
    for at in range(size - 1, leading - 1, -1):
        for n, (cost, _) in enumerate(limits):
            left[n] -= cost(at)
        if any(rest < 0 for rest in left):
            break
        if allowed[at]:
            best = min(best, at)
    return best


def newest_pair(
    history: Sequence[Sequence[Item]], allowed: Sequence[bool], first: int = 0
) -> int | None:
    """Where the newest calls of the current turn begin: trimming keeps them and everything after
    them, whatever that costs. None if the turn has no calls.

    The current turn begins with the last message from outside. ``first`` is the first position
    that may go."""
    for at in range(len(history) - 1, first - 1, -1):
        parts = {item.part for item in history[at]}
        if not parts.isdisjoint(_PAIR):
            return next((before for before in range(at, first, -1) if allowed[before]), first)
        if Part.INPUT in parts:
            return None
    return None
