"""The library's front door: check, mend and trim lists of wire items.

Lists of dictionaries in, the same out. Items that are not touched are the very objects that were
passed; objects of an SDK (anything with `model_dump`) are read as what they would send."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from lockstitch.core import mending, trimming
from lockstitch.core.errors import (
    CannotMend,
    CannotTrim,
    NotAHistory,
    NotEvidence,
    UnknownPolicy,
)
from lockstitch.core.findings import Finding
from lockstitch.core.items import Part
from lockstitch.core.mending import Edit, Policy
from lockstitch.core.outcomes import Evidence, Outcome
from lockstitch.core.pairing import Pairing
from lockstitch.dialects.base import Dialect, Wire, as_json
from lockstitch.dialects.detection import by_name, detect
from lockstitch.dialects.rewriting import rewrite_all

BYTES_PER_TOKEN = 4
"""The usual rule of thumb for English and code, where the caller passes no counting function."""

LISTS = ("input", "messages", "items")
"""Where the body of a request, or a context, has its history."""


class Mended(list[Any]):
    """A mended history: a list of wire items, with what was done to it."""

    edits: list[Edit]
    removed: list[Any]
    """Items that were removed or written over, as they were."""

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
    """What is wrong with a history; an empty list if a provider will take it.

    ``anchored``: the items are a delta behind `previous_response_id` or a conversation, where an
    output without its call is right. ``evidence``: what you know of calls, by call id."""
    history = _wires(_listed(items))
    _know(evidence)
    return check_wires(_dialect(history, dialect), history, anchored=anchored, evidence=evidence)


def mend(
    items: Iterable[Any],
    *,
    dialect: str | None = None,
    anchored: bool = False,
    policy: Policy | None = None,
    evidence: Mapping[str, Evidence] | None = None,
) -> Mended:
    """A history that checks clean, made from this one; see `Policy` for what it may do.

    The list that is returned also has `edits` and `removed`. Mending what is whole changes
    nothing. Raises `CannotMend`, having changed nothing, if the result would not be whole."""
    originals = _listed(items)
    history = _wires(originals)
    _know(evidence)
    if not isinstance(policy, Policy | None):
        raise UnknownPolicy(f"policy is a {_kind(policy)}. Pass a Policy: Policy(keep='last').")
    chosen = _dialect(history, dialect)
    mended = Mended()
    mended.edits = []
    mended.removed = []
    current: list[Any] = originals
    for _ in range(mending.MOST_ROUNDS):
        findings = check_wires(chosen, history, anchored=anchored, evidence=evidence)
        edits = mending.plan(findings, policy, evidence=evidence)
        if not edits:
            break
        history, origins, removed = rewrite_all(chosen, history, edits)
        current = [
            wire if origin is None else current[origin]
            for wire, origin in zip(history, origins, strict=True)
        ]
        mended.edits += edits
        mended.removed += [wire for _, wire in removed]
    else:
        left = "; ".join(str(finding) for finding in findings[:3])
        raise CannotMend(
            f"Still not whole after {mending.MOST_ROUNDS} rounds of mending: {left}. "
            "Nothing was changed. Please report this history."
        )
    mended += current
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
    """The newest part of a history within the limits, cut where nothing is torn apart.

    ``count`` gives the tokens of one item; without it, a token is taken to be 4 bytes of JSON.
    ``keep_leading`` keeps the system and developer items at the start, within the limits; raises
    `CannotTrim` if they alone do not fit, or if a limit is below 0. The result is empty when even
    the newest whole part is larger than a limit: look before you send it."""
    originals = _listed(items)
    history = _wires(originals)
    chosen = _dialect(history, dialect)
    core = [chosen.read(wire) for wire in history]
    allowed = trimming.cut_points(core)
    leading = _leading(history) if keep_leading else 0
    for at in range(len(history)):
        if allowed[at] and at > leading and not chosen.may_begin(core[at]):
            allowed[at] = False

    def size(at: int) -> int:
        return len(as_json(history[at]))

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
    first = trimming.newest(allowed, limits, leading=leading)
    return originals[:leading] + originals[first:]


def _leading(history: Sequence[Wire]) -> int:
    for at, wire in enumerate(history):
        if (
            wire.get("role") not in ("system", "developer")
            or wire.get("type", "message") != "message"
        ):
            return at
    return len(history)


def check_wires(
    dialect: Dialect,
    history: Sequence[Any],
    *,
    anchored: bool = False,
    evidence: Mapping[str, Evidence] | None = None,
) -> list[Finding]:
    """`check` for wire items of a known dialect; what is no dictionary is passed over."""
    pairing = Pairing(dialect.order, read=lambda known, at: cast("Evidence", known))
    _feed(pairing, dialect, history, evidence)
    watching = pairing.again()
    if watching is not None:
        pairing = watching
        _feed(pairing, dialect, history, evidence)
    return pairing.finish(anchored=anchored)


def _feed(
    pairing: Pairing,
    dialect: Dialect,
    history: Sequence[Any],
    evidence: Mapping[str, Evidence] | None,
) -> None:
    for at, wire in enumerate(history):
        for item in dialect.read(wire) if isinstance(wire, dict) else ():
            pairing.add(item, at)
            if evidence and item.part is Part.CALL and item.key is not None:
                known = evidence.get(item.key)
                if known is not None:
                    pairing.witness(item.key, known, at)


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
                'Say it so: Evidence(Outcome.FINISHED, "finished", "what the tool gave back").'
            )
        if not isinstance(known.outcome, Outcome):
            names = ", ".join(f"Outcome.{one.name}" for one in Outcome)
            raise NotEvidence(
                f"The outcome of {call_id} is a {_kind(known.outcome)}. Choose one of: {names}."
            )
        if not isinstance(known.text, str):
            raise NotEvidence(
                f"The text of the evidence of {call_id} is a {_kind(known.text)}. "
                "Pass what the tool gave back as a str, such as JSON."
            )


def _kind(given: object) -> str:
    return type(given).__name__


def _wires(items: list[Any]) -> list[Wire]:
    return [_wire(item, n) for n, item in enumerate(items)]


def _wire(item: Any, n: int) -> Wire:
    """What an item would be on the wire; the very object, where it is a dictionary throughout."""
    if isinstance(item, dict):
        return _plain_inside(item)
    if isinstance(item, Mapping):
        return _plain_inside(dict(item))
    dumped = _dumped(item)
    if isinstance(dumped, dict):
        return dumped
    raise NotAHistory(
        f"Item {n} is a {_kind(item)}. A history holds dictionaries, or objects of an SDK "
        "that have model_dump()."
    )


def _plain_inside(item: Wire) -> Wire:
    """SDK objects also come inside dictionaries: blocks of a message, calls of an assistant."""
    for field in ("content", "tool_calls"):
        inner = item.get(field)
        if isinstance(inner, list | tuple) and any(hasattr(one, "model_dump") for one in inner):
            item = {**item, field: [_dumped(one) for one in inner]}
    return item


def _dumped(item: Any) -> Any:
    dump = getattr(item, "model_dump", None)
    return item if dump is None else dump(mode="json", exclude_unset=True)
