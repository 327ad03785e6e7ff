"""Facts made from wire items."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given, settings

import lockstitch
from lockstitch.core import families
from lockstitch.core.errors import IllegalFact, NotAnItem
from lockstitch.core.facts import By, CallStarted, ItemAdded, ItemCompleted
from lockstitch.core.outcomes import NEVER_STARTED_TEXT, UNKNOWN_TEXT, Evidence, Outcome
from lockstitch.dialects.reading import decoded
from lockstitch.ledgers import (
    Follower,
    Ledger,
    call_settled,
    call_settled_honestly,
    compacted,
    encoded,
    item_added,
    item_completed,
    request_prepared,
    resent,
)
from tests.dialects.test_responses import CALLS, OUTPUTS
from tests.generated import examples, hostile_items
from tests.not_json import NOT_JSON
from tests.turns import DIALECTS, Words, call, ledger_of, output, turn, user


def test_a_text_is_a_message_of_the_user():
    assert item_added("hi") == ItemAdded(item=b'{"role":"user","content":"hi"}', by=By.USER)


def test_bytes_are_kept_as_they_came():
    item = b' {"role" : "user"} '
    assert item_added(item).item is item
    assert item_completed(3, item).item is item


def test_who_gave_an_item_may_be_named():
    assert item_added(user(), "import") == item_added(user(), By.IMPORT)


@settings(max_examples=examples(60))
@given(hostile_items)
def test_what_was_made_from_an_item_says_the_same(item):
    assert decoded(encoded(item)) == item


@pytest.mark.parametrize("kind", NOT_JSON)
def test_what_cannot_be_written_as_json_is_no_item(kind):
    for make in (item_added, lambda item: item_completed(1, item), encoded):
        with pytest.raises(NotAnItem, match="cannot be written as JSON"):
            make(NOT_JSON[kind])


@pytest.mark.parametrize("thing", [None, 7, [user()], True, 1.5, bytearray(b"{}")])
def test_what_is_no_object_is_refused_by_the_ledger_at_the_latest(thing):
    ledger = Ledger()
    with pytest.raises(NotAnItem):
        ledger.append(item_added(thing))
    assert len(ledger) == 1


def test_a_text_is_nothing_that_the_model_said():
    with pytest.raises(NotAnItem, match="Pass the item that the model said"):
        item_completed(3, "hi")


def test_a_number_that_json_does_not_know_is_written_as_nothing():
    assert decoded(encoded({"x": math.nan, "y": math.inf})) == {"x": None, "y": None}


def test_items_that_are_mappings_and_no_dictionaries_are_taken():
    class Read(dict):
        pass

    assert item_completed(3, Read(call())) == ItemCompleted(request=3, item=encoded(call()))


# --- outputs -----------------------------------------------------------------------------------


def with_call(made, dialect="responses"):
    ledger = ledger_of(Words(dialect).user(), dialect=dialect)
    turn(ledger, made, mode="full")
    return ledger, next(iter(ledger.calls.values()))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_text_settles_a_call_in_every_dialect(dialect):
    words = Words(dialect)
    ledger, made = with_call(words.calls("call_a")[0], dialect)
    fact = call_settled(ledger, made, "21 degrees")
    assert decoded(fact.item) == words.output("call_a", "21 degrees")
    assert fact.outcome is Outcome.FINISHED


@pytest.mark.parametrize("family", families.RESPONSES_FAMILIES, ids=lambda family: family.name)
def test_an_item_settles_a_call_of_every_family(family):
    ledger, made = with_call(CALLS[family.name])
    ledger.append(call_settled(ledger, made, OUTPUTS[family.name]))
    assert made.output == len(ledger)
    assert lockstitch.check(ledger.history(), dialect="responses") == []


@pytest.mark.parametrize("family", families.RESPONSES_FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize("started", [False, True])
def test_every_call_can_be_settled_honestly(family, started):
    ledger, made = with_call(CALLS[family.name])
    if started:
        ledger.append(CallStarted(call=made.seq))
    ledger.append(call_settled_honestly(ledger, made))
    unknown = started or family.by_server  # nobody here knows what the provider did
    assert made.outcome is (Outcome.UNKNOWN if unknown else Outcome.NEVER_STARTED)
    assert lockstitch.check(ledger.history(), dialect="responses") == []


@pytest.mark.parametrize(
    "family",
    [families.MCP_APPROVAL, families.COMPUTER, families.TOOL_SEARCH],
    ids=lambda family: family.name,
)
def test_a_text_is_no_output_where_one_must_be_more(family):
    ledger, made = with_call(CALLS[family.name])
    with pytest.raises(NotAnItem) as raised:
        call_settled(ledger, made, "yes")
    assert str(raised.value).startswith("A text is no output of call_a")
    assert f"Pass the {family.output_type} item." in str(raised.value)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_honest_output_says_what_is_known_and_no_more(dialect):
    made = Words(dialect).calls("call_a")[0]
    ledger, waiting = with_call(made, dialect)
    never = call_settled_honestly(ledger, waiting)
    assert never.outcome is Outcome.NEVER_STARTED
    assert NEVER_STARTED_TEXT in never.item.decode()
    ledger.append(CallStarted(call=waiting.seq))
    unknown = call_settled_honestly(ledger, waiting)
    assert unknown.outcome is Outcome.UNKNOWN
    assert UNKNOWN_TEXT in msgspec.json.encode(decoded(unknown.item)).decode()
    evidence = Evidence(Outcome.FINISHED, "finished with exit code 0", "it is done")
    finished = call_settled_honestly(ledger, waiting, evidence)
    assert finished.outcome is Outcome.FINISHED
    assert "it is done" in finished.item.decode()
    for fact in (unknown, finished):
        copy = Ledger.rebuilt(ledger.facts)
        copy.append(fact)


def test_a_call_that_was_brought_along_is_not_told_as_never_started():
    ledger = ledger_of(Words("responses").user(), call())
    (brought,) = ledger.calls.values()
    assert call_settled_honestly(ledger, brought).outcome is Outcome.UNKNOWN


def test_an_outcome_that_is_unknown_is_never_told_as_never_started():
    ledger, made = with_call(call())
    ledger.append(CallStarted(call=made.seq))
    denied = Evidence(Outcome.NEVER_STARTED, "was never started")
    with pytest.raises(IllegalFact, match="cannot be settled as never started"):
        ledger.append(call_settled_honestly(ledger, made, denied))


def test_a_tool_that_failed_says_so_where_the_dialect_can():
    ledger, made = with_call(Words("messages").calls("call_a")[0], "messages")
    fact = call_settled(ledger, made, "no such file", failed=True)
    assert decoded(fact.item)["content"][0]["is_error"] is True
    ledger.append(fact)
    assert made.outcome is Outcome.FINISHED


def test_honest_outputs_are_the_same_bytes_every_time():
    facts = set()
    for _ in range(3):
        ledger, made = with_call(call())
        facts.add(call_settled_honestly(ledger, made).item)
    assert len(facts) == 1


def test_making_a_fact_changes_nothing():
    ledger, made = with_call(call())
    before = ledger.state()
    call_settled(ledger, made, "x")
    call_settled_honestly(ledger, made)
    item_added(output())
    assert ledger.state() == before


def test_an_output_goes_to_the_slot_of_its_call():
    words = Words("chat")
    ledger = ledger_of(words.user(), dialect="chat")
    turn(ledger, *words.calls("call_a", "call_b"), mode="full")
    second = ledger.call("call_b")
    ledger.append(call_settled(ledger, second, "ok"))
    assert second.output == len(ledger)
    assert ledger.call("call_a").output is None


# --- several items -----------------------------------------------------------------------------


@pytest.mark.parametrize("one", ["again", b"again", {"role": "user", "content": "again"}, None])
@pytest.mark.parametrize(
    "taking",
    [
        resent,
        lambda ledger, one: Follower(ledger).resent(one),
        lambda ledger, one: compacted(ledger, replaced=one),
        lambda ledger, one: request_prepared(ledger, ledger.plan(), items=one or 5),
    ],
    ids=["resent", "followed", "compacted", "rewritten"],
)
def test_one_item_is_not_taken_for_a_list_of_its_parts(taking, one):
    ledger = Ledger()
    ledger.append(item_added("again"))
    with pytest.raises(NotAnItem, match="no list of items"):
        taking(ledger, one)
    assert len(ledger) == 2


@pytest.mark.parametrize("taking", [Ledger.items, request_prepared])
def test_a_plan_that_sends_nothing_says_so(taking):
    ledger = Ledger()
    with pytest.raises(IllegalFact, match=r"Refuse is no plan that sends.*add an item first"):
        taking(ledger, ledger.plan())
    made = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    ledger.append(item_added(made, "import"))
    with pytest.raises(IllegalFact, match=r"SettleFirst is no plan.*call_1 \(f\)"):
        taking(ledger, ledger.plan())
