"""Conversations played at random through a ledger, in every dialect: for properties of ledgers.

A play is a list of moves. Each does something legal, if there is something, and nothing if there
is not; so every list is a play, and shrinks well."""

from __future__ import annotations

from hypothesis import strategies as st

from lockstitch.core.calls import Step
from lockstitch.core.continuation import Continue, Replay, SettleFirst
from lockstitch.core.exchanges import Exchange, Standing
from lockstitch.core.facts import (
    AnchorLost,
    By,
    CallStarted,
    Ending,
    ItemsRemoved,
    Mode,
    Removal,
    RequestLost,
    RequestRejected,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
)
from lockstitch.core.links import Said
from lockstitch.ledgers import (
    Ledger,
    call_settled,
    call_settled_honestly,
    compacted,
    item_added,
    item_completed,
    request_prepared,
)
from tests.turns import DIALECTS, Words, reasoning

MOVES = (
    "user",
    "ask",
    "ask",
    "ask",
    "start",
    "settle",
    "settle",
    "settle honestly",
    "output",
    "imported call",
    "fork",
    "roll back",
    "lose anchor",
    "compact",
)

ENDINGS = ("completed", "completed", "completed", "incomplete", "failed", "cut", "lost", "rejected")

moves = st.tuples(st.sampled_from(MOVES), st.integers(0, 199))
plays = st.lists(moves, max_size=16)
dialects = st.sampled_from(DIALECTS)


class Play:
    """One ledger, and the moves that are made on it."""

    def __init__(self, dialect="responses", mode=Mode.FULL, *, compacts=True):
        self.ledger = Ledger(dialect)
        self.words = Words(dialect)
        self.mode = mode
        self.compacts = compacts
        self.sent = []
        """What was sent with each request: the plan, and its wire items."""
        self.contexts = []
        """What the provider then read: what it had behind the anchor, and those items."""
        self._kept_by_provider = {}
        """The same with the answer, for each response."""
        self._count = 0

    def all(self, moves):
        for move, number in moves:
            self.make(move, number)
        return self

    def fresh(self, prefix):
        self._count += 1
        return f"{prefix}_{self._count}"

    def make(self, move, number):
        getattr(self, "_" + move.replace(" ", "_"))(number)

    # --- moves ---------------------------------------------------------------------------------

    def _user(self, number):
        # Few texts, so that equal messages are common.
        self.ledger.append(item_added(self.words.user("xyz"[number % 3])))

    def _ask(self, number):
        ledger = self.ledger
        plan = ledger.plan(self.mode)
        if isinstance(plan, SettleFirst):
            for call in plan.calls:
                ledger.append(call_settled_honestly(ledger, call))
            plan = ledger.plan(self.mode)
        if not isinstance(plan, Continue | Replay):
            self._user(number)
            plan = ledger.plan(self.mode)
            if not isinstance(plan, Continue | Replay):
                return
        wires = ledger.items(plan)
        self.sent.append((plan, wires))
        behind = self._kept_by_provider[plan.anchor] if isinstance(plan, Continue) else []
        self.contexts.append([*behind, *wires])
        ledger.extend(request_prepared(ledger, plan, conversation=None))
        request = len(ledger)
        ledger.append(RequestSent(request=request))
        self._end(request, number)

    def _end(self, request, number):
        ledger = self.ledger
        ending = ENDINGS[number % len(ENDINGS)]
        if ending == "lost":
            ledger.append(RequestLost(request=request))
            return
        if ending == "rejected":
            ledger.append(RequestRejected(request=request))
            return
        response, items = self.fresh("resp"), self._answer(number // len(ENDINGS))
        ledger.append(ResponseOpened(request=request, id=response))
        for item in items:
            ledger.append(item_completed(request, item))
        self._kept_by_provider[response] = [*self.contexts[-1], *items]
        ledger.append(ResponseEnded(request=request, ending=Ending(ending)))

    def _answer(self, number):
        words = self.words
        calls = [self.fresh("call") for _ in range(number % 3)]
        items = [words.said("mno"[number % 3])] if number % 2 or not calls else []
        if calls:
            items += words.calls(*calls)
        if words.dialect == "responses" and number % 4 >= 2:
            carried = "secret" if number % 5 else None
            items.insert(0, reasoning(self.fresh("rs"), carried))
            items = [
                {**item, "id": self.fresh("item")} if item["type"] != "reasoning" else item
                for item in items
            ]
        return items

    def _waiting(self, number, step):
        open_calls = [call for call in self.ledger.unsettled() if call.allows(step)]
        return open_calls[number % len(open_calls)] if open_calls else None

    def _start(self, number):
        call = self._waiting(number, Step.START)
        if call is not None:
            self.ledger.append(CallStarted(call=call.seq, slot=call.slot))

    def _settle(self, number):
        call = self._waiting(number, Step.SETTLE)
        if call is not None:
            self.ledger.append(call_settled(self.ledger, call, "out"))

    def _settle_honestly(self, number):
        call = self._waiting(number, Step.SETTLE)
        if call is not None:
            self.ledger.append(call_settled_honestly(self.ledger, call))

    def _output(self, number):
        # Where a client may give an output, so that it stands right in every dialect.
        link = self.ledger.links[self.ledger.tip]
        while isinstance(link, Said) and link.answers:
            link = self.ledger.links[link.parent]
        waiting = [call for call in self.ledger.unsettled() if call.link == link.seq]
        if waiting:
            call = waiting[number % len(waiting)]
            by = By.TOOL if number % 2 else By.USER
            self.ledger.append(item_added(self.words.output(call.item.key, "given"), by))

    def _imported_call(self, number):
        keys = [self.fresh("call") for _ in range(1 + number % 2)]
        for item in self.words.calls(*keys):
            self.ledger.append(item_added(item, By.IMPORT))

    def _link(self, number):
        links = list(self.ledger.links)
        return links[number % len(links)]

    def _fork(self, number):
        self.ledger.append(item_added(self.words.user("fork"), after=self._link(number)))

    def _roll_back(self, number):
        self.ledger.append(ItemsRemoved(by=Removal.ROLLBACK, to=self._link(number)))

    def _lose_anchor(self, number):
        answered = [
            link.id
            for link in self.ledger.links.values()
            if isinstance(link, Exchange) and link.standing is Standing.ACCEPTED and link.id
        ]
        if answered:
            self.ledger.append(AnchorLost(anchor=answered[number % len(answered)]))

    def _compact(self, number):
        if self.compacts and not self.ledger.unsettled():
            summary = [self.words.user("sum")] if number % 2 else []
            limit = number % 7 if number % 3 else None
            self.ledger.extend(compacted(self.ledger, max_items=limit, replaced=summary))
