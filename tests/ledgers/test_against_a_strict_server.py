"""Whatever happens, in whatever order: no plan is refused by a strict server, and no output and no
message is lost or doubled. Also: what cannot have happened is refused, and a turn costs a turn."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lockstitch.core.continuation import Reason
from lockstitch.core.errors import BrokenPair, CannotTrim, LockstitchError
from lockstitch.facts import (
    AnchorAdopted,
    AnyFact,
    By,
    CallSettled,
    CallStarted,
    Continue,
    ItemAdded,
    ItemCompleted,
    ItemsRemoved,
    Mode,
    Opened,
    Refuse,
    Removal,
    Replay,
    RequestAccepted,
    RequestLost,
    RequestPrepared,
    RequestRejected,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
    SettleFirst,
    call_settled,
    compacted,
    item_added,
    item_completed,
    request_prepared,
    resent,
)
from lockstitch.ledgers import Ledger
from tests.generated import examples
from tests.ledgers.driving import Driver, Fault, Node, mark_in
from tests.ledgers.filters import BREAKING, CLIENT_RUN, FILTERS, with_a_message
from tests.ledgers.strict_server import (
    ANSWERS,
    OUTPUTS,
    Reply,
    Shape,
    StrictServer,
    Wire,
    is_user_message,
    kind_of,
    named,
    names,
    paired,
    stands_alone,
)

# --- what the model says -------------------------------------------------------------------------

reasonings = st.sampled_from([None, "plain", "encrypted"])
families = st.lists(st.sampled_from(CLIENT_RUN), min_size=1, max_size=3).map(tuple)
calls = st.builds(Shape, st.just("calls"), families, reasonings, st.booleans())
shapes = st.one_of(
    calls,
    calls,
    st.builds(Shape, st.just("message"), st.just(()), reasonings),
    st.builds(
        Shape,
        st.sampled_from(["search", "web search", "unheard of"]),
        st.just(()),
        reasonings,
        st.booleans(),
    ),
    st.builds(Shape, st.just("program"), families, reasonings, st.booleans()),
    st.just(Shape("compaction")),
)
endings = st.sampled_from(["completed"] * 6 + ["incomplete", "failed"])


@st.composite
def replies(draw: Any) -> Reply:
    said = draw(st.lists(shapes, max_size=3))
    ending = draw(endings)
    # The provider compacts before it speaks, while no call waits.
    said = [shape for n, shape in enumerate(said) if n == 0 or shape.kind != "compaction"]
    if ending == "incomplete" and draw(st.booleans()):
        # Ended by a limit while it thought, or in the middle of a call.
        said.append(
            Shape(
                draw(st.sampled_from(["nothing", "half a call"])),
                (),
                draw(reasonings),
            )
        )
    if not said and ending == "completed":
        said = [Shape()]
    return Reply(tuple(said), ending)


# --- the machine ---------------------------------------------------------------------------------

some = st.integers(0, 30)
near = st.integers(0, 5)
"""How far back: mostly a little."""
ways = st.sampled_from(["wire", "wire", "text", "honestly", "item"])
"""How a call is answered."""


class Conversation(RuleBasedStateMachine):
    """One conversation, driven by chance."""

    def __init__(self) -> None:
        super().__init__()
        self.server = StrictServer()
        self.driver = Driver(self.server)
        self.judged: set[int] = set()
        self.needed: set[str] = set()
        """The calls that the request under way must hold."""
        self.dropped: set[str] = set()
        """Calls that a filter took away."""

    @property
    def ledger(self) -> Ledger:
        return self.driver.ledger

    @initialize(mode=st.sampled_from(Mode), store=st.booleans(), adopted=some)
    def begin(self, mode: Mode, store: bool, adopted: int) -> None:
        driver = self.driver
        driver.mode, driver.store = mode, store
        if mode is Mode.CONVERSATION:
            driver.conversation = self.server.new_conversation()
        if adopted == 30 and mode is not Mode.FULL:
            self._adopt()
        driver.say()

    def _adopt(self) -> None:
        """The conversation began elsewhere, and a call of it still waits for its output."""
        driver = self.driver
        reply = Reply((Shape("calls", ("function_call",)),))
        said = [{"role": "user", "content": "said elsewhere"}]
        stream = self.server.create(said, reply, conversation=driver.conversation)
        call = stream.next()
        assert call is not None
        stream.cut(committed=True)
        anchor = driver.conversation or stream.id
        last = call["id"] if driver.mode is Mode.CONVERSATION else None
        driver.append(AnchorAdopted(mode=driver.mode, anchor=anchor, last_item=last))
        driver.append(item_added(driver.output_of(call, "<out 0>")))

    # --- what is said ----------------------------------------------------------------------------

    @rule()
    def the_user_says_something(self) -> None:
        self.driver.say()

    @precondition(lambda self: self._is_long())
    @rule(at=near)
    def the_user_says_something_further_up(self, at: int) -> None:
        self.driver.say(after=self._a_link(at))

    @precondition(lambda self: self._is_long())
    @rule(at=near)
    def the_conversation_is_rolled_back(self, at: int) -> None:
        self.driver.append(ItemsRemoved(by=Removal.ROLLBACK, to=self._a_link(at)))

    def _is_long(self) -> bool:
        return not self.driver.stream and len(self.driver.path()) > 4

    def _a_link(self, at: int) -> int:
        links = [0, *(node.seq for node in self.driver.path() if not node.adopted)]
        return links[-1 - at % len(links)]

    # --- requests --------------------------------------------------------------------------------

    @rule(answers=st.lists(replies(), min_size=1, max_size=4), how=ways)
    def some_turns_go_well(self, answers: list[Reply], how: str) -> None:
        for reply in answers:
            if self.driver.stream:
                self.driver.hear()
            self._answer_all(how)
            plan = self._plan()
            if plan is not None:
                self._send(plan, reply)
            self.every_accepted_context_is_right()

    @precondition(lambda self: not self.driver.stream)
    @rule(
        reply=replies(),
        fault=st.sampled_from([None] * 8 + list(Fault)),
        change=st.sampled_from([None] * 6 + FILTERS),
        at=some,
        older=st.sampled_from([None] * 6 + [1, 2, 3, 5]),
        how=st.one_of(st.none(), ways),
    )
    def a_request_is_sent(
        self,
        reply: Reply,
        fault: Fault | None,
        change: Callable[[list[Wire], int], list[Wire]] | None,
        at: int,
        older: int | None,
        how: str | None,
    ) -> None:
        tip = None if older is None or not self._is_long() else self._a_link(older)
        if how is not None:
            self._answer_all(how)
        plan = self._plan(tip)
        if change is with_a_message and any(node.programs for node in self.driver.path()):
            change = None  # while a program runs nothing may come between
        if plan is not None:
            rewrite = None if change is None else self._watched(change, at)
            self._send(plan, reply, fault=fault, rewrite=rewrite)

    def _send(self, plan: Continue | Replay, reply: Reply, **how: Any) -> None:
        driver = self.driver
        self.needed = {
            self._mark(key)
            for node in driver.tail(plan.tip)
            if node.request and not node.accepted and driver.counts(node)
            for key in node.calls
        }
        driver.send(plan, reply, **how)

    def _answer_all(self, how: str) -> None:
        for key in self.driver.waiting():
            self.driver.settle(key, how)

    def _plan(self, tip: int | None = None) -> Continue | Replay | None:
        """A plan that can be sent; None where something must be done first."""
        driver = self.driver
        plan = driver.plan(tip)
        missing = driver.unanswered(tip)
        if isinstance(plan, SettleFirst):
            keys = {(call.seq, call.slot) for call in plan.calls}
            programs = {key for node in driver.path(tip) for key in node.programs}
            assert keys - programs == missing
            # Programs that the provider does not go on with, or did not before we went on.
            for key in sorted(keys & programs):
                driver.settle(key, "honestly")
            return None if missing else self._plan(tip)
        assert not missing, plan
        if isinstance(plan, Refuse):
            if plan.reason is Reason.UNKNOWN_CHAIN:
                assert any(node.adopted for node in driver.path(tip))
                driver.append(ItemsRemoved(by=Removal.ROLLBACK, to=0))
                tip = None
            else:
                assert plan.reason is Reason.NOTHING_NEW, plan
            driver.say(after=tip)
            return self._plan()
        assert isinstance(plan, Continue | Replay), plan
        return plan

    def _watched(
        self, change: Callable[[list[Wire], int], list[Wire]], at: int
    ) -> Callable[[list[Wire]], list[Wire]]:
        """A filter, of which the model learns what it took away."""

        def rewrite(items: list[Wire]) -> list[Wire]:
            changed = change(items, at)
            gone = {mark_in(item) for item in items} - {mark_in(item) for item in changed}
            self.driver.maybe |= {mark for mark in gone if mark}
            self.dropped |= {mark for mark in gone if mark}
            return changed

        return rewrite

    @precondition(lambda self: not self.driver.stream)
    @rule(change=st.sampled_from(BREAKING), at=some)
    def a_filter_would_break_a_pair(
        self, change: Callable[[list[Wire], int], list[Wire]], at: int
    ) -> None:
        driver = self.driver
        plan = self._plan()
        if plan is None or any(node.adopted for node in driver.path()):
            return  # of what was adopted nobody here knows the calls
        items = self.ledger.items(plan)
        broken = change(items, at)
        if broken == items:
            return
        before = self.ledger.state()
        with pytest.raises(BrokenPair):
            driver.send(plan, Reply(), rewrite=lambda _: broken)
        assert self.ledger.state() == before

    @precondition(lambda self: self.driver.stream)
    @rule(items=st.integers(1, 4))
    def items_are_heard(self, items: int) -> None:
        self.driver.hear(items)

    @precondition(lambda self: self.driver.stream)
    @rule()
    def an_answer_is_heard_to_its_end(self) -> None:
        self.driver.hear()

    @rule(
        reply=replies(),
        items=near,
        started=st.integers(0, 2),
        ended=st.integers(0, 2),
        committed=st.booleans(),
    )
    def a_stream_is_cut(
        self, reply: Reply, items: int, started: int, ended: int, committed: bool
    ) -> None:
        """After so many more items, with so many of its calls started, and so many ended."""
        driver = self.driver
        if not driver.stream:
            plan = self._plan()
            if plan is not None:
                self._send(plan, reply)
        if driver.stream:
            driver.hear(items)
        for key in driver.startable()[:started]:
            driver.start(key)
        if driver.stream:
            driver.cut(committed=committed)
        for key in driver.running()[:ended]:
            driver.settle(key, "wire")

    @precondition(lambda self: self.driver.stream)
    @rule()
    def nothing_is_planned_while_an_answer_comes(self) -> None:
        if any(node.seq == self.driver.request for node in self.driver.path()):
            plan = self.driver.plan()
            assert isinstance(plan, Refuse)
            assert plan.reason in (Reason.STILL_ANSWERING, Reason.IN_FLIGHT)

    @precondition(lambda self: not self.driver.stream and self.driver.request)
    @rule()
    def a_lost_answer_is_retrieved(self) -> None:
        requests = [node for node in self.driver.path() if node.request]
        if requests and requests[-1].seq == self.driver.request and not requests[-1].accepted:
            self.driver.retrieve()

    @precondition(lambda self: not self.driver.stream)
    @rule(mode=st.sampled_from(Mode), fresh=st.booleans())
    def the_mode_changes(self, mode: Mode, fresh: bool) -> None:
        driver = self.driver
        driver.mode = mode
        if mode is Mode.CONVERSATION and (fresh or driver.conversation is None):
            driver.conversation = self.server.new_conversation()

    @rule(at=near)
    def the_provider_forgets(self, at: int) -> None:
        if self.driver.mode is Mode.CONVERSATION:
            known = list(self.server.conversations)
        else:
            known = list(self.server.responses)
        if known and not self.driver.stream:
            self.server.forget(known[-1 - at % len(known)])

    @rule(committed=st.booleans())
    def the_process_dies(self, committed: bool) -> None:
        self.driver.restart(committed=committed)

    # --- tools -----------------------------------------------------------------------------------

    @precondition(lambda self: self.driver.startable())
    @rule(at=some)
    def a_tool_starts(self, at: int) -> None:
        keys = self.driver.startable()
        self.driver.start(keys[at % len(keys)])

    @precondition(lambda self: self.driver.running())
    @rule(at=some, how=st.sampled_from(["wire", "text", "honestly"]))
    def a_tool_ends(self, at: int, how: str) -> None:
        keys = self.driver.running()
        self.driver.settle(keys[at % len(keys)], how)

    @precondition(lambda self: self.driver.waiting())
    @rule(at=some, how=ways)
    def a_call_is_answered(self, at: int, how: str) -> None:
        keys = self.driver.waiting()
        self.driver.settle(keys[at % len(keys)], how)

    # --- histories that change -------------------------------------------------------------------

    @precondition(lambda self: len(self.driver.path()) > 4)
    @rule(most=st.sampled_from([None, 1, 3, 5, 8, 13]), summary=st.booleans())
    def the_conversation_is_compacted(self, most: int | None, summary: bool) -> None:
        driver = self.driver
        mark = self.server.new("<summary").replace("_", " ") + ">"
        replaced = [{"role": "developer", "content": mark}] if summary else []
        before = self.ledger.history()
        waiting = self.ledger.unsettled()
        try:
            facts = compacted(self.ledger, max_items=most, replaced=replaced)
        except CannotTrim:
            assert waiting or driver.stream or any(node.programs for node in driver.path())
            return
        driver.append(*facts)
        after = self.ledger.history()
        if not facts:
            assert after == before
            return
        assert after[: len(replaced)] == replaced
        left = after[len(replaced) :]
        assert left == before[len(before) - len(left) :]
        assert len(left) <= (most or 0)
        assert self.ledger.unsettled() == waiting
        if driver.stream:
            assert driver.request in {node.seq for node in driver.path()}

    @precondition(lambda self: self._is_long())
    @rule(at=some, thinned=st.booleans(), following=st.booleans(), more=st.integers(0, 2))
    def a_client_sends_its_whole_history(
        self, at: int, thinned: bool, following: bool, more: int
    ) -> None:
        driver = self.driver
        if any(node.cut_to is not None for node in driver.path()):
            following = False  # a follower goes on from what its client knows: before the cut
        if any(node.adopted for node in driver.path()):
            return  # the client's history would hold what this ledger never saw
        history = self.ledger.history()
        shown = [_as_a_client_keeps(item) if thinned else item for item in history]
        shown = [item for item in shown if not (thinned and kind_of(item) == "reasoning")]
        places = _places_where_all_is_answered(shown)
        end = places[-1 - at % len(places)] if at > 15 else len(shown)
        news = [{"role": "user", "content": self._new_mark()} for _ in range(more)]
        sent = [*shown[:end], *news]
        facts = driver.follower.resent(sent) if following else resent(self.ledger, sent)
        if end == len(shown):
            assert len(facts) == more
        driver.append(*facts)
        said = [item for item in self.ledger.history() if kind_of(item) != "reasoning"]
        wanted = [item for item in sent if kind_of(item) != "reasoning"]
        assert [_plain(item) for item in said] == [_plain(item) for item in wanted]

    def _new_mark(self) -> str:
        return self.server.new("<user").replace("_", " ") + ">"

    # --- what cannot have happened ---------------------------------------------------------------

    @rule(at=some, data=st.data())
    def what_cannot_have_happened_is_refused(self, at: int, data: st.DataObject) -> None:
        facts = self._impossible(at)
        fact = data.draw(st.sampled_from(facts))
        before, count = self.ledger.state(), len(self.ledger)
        with pytest.raises(LockstitchError):
            self.ledger.append(fact)
        assert self.ledger.state() == before
        assert len(self.ledger) == count

    def _impossible(self, at: int) -> list[AnyFact]:
        driver, beyond = self.driver, len(self.ledger) + 5
        orphan = b'{"type":"function_call_output","call_id":"call_nobody","output":"x"}'
        facts: list[AnyFact] = [
            Opened(dialect="responses"),
            ItemAdded(item=b"{}", by=By.USER, after=beyond),
            ItemAdded(item=b"[1", by=By.USER),
            ItemAdded(item=orphan, by=By.TOOL),
            CallStarted(call=beyond),
            CallStarted(call=1),
            RequestPrepared(mode=Mode.CHAIN, base=beyond, covers=driver.tip, sent=()),
            RequestPrepared(mode=Mode.CHAIN, base=0, covers=beyond, sent=()),
            RequestPrepared(mode=Mode.CHAIN, base=0, covers=driver.tip, sent=(beyond,)),
            RequestPrepared(mode=Mode.CONVERSATION, base=0, covers=driver.tip, sent=()),
            RequestSent(request=1),
            ItemsRemoved(by=Removal.ROLLBACK, to=beyond),
            ItemsRemoved(by=Removal.COMPACTION, to=driver.tip, replaced=(beyond,)),
            AnchorAdopted(mode=Mode.FULL, anchor="x"),
        ]
        if driver.tip:
            facts.append(AnchorAdopted(mode=Mode.CHAIN, anchor="x"))
        for node in driver.nodes.values():
            if node.request and node.accepted:
                n = node.seq
                facts += [
                    RequestSent(request=n),
                    RequestLost(request=n),
                    RequestRejected(request=n),
                ]
                facts += [ResponseEnded(request=n), ItemCompleted(request=n, item=b"{}")]
                facts += [ResponseOpened(request=n, id="resp_x"), RequestAccepted(request=n)]
        for (seq, slot), call in self.ledger.calls.items():
            facts.append(CallSettled(call=seq, slot=slot, item=orphan))
            if call.output is not None:
                facts.append(CallStarted(call=seq, slot=slot))
                facts.append(CallSettled(call=seq, slot=slot, item=self.ledger.item(call.output)))
        return facts

    # --- what must hold --------------------------------------------------------------------------

    @invariant()
    def the_model_and_the_ledger_agree_on_the_tip(self) -> None:
        assert self.ledger.tip == self.driver.tip

    @invariant()
    def no_effect_happened_twice(self) -> None:
        assert all(count <= 1 for count in self.driver.effects.values())

    @invariant()
    def every_accepted_context_is_right(self) -> None:
        for request in self.driver.contexts.keys() - self.judged:
            self.judged.add(request)
            self._judge(request)

    def _judge(self, request: int) -> None:
        driver = self.driver
        context = driver.contexts[request]
        path = driver.path(request)
        assert path[-1].seq == request
        pairs, waiting = paired(context)
        own = {self._mark(key) for key in [*path[-1].calls, *path[-1].programs]}
        own |= {self._mark(key) for node in path for key in node.programs}
        assert {mark_in(call) for call in waiting} <= own
        for call, output in pairs:
            known = driver.outputs.get(mark_in(call) or "")
            assert known is None or mark_in(output) == known
        counted = Counter(mark_in(item) for item in context)
        assert all(count == 1 for mark, count in counted.items() if mark and "ins" not in mark)
        if request == driver.request:
            assert self.needed <= {*counted, *self.dropped}
        self._judge_messages(path, [mark_in(i) for i in context if is_user_message(i)])

    def _judge_messages(self, path: Sequence[Node], there: Sequence[str | None]) -> None:
        summed_up = [n for n, node in enumerate(path[:-1]) if node.compacted_by_provider]
        begin = summed_up[-1] if summed_up else 0
        said = [node.mark for node in path if node.mark]
        sure = [node.mark for node in path[begin:] if node.mark]
        sure = [mark for mark in sure if mark not in self.driver.maybe]
        heard = [mark for mark in there if mark and mark.startswith("<user")]
        assert set(heard) <= set(said)
        assert [mark for mark in heard if mark in sure] == sure
        assert heard == [mark for mark in said if mark in heard]

    def _mark(self, key: tuple[int, int]) -> str:
        mark = mark_in(self.ledger.wire(key[0]))
        assert mark is not None
        return mark


def _as_a_client_keeps(item: Wire) -> Wire:
    """Without its id, unless that is what joins it to its other half."""
    joined_by_id = {"mcp_approval_request", "local_shell_call", "local_shell_call_output"}
    kind = kind_of(item)
    return {k: v for k, v in item.items() if kind in joined_by_id or k not in ("id", "status")}


def _plain(item: Wire) -> str:
    content = item.get("content")
    if isinstance(content, list) and len(content) == 1:
        content = content[0].get("text")
    kept = {k: v for k, v in _as_a_client_keeps(item).items() if v is not None}
    return json.dumps({**kept, "type": kind_of(item), "content": content}, sort_keys=True)


def _places_where_all_is_answered(items: Sequence[Wire]) -> list[int]:
    """How many items may be kept, from the first on, so that no call among them is open."""
    places = [0]
    waiting: list[Wire] = []
    for n, item in enumerate(items, start=1):
        if kind_of(item) in ANSWERS and not stands_alone(item):
            waiting.append(item)
        elif kind_of(item) in OUTPUTS:
            meant = [call for call in waiting if named(item) in names(call)]
            waiting = [call for call in waiting if call is not (meant or [None])[0]]
        if not waiting and kind_of(item) != "reasoning":
            places.append(n)
    return places


def test_a_strict_server_takes_every_plan_and_nothing_is_lost_or_doubled() -> None:
    run_state_machine_as_test(
        Conversation, settings=settings(max_examples=examples(300), stateful_step_count=40)
    )


# --- what a turn costs ---------------------------------------------------------------------------

FEW_TURNS, MANY_TURNS = 10, 1_000

MOST_GROWTH = 1.5
"""How much more a turn may cost after a thousand than after ten: noise, and no more."""


@pytest.mark.parametrize("mode", [Mode.CHAIN, Mode.CONVERSATION])
def test_a_turn_costs_no_more_after_a_thousand_turns(mode: Mode) -> None:
    ledger = Ledger()
    cost: dict[int, int] = {}
    for turn in range(1, MANY_TURNS + 1):
        if turn in (FEW_TURNS, MANY_TURNS):
            cost[turn] = lines_run(lambda turn=turn: _turn(ledger, mode, turn))
        else:
            _turn(ledger, mode, turn)
    assert cost[MANY_TURNS] <= MOST_GROWTH * cost[FEW_TURNS], cost


def _turn(ledger: Ledger, mode: Mode, turn: int) -> None:
    """A message, a call, its output, an answer: two requests. The call's id is always the same."""
    ledger.append(item_added(f"question {turn}"))
    call = {"type": "function_call", "id": f"fc_{turn}", "call_id": "call_a", "name": "t"}
    reasoning = {"type": "reasoning", "id": f"rs_{turn}", "summary": []}
    _exchange(ledger, mode, f"resp_{turn}a", [reasoning, {**call, "arguments": "{}"}])
    [made] = ledger.unsettled()
    ledger.append(CallStarted(call=made.seq))
    ledger.append(call_settled(ledger, made, f"output {turn}"))
    _exchange(ledger, mode, f"resp_{turn}b", [{"role": "assistant", "content": f"answer {turn}"}])


def _exchange(ledger: Ledger, mode: Mode, response: str, said: Sequence[Wire]) -> None:
    plan = ledger.plan(mode, conversation="conv_1" if mode is Mode.CONVERSATION else None)
    assert isinstance(plan, Continue | Replay)
    assert len(ledger.items(plan)) == 1
    ledger.extend(request_prepared(ledger, plan))
    request = ledger.tip
    ledger.append(RequestSent(request=request))
    ledger.append(ResponseOpened(request=request, id=response))
    for item in said:
        ledger.append(item_completed(request, item))
    ledger.append(ResponseEnded(request=request))


def lines_run(act: Callable[[], object]) -> int:
    """How many lines of Python ran: the same on every machine."""
    count = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
