"""Pairing: which calls are open, and what is wrong, in one pass."""

from __future__ import annotations

import sys
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core import families, rules, seen
from lockstitch.core.families import CUSTOM, FUNCTION, LOCAL_SHELL, MCP_APPROVAL, PROGRAM
from lockstitch.core.groups import Cut
from lockstitch.core.items import Item, Part, Place
from lockstitch.core.outcomes import Evidence, Outcome
from lockstitch.core.pairing import Order, Pairing, answered
from tests.core.built import SAID, USER, call, output, pair, reasoning
from tests.generated import examples
from tests.timing import least_seconds

REFERENCE = Item(Part.REFERENCE)
FINISHED = Evidence(Outcome.FINISHED, "finished with exit code 0", "ok", at=1)


def found(*items, order=Order.ANYWHERE, anchored=False):
    """Findings of a history with one core item at each position."""
    return pair(
        [(item, at) for at, item in enumerate(items)],
        order,
        anchored=anchored,
    )


def codes(findings):
    return [(finding.code, finding.place.at) for finding in findings]


def fed(*items, **more):
    pairing = Pairing(**more)
    for at, item in enumerate(items):
        pairing.add(item, at)
    return pairing


# --- open calls, at any point ------------------------------------------------------------------


def test_the_open_calls_are_known_at_any_point():
    pairing = Pairing()
    steps = [
        (call("a"), ["a"]),
        (call("b"), ["a", "b"]),
        (SAID, ["a", "b"]),
        (output("b"), ["a"]),
        (call("b"), ["a", "b"]),
        (output("a"), ["b"]),
        (output("x"), ["b"]),
        (output("b"), []),
    ]
    for at, (item, open_now) in enumerate(steps):
        pairing.add(item, at)
        assert [one.item.key for one in pairing.open_calls()] == open_now
        assert all(pairing.open_call(key) is not None for key in open_now)


def test_the_call_that_an_output_would_answer_now_is_the_first_one_still_open():
    pairing = fed(call("a", name="first"), call("a", name="second"))
    assert pairing.open_call("a").item.name == "first"
    pairing.add(output("a"), 2)
    assert pairing.open_call("a").item.name == "second"
    assert pairing.open_call("nobody") is None


def test_open_calls_come_in_the_order_they_were_made_whatever_their_keys():
    pairing = fed(call("z"), call("a"), call("z"), call("m"))
    assert [one.place for one in pairing.open_calls()] == [Place(n) for n in range(4)]


def test_a_call_with_two_keys_is_open_once():
    pairing = fed(call("a", LOCAL_SHELL, alias="lsh_1"))
    assert len(pairing.open_calls()) == 1
    assert pairing.open_call("a") is pairing.open_call("lsh_1")


def test_a_repr_shows_what_is_open():
    assert repr(fed(call("a"), call("b"), output("a"))) == "<Pairing ANYWHERE, open: ['b']>"
    assert repr(fed(call("a", name="t")).open_calls()[0]) == "<OpenCall a (t) at 0>"


# --- pairs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", families.ALL_FAMILIES, ids=lambda f: f.name)
def test_a_call_and_its_output_are_a_pair_in_every_family(family):
    assert found(USER, call("a", family), output("a", family)) == []


def test_an_empty_history_is_whole():
    assert found() == []


def test_a_call_without_an_output_is_found_where_it_stands():
    (finding,) = found(USER, call("a", name="get_weather"), SAID)
    assert (finding.code, finding.place) == ("LS001", Place(1))
    assert (finding.key, finding.name, finding.family) == ("a", "get_weather", FUNCTION)
    assert finding.after == Place(1)


def test_an_output_without_a_call_is_found_where_it_stands():
    (finding,) = found(USER, output("a", name="t"))
    assert (finding.code, finding.place, finding.key) == ("LS002", Place(1), "a")
    assert finding.family is None


def test_an_output_before_its_call_is_one_finding_not_two():
    (finding,) = found(output("a"), USER, call("a"))
    assert (finding.code, finding.place, finding.other) == ("LS003", Place(0), Place(2))
    assert finding.after == Place(2)


def test_an_early_output_of_another_family_is_no_output_of_the_call():
    assert codes(found(output("a", CUSTOM), call("a"))) == [("LS002", 0), ("LS001", 1)]


def test_a_second_output_is_found_with_the_first():
    (finding,) = found(call("a"), output("a"), USER, output("a"))
    assert (finding.code, finding.place, finding.other) == ("LS004", Place(3), Place(1))


