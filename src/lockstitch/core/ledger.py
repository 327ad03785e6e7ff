"""The ledger of one conversation: facts in, state derived.

`append` is the only way in. It checks everything, then changes everything. What can be asked is in
`known`, what to send next is decided in `continuation`, the tree is in `links`; `lockstitch.Ledger`
is this class with a dialect chosen by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from lockstitch.core.calls import LIFE, Call, Life, Step, id_of
from lockstitch.core.errors import IllegalFact
from lockstitch.core.exchanges import MOVE_OF_ENDING, STANDING, Exchange, Move, Standing
from lockstitch.core.facts import (
    START,
    AnchorAdopted,
    AnchorLost,
    AnyFact,
    By,
    CallSettled,
    CallStarted,
    Ending,
    ItemAdded,
    ItemCompleted,
    ItemsRemoved,
    Mode,
    Noted,
    Opened,
    Removal,
    RequestAccepted,
    RequestLost,
    RequestPrepared,
    RequestRejected,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
    Seq,
)
from lockstitch.core.items import Item, Part
from lockstitch.core.known import Known, Reading, unsettled_of
from lockstitch.core.links import Adoption, Beginning, Compaction, Link, Said, back
from lockstitch.core.outcomes import Outcome

# Bound once: looking a member up in its enum costs more than what is asked of it here.
_CALL, _OUTPUT, _REASONING = Part.CALL, Part.OUTPUT, Part.REASONING
_COMPACTION = Part.COMPACTION
_START, _SETTLE, _DELIVER = Step.START, Step.SETTLE, Step.DELIVER
_SEND, _OPEN, _SAY, _END = Move.SEND, Move.OPEN, Move.SAY, Move.END
_SENT, _ANSWERING, _ACCEPTED = Standing.SENT, Standing.ANSWERING, Standing.ACCEPTED
_STARTED, _NEVER_STARTED = Life.STARTED, Outcome.NEVER_STARTED
_CONVERSATION, _INCOMPLETE = Mode.CONVERSATION, Ending.INCOMPLETE
_MODEL_SIDE = frozenset({Part.CALL, Part.REASONING, Part.MODEL})


class Ledger(Known):
    """An append-only sequence of facts, and everything that follows from them."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.append(Opened(dialect=reading.dialect))

    def append(self, fact: AnyFact) -> Seq:
        """Record ``fact``. A ledger that raised is exactly the ledger it was before.

        A fact must hold what its type says; whether it can have happened is checked here."""
        facts = self._facts
        seq = len(facts) + 1
        try:
            take = _TAKE[type(fact)]
        except KeyError:
            raise IllegalFact(f"{fact!r} is no fact that a ledger takes.") from None
        take(self, seq, fact)
        facts.append(fact)
        return seq

    def extend(self, facts: Iterable[AnyFact]) -> None:
        """Append each; stops at the first that is not legal, and keeps those before it."""
        for fact in facts:
            self.append(fact)

    # --- items ---------------------------------------------------------------------------------

    def _opened(self, seq: Seq, fact: Opened) -> None:
        if seq != 1:
            raise IllegalFact("A ledger is opened once, by its first fact.")
        if fact.dialect != self.reading.dialect:
            raise IllegalFact(
                f"The facts are of a ledger of {fact.dialect} items, and this one is of "
                f"{self.reading.dialect}."
            )

    def _item_added(self, seq: Seq, fact: ItemAdded) -> None:
        if fact.by is By.REWRITE:
            self.parts[seq] = self._read(fact.item)
            self._rewrites.add(seq)
            return
        parent = self.links.get(self.tip if fact.after is None else fact.after)
        if parent is None:
            raise IllegalFact(f"Entry {fact.after} is no link: nothing can follow it.")
        parts = self._read(fact.item)
        answers: list[Call] = []
        for item in parts:
            if item.part is _OUTPUT and item.key is not None:
                call = self._answered_on(parent.seq, item)
                if fact.by is By.TOOL and (call is None or not call.allows(_SETTLE)):
                    raise _not_waiting(item.key, call)
                if call is not None:
                    answers.append(call)
        calls = self._keep(seq, seq, parts)
        link = Said(seq, parent.seq, parent.depth + 1, calls, tuple(answers))
        for call in answers:
            if call.allows(_SETTLE):
                call.take(_SETTLE)
                call.output, call.outcome = seq, Outcome.FINISHED
        if answers:
            self._answered[seq] = link.answers
        if fact.by is By.TOOL and len(answers) == len(parts):
            return  # settled: it belongs to its calls, and is no link
        if _stays_behind(parts) or (parent.seq in self.shadowed and _is_of_the_model(parts)):
            self.shadowed.add(seq)
        self.links[seq] = link
        self.tip = seq

    def _answered_on(self, tip: Seq, output: Item) -> Call | None:
        """The call on this path that an output means: the newest under its key."""
        assert output.key is not None
        for call in reversed(self.calls_with_key(output.key)):
            if call.is_answered_by(output) and self.on_path(call.link, tip):
                return None if self._is_abandoned(call) else call
        return None

    def _is_abandoned(self, call: Call) -> bool:
        link = self.links[call.link]
        return isinstance(link, Exchange) and link.abandoned

    def _keep(self, seq: Seq, link: Seq, parts: Sequence[Item]) -> tuple[Call, ...]:
        """Keep the core items of an entry of this link, and announce the calls among them."""
        self.parts[seq] = parts
        calls: tuple[Call, ...] = ()
        for item in parts:
            key = item.key
            if item.part is _CALL and key is not None and not item.lone:
                call = self.calls[seq, item.slot] = Call(seq, link, item)
                calls += (call,)
                self._calls_by_key.setdefault(key, []).append(call)
                if item.alias is not None and item.alias != key:
                    self._calls_by_key.setdefault(item.alias, []).append(call)
                if item.family is not None and item.family.by_server:
                    self.provider_runs_calls = True
        return calls

    # --- calls ---------------------------------------------------------------------------------

    def _started(self, seq: Seq, fact: CallStarted) -> None:
        call, life = self._waiting(fact.call, fact.slot, _START)
        call.life = life

    def _settled(self, seq: Seq, fact: CallSettled) -> None:
        call, life = self._waiting(fact.call, fact.slot, _SETTLE)
        if fact.outcome is _NEVER_STARTED and call.life is _STARTED:
            # "Unknown" is never told as "did not run".
            raise IllegalFact(
                f"{call.named} was started: it cannot be settled as never started. Settle it "
                "with the outcome unknown, or with its output."
            )
        parts = self._read(fact.item)
        output = parts[0] if len(parts) == 1 else _only_output(parts)
        if output is None or not call.is_answered_by(output):
            raise IllegalFact(
                f"The item that settles {call.named} is not its output: a {call.output_type} with "
                "the id of the call, and no other output beside it."
            )
        self.parts[seq] = parts
        call.life, call.output, call.outcome = life, seq, fact.outcome
        self._answered[seq] = (call,)

    def _waiting(self, seq: Seq, slot: int, step: Step) -> tuple[Call, Life]:
        """The call at a place, if it may take this step, and where it stands then; nothing is
        changed."""
        call = self.calls.get((seq, slot))
        if call is None:
            raise IllegalFact(f"Entry {seq} holds no call{f' in slot {slot}' if slot else ''}.")
        life = LIFE[call.life].get(step)
        if life is None:
            raise _not_waiting(call.named, call)
        if self._is_abandoned(call):
            raise IllegalFact(
                f"{call.named} was made in an answer that broke off, and the conversation went on "
                "without it. It must not run any more."
            )
        return call, life

    # --- requests and their answers ------------------------------------------------------------

    def _prepared(self, seq: Seq, fact: RequestPrepared) -> None:
        parent = self.links.get(fact.covers)
        if parent is None:
            raise IllegalFact(f"Entry {fact.covers} is no link: no request can cover it.")
        base = self.links.get(fact.base)
        if isinstance(base, Exchange):
            if base.standing is not _ACCEPTED:
                raise IllegalFact(
                    f"Request {fact.base} is {base.standing.value}: only what the provider "
                    "accepted can be continued."
                )
            adopted = base.adopted
        elif isinstance(base, Beginning | Adoption):
            adopted = base.seq != START
        else:
            raise IllegalFact(f"Entry {fact.base} is no request: nothing can be based on it.")
        if base is not parent and not self.on_path(base.seq, parent.seq):
            raise IllegalFact(f"Request {fact.base} is not on the path to entry {fact.covers}.")
        for sent in fact.sent:
            if sent not in self.parts:
                raise IllegalFact(f"Entry {sent} holds no item: it cannot be sent.")
        if fact.anchor is not None:
            _check_text(fact.anchor)
        exchange = Exchange(
            seq, parent.seq, parent.depth + 1, fact.mode, fact.base, fact.sent, fact.anchor
        )
        if adopted:
            exchange.adopted = True
        if fact.mode is _CONVERSATION:
            if fact.anchor is None:
                raise IllegalFact("A request to a conversation names the conversation.")
            before = self.last_in.get(fact.anchor)
            if before is not None and (before.in_flight or before.standing is Standing.LOST):
                raise IllegalFact(
                    f"Request {before.seq} to conversation {fact.anchor} is "
                    f"{before.standing.value}: find out what became of it first."
                )
            self.last_in[fact.anchor] = exchange
            self.conversation = fact.anchor
        if self._rewrites:
            for sent in self._rewrites.intersection(fact.sent):
                self._answer_rewritten(sent, parent.seq)
        self.links[seq] = exchange
        self.tip = seq

    def _answer_rewritten(self, entry: Seq, tip: Seq) -> None:
        """An output that a filter wrote is the output of the call that it names."""
        outputs = (item for item in self.parts[entry] if item.part is _OUTPUT and item.key)
        calls = (self._answered_on(tip, item) for item in outputs)
        self._answered[entry] = tuple(call for call in calls if call is not None)

    def _move(self, seq: Seq, move: Move) -> Exchange:
        """The exchange, if it may move so; nothing is changed."""
        link = self.links.get(seq)
        if not isinstance(link, Exchange):
            raise IllegalFact(f"Entry {seq} is no request.")
        if link.passed and move not in _NEWS_OF_WHAT_WAS_PASSED:
            raise IllegalFact(
                f"Request {seq} was {link.standing.value} when the conversation went on: what is "
                "found of it now is of another branch, and not taken."
            )
        if move not in STANDING[link.standing]:
            raise IllegalFact(
                f"Request {seq} is {link.standing.value}: it cannot {move.value} now."
            )
        return link

    def _sent(self, seq: Seq, fact: RequestSent) -> None:
        exchange = self._move(fact.request, _SEND)
        if exchange.mode is _CONVERSATION and self.last_in[exchange.anchor or ""] is not exchange:
            raise IllegalFact(
                f"Another request to conversation {exchange.anchor} was prepared since. Send that "
                "one, or plan again."
            )
        exchange.standing = _SENT

    def _accepted(self, seq: Seq, fact: RequestAccepted) -> None:
        exchange = self._move(fact.request, Move.ACCEPT)
        self._accept(exchange)

    def _rejected(self, seq: Seq, fact: RequestRejected) -> None:
        self._move(fact.request, Move.REJECT).standing = Standing.REJECTED

    def _lost(self, seq: Seq, fact: RequestLost) -> None:
        self._move(fact.request, Move.LOSE).standing = Standing.LOST

    def _response_opened(self, seq: Seq, fact: ResponseOpened) -> None:
        exchange = self._move(fact.request, _OPEN)
        if exchange.id is not None and exchange.id != fact.id:
            raise IllegalFact(
                f"Request {fact.request} is answered by response {exchange.id}, not {fact.id}."
            )
        if fact.id is not None:
            _check_text(fact.id)
            if self._exchange_by_id.setdefault(fact.id, exchange) is not exchange:
                raise IllegalFact(f"Response {fact.id} answers another request already.")
        exchange.standing = _ANSWERING
        exchange.id = fact.id

    def _item_completed(self, seq: Seq, fact: ItemCompleted) -> None:
        exchange = self._move(fact.request, _SAY)
        parts = self._read(fact.item)
        exchange.calls += self._keep(seq, exchange.seq, parts)
        if exchange.shadowed:
            self.shadowed.add(seq)
        for item in parts:
            part = item.part
            if part is _OUTPUT and item.key is not None:
                self._answer_by_provider(exchange, seq, item)
            elif part is _REASONING and _stays_behind(parts):
                exchange.shadowed = True
            elif part is _COMPACTION:
                exchange.begins = len(exchange.said)
        exchange.said.append(seq)

    def _answer_by_provider(self, exchange: Exchange, seq: Seq, output: Item) -> None:
        """The provider ran a call, and its answer holds the output."""
        call = self._answered_on(exchange.seq, output)
        if call is None:
            return
        if call.link != exchange.seq:
            # It counts only where this answer does: on another branch the call still runs.
            exchange.answers = (*exchange.answers, call)
            exchange.answering = (*exchange.answering, seq)
            return
        if call.allows(_SETTLE):
            call.take(_SETTLE)
            call.take(_DELIVER)
            call.outcome = Outcome.FINISHED
        call.output = seq  # also where it was settled here before the answer was found
        self._answered[seq] = (*self._answered.get(seq, ()), call)

    def _response_ended(self, seq: Seq, fact: ResponseEnded) -> None:
        move = MOVE_OF_ENDING[fact.ending]
        exchange = self._move(fact.request, move)
        if move is _END:
            if fact.ending is _INCOMPLETE:
                exchange.ended_early = True
            self._accept(exchange)
        else:
            exchange.standing = STANDING[exchange.standing][move]

    def _accept(self, exchange: Exchange) -> None:
        """The provider has it: the position moves, and what was sent is delivered."""
        exchange.standing = _ACCEPTED
        for sent in exchange.sent:
            for call in self._answered.get(sent, ()):
                call.life = LIFE[call.life].get(_DELIVER, call.life)
        exchange.open = exchange.unanswered()
        if self.provider_runs_calls:
            exchange.open = (*self._still_running(exchange), *exchange.open)
        if exchange.begins is not None:
            self._begin_anew(exchange, exchange.said[exchange.begins])
        if exchange.mode is _CONVERSATION and exchange.anchor is not None:
            self.positions[exchange.anchor] = exchange
        if exchange.parent != exchange.base:
            self._pass_by(exchange)

    def _still_running(self, exchange: Exchange) -> list[Call]:
        """The calls before it that the provider runs itself, and may take more exchanges for."""
        base = self.links[exchange.base]
        if not isinstance(base, Exchange):
            return []
        running = [call for call in base.open if call.by_server and call.output is None]
        items = [item for entry in exchange.sent for item in self.parts[entry]]
        over = {id_of(call) for call in exchange.answers}
        over |= {id_of(c) for c in running for item in items if c.is_answered_by(item)}
        return [call for call in running if id_of(call) not in over]

    def _begin_anew(self, exchange: Exchange, compaction: Seq) -> None:
        """The provider dropped what was before its compaction, if no open call is there."""
        if all(call.seq > compaction for call in exchange.open):
            exchange.adopted = False
        else:
            exchange.begins = None

    def _pass_by(self, exchange: Exchange) -> None:
        """Answers before it that broke off are over: the conversation goes on from this one."""
        link = self.links[exchange.parent]
        while link.seq != exchange.base and not isinstance(link, Beginning):
            if isinstance(link, Exchange):
                if link.standing is _ACCEPTED:
                    break
                link.passed = not link.in_flight
            link = self.links[link.parent]

    # --- what is gone --------------------------------------------------------------------------

    def _removed(self, seq: Seq, fact: ItemsRemoved) -> None:
        if fact.by is Removal.ROLLBACK:
            if fact.replaced:
                raise IllegalFact("A rollback takes items away and puts none in their place.")
            if fact.to not in self.links:
                raise IllegalFact(f"Entry {fact.to} is no link of the conversation.")
            self.tip = fact.to
            return
        going = self._check_removable(fact.to)
        for entry in fact.replaced:
            if entry not in self.parts:
                raise IllegalFact(f"Entry {entry} holds no item: it cannot stand for others.")
        for link in going:
            if isinstance(link, Exchange) and link.standing is Standing.PREPARED:
                link.standing = Standing.REJECTED  # it was never sent, and is out of date now
        depth = self.links[self.tip].depth + 1
        self.links[seq] = Compaction(seq, self.tip, depth, fact.to, fact.replaced)
        self.tip = seq

    def _check_removable(self, to: Seq) -> list[Link]:
        """The links that go. Nothing that is still under way may be cut away."""
        links = [link for link, _ in back(self.links, self.tip)]
        last = next((n for n, link in enumerate(links) if link.seq == to), None)
        if last is None:
            raise IllegalFact(f"Entry {to} is not part of the conversation as it now is.")
        for link in links[last:]:
            if isinstance(link, Exchange) and link.in_flight:
                raise IllegalFact(
                    f"Request {link.seq} is {link.standing.value}: its answer is still to come, "
                    "and cannot be cut away."
                )
            waiting = [call.named for call in unsettled_of(link)]
            if waiting:
                raise IllegalFact(
                    f"{', '.join(waiting)} would be cut away without an output. Settle first."
                )
        return links[last:]

    def _adopted(self, seq: Seq, fact: AnchorAdopted) -> None:
        if fact.mode is Mode.FULL:
            raise IllegalFact("There is no anchor to adopt where everything is sent every time.")
        if self.tip != START:
            raise IllegalFact("An anchor that we never saw can only stand at the beginning.")
        _check_text(fact.anchor)
        if fact.last_item is not None:
            _check_text(fact.last_item)
        self.adopted_anchor = fact.anchor
        if fact.mode is Mode.CONVERSATION:
            self.conversation = fact.anchor
        self.links[seq] = Adoption(seq, START, 1, fact.mode, fact.anchor, fact.last_item)
        self.tip = seq

    def _anchor_lost(self, seq: Seq, fact: AnchorLost) -> None:
        _check_text(fact.anchor)
        self.lost_anchors.add(fact.anchor)

    def _noted(self, seq: Seq, fact: Noted) -> None:
        _check_text(fact.kind)


