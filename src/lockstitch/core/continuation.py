"""What to send next: decided from the ledger, and proven whole before it is returned.

The provider has everything through its position; what lies after it is sent. Nothing is compared
and nothing is remembered as sent, so nothing can be dropped or sent twice. Rewriting what was
planned, and histories that a client resends, are in `lockstitch.ledgers`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lockstitch.core import rules
from lockstitch.core.arranging import Sending, arranged, context, runs, sent_parts, travelling
from lockstitch.core.calls import Call
from lockstitch.core.exchanges import Exchange, Standing
from lockstitch.core.facts import START, Mode, Seq
from lockstitch.core.findings import Finding
from lockstitch.core.items import Item
from lockstitch.core.ledger import Ledger
from lockstitch.core.links import Adoption, Beginning, Compaction, Link, Said, back
from lockstitch.core.pairing import Pairing, answered, read_through

# Bound once: looking a member up in its enum costs more than what is asked of it here.
_CONVERSATION, _FULL = Mode.CONVERSATION, Mode.FULL
_ACCEPTED, _LOST = Standing.ACCEPTED, Standing.LOST


class Why(Enum):
    """Why everything is sent."""

    START = "the provider has nothing yet"
    FULL_INPUT = "everything is sent every time"
    ANCHOR_LOST = "the provider no longer has what came before"
    BRANCHED = "the provider's conversation went another way"
    COMPACTED = "a new chain begins"


class Reason(Enum):
    """Why nothing can be sent."""

    NOTHING_NEW = "nothing was said since the last answer; add an item first"
    STILL_ANSWERING = "an answer is still coming; end it, or record that it was cut"
    IN_FLIGHT = "a request to this conversation is under way; record what becomes of it first"
    UNKNOWN_CHAIN = "the provider lost a chain of which this ledger never saw the beginning"
    NOT_WHOLE = "a call would have no output, or an output no call"


class Continue(Struct, frozen=True, kw_only=True):
    """Send these items behind this anchor."""

    mode: Mode
    anchor: str
    """The response id, or the conversation id."""
    base: Seq
    tip: Seq
    items: tuple[Sending, ...]


class Replay(Struct, frozen=True, kw_only=True):
    """Send everything: what `base` left, then these items. In conversation mode: to a new
    conversation, or to the empty one that was named."""

    mode: Mode
    why: Why
    base: Seq
    tip: Seq
    items: tuple[Sending, ...]
    anchor: str | None = None
    """An empty conversation of the provider, where one was named."""

    def before(self, ledger: Ledger) -> list[Sending]:
        """What goes before the items."""
        return travelling(ledger, context(ledger, self.base))


class SettleFirst(Struct, frozen=True):
    """These calls have no output: settle them, then plan again."""

    calls: tuple[Call, ...]

    def __str__(self) -> str:
        count = len(self.calls)
        named = ", ".join(call.named for call in self.calls)
        return f"{count} call{'s have' if count > 1 else ' has'} no output: {named}. Settle first."


class ReadBack(Struct, frozen=True, kw_only=True):
    """A request to this conversation was lost: list its items behind ``after`` (all of them, if
    that is None), and record with `facts.found` what is there. Then plan again."""

    conversation: str
    request: Seq
    after: str | None


class Refuse(Struct, frozen=True, kw_only=True):
    """Nothing can be sent, and why."""

    reason: Reason
    findings: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        found = "; ".join(finding.message for finding in self.findings)
        return f"{self.reason.value}{': ' if found else ''}{found}"


Plan: TypeAlias = Continue | Replay | SettleFirst | ReadBack | Refuse


def plan(
    ledger: Ledger, mode: Mode, *, tip: Seq | None = None, conversation: str | None = None
) -> Plan:
    """What to send next, from ``tip``; ``conversation`` names the provider's, in that mode."""
    tip = ledger.tip if tip is None else ledger.link(tip).seq
    if mode is not _CONVERSATION:
        conversation = None
    if conversation is not None:
        last = ledger.last_in.get(conversation)
        if last is not None and last.standing is _LOST and not last.passed:
            return _read_back(ledger, conversation, last)
        if last is not None and last.in_flight:
            return Refuse(reason=Reason.IN_FLIGHT)
    going_on = _going_on(ledger, mode, tip, conversation)
    if going_on is not None:
        return going_on
    tail, base, restarted = _since(ledger, tip)
    for link in tail:
        if isinstance(link, Exchange) and link.in_flight:
            return Refuse(reason=Reason.STILL_ANSWERING)
    found = arranged(tail, base if isinstance(base, Exchange) else None)
    if found.unsettled:
        return SettleFirst(tuple(found.unsettled))
    if not found.entries:
        return Refuse(reason=Reason.NOTHING_NEW)
    on = _Ground(ledger, mode, conversation, tip, base, restarted)
    anchor = None if base is None else _anchor(ledger, mode, conversation, base)
    if base is None or anchor is None:
        return _replayed(on, found.entries)
    held = base.open if isinstance(base, Exchange) else ()
    items = tuple(travelling(ledger, found.entries, held))
    going_on = Continue(mode=mode, anchor=anchor, base=base.seq, tip=tip, items=items)
    return _unproven(on, items, behind=base) or going_on