def test_of_three_outputs_two_are_too_many():
    assert codes(found(call("a"), output("a"), output("a"), output("a"))) == [
        ("LS004", 2),
        ("LS004", 3),
    ]


def test_findings_come_in_the_order_of_their_places():
    findings = found(output("x"), call("a"), call("b"), output("b"), output("b"))
    assert codes(findings) == [("LS002", 0), ("LS010", 1), ("LS004", 4)]


# --- families ----------------------------------------------------------------------------------


def test_an_output_of_another_family_does_not_answer():
    (finding,) = found(call("a", CUSTOM), output("a", FUNCTION))
    assert (finding.code, finding.place, finding.other) == ("LS006", Place(1), Place(0))
    assert finding.family is CUSTOM
    assert finding.detail == "function_call_output"
    assert finding.answer is None


def test_the_right_output_may_still_come_after_one_of_the_wrong_family():
    (finding,) = found(call("a", CUSTOM), output("a", FUNCTION), output("a", CUSTOM))
    assert (finding.code, finding.place, finding.answer) == ("LS006", Place(1), Place(2))


def test_a_second_output_of_the_wrong_family_is_a_second_output():
    assert codes(found(call("a", CUSTOM), output("a", FUNCTION), output("a", families.SHELL))) == [
        ("LS006", 1),
        ("LS004", 2),
    ]


@pytest.mark.parametrize("family", [LOCAL_SHELL, FUNCTION], ids=lambda f: f.name)
def test_a_local_shell_call_takes_both_of_its_answers(family):
    assert found(call("a", LOCAL_SHELL), output("a", family)) == []


def test_a_function_call_does_not_take_the_answer_of_a_local_shell():
    assert codes(found(call("a", FUNCTION), output("a", LOCAL_SHELL))) == [("LS006", 1)]


def test_a_local_shell_call_is_answered_through_its_item_id_too():
    assert found(call("a", LOCAL_SHELL, alias="lsh_1"), output("lsh_1", LOCAL_SHELL)) == []


def test_both_answers_to_one_local_shell_call_are_one_too_many():
    (finding,) = found(
        call("a", LOCAL_SHELL, alias="lsh_1"), output("a", FUNCTION), output("lsh_1", LOCAL_SHELL)
    )
    assert (finding.code, finding.place, finding.other) == ("LS004", Place(2), Place(1))


def test_a_function_output_is_joined_to_a_local_shell_call_by_call_id_alone():
    # "Codex answers it with `function_call_output` joined by `call_id`": never by the item's id.
    findings = found(call("a", LOCAL_SHELL, alias="lsh_1"), output("lsh_1", FUNCTION))
    assert ("LS002", 1) in codes(findings)


@pytest.mark.parametrize("outputs", [(FUNCTION, CUSTOM), (CUSTOM, FUNCTION)])
def test_a_key_shared_by_two_families_still_leads_each_output_to_its_own_call(outputs):
    # "an output needs an earlier call with the same `call_id` and family"
    findings = found(
        call("a", FUNCTION), call("a", CUSTOM), *(output("a", family) for family in outputs)
    )
    assert {code for code, _ in codes(findings)} <= {"LS005"}


def test_an_output_is_not_taken_from_its_own_call_by_one_of_another_family():
    pairing = fed(call("a", CUSTOM, name="other"), call("a", FUNCTION, name="own"), output("a"))
    assert [one.item.name for one in pairing.open_calls()] == ["other"]


# --- ids used more than once -------------------------------------------------------------------


def test_an_id_that_is_used_again_while_open_is_found_with_its_first_use():
    findings = found(call("a"), call("a"), output("a"), output("a"))
    assert codes(findings) == [("LS005", 1)]
    assert findings[0].other == Place(0)
    assert findings[0].answer == Place(3)


def test_an_id_that_is_used_again_after_its_output_is_fine():
    rounds = [item for _ in range(4) for item in (call("a"), output("a"), USER)]
    assert found(*rounds) == []


def test_calls_and_outputs_are_paired_in_order_of_appearance():
    (finding,) = found(call("a"), output("a"), call("a"), output("a"), output("a"))
    assert (finding.code, finding.place, finding.other) == ("LS004", Place(4), Place(3))
    (finding,) = found(call("a"), output("a"), call("a"))
    assert (finding.code, finding.place) == ("LS001", Place(2))