def _stays_behind(parts: Sequence[Item]) -> bool:
    """Is this reasoning without its content: a reference to what only the provider has?"""
    return len(parts) == 1 and parts[0].part is _REASONING and not parts[0].carried


def _only_output(parts: Sequence[Item]) -> Item | None:
    """The output among these, if there is one and no other."""
    outputs = [item for item in parts if item.part is _OUTPUT]
    return outputs[0] if len(outputs) == 1 else None


def _is_of_the_model(parts: Sequence[Item]) -> bool:
    return all(item.part in _MODEL_SIDE for item in parts)


def _check_text(text: str) -> None:
    """Ids come from outside, and may be anything: here they must be text that can be written."""
    try:
        if not text.isascii():
            text.encode()
    except (AttributeError, UnicodeEncodeError):
        raise IllegalFact(f"{text!r:.80} is no id: it cannot be written as UTF-8.") from None


def _not_waiting(named: str, call: Call | None) -> IllegalFact:
    if call is None:
        return IllegalFact(f"No call {named} is on this path: its output cannot be taken.")
    return IllegalFact(
        f"{call.named} is {call.life.value}: its output is already in the ledger, and stays."
    )


_NEWS_OF_WHAT_WAS_PASSED = (Move.REJECT, Move.LOSE)

_Take = Callable[[Ledger, Seq, Any], None]

_TAKE: Final[dict[type, _Take]] = {
    Opened: Ledger._opened,
    ItemAdded: Ledger._item_added,
    CallStarted: Ledger._started,
    CallSettled: Ledger._settled,
    RequestPrepared: Ledger._prepared,
    RequestSent: Ledger._sent,
    RequestAccepted: Ledger._accepted,
    RequestRejected: Ledger._rejected,
    RequestLost: Ledger._lost,
    ResponseOpened: Ledger._response_opened,
    ItemCompleted: Ledger._item_completed,
    ResponseEnded: Ledger._response_ended,
    ItemsRemoved: Ledger._removed,
    AnchorAdopted: Ledger._adopted,
    AnchorLost: Ledger._anchor_lost,
    Noted: Ledger._noted,
}
