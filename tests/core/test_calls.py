"""The life of a call: the table against itself, and the ledger against the table."""

from __future__ import annotations

import itertools

import pytest

from lockstitch.core import families
from lockstitch.core.calls import LIFE, Call, Life, Step
from lockstitch.core.errors import IllegalFact
from lockstitch.core.facts import By, CallSettled, CallStarted
from lockstitch.core.items import Item, Part
from lockstitch.core.outcomes import Outcome
from lockstitch.ledgers import Ledger, call_settled, call_settled_honestly, encoded, item_added
from tests import turns
from tests.turns import DIALECTS, Words, ledger_of, output, turn

ROWS = [pytest.param(life, step, id=f"{life.value}-{step.value}") for life in Life for step in Step]


def a_call(life=Life.ANNOUNCED, **item):
    return Call(2, 2, Item(Part.CALL, families.FUNCTION, "call_a", **item), life)


def test_every_life_has_its_row():
    assert set(LIFE) == set(Life)


@pytest.mark.parametrize(("life", "step"), ROWS)
def test_a_call_allows_what_its_row_holds_and_nothing_else(life, step):
    call = a_call(life)
    assert call.allows(step) is (step in LIFE[life])
    if call.allows(step):
        call.take(step)
        assert call.life is LIFE[life][step]
    else:
        with pytest.raises(KeyError):
            call.take(step)
        assert call.life is life


def test_no_step_leads_back():
    order = list(Life)
    for life, step in itertools.product(Life, Step):
        after = LIFE[life].get(step, life)
        assert order.index(after) >= order.index(life)


def test_every_life_can_be_reached_and_every_call_can_be_delivered():
    reached, more = set(), {Life.ANNOUNCED}
    while more:
        reached |= more
        more = {after for life in more for after in LIFE[life].values()} - reached
    assert reached == set(Life)


# --- the ledger does as the table says ---------------------------------------------------------


def at_life(life, dialect="responses"):
    """A ledger with one call that stands there."""
    words = Words(dialect)
    ledger = ledger_of(words.user(), dialect=dialect)
    turn(ledger, *words.calls("call_a"), mode="full")
    call = ledger.call("call_a")
    if life is Life.STARTED:
        ledger.append(CallStarted(call=call.seq))
    if life in (Life.SETTLED, Life.DELIVERED):
        ledger.append(call_settled(ledger, call, "ok"))
    if life is Life.DELIVERED:
        turn(ledger, words.said(), mode="full", id="resp_2")
    assert call.life is life
    return ledger, call