def named(part, key=None):
    """A call or an output of a dialect that joins them by name where one of them has no id."""
    alias = None if key is None else "f"
    return Item(part, families.GEMINI_FUNCTION, key or "f", alias, name="f")


def test_calls_of_one_name_are_answered_in_order_and_by_id_where_both_have_one():
    calls = [named(Part.CALL, key) for key in ("1", "2", "3")]
    pairing = fed(*calls, named(Part.OUTPUT, "3"), named(Part.OUTPUT))
    assert [call.item.key for call in pairing.open_calls()] == ["2"]


def test_an_output_without_an_id_prefers_a_call_without_one():
    pairing = fed(named(Part.CALL, "1"), named(Part.CALL), named(Part.OUTPUT))
    assert [call.item.key for call in pairing.open_calls()] == ["1"]


def test_an_output_with_an_id_answers_a_call_without_one_but_none_of_another_id():
    assert found(named(Part.CALL), named(Part.OUTPUT, "9")) == []
    findings = found(named(Part.CALL, "1"), named(Part.OUTPUT, "9"))
    assert codes(findings) == [("LS001", 0), ("LS002", 1)]


def test_a_name_means_the_calls_of_the_newest_turn():
    findings = found(named(Part.CALL), USER, named(Part.CALL), named(Part.OUTPUT))
    assert codes(findings) == [("LS001", 0)]
    late = found(named(Part.CALL, "1"), USER, named(Part.CALL), named(Part.OUTPUT, "1"))
    assert codes(late) == [("LS001", 2)]


def test_an_early_output_that_only_a_name_joins_is_not_given_to_a_later_call():
    findings = found(named(Part.OUTPUT), USER, named(Part.CALL))
    assert codes(findings) == [("LS002", 0), ("LS001", 2)]
    by_id = found(named(Part.OUTPUT, "1"), named(Part.CALL, "1"))
    assert codes(by_id) == [("LS003", 0)]


def test_outputs_that_must_stand_in_one_message_are_found_in_two():
    calls = [named(Part.CALL, "1"), named(Part.CALL, "2")]
    answers = [named(Part.OUTPUT, "1"), named(Part.OUTPUT, "2")]
    assert codes(found(*calls, *answers, order=Order.NEXT_TURN)) == [("LS009", 3)]


def test_many_calls_of_one_name_that_nobody_answers_cost_no_more_each():
    def seconds(count):
        turns = [item for _ in range(count) for item in (named(Part.CALL), USER)]
        outputs = [named(Part.OUTPUT) for _ in range(count)]
        return least_seconds(lambda: found(*turns, *outputs))

    assert seconds(8_000) < 12 * seconds(2_000)


def test_the_turn_after_the_calls_begins_with_whatever_output_comes_first():
    own = Item(Part.CALL, families.TOOL_USE, "a")
    other = Item(Part.OUTPUT, families.TOOL_USE, "b")
    answer = Item(Part.OUTPUT, families.TOOL_USE, "a")
    findings = found(own, other, SAID, answer, order=Order.NEXT_TURN)
    late = next(finding for finding in findings if finding.code == "LS009")
    assert late.into == 1


@pytest.mark.parametrize(
    "part", [Part.MODEL, Part.INPUT, Part.REASONING, Part.OTHER, Part.REFERENCE, Part.CALL]
)
def test_an_item_id_is_used_once(part):
    family, key = (FUNCTION, "a") if part is Part.CALL else (None, None)
    twice = Item(part, family, key, id="same")
    findings = found(Item(Part.MODEL, id="same"), twice, SAID, output("a"))
    (finding,) = [f for f in findings if f.rule is rules.DUPLICATE_ITEM_ID]
    assert (finding.place, finding.key, finding.other) == (Place(1), "same", Place(0))


def test_the_id_of_an_output_is_used_once_too():
    findings = found(call("a"), call("b"), output("a", id="same"), output("b", id="same"))
    assert codes(findings) == [("LS008", 3)]


def test_an_output_that_is_there_twice_is_one_finding():
    assert codes(found(call("a"), output("a", id="o"), output("a", id="o"))) == [("LS004", 2)]


def test_items_without_ids_are_never_duplicates():
    assert found(USER, USER, SAID, SAID) == []


# --- reasoning ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "follower", [SAID, call("a"), REFERENCE, Item(Part.OTHER)], ids=lambda item: item.part.value
)
def test_reasoning_is_followed_by_what_it_led_to(follower):
    assert found(USER, reasoning(), follower, output("a", lone=True)) == []


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ([], "nothing"),
        ([USER], "a message from outside"),
        ([output("a", lone=True)], "an output"),
    ],
)
def test_reasoning_that_lost_its_follower_is_found(rest, said):
    (finding,) = found(USER, reasoning(), *rest)
    assert (finding.code, finding.place, finding.key) == ("LS007", Place(1), "rs_1")
    assert finding.detail == said


