"""The inbound guard: whole histories, and deltas behind anchors known and unknown."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core import rules
from lockstitch.core.outcomes import UNKNOWN_TEXT
from lockstitch.dialects import by_name
from lockstitch.emulator.responses.admission import Made, admitted, check_answered
from lockstitch.emulator.responses.context import Context
from lockstitch.emulator.responses.minting import Mint
from lockstitch.gateway.deciding.asked import read, rebuilt
from lockstitch.gateway.deciding.evidence import seen, wanted
from lockstitch.gateway.deciding.guard import UNTOUCHED, Guarding, guarded
from tests.generated import HISTORIES, dialects_and_histories, examples, hostile_items
from tests.turns import call, output, reasoning, said, user

RESPONSES = by_name("responses")


def waiting(*calls):
    return [RESPONSES.read(one)[0] for one in calls]


def rules_of(made):
    return [finding.rule for finding in made.findings]


# --- whole histories ---------------------------------------------------------------------------


@settings(max_examples=examples(600))
@given(dialects_and_histories)
def test_a_mended_request_is_whole_and_stays_as_it_is(pair):
    dialect, history = pair
    before = copy.deepcopy(history)
    made = guarded(history, mode=Guarding.MEND, dialect=dialect)
    assert history == before
    assert list(made.findings) == lockstitch.check(history, dialect=dialect)
    if made.items is None:
        if made.findings:
            assert list(lockstitch.mend(history, dialect=dialect)) == []
        return
    assert lockstitch.check(made.items, dialect=dialect) == []
    assert guarded(made.items, mode=Guarding.MEND, dialect=dialect) == UNTOUCHED
    assert made.items == list(lockstitch.mend(history, dialect=dialect))
    again = guarded(copy.deepcopy(history), mode=Guarding.MEND, dialect=dialect)
    assert again == made


@settings(max_examples=examples(300))
@given(dialects_and_histories)
def test_origins_name_the_items_that_were_not_touched(pair):
    dialect, history = pair
    made = guarded(history, mode=Guarding.MEND, dialect=dialect)
    if made.items is None:
        return
    assert made.origins is not None
    for item, origin in zip(made.items, made.origins, strict=True):
        assert origin is None or history[origin] is item


@settings(max_examples=examples(200))
@given(dialects_and_histories)
def test_a_request_that_is_not_to_be_changed_is_not(pair):
    dialect, history = pair
    assert guarded(history, mode=Guarding.OFF, dialect=dialect) == UNTOUCHED
    for mode in (Guarding.REPORT, Guarding.REFUSE):
        made = guarded(history, mode=mode, dialect=dialect)
        assert made.items is None
        assert made.origins is None
        assert bool(made.findings) == bool(lockstitch.check(history, dialect=dialect))
        assert bool(made.refused) == (mode is Guarding.REFUSE and bool(made.findings))


@settings(max_examples=examples(200))
@given(st.lists(hostile_items, max_size=8), st.sampled_from(sorted(HISTORIES)), st.booleans())
def test_whatever_a_client_sends_the_guard_does_not_fail(items, dialect, anchored):
    for mode in Guarding:
        guarded([*items, "text", None], mode=mode, dialect=dialect, anchored=anchored)


def test_a_call_without_an_output_is_said_to_have_an_unknown_outcome():
    made = guarded([call(), user()], mode=Guarding.MEND)
    assert made.items == [call(), output(text=UNKNOWN_TEXT), user()]
    assert made.origins == [0, None, 1]


def test_a_mended_request_keeps_the_bytes_of_what_was_not_touched():
    sent = b'{"input":[{"type":"function_call","call_id":"a",  "name":"t"},{"role":"user"}]}'
    asked = read(sent)
    made = guarded(asked.items(), mode=Guarding.MEND)
    assert made.items is not None
    body = rebuilt(asked, items=made.items, origins=made.origins)
    assert b'"call_id":"a",  "name"' in body
    assert guarded(read(body).items(), mode=Guarding.MEND) == UNTOUCHED


def test_no_output_is_made_up_for_a_call_that_broke_off():
    half = [user(), call("a", status="incomplete"), user()]
    assert guarded(half, mode=Guarding.MEND) == UNTOUCHED
    assert wanted(half) == []


def test_nobody_is_refused_for_what_a_provider_takes():
    known = seen([output(text="booked")], keys=["call_a"])
    made = guarded([call(), output(text="aborted")], mode=Guarding.REFUSE, evidence=known)
    assert rules_of(made) == [rules.CONTRADICTED]
    assert made.refused == ()


def test_a_request_of_which_nothing_would_be_left_goes_on_as_it_came():
    made = guarded([output()], mode=Guarding.MEND)
    assert rules_of(made) == [rules.ORPHAN_OUTPUT]
    assert made.items is None


@settings(max_examples=examples(300))
@given(HISTORIES["responses"])
def test_what_was_mended_is_admitted_by_a_strict_provider(history):
    made = guarded(history, mode=Guarding.MEND)
    # What the server runs, and what only it has, is judged by what only it knows.
    unclear = ("item_reference", "program", "program_output", "tool_search_call")
    if made.items is None or any(item.get("type") in unclear for item in history):
        return
    # A local shell call has two ids. Session files name either; of a provider only one is known.
    if any(
        item.get("type") == "local_shell_call" and item.get("id") != item.get("call_id")
        for item in history
    ):
        return
    kept = made.items
    check_answered(admitted(Context(), kept, Made(), Mint(0), sent=kept))


# --- behind an anchor --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(Guarding))
def test_a_lone_output_behind_an_unknown_anchor_is_right(mode):
    assert guarded([output("a"), output("b"), user()], mode=mode, anchored=True) == UNTOUCHED


def test_a_delta_behind_an_unknown_anchor_is_never_changed():
    delta = [output("a"), call("b"), user()]
    made = guarded(delta, mode=Guarding.MEND, anchored=True)
    assert rules_of(made) == [rules.NO_OUTPUT]
    assert made.items is None
    assert guarded(delta, mode=Guarding.REFUSE, anchored=True).refused == made.findings


def test_a_delta_is_judged_against_the_calls_that_wait_behind_its_anchor():
    waits = waiting(call("a"), call("b"))
    whole = [output("b"), output("a"), user()]
    assert guarded(whole, mode=Guarding.MEND, anchored=True, open_calls=waits) == UNTOUCHED
    made = guarded([output("b"), user()], mode=Guarding.REPORT, anchored=True, open_calls=waits)
    assert [(f.rule, f.key, f.place.at) for f in made.findings] == [
        (rules.GROUP_INCOMPLETE, "a", -2)
    ]
    made = guarded([output("c")], mode=Guarding.REPORT, anchored=True, open_calls=[])
    assert [(f.rule, f.key, f.place.at) for f in made.findings] == [(rules.ORPHAN_OUTPUT, "c", 0)]


def test_an_output_that_the_anchor_waits_for_is_put_first():
    waits = waiting(call("a"), call("b"))
    delta = [user(), output("b")]
    made = guarded(delta, mode=Guarding.MEND, anchored=True, open_calls=waits)
    assert made.items == [output("a", UNKNOWN_TEXT), user(), output("b")]
    assert made.origins == [None, 0, 1]


def test_outputs_of_several_groups_behind_an_anchor_all_stand_in_the_delta():
    program = {"type": "program", "call_id": "p", "id": "prog_1"}
    waits = waiting(program, call("a"))
    made = guarded([user()], mode=Guarding.MEND, anchored=True, open_calls=waits)
    assert made.items is not None
    assert [item.get("call_id") for item in made.items] == ["p", "a", None]
    assert made.origins == [None, None, 0]


def test_an_output_seen_on_a_sibling_goes_to_the_call_behind_the_anchor():
    waits = waiting(call("a"))
    known = seen([output("a", "21 °C")], keys=wanted([user()], open_calls=waits))
    made = guarded([user()], mode=Guarding.MEND, anchored=True, open_calls=waits, evidence=known)
    assert made.items == [output("a", "21 °C"), user()]


def test_an_output_for_which_the_anchor_has_no_call_is_removed():
    waits = waiting(call("a"))
    delta = [output("a"), output("gone"), user()]
    made = guarded(delta, mode=Guarding.MEND, anchored=True, open_calls=waits)
    assert made.items == [output("a"), user()]
    assert made.origins == [0, 2]


def test_what_the_provider_has_twice_cannot_be_mended_here():
    waits = waiting(call("a"), call("a"))
    made = guarded([output("a")], mode=Guarding.MEND, anchored=True, open_calls=waits)
    assert rules.ID_REUSED_WHILE_OPEN in rules_of(made)
    assert made.items is None


_deltas = st.lists(
    st.one_of(
        st.sampled_from("abcd").map(output),
        st.sampled_from("cd").map(call),
        st.just(user()),
        st.just(said()),
        st.just(reasoning()),
    ),
    max_size=6,
)


@settings(max_examples=examples(400))
@given(st.lists(st.sampled_from("abc"), unique=True), _deltas)
def test_a_mended_delta_is_whole_behind_its_anchor(keys, delta):
    behind = [call(key) for key in keys]
    made = guarded(delta, mode=Guarding.MEND, anchored=True, open_calls=waiting(*behind))
    if made.items is None:
        assert not made.findings or not lockstitch.mend([*behind, *delta])[len(behind) :]
        return
    assert lockstitch.check([*behind, *made.items]) == []
    again = guarded(made.items, mode=Guarding.MEND, anchored=True, open_calls=waiting(*behind))
    assert again == UNTOUCHED


@settings(max_examples=examples(200))
@given(_deltas)
def test_a_delta_behind_an_anchor_that_waits_for_nothing_is_judged_as_a_history(delta):
    made = guarded(delta, mode=Guarding.REPORT, anchored=True, open_calls=[])
    assert list(made.findings) == lockstitch.check(delta)


def test_a_reference_may_stand_for_anything_behind_an_anchor_too():
    delta = [{"type": "item_reference", "id": "fc_1"}, output("c")]
    waits = waiting(call("a"))
    assert guarded(delta, mode=Guarding.REFUSE, anchored=True, open_calls=waits) == UNTOUCHED
