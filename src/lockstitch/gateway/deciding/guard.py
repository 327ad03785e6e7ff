"""The inbound guard: what is wrong with what a client sent, and what goes on instead.

A history that carries everything is judged and mended whole. A delta is judged as far as its
anchor is known: against the calls that wait behind it, where the journal has the chain; for
nothing that the anchor might explain, where it does not, and then it is never changed. Evidence
comes before synthesis (`evidence`). Nothing is sent here, and nothing is looked up."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lockstitch.core import mending, rules
from lockstitch.core.errors import CannotMend
from lockstitch.core.findings import Finding
from lockstitch.core.items import Item, Place
from lockstitch.core.mending import Edit, Settle
from lockstitch.dialects import by_name
from lockstitch.dialects.base import Dialect, Wire
from lockstitch.dialects.examination import examine
from lockstitch.dialects.rewriting import rewrite_all
from lockstitch.gateway.deciding.evidence import NOTHING, Seen, answering, parts_of


class Guarding(Enum):
    """What the guard does with what it finds."""

    OFF = "off"
    REPORT = "report"
    MEND = "mend"
    REFUSE = "refuse"


class Guarded(Struct, frozen=True, kw_only=True):
    """What the guard found, and what it made of it."""

    findings: tuple[Finding, ...] = ()
    """In the request as it came. Places are positions in it; what waits behind the anchor has
    negative ones."""
    items: list[Wire] | None = None
    """What goes on instead; None if the request goes on as it came."""
    origins: list[int | None] | None = None
    """For each of these items the position at which it stood; None if it is new or changed."""
    refused: tuple[Finding, ...] = ()
    """What the request is refused for."""


UNTOUCHED: Final = Guarded()

HARMLESS: Final = frozenset({rules.CONTRADICTED})
"""What no provider rejects. A request with nothing else wrong passes unchanged."""


def guarded(
    items: Sequence[Any],
    *,
    mode: Guarding,
    dialect: str = "responses",
    anchored: bool = False,
    open_calls: Sequence[Item] | None = None,
    evidence: Seen = NOTHING,
) -> Guarded:
    """Judge what a client sent, and mend or refuse it as the mode says.

    ``anchored``: it is a delta. ``open_calls``: the calls that wait for their outputs behind its
    anchor, in order, where the journal knows the chain; None where it does not."""
    if mode is Guarding.OFF:
        return UNTOUCHED
    chosen = by_name(dialect)
    behind = tuple(open_calls or ()) if anchored else ()
    unknown = anchored and open_calls is None
    found = _findings(chosen, items, behind, unknown=unknown, evidence=evidence)
    if not found:
        return UNTOUCHED
    findings = _shifted(found, len(behind))
    if mode is Guarding.REFUSE:
        refused = tuple(finding for finding in findings if finding.rule not in HARMLESS)
        return Guarded(findings=findings, refused=refused)
    # A delta whose beginning is unknown passes unchanged, and so does what a provider accepts.
    accepted = all(finding.rule in HARMLESS for finding in findings)
    if mode is Guarding.REPORT or unknown or accepted:
        return Guarded(findings=findings)
    return _mended(chosen, items, behind, found, evidence)


def _mended(
    dialect: Dialect,
    items: Sequence[Any],
    behind: Sequence[Item],
    found: list[Finding],
    evidence: Seen,
) -> Guarded:
    """Mend the items of a request after calls that stand where nothing can be changed."""
    first = len(behind)
    # Only places are needed of what the anchor holds: the rewriter puts outputs behind them.
    start = _Round([{} for _ in behind] + list(items), list(range(-first, len(items))), found)
    writing = answering(dialect, evidence)
    unchanged = Guarded(findings=_shifted(found, first))

    def step(now: _Round) -> _Round | None:
        planned = mending.plan(now.found, evidence=evidence.evidence)
        if not planned or any(_changes_before(edit, first) for edit in planned):
            return None  # nothing to do, or the provider has it, and we cannot change it there
        written, sources, _ = rewrite_all(writing, now.history, planned)
        # An output may have been put between two calls of the anchor: it goes behind them all.
        mine = [n for n, source in enumerate(sources) if source is None or source >= first]
        history = now.history[:first] + [written[n] for n in mine]
        origins = now.origins[:first] + [_origin(now.origins, sources[n]) for n in mine]
        left = _findings(dialect, history[first:], behind, unknown=False, evidence=evidence)
        return _Round(history, origins, left)

    try:
        last = mending.in_rounds(start, step, lambda now: now.found)
    except CannotMend:
        return unchanged  # the provider decides
    if last.found or len(last.history) == first:
        return unchanged  # the same, where everything would go
    return Guarded(
        findings=unchanged.findings, items=last.history[first:], origins=last.origins[first:]
    )


class _Round(NamedTuple):
    """A history between two rounds of mending."""

    history: list[Wire]
    origins: list[int | None]
    found: list[Finding]


def _origin(origins: Sequence[int | None], source: int | None) -> int | None:
    return None if source is None else origins[source]


def _changes_before(edit: Edit, first: int) -> bool:
    return not isinstance(edit, Settle) and edit.place.at < first


def _findings(
    dialect: Dialect,
    items: Sequence[Any],
    behind: Sequence[Item],
    *,
    unknown: bool,
    evidence: Seen,
) -> list[Finding]:
    """What is wrong, with places that count what is behind the anchor from 0."""
    read = partial(parts_of, dialect)
    examination = examine(dialect, items, behind=behind, evidence=evidence.evidence, read=read)
    return examination.finish(anchored=unknown)


def _shifted(findings: Sequence[Finding], first: int) -> tuple[Finding, ...]:
    """Findings with the places that the client knows."""
    if not first:
        return tuple(findings)

    def moved(place: Place | None) -> Place | None:
        return None if place is None else Place(place.at - first, place.slot)

    return tuple(
        replace(
            finding,
            place=Place(finding.place.at - first, finding.place.slot),
            other=moved(finding.other),
            answer=moved(finding.answer),
            after=moved(finding.after),
            into=None if finding.into is None else finding.into - first,
        )
        for finding in findings
    )