def test_several_reasoning_items_may_lead_to_one_call():
    assert found(reasoning("rs_1"), reasoning("rs_2"), call("a"), output("a")) == []
    assert codes(found(reasoning("rs_1"), reasoning("rs_2"), USER)) == [("LS007", 0), ("LS007", 1)]


def test_reasoning_without_an_id_binds_nobody():
    assert found(reasoning(None), USER) == []


# --- deltas and references ---------------------------------------------------------------------


def test_a_lone_output_is_right_behind_an_anchor():
    assert found(output("a"), output("b"), USER, anchored=True) == []


def test_an_open_call_is_wrong_behind_an_anchor_as_well():
    assert codes(found(output("a"), call("b"), anchored=True)) == [("LS001", 1)]


def test_a_second_output_is_wrong_behind_an_anchor_as_well():
    assert codes(found(call("a"), output("a"), output("a"), anchored=True)) == [("LS004", 2)]


def test_the_call_behind_the_anchor_takes_one_output_like_any_other():
    # "a call needs exactly one output"; the same result twice after a retry is a class of its own.
    assert codes(found(output("a"), output("a"), anchored=True)) == [("LS004", 1)]


def test_a_call_whose_output_may_be_behind_a_reference_is_not_accused():
    assert found(call("a"), REFERENCE) == []
    assert codes(found(REFERENCE, call("a"))) == [("LS001", 1)]


def test_an_output_whose_call_may_be_behind_a_reference_is_not_accused():
    assert found(REFERENCE, output("a")) == []
    assert codes(found(output("a"), REFERENCE)) == [("LS002", 0)]


def test_a_reference_hides_no_second_output():
    assert codes(found(call("a"), output("a"), REFERENCE, output("a"))) == [("LS004", 3)]


# --- groups ------------------------------------------------------------------------------------


def test_of_calls_made_at_once_the_unanswered_are_found_with_the_count():
    findings = found(call("a"), call("b"), call("c"), output("b"), USER)
    assert codes(findings) == [("LS010", 0), ("LS010", 2)]
    assert findings[0].detail == "while 1 of the 3 calls made at once has one"
    assert all(finding.after == Place(2) for finding in findings)


def test_calls_of_which_none_is_answered_are_simply_unanswered():
    assert codes(found(call("a"), call("b"))) == [("LS001", 0), ("LS001", 1)]


@pytest.mark.parametrize("between", [USER, output("a")], ids=["input", "output"])
def test_an_input_or_an_output_ends_a_group(between):
    items = [call("a"), between, call("b")]
    last = found(*items, output("x", lone=True))[-1]
    assert last.key == "b"
    assert last.code == "LS001"


def test_words_of_the_model_do_not_end_a_group():
    findings = found(call("a"), SAID, reasoning(), call("b"), output("b"))
    assert codes(findings) == [("LS010", 0)]
    assert findings[0].after == Place(3)


def test_the_servers_own_calls_are_no_part_of_a_group():
    assert codes(found(call("a"), call("p", PROGRAM), output("p", PROGRAM))) == [("LS001", 0)]


# --- calls that may stay open ------------------------------------------------------------------


def test_the_server_may_still_answer_until_the_conversation_goes_on():
    assert found(USER, call("p", PROGRAM), call("a"), output("a")) == []
    assert codes(found(call("p", PROGRAM), USER)) == [("LS001", 0)]


def test_a_lone_call_may_stand_alone():
    assert found(call(None, families.TOOL_SEARCH, lone=True), USER) == []


def test_a_lone_output_may_stand_alone():
    assert found(output(None, families.TOOL_SEARCH, lone=True), USER) == []


def test_calls_without_a_key_are_joined_by_position():
    search = families.TOOL_SEARCH
    assert (
        found(call(None, search), output(None, search), call(None, search), output(None, search))
        == []
    )
    assert codes(found(call(None, search), call(None, search), output(None, search))) == [
        ("LS010", 1)
    ]


# --- adjacency ---------------------------------------------------------------------------------


def messages(*wires, order):
    """Findings where each position holds several core items."""
    items = []
    for at, wire in enumerate(wires):
        items += [
            (Item(i.part, i.family, i.key, slot=slot, note=i.note), at)
            for slot, i in enumerate(wire)
        ]
    return pair(items, order)


