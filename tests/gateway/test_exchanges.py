"""One exchange as facts, and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core.errors import NotAnItem
from lockstitch.core.facts import By, Ending, ItemCompleted, Noted
from lockstitch.gateway.keeping.exchanges import begun, ended, giver, is_call, kept, open_calls
from lockstitch.gateway.keeping.notes import SAME_AS, AnsweredNote, AskedNote
from lockstitch.ledgers import Ledger
from tests.gateway.building import call, encoded, message, output, user
from tests.generated import examples, hostile_items, responses_items


def whole(facts):
    ledger = Ledger("responses")
    for fact in facts:
        ledger.append(fact)
    return [ledger.fact(seq) for seq in range(1, len(ledger) + 1)]


notes = st.builds(
    AskedNote,
    upstream=st.text(max_size=5),
    base=st.none() | st.text(min_size=1, max_size=9),
    anchored=st.booleans(),
    model=st.text(max_size=5),
    conversation=st.none() | st.just("conv_1"),
    created=st.floats(0, 2e9),
)


@settings(max_examples=examples(50))
@given(
    notes,
    st.lists(responses_items(), max_size=6),
    st.lists(st.sampled_from([message(), call(), message("b", "m2")]), max_size=2),
    st.sampled_from([None, *Ending]),
)
def test_what_was_kept_is_what_was_asked_and_said(note, items, said, ending):
    """Whatever the input is, also one that is broken: it was sent, and answered."""
    if note.anchored and note.base is None:
        return
    wires = [encoded(item) for item in items]
    beginning = begun(note, wires, "resp_1")
    answers = [encoded(item) for item in said if said.count(item) == 1]
    facts = list(beginning.facts)
    facts += [ItemCompleted(request=beginning.request, item=item) for item in answers]
    if ending is not None:
        facts += ended(beginning.request, ending, AnsweredNote(last=3))
    found = kept(whole(facts))
    assert found.id == "resp_1"
    assert found.asked == note
    assert found.items == wires
    assert found.said == answers
    assert found.ending is ending
    assert found.continues == (ending in (Ending.COMPLETED, Ending.INCOMPLETE))


@settings(max_examples=examples(50))
@given(hostile_items)
def test_an_item_of_any_shape_is_an_item_or_says_that_it_is_none(item):
    try:
        by = giver(encoded(item))
        is_call(encoded(item))
        open_calls([encoded(item)])
    except NotAnItem:
        return
    assert by in (By.USER, By.IMPORT)


def test_what_only_a_model_says_was_brought_along():
    assert giver(encoded(user())) is By.USER
    assert giver(encoded(output())) is By.USER
    assert giver(encoded(call())) is By.IMPORT
    assert giver(encoded(message())) is By.IMPORT


def test_calls_wait_until_they_are_answered():
    both = [encoded(call("a")), encoded(call("b"))]
    assert [one.call.key for one in open_calls(both)] == ["a", "b"]
    assert [one.item for one in open_calls(both)] == both
    waiting = open_calls([*both, encoded(output("a"))])
    assert [one.call.key for one in waiting] == ["b"]
    assert open_calls([encoded({"type": "web_search_call", "id": "ws_1"})]) == []


def test_a_response_that_was_answered_under_another_id_names_it():
    assert kept(whole([Noted(kind=SAME_AS, note=b"resp_2")])) == "resp_2"


def test_facts_of_somebody_else_are_no_exchange():
    assert kept([]) is None
    assert kept(whole([Noted(kind="other", note=b"x")])) is None


@pytest.mark.parametrize("item", [b"", b"[]", b"{", b'"x"', b"null", b"\xff", b"[" * 9000])
def test_what_is_no_object_is_no_item(item):
    with pytest.raises(NotAnItem):
        is_call(item)
    with pytest.raises(NotAnItem):
        begun(AskedNote(upstream="up"), [item], "resp_1")