def _going_on(ledger: Ledger, mode: Mode, tip: Seq, conversation: str | None) -> Continue | None:
    """The plan of most turns: since the last answer there are the outputs of its calls, and
    nothing else. None: a longer look is needed, which would have come to the same."""
    if ledger.shadowed or ledger.provider_runs_calls:
        return None
    given: list[Seq] = []
    """The outputs that came as items."""
    base = ledger.links[tip]
    while type(base) is Said and base.answers:
        given.append(base.seq)
        base = ledger.links[base.parent]
    if type(base) is not Exchange or base.standing is not _ACCEPTED:
        return None
    anchor = _anchor(ledger, mode, conversation, base)
    if anchor is None:
        return None
    calls: list[Item] = []
    outputs: list[Sequence[Item]] = []
    items: list[Sending] = []
    for call in base.open:
        output = call.output
        if output is None:
            return None
        calls.append(call.item)
        if output not in given:
            outputs.append(ledger.parts[output])
            items.append(Sending(output))
    for output in reversed(given):
        outputs.append(ledger.parts[output])
        items.append(Sending(output))
    if not items or not answered(calls, outputs):
        return None
    return Continue(mode=mode, anchor=anchor, base=base.seq, tip=tip, items=tuple(items))


def _since(ledger: Ledger, tip: Seq) -> tuple[list[Link], Exchange | Adoption | None, bool]:
    """What lies behind the last thing that the provider has, oldest first; that thing, if there
    is any; and whether a new chain begins between them."""
    tail: list[Link] = []
    link = ledger.links[tip]
    while not isinstance(link, Compaction):
        if isinstance(link, Adoption) or (
            isinstance(link, Exchange) and link.standing is _ACCEPTED
        ):
            return tail[::-1], link, False
        if isinstance(link, Beginning):
            return tail[::-1], None, False
        tail.append(link)
        link = ledger.links[link.parent]
    return _since_compaction(ledger, tip)


def _since_compaction(
    ledger: Ledger, tip: Seq
) -> tuple[list[Link], Exchange | Adoption | None, bool]:
    """The same, where a compaction is on the way: it stands before what it kept."""
    tail: list[Link] = []
    restarted = False
    for link, restarted in back(ledger.links, tip):
        if isinstance(link, Adoption):
            return tail[::-1], link, restarted
        if isinstance(link, Exchange) and link.standing is _ACCEPTED and not restarted:
            return tail[::-1], link, restarted
        tail.append(link)
    return tail[::-1], None, restarted


class _Ground(Struct, frozen=True, gc=False):
    """What a plan stands on."""

    ledger: Ledger
    mode: Mode
    conversation: str | None
    tip: Seq
    base: Exchange | Adoption | None
    restarted: bool


def _replayed(on: _Ground, entries: Sequence[Seq]) -> Plan:
    """Everything is sent, where there is nothing to go on from."""
    base = on.base
    if isinstance(base, Adoption) or (base is not None and base.adopted):
        return Refuse(reason=Reason.UNKNOWN_CHAIN)
    why = _why(on)
    items = tuple(travelling(on.ledger, entries))
    whole = Replay(
        mode=on.mode,
        why=why,
        base=START if base is None else base.seq,
        tip=on.tip,
        items=items,
        anchor=None if _is_known(on) else on.conversation,
    )
    if why is Why.FULL_INPUT and not any(sending.rekeyed for sending in items):
        # What came before was proven when it was sent, and has not changed since.
        return _unproven(on, items, behind=base) or whole
    return _unproven(on, [*whole.before(on.ledger), *items]) or whole


def _is_known(on: _Ground) -> bool:
    """May the provider's conversation hold anything?"""
    named, ledger = on.conversation, on.ledger
    last = ledger.last_in.get(named or "")
    return (
        named in ledger.positions
        or named in ledger.lost_anchors
        or named == ledger.adopted_anchor
        or (last is not None and last.standing is _LOST)
    )