CHAT = families.CHAT_TOOL
USE = families.TOOL_USE


@pytest.mark.parametrize("between", [USER, SAID, Item(Part.OTHER)], ids=lambda i: i.part.value)
def test_where_outputs_come_next_nothing_may_come_between(between):
    (finding,) = found(call("a", CHAT), between, output("a", CHAT), order=Order.NEXT)
    assert (finding.code, finding.place) == ("LS009", Place(2))
    assert finding.other == Place(1)
    assert finding.after == Place(0)


def test_where_outputs_come_next_those_of_one_message_may_come_in_any_order():
    assert (
        messages(
            [call("a", CHAT), call("b", CHAT)],
            [output("b", CHAT)],
            [output("a", CHAT)],
            [USER],
            order=Order.NEXT,
        )
        == []
    )


def test_where_outputs_come_next_a_second_message_with_calls_comes_between():
    findings = found(
        call("a", CHAT), call("b", CHAT), output("a", CHAT), output("b", CHAT), order=Order.NEXT
    )
    assert codes(findings) == [("LS009", 2)]


def test_where_outputs_come_next_every_late_one_is_found():
    findings = messages(
        [call("a", CHAT), call("b", CHAT), call("c", CHAT)],
        [output("a", CHAT)],
        [USER],
        [output("b", CHAT)],
        [output("c", CHAT)],
        order=Order.NEXT,
    )
    assert codes(findings) == [("LS009", 3), ("LS009", 4)]


def test_where_outputs_come_in_the_next_turn_they_come_first_in_it():
    whole = messages([call("a", USE)], [output("a", USE), USER], order=Order.NEXT_TURN)
    assert whole == []
    (finding,) = messages([call("a", USE)], [USER, output("a", USE)], order=Order.NEXT_TURN)
    assert (finding.code, finding.place, finding.other) == ("LS009", Place(1, 1), Place(1, 0))
    assert finding.into == 1


def test_where_outputs_come_in_the_next_turn_the_models_turn_may_go_on_first():
    assert messages([call("a", USE)], [SAID], [output("a", USE)], order=Order.NEXT_TURN) == []


def test_where_outputs_come_in_the_next_turn_a_later_turn_is_too_late():
    (finding,) = messages(
        [call("a", USE)], [USER], [SAID], [output("a", USE)], order=Order.NEXT_TURN
    )
    assert (finding.code, finding.place, finding.into) == ("LS009", Place(3), 1)


def test_an_open_call_knows_the_turn_that_its_output_belongs_into():
    (finding,) = messages([call("a", USE)], [USER], [SAID], order=Order.NEXT_TURN)
    assert (finding.code, finding.into) == ("LS001", 1)


def test_where_outputs_may_stand_anywhere_anything_may_come_between():
    assert found(call("a"), USER, SAID, output("a")) == []


# --- evidence ----------------------------------------------------------------------------------


def read(testimony, at):
    return Evidence(testimony, "finished" if testimony is Outcome.FINISHED else "?", at=at)


def test_an_open_call_is_found_with_what_a_witness_says():
    pairing = fed(call("a"), read=read)
    pairing.witness("a", Outcome.FINISHED, 5)
    (finding,) = pairing.finish()
    assert finding.evidence == Evidence(Outcome.FINISHED, "finished", at=5)


def test_the_last_witness_counts():
    pairing = fed(call("a"), read=read)
    pairing.witness("a", Outcome.UNKNOWN, 4)
    pairing.witness("a", Outcome.FINISHED, 5)
    assert pairing.finish()[0].evidence.at == 5


def test_testimony_is_read_only_where_it_is_needed():
    reads = []
    pairing = fed(call("a"), read=lambda testimony, at: reads.append(at))
    pairing.witness("a", "a long line", 1)
    pairing.add(output("a", note="ok"), 2)
    assert pairing.finish() == []
    assert reads == []


def test_a_witness_of_nobody_is_not_heard():
    pairing = fed(call("a"), output("a"), read=read)
    pairing.witness("a", Outcome.FINISHED, 2)
    pairing.witness("x", Outcome.FINISHED, 3)
    assert pairing.finish() == []


