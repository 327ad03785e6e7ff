"""Check, mend and trim lists of wire items: the functions `lockstitch.check`, `mend` and `trim`.

Lists of dictionaries or of an SDK's message objects in, the same out. Items that are not touched
are the very objects that were passed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lockstitch.core import mending, trimming
from lockstitch.core.errors import (
    CannotMend,
    CannotTrim,
    NotAHistory,
    NotAnItem,
    NotEvidence,
    UnknownPolicy,
)
from lockstitch.core.findings import Finding
from lockstitch.core.mending import Edit, Policy
from lockstitch.core.outcomes import Evidence, Outcome
from lockstitch.dialects.base import Dialect, Wire, as_json
from lockstitch.dialects.detection import DIALECTS, by_name, detect
from lockstitch.dialects.examination import NOTHING_RECOGNISED, Examination, examine
from lockstitch.dialects.rewriting import rewrite_sources
from lockstitch.objects.sdks import objects_of, sdk_of, wire_of

BYTES_PER_TOKEN = 4
"""The usual rule of thumb for English and code, where the caller passes no counting function."""

LISTS = ("input", "messages", "items", "contents")
"""Where the body of a request, or a context, has its history."""


class Mended(list[Any]):
    """A mended history: a list of wire items, with what was done to it."""

    edits: list[Edit]
    removed: list[Any]
    """Items that were removed or written over, as they were: a part of a message, or all of a
    message that went with its last part."""

    @property
    def changed(self) -> bool:
        return bool(self.edits)


def check(
    items: Iterable[Any],
    *,
    dialect: str | None = None,
    anchored: bool = False,
    evidence: Mapping[str, Evidence] | None = None,
) -> list[Finding]:
    """Find what is wrong with a history. An empty list means that every item was understood and a
    provider will accept it.

    Raises `NotAHistory` if an item looks like a tool call or result and could not be read as one,
    or if no item is of a known format. Other unknown items are allowed. ``anchored``: the items
    continue a `previous_response_id` or a conversation, so an output may come without its call.
    ``evidence``: what you know about calls, by call id."""
    history = _wires(_listed(items))
    _know(evidence)
    chosen = _dialect(history, dialect)
    return _understood(examine(chosen, history, evidence=evidence)).finish(anchored=anchored)


class _Round(NamedTuple):
    """A history between two rounds of mending."""

    history: list[Wire]
    current: list[Any]
    """The same as the caller passed it, where nothing changed it."""
    sources: list[Any]
    """What the caller passed, also where it was changed; None for what is new."""


def mend(
    items: Iterable[Any],
    *,
    dialect: str | None = None,
    anchored: bool = False,
    policy: Policy | None = None,
    evidence: Mapping[str, Evidence] | None = None,
) -> Mended:
    """Return a history that checks clean, made from this one; see `Policy` for what it may do.

    The returned list also has `edits` and `removed`. A valid history is returned unchanged. Raises
    `NotAHistory` as `check` does, and `CannotMend` if the result would not be valid, or would only
    have items of no known format; nothing was changed then."""
    originals = _listed(items)
    _know(evidence)
    if not isinstance(policy, Policy | None):
        raise UnknownPolicy(f"policy is a {_kind(policy)}. Pass a Policy: Policy(keep='last').")
    start = _Round(_wires(originals), originals, originals)
    chosen = _dialect(start.history, dialect)
    sdk = next((found for found in map(sdk_of, originals) if found is not None), None)
    mended = Mended()
    mended.edits = []
    mended.removed = []

    def findings(now: _Round) -> list[Finding]:
        examination = examine(chosen, now.history, evidence=evidence)
        if now is start:
            _understood(examination)
        elif examination.records and not examination.recognised:
            raise CannotMend(
                "Only items of no known format would be left: the others are outputs without calls."
                " Nothing was changed. If they continue a previous_response_id or a conversation,"
                " pass anchored=True."
            )
        return examination.finish(anchored=anchored)

    def step(now: _Round) -> _Round | None:
        edits = mending.plan(findings(now), policy, evidence=evidence)
        if not edits:
            return None
        history, origins, removed = rewrite_sources(chosen, now.history, edits)
        mended.edits += edits
        mended.removed += [wire for _, wire in removed]
        kept = [
            wire if at is None or wire is not now.history[at] else now.current[at]
            for wire, at in zip(history, origins, strict=True)
        ]
        return _Round(history, kept, [None if at is None else now.sources[at] for at in origins])

    done = mending.in_rounds(start, step, findings)
    mended += done.current
    if sdk is not None:
        mended[:] = objects_of(sdk, mended, done.sources, start.history, originals)
    return mended


def trim(
    items: Iterable[Any],
    *,
    max_items: int | None = None,
    max_bytes: int | None = None,
    max_tokens: int | None = None,
    count: Callable[[Any], int] | None = None,
    keep_leading: bool = False,
    dialect: str | None = None,
) -> list[Any]:
    """Return the newest part of a history that fits the limits, without splitting a pair.

    The newest calls of the current turn always stay, with their outputs and everything after them,
    even if they are larger than a limit. Without such calls the result is empty when even the last
    item does not fit. If only items of no known format fit, they are returned, and `check` refuses
    them. ``count`` gives the tokens of one item; without it, a token is taken to be 4 bytes of
    JSON. ``keep_leading`` keeps the system and developer items at the start, within the limits.
    Raises `NotAHistory` as `check` does, and `CannotTrim` if a limit is below 0 or the leading
    items alone do not fit."""
    originals = _listed(items)
    history = _wires(originals)
    chosen = _dialect(history, dialect)
    _understood(examine(chosen, history))
    core = [chosen.read(wire) for wire in history]
    allowed = trimming.cut_points(core)
    leading = _leading(chosen, history) if keep_leading else 0
    for at in range(len(history)):
        if allowed[at] and at > leading and not chosen.may_begin(core[at]):
            allowed[at] = False

    def size(at: int) -> int:
        return _size(history[at])

    def tokens(at: int) -> int:
        return count(originals[at]) if count else -(-size(at) // BYTES_PER_TOKEN)

    limits: list[tuple[Callable[[int], int], int]] = []
    if max_items is not None:
        limits.append((lambda at: 1, max_items))
    if max_bytes is not None:
        limits.append((size, max_bytes))
    if max_tokens is not None:
        limits.append((tokens, max_tokens))
    for cost, most in limits:
        if most < 0:
            raise CannotTrim(
                f"A limit is {most}. It says how much may stay, and cannot be below 0."
            )
        needed = sum(cost(at) for at in range(leading))
        if leading and needed > most:
            raise CannotTrim(
                f"The {leading} leading system and developer items alone take {needed}, and the "
                f"limit is {most}. Raise the limit, or pass keep_leading=False."
            )
    kept = trimming.newest_pair(core, allowed, leading)
    first = trimming.newest(allowed, limits, leading=leading, at_latest=kept)
    return originals[:leading] + originals[first:]


def _size(wire: Wire) -> int:
    """The bytes of an item as JSON. Objects of a program, which are never sent, count as text."""
    try:
        return len(as_json(wire))
    except (TypeError, NotAnItem):
        return len(json.dumps(wire, default=repr))


def _leading(dialect: Dialect, history: Sequence[Wire]) -> int:
    for at, wire in enumerate(history):
        if not dialect.leads(wire):
            return at
    return len(history)


def _understood(examination: Examination) -> Examination:
    """Raises `NotAHistory` unless every item that looks like a call or an output was read as
    one."""
    if examination.unread is not None:
        raise NotAHistory(
            f"{examination.unread.say(f'Item {examination.unread.place.at}')} {_formats()}"
        )
    if examination.records and not examination.recognised:
        raise NotAHistory(f"Not a history: {NOTHING_RECOGNISED} {_formats()}")
    return examination


def _formats() -> str:
    return f"Known formats: {', '.join(DIALECTS)}. Pass dialect= to choose one."


def _dialect(history: Sequence[Wire], name: str | None) -> Dialect:
    return detect(history) if name is None else by_name(name)


def _listed(items: object) -> list[Any]:
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise NotAHistory(
            f"Expected a list of items or messages, got {_kind(items)}. {_rather_than(items)}"
        )
    return list(items)


def _rather_than(given: object) -> str:
    """What to pass instead of something that is no history."""
    if isinstance(given, str | bytes):
        return "For a file, use the command line: lockstitch check PATH."
    inside = [name for name in LISTS if isinstance(given, Mapping) and name in given]
    return f"Pass the list in it, under {inside[0]!r}." if inside else "Pass the list itself."


def _know(evidence: object) -> None:
    """Refuse what the rest would misread: a plain word is not one of the three outcomes."""
    if evidence is None:
        return
    if not isinstance(evidence, Mapping):
        raise NotEvidence(f"evidence is a {_kind(evidence)}. Pass a dictionary, by call id.")
    for call_id, known in evidence.items():
        if not isinstance(known, Evidence):
            raise NotEvidence(
                f"The evidence of {call_id} is a {_kind(known)}. "
                'Write: Evidence(Outcome.FINISHED, "finished", "what the tool returned").'
            )
        if not isinstance(known.outcome, Outcome):
            names = ", ".join(f"Outcome.{one.name}" for one in Outcome)
            raise NotEvidence(
                f"The outcome of {call_id} is a {_kind(known.outcome)}. Choose one of: {names}."
            )
        if not isinstance(known.text, str):
            raise NotEvidence(
                f"The text of the evidence of {call_id} is a {_kind(known.text)}. "
                "Pass what the tool returned as a str, such as JSON."
            )


def _kind(given: object) -> str:
    return type(given).__name__


def _wires(items: list[Any]) -> list[Wire]:
    return [wire_of(item, n) for n, item in enumerate(items)]