def _anchor(
    ledger: Ledger, mode: Mode, conversation: str | None, base: Exchange | Adoption
) -> str | None:
    """What the provider can continue from, if it has that."""
    if mode is _FULL:
        return None
    if isinstance(base, Adoption):
        known = base.anchor if base.mode is mode else None
        if mode is _CONVERSATION and (known != conversation or known in ledger.positions):
            return None
    elif mode is _CONVERSATION:
        there = conversation is not None and ledger.positions.get(conversation) is base
        known = conversation if there else None
    else:
        known = base.id
    return known if known not in ledger.lost_anchors else None


def _why(on: _Ground) -> Why:
    if on.mode is _FULL:
        return Why.FULL_INPUT
    if on.restarted:
        return Why.COMPACTED
    if on.mode is _CONVERSATION and on.conversation not in on.ledger.lost_anchors:
        return Why.BRANCHED if _is_known(on) else Why.START
    return Why.START if on.base is None else Why.ANCHOR_LOST


def _read_back(ledger: Ledger, conversation: str, lost: Exchange) -> ReadBack:
    return ReadBack(conversation=conversation, request=lost.seq, after=listed(ledger, lost).after)


class Listed(Struct, frozen=True):
    """What a listing of a conversation holds, behind the last item of which the id is known."""

    after: str | None
    known: tuple[Sending, ...]
    """These in any case,"""
    sent: tuple[Sending, ...]
    """and these if the lost request arrived."""


def listed(ledger: Ledger, lost: Exchange) -> Listed:
    """What to expect of the conversation that a lost request went to."""
    known: list[Sending] = []
    sent = _as_sent(ledger, lost)
    base = ledger.links[lost.base]
    while isinstance(base, Exchange) and base.anchor == lost.anchor:
        for seq in reversed(base.said):
            item = ledger.parts[seq][0]
            after = item.id or item.joining_id
            if after is not None:
                return Listed(after, tuple(known), tuple(sent))
            known.insert(0, Sending(seq))
        known[:0] = _as_sent(ledger, base)
        base = ledger.links[base.base]
    if isinstance(base, Adoption):
        return Listed(base.last_item, tuple(known), tuple(sent))
    before = travelling(ledger, context(ledger, base.seq))
    if known:
        return Listed(None, (*before, *known), tuple(sent))
    return Listed(None, (), (*before, *sent))  # the first request brings everything with it


def _as_sent(ledger: Ledger, exchange: Exchange) -> list[Sending]:
    base = ledger.links[exchange.base]
    if isinstance(base, Exchange) and base.anchor == exchange.anchor:
        return travelling(ledger, exchange.sent, base.open)
    return travelling(ledger, exchange.sent)


def _unproven(
    on: _Ground, items: Sequence[Sending], *, behind: Exchange | Adoption | None = None
) -> Plan | None:
    """What is wrong with these items behind what an exchange left, as a plan; None if nothing."""
    ledger = on.ledger
    if not items:
        return Refuse(reason=Reason.NOTHING_NEW)
    findings = prove(ledger, behind, [sent_parts(ledger, sending) for sending in items])
    if not findings:
        return None
    if all(finding.rule in rules.OPEN_CALL for finding in findings):
        calls = [ledger.call(finding.key or "", at=on.tip) for finding in findings]
        if all(calls):
            return SettleFirst(tuple(call for call in calls if call is not None))
    return Refuse(reason=Reason.NOT_WHOLE, findings=tuple(findings))


def prove(
    ledger: Ledger, base: Exchange | Adoption | None, items: Sequence[Sequence[Item]]
) -> list[Finding]:
    """What would be wrong with the context that these core items make behind ``base``."""
    if isinstance(base, Exchange) and answered([call.item for call in base.open], items):
        return []
    start = Pairing(ledger.reading.order)
    pairing, _ = read_through(start, lambda one: _feed(ledger, one, base, items))
    return pairing.finish(anchored=isinstance(base, Adoption))


def _feed(
    ledger: Ledger,
    pairing: Pairing,
    base: Exchange | Adoption | None,
    items: Sequence[Sequence[Item]],
) -> None:
    at = entry = -1
    if isinstance(base, Exchange):
        for call in base.open:
            if call.seq != entry:  # calls of one message stand at one place
                entry = call.seq
                at += 1
            running = call.by_server and runs(ledger, call)
            pairing.wait_for(replace(call.item, lone=True) if running else call.item, at)
    for parts in items:
        at += 1
        for item in parts:
            pairing.add(item, at)