@pytest.mark.parametrize("witness_first", [True, False])
def test_an_output_that_denies_what_a_witness_saw_is_contradicted(witness_first):
    pairing = fed(call("a"), read=read)
    if witness_first:
        pairing.witness("a", Outcome.FINISHED, 1)
        pairing.add(output("a", note="aborted by user"), 2)
    else:
        pairing.add(output("a", note="aborted by user"), 2)
        pairing.witness("a", Outcome.FINISHED, 3)
    (finding,) = pairing.finish()
    assert (finding.code, finding.place) == ("LS012", Place(2))
    assert finding.detail == '"aborted by user"'
    assert finding.evidence.outcome is Outcome.FINISHED


def test_a_long_denial_is_quoted_in_short():
    pairing = fed(call("a"), read=read)
    pairing.witness("a", Outcome.FINISHED, 1)
    pairing.add(output("a", note="aborted\n" + "because of that " * 10), 2)
    (finding,) = pairing.finish()
    assert len(finding.detail) == 42
    assert finding.detail.endswith('..."')


@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.NEVER_STARTED])
def test_only_a_witness_who_saw_it_finish_contradicts(outcome):
    pairing = fed(call("a"), read=read)
    pairing.witness("a", outcome, 1)
    pairing.add(output("a", note="aborted"), 2)
    assert pairing.finish() == []


def test_an_honest_output_is_never_contradicted():
    pairing = fed(call("a"), read=read)
    pairing.witness("a", Outcome.FINISHED, 1)
    pairing.add(output("a", note="exit code 1"), 2)
    assert pairing.finish() == []


def test_an_approval_that_nobody_gave_is_evidence_that_nothing_was_started():
    (finding,) = found(call("mcpr_1", MCP_APPROVAL))
    assert finding.evidence.outcome is Outcome.NEVER_STARTED


@pytest.mark.parametrize("family", [FUNCTION, families.SHELL, families.COMPUTER])
def test_no_evidence_is_made_up_for_any_other_call(family):
    (finding,) = found(call("a", family))
    assert finding.evidence is None


# --- cuts --------------------------------------------------------------------------------------


def test_an_output_whose_call_was_cut_away_is_half_a_pair():
    pairing = fed(output("a"), cut={"a": Cut(9, "compaction")})
    (finding,) = pairing.finish()
    assert (finding.code, finding.other, finding.detail) == ("LS011", Place(9), "compaction")
    assert finding.family is None


def test_a_call_whose_output_was_cut_away_is_half_a_pair():
    pairing = fed(call("a"))
    pairing.lose("a", Cut(9, "rollback"))
    pairing.lose("nobody", Cut(9, "rollback"))
    (finding,) = pairing.finish()
    assert (finding.code, finding.other, finding.detail) == ("LS011", Place(9), "rollback")
    assert finding.family is FUNCTION


# --- what is certain already -------------------------------------------------------------------


def test_a_finding_that_is_certain_already_is_told_at_once():
    pairing = fed(call("a"), output("a"))
    certain = pairing.add(output("a"), 2)
    assert certain is not None
    assert (certain.code, certain.place) == ("LS004", Place(2))
    assert pairing.finish() == [certain]


def test_an_output_that_may_still_get_its_call_is_no_finding_yet():
    pairing = Pairing()
    assert pairing.add(output("a"), 0) is None
    assert pairing.add(call("a"), 1) is None
    assert codes(pairing.finish()) == [("LS003", 0)]


# --- outputs that answer calls one for one ----------------------------------------------------


def behind(calls, items, order):
    """What a pass finds in items behind calls that wait for their outputs."""
    pairing = Pairing(order)
    for at, item in enumerate(calls):
        pairing.wait_for(item, at)
    for at, parts in enumerate(items, len(calls)):
        for item in parts:
            pairing.add(item, at)
    return pairing.finish()


few_families = st.sampled_from([FUNCTION, CUSTOM, LOCAL_SHELL, PROGRAM])
few_keys = st.sampled_from([None, *"abc"])
rarely = st.sampled_from([*[False] * 7, True])
waiting_calls = st.builds(
    call,
    few_keys,
    few_families,
    id=st.sampled_from([None, "1", "2"]),
    alias=st.sampled_from([*[None] * 7, *"ab"]),
    joining_id=st.sampled_from([*[None] * 7, "1"]),
    lone=rarely,
)
following = st.one_of(
    st.builds(
        output,
        few_keys,
        few_families,
        id=st.sampled_from([*[None] * 7, "1", "2"]),
        note=st.sampled_from([None, "ok", "aborted"]),
        lone=rarely,
        misplaced=rarely,
    ),
    st.sampled_from([USER, SAID, REFERENCE, reasoning(), call("a")]),
)