FACTS = {
    "start": (Step.START, lambda ledger, call: CallStarted(call=call.seq)),
    "settle": (Step.SETTLE, lambda ledger, call: call_settled(ledger, call, "again")),
    "settle honestly": (Step.SETTLE, call_settled_honestly),
    "output by a tool": (
        Step.SETTLE,
        lambda ledger, call: item_added(
            Words(ledger.dialect.name).output("call_a", "again"), By.TOOL
        ),
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("life", Life)
@pytest.mark.parametrize("happens", FACTS)
def test_a_ledger_moves_a_call_by_its_table_or_stays_as_it_was(dialect, life, happens):
    ledger, call = at_life(life, dialect)
    step, make = FACTS[happens]
    fact = make(ledger, call)
    before, length = ledger.state(), len(ledger)
    if step in LIFE[life]:
        ledger.append(fact)
        assert call.life is LIFE[life][step]
        assert len(ledger) == length + 1
        assert Ledger.rebuilt(ledger.facts).state() == ledger.state()
    else:
        with pytest.raises(IllegalFact):
            ledger.append(fact)
        assert ledger.state() == before
        assert len(ledger) == length


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_output_that_a_tool_gives_late_stands_behind_its_call_all_the_same(dialect):
    ledger, _ = at_life(Life.STARTED, dialect)
    words = Words(dialect)
    ledger.append(item_added(words.user("meanwhile")))
    ledger.append(item_added(words.output("call_a"), By.TOOL))
    wires = ledger.items(ledger.plan("full"))
    assert wires[-2:] == [words.output("call_a"), words.user("meanwhile")]


def test_what_was_started_cannot_be_settled_as_never_started():
    ledger, call = at_life(Life.STARTED)
    fact = CallSettled(call=call.seq, item=encoded(output()), outcome=Outcome.NEVER_STARTED)
    before = ledger.state()
    with pytest.raises(IllegalFact) as raised:
        ledger.append(fact)
    assert ledger.state() == before
    assert str(raised.value) == (
        "call_a (t) was started: it cannot be settled as never started. Settle it with the "
        "outcome unknown, or with its output."
    )


def test_a_second_output_is_refused_and_the_first_one_stays():
    ledger, call = at_life(Life.SETTLED)
    first = call.output
    with pytest.raises(IllegalFact) as raised:
        ledger.append(call_settled(ledger, call, "other"))
    assert str(raised.value) == (
        "call_a (t) is settled: its output is already in the ledger, and stays."
    )
    assert call.output == first


def test_a_call_that_is_nowhere_cannot_be_started_or_settled():
    ledger, call = at_life(Life.ANNOUNCED)
    for seq, slot in ((1, 0), (2, 0), (99, 0), (-1, 0), (call.seq, 1)):
        before = ledger.state()
        with pytest.raises(IllegalFact, match=f"Entry {seq} holds no call"):
            ledger.append(CallStarted(call=seq, slot=slot))
        with pytest.raises(IllegalFact, match=f"Entry {seq} holds no call"):
            ledger.append(CallSettled(call=seq, slot=slot, item=encoded(output())))
        assert ledger.state() == before


@pytest.mark.parametrize(
    "item",
    [
        turns.user(),
        turns.call(),
        output("call_b"),
        {"type": "custom_tool_call_output", "call_id": "call_a", "output": "ok"},
        {"type": "function_call_output", "output": "ok"},
        {"type": "function_call_output", "call_id": 7, "output": "ok"},
        {},
    ],
)
def test_only_its_own_output_settles_a_call(item):
    ledger, call = at_life(Life.STARTED)
    before = ledger.state()
    with pytest.raises(IllegalFact) as raised:
        ledger.append(CallSettled(call=call.seq, item=encoded(item)))
    assert ledger.state() == before
    assert str(raised.value).startswith("The item that settles call_a (t) is not its output: ")
    assert "function_call_output" in str(raised.value)


def test_calls_of_one_chat_message_are_told_apart_by_their_slots():
    words = Words("chat")
    ledger = ledger_of(words.user(), dialect="chat")
    turn(ledger, *words.calls("call_a", "call_b"), mode="full")
    first, second = ledger.unsettled()
    assert (first.seq, second.seq) == (first.seq, first.seq)
    assert (first.slot, second.slot) == (0, 1)
    ledger.append(CallStarted(call=second.seq, slot=second.slot))
    assert (first.life, second.life) == (Life.ANNOUNCED, Life.STARTED)
    with pytest.raises(IllegalFact, match="holds no call in slot 2"):
        ledger.append(CallStarted(call=second.seq, slot=2))


def test_a_call_is_shown_by_its_id_and_its_tool():
    assert repr(a_call(name="get_weather")) == "<Call call_a (get_weather) at 2, announced>"
    assert a_call().named == "call_a"
    nameless = Call(2, 2, Item(Part.CALL, families.TOOL_SEARCH))
    assert nameless.named == "a call without an id"


@pytest.mark.parametrize("family", families.ALL_FAMILIES, ids=lambda family: family.name)
def test_a_call_is_run_by_the_provider_where_its_family_says_so(family):
    assert Call(2, 2, Item(Part.CALL, family, "call_a")).by_server is family.by_server
