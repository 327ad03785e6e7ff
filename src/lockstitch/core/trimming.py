"""Trimming: where a history may be cut, and the newest part of it that fits.

A cut never splits a pair, a parallel group, or reasoning from what it led to; so the part that is
left has no finding that the whole did not have. Works on core items; `lockstitch.trim` is the
same for lists of wire items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part
from lockstitch.core.pairing import KEYLESS

_PAIR: Final = frozenset({Part.CALL, Part.OUTPUT})


class _Waiting:
    """A call that waits for its output, and the threads that it waits in: one for each key."""

    __slots__ = ("family", "threads")

    def __init__(self, family: Family | None) -> None:
        self.family = family
        self.threads: list[_Thread] = []


class _Thread:
    """The items under one key, since the last point where every pair under it was whole."""

    __slots__ = ("first", "tangled", "waiting")

    def __init__(self, first: int) -> None:
        self.first = first
        self.waiting: list[_Waiting] = []
        self.tangled = False

    @property
    def whole(self) -> bool:
        return not self.waiting and not self.tangled

    def ask(self, call: _Waiting) -> None:
        self.waiting.append(call)
        call.threads.append(self)

    def answer(self, output: Item) -> None:
        """Take the output of the first call that waits here."""
        call = self.waiting[0] if self.waiting else None
        if call and call.family and output.family and call.family.accepts(output.family):
            for thread in call.threads:
                thread.waiting.remove(call)
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
    for at, items in enumerate(history):
        for item in items:
            part = item.part
            if item.lone and item.key is None:
                # The server ran it, and nothing names it: only what directly follows is its own.
                if part is Part.OUTPUT and searching is not None:
                    together(searching, at)
                searching = at if part is Part.CALL else None
                continue
            keys = {key for key in (item.key, item.alias) if key is not None} or {KEYLESS}
            if part is Part.OUTPUT:
                for key in keys:
                    thread = threads.setdefault(key, _Thread(at))
                    together(thread.first, at)
                    if not thread.waiting and reference is not None:
                        together(reference, at)  # its call may be behind the reference
                    thread.answer(item)
                group = reasoning = None
            elif part is Part.CALL:
                waiting = _Waiting(item.family)
                if item.about is not None and item.about in threads:
                    together(threads[item.about].first, at)
                for key in keys:
                    thread = threads.setdefault(key, _Thread(at))
                    if thread.whole:
                        thread = threads[key] = _Thread(at)
                    together(thread.first, at)
                    thread.ask(waiting)
                if group is not None:
                    together(group, at)
                else:
                    group = at
            elif part is Part.REASONING:
                reasoning = at if reasoning is None else reasoning
            elif part is Part.INPUT:
                group = reasoning = None
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