@st.composite
def calls_and_what_follows(draw):
    """Calls, and mostly their outputs behind them, in any order and in any messages."""
    calls = draw(st.lists(waiting_calls, max_size=3))
    own = draw(st.permutations([output(one.key, one.family) for one in calls]))
    missing = draw(st.integers(0, 1))
    items = [*own[missing:], *draw(st.lists(following, max_size=1))]
    cut = draw(st.integers(0, len(items)))
    return calls, [items[:cut], items[cut:]]


@pytest.mark.parametrize("order", Order, ids=lambda order: order.name)
@settings(max_examples=examples(200))
@given(
    st.one_of(
        calls_and_what_follows(),
        st.tuples(
            st.lists(waiting_calls, max_size=3),
            st.lists(st.lists(following, max_size=2), max_size=3),
        ),
    )
)
def test_where_outputs_answer_calls_one_for_one_a_pass_finds_nothing(order, drawn):
    calls, items = drawn
    if answered(calls, items):
        assert behind(calls, items, order) == []


def test_outputs_answer_calls_one_for_one_in_any_order_and_in_any_messages():
    calls = [call("a"), call("b", CUSTOM), call("c", id="fc_1")]
    outputs = [output("c", note="aborted"), output("a"), output("b", CUSTOM)]
    assert answered(calls, [[one] for one in outputs])
    assert answered(calls, [outputs])
    assert answered([], [])


@pytest.mark.parametrize(
    ("calls", "items"),
    [
        ([call("a")], []),
        ([call("a")], [output("b")]),
        ([call("a")], [output("a"), output("a")]),
        ([call("a")], [output("a", CUSTOM)]),
        ([call("a")], [output("a"), USER]),
        ([call("a")], [output("a", id="x")]),
        ([call("a")], [output("a", misplaced=True)]),
        ([call("a")], [output(None)]),
        ([call("a"), call("a")], [output("a"), output("a")]),
        ([call("a"), call("a")], [output("a")]),
        ([call(None)], [output(None)]),
        ([call("a", lone=True)], [output("a")]),
        ([call("a", LOCAL_SHELL, alias="b")], [output("a", LOCAL_SHELL)]),
        ([call("a", MCP_APPROVAL, joining_id="a")], [output("a", MCP_APPROVAL)]),
        ([call("a", PROGRAM)], [output("a", PROGRAM)]),
        ([call("a", LOCAL_SHELL)], [output("a")]),
        ([], [output("a")]),
        ([], [Item(Part.OUTPUT)]),
    ],
)
def test_whatever_is_less_plain_needs_a_pass(calls, items):
    assert not answered(calls, [[item] for item in items])


# --- memory that does not grow -----------------------------------------------------------------

core_items = st.lists(
    st.one_of(
        st.builds(call, st.sampled_from("abcdef"), id=st.sampled_from([None, *"123456"])),
        st.builds(output, st.sampled_from("abcdef"), id=st.sampled_from([None, *"123456"])),
        st.just(USER),
    ),
    max_size=40,
)


@settings(max_examples=examples(200))
@given(core_items)
def test_a_reading_with_a_filter_and_one_that_watches_find_what_an_exact_one_finds(items):
    exact = found(*items)
    with mock.patch.object(seen, "EXACT_IDS", 2), mock.patch.object(seen, "FILTER_WORDS", 2):
        pairing = fed(*items)
        watching = pairing.again()
        if watching is not None:
            pairing = watching
            for at, item in enumerate(items):
                pairing.add(item, at)
            assert pairing.again() is None
        assert pairing.finish() == exact


def test_a_small_history_needs_no_second_pass():
    assert fed(call("a", id="x"), output("a"), output("a"), call("b", id="x")).again() is None


def test_a_second_pass_wants_what_the_first_one_wanted(monkeypatch):
    monkeypatch.setattr(seen, "EXACT_IDS", 1)
    items = [call("a"), output("a"), call("b"), output("b"), output("cut")]
    cut = {"cut": Cut(9, "compaction")}
    first = fed(*items, order=Order.NEXT, cut=cut, read=read)
    second = first.again()
    assert second is not None
    assert second.order is Order.NEXT
    for at, item in enumerate(items):
        second.add(item, at)
    assert codes(second.finish()) == [("LS011", 4)]


# --- cost --------------------------------------------------------------------------------------


def lines_run(pairing, items, start):
    """How many lines of Python it takes to add these items: the same on every machine."""
    count = 0

    def tracer(frame, event, arg):
        nonlocal count
        count += event == "line"
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        for at, item in enumerate(items, start):
            pairing.add(item, at)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("order", Order, ids=lambda order: order.name)
def test_an_item_costs_the_same_after_fifty_thousand_others(order):
    def rounds(first, last):
        for n in range(first, last):
            yield from (
                Item(Part.INPUT, id=f"msg_{n}"),
                Item(Part.REASONING, id=f"rs_{n}"),
                call(f"call_{n}", id=f"fc_{n}"),
                output(f"call_{n}", id=f"out_{n}"),
                call(f"never_answered_{n}"),
            )

    pairing = Pairing(order)
    early = lines_run(pairing, rounds(0, 100), 0)
    for at, item in enumerate(rounds(100, 10_000), 500):
        pairing.add(item, at)
    late = lines_run(pairing, rounds(10_000, 10_100), 50_000)
    assert late <= early * 1.2


def whole(n):
    return [item for k in range(n) for item in (call(f"call_{k}"), output(f"call_{k}"))]


def one_key(n):
    return [call("a")] * n + [output("a")] * n


def orphans(n):
    return [output(f"call_{k}") for k in range(n)]


def one_alias(n):
    calls = [call(f"call_{k}", LOCAL_SHELL, alias="lsh_1") for k in range(n)]
    return calls + [output(f"call_{k}", LOCAL_SHELL) for k in reversed(range(n))]


def one_key_of_another_family(n):
    return [call("a")] * n + [output("a", CUSTOM), output("a")] * n


def one_alias_of_another_family(n):
    calls = [call(f"call_{k}", LOCAL_SHELL, alias="a") for k in range(n)]
    return calls + [output("a")] * n


def approvals_of_one_key(n):
    asked = families.VERCEL_APPROVAL
    tool = Item(Part.CALL, families.VERCEL_TOOL, "a")
    return [item for k in range(n) for item in (tool, Item(Part.CALL, asked, f"p{k}", about="a"))]


@pytest.mark.parametrize(
    "history",
    [
        *(whole, one_key, orphans, one_alias, approvals_of_one_key),
        *(one_key_of_another_family, one_alias_of_another_family),
    ],
)
def test_ten_times_the_items_cost_about_ten_times_as_much(history):
    def seconds(count):
        items = history(count)
        return least_seconds(lambda: found(*items))

    # Quadratic work takes more than sixty times as long; the limit is far from both.
    assert seconds(6_000) < 30 * max(seconds(600), 0.001)


# --- outputs before the next message from outside ----------------------------------------------


def before_input(*items):
    pairing = Pairing(Order.BEFORE_INPUT)
    for at, item in enumerate(items):
        pairing.add(item, at)
    return [(finding.code, finding.place.at) for finding in pairing.finish()]


ASKING = families.VERCEL_APPROVAL
A_CALL = call("a", families.VERCEL_TOOL)
A_REQUEST = Item(Part.CALL, ASKING, "approval 1", about="a")
DENIED = Item(Part.OUTPUT, ASKING, "approval 1")
APPROVED = Item(Part.OUTPUT, ASKING, "approval 1", approved=True)
AN_OUTPUT = output("a", families.VERCEL_TOOL)


def test_the_model_may_say_more_before_an_output_but_nobody_else_may():
    assert before_input(USER, A_CALL, SAID, AN_OUTPUT) == []
    assert before_input(USER, A_CALL, USER, AN_OUTPUT) == [("LS009", 3)]


@pytest.mark.parametrize("decision", [APPROVED, DENIED])
def test_a_call_whose_approval_was_answered_last_waits_for_whoever_continues(decision):
    assert before_input(USER, A_CALL, A_REQUEST, decision) == []
    assert before_input(USER, A_CALL, A_REQUEST, decision, SAID) == [("LS001", 1)]
    assert before_input(USER, A_CALL, A_REQUEST, USER, decision) == [("LS001", 1), ("LS009", 4)]


def test_a_request_about_no_call_is_an_orphan_and_so_is_its_answer():
    assert before_input(USER, A_REQUEST, APPROVED) == [("LS002", 1), ("LS002", 2)]


def test_a_request_about_a_call_that_was_cut_off_goes_with_it():
    cut_off = Item(Part.CALL, families.VERCEL_TOOL, "a", partial=True)
    assert before_input(USER, cut_off, A_REQUEST) == [("LS014", 1), ("LS014", 2)]
