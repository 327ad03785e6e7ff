"""Mending: for every rule its edit, under every policy."""

from __future__ import annotations

import pytest

from lockstitch.core import families, rules
from lockstitch.core.families import CUSTOM, FUNCTION, MCP_APPROVAL
from lockstitch.core.findings import Finding
from lockstitch.core.groups import Cut
from lockstitch.core.items import Item, Part, Place
from lockstitch.core.mending import (
    Drop,
    Move,
    Policy,
    Rekey,
    Retype,
    Reword,
    Settle,
    StripId,
    describe,
    plan,
    shown_at,
)
from lockstitch.core.outcomes import NEVER_STARTED_TEXT, UNKNOWN_TEXT, Evidence, Outcome
from lockstitch.core.pairing import Order, Pairing
from tests.core.built import SAID, USER, call, output, pair, reasoning
from tests.timing import least_seconds

FINISHED = Evidence(Outcome.FINISHED, "finished with exit code 0", "21 degrees", at=4)


def planned(*items, policy=None, order=Order.ANYWHERE, evidence=None):
    findings = pair([(item, at) for at, item in enumerate(items)], order)
    return plan(findings, policy, evidence=evidence)


def finding(rule, **fields):
    return Finding(rule=rule, place=fields.pop("place", Place(3)), **fields)


# --- each rule has its edit --------------------------------------------------------------------


def test_a_call_without_an_output_is_settled_behind_the_calls_made_with_it():
    first, second = planned(call("a"), call("b"), USER)
    assert isinstance(first, Settle)
    assert (first.key, first.family, first.after) == ("a", FUNCTION, Place(1))
    assert (second.key, second.after) == ("b", Place(1))


def test_a_call_left_out_of_its_group_is_settled():
    (edit,) = planned(call("a"), call("b"), output("b"))
    assert isinstance(edit, Settle)
    assert edit.reason.rule is rules.GROUP_INCOMPLETE
    assert (edit.key, edit.after) == ("a", Place(1))


def test_an_output_without_a_call_is_removed():
    (edit,) = planned(USER, output("a"))
    assert isinstance(edit, Drop)
    assert edit.place == Place(1)


def test_an_output_before_its_call_is_moved_behind_it():
    (edit,) = planned(output("a"), USER, call("a"))
    assert isinstance(edit, Move)
    assert (edit.place, edit.after) == (Place(0), Place(2))


def test_an_output_that_something_parts_from_its_call_is_moved_back():
    (edit,) = planned(
        call("a", families.CHAT_TOOL),
        USER,
        output("a", families.CHAT_TOOL),
        order=Order.NEXT,
    )
    assert isinstance(edit, Move)
    assert (edit.place, edit.after) == (Place(2), Place(0))


def test_of_two_outputs_the_first_stays():
    (edit,) = planned(call("a"), output("a"), output("a"))
    assert isinstance(edit, Drop)
    assert edit.place == Place(2)


def test_of_two_outputs_the_last_stays_where_the_policy_says_so():
    drop, move = planned(call("a"), output("a"), USER, output("a"), policy=Policy(keep="last"))
    assert isinstance(drop, Drop)
    assert drop.place == Place(1)
    assert isinstance(move, Move)
    assert (move.place, move.after) == (Place(3), Place(0))


@pytest.mark.parametrize(
    "placeholder",
    [UNKNOWN_TEXT, NEVER_STARTED_TEXT, "aborted", "Tool call was cancelled by the user"],
)
def test_a_real_output_is_never_given_up_for_a_placeholder_that_came_first(placeholder):
    # "Evidence before synthesis": what the tool gave back stands in the same history.
    edits = planned(call("a"), output("a", note=placeholder), USER, output("a", note="21 degrees"))
    assert Place(3) not in [edit.place for edit in edits if isinstance(edit, Drop)]
    assert Place(1) in [edit.place for edit in edits if isinstance(edit, Drop)]


def test_an_id_used_again_is_replaced_in_the_call_and_in_its_output():
    edits = planned(call("a"), call("a"), output("a"), output("a"))
    assert all(isinstance(edit, Rekey) for edit in edits)
    assert [edit.place for edit in edits] == [Place(1), Place(3)]
    assert {edit.old for edit in edits} == {"a"}
    assert len({edit.new for edit in edits}) == 1


def test_ids_come_first_while_two_open_calls_share_one():
    edits = planned(call("a"), call("a"), output("x"), call("b"))
    assert edits
    assert all(isinstance(edit, Rekey) for edit in edits)


def test_every_use_of_a_shared_id_gets_one_of_its_own():
    edits = planned(call("a"), call("a"), call("a"))
    assert len({edit.new for edit in edits}) == len(edits) == 2
    slots = [Item(Part.CALL, families.CHAT_TOOL, "a", slot=n) for n in range(3)]
    edits = plan(pair([(item, 0) for item in slots], Order.NEXT))
    assert len({edit.new for edit in edits}) == len(edits) == 2


def test_an_output_of_the_wrong_family_is_made_one_of_its_calls():
    (edit,) = planned(call("a", CUSTOM), output("a", FUNCTION))
    assert isinstance(edit, Retype)
    assert (edit.place, edit.family) == (Place(1), CUSTOM)


def test_an_output_of_the_wrong_family_goes_where_the_right_one_came_later():
    (edit,) = planned(call("a", CUSTOM), output("a", FUNCTION), output("a", CUSTOM))
    assert isinstance(edit, Drop)
    assert edit.place == Place(1)


def test_reasoning_that_lost_its_follower_is_removed():
    (edit,) = planned(reasoning(), USER)
    assert isinstance(edit, Drop)
    assert edit.place == Place(0)


def test_reasoning_stays_where_removing_an_orphan_brings_its_follower_back():
    # "a call made with reasoning needs that reasoning item (when ids are sent)"
    edits = planned(reasoning(), output("x"), call("a", id="fc_1"), output("a"))
    assert [edit.place for edit in edits] == [Place(1)]


def test_reasoning_stays_where_moving_an_early_output_brings_its_follower_back():
    edits = planned(reasoning(), output("a"), call("a", id="fc_1"))
    assert [type(edit) for edit in edits] == [Move]


def test_a_call_or_an_output_with_a_duplicate_id_loses_the_id_and_stays():
    edits = planned(call("a", id="x"), call("b", id="x"), output("a", id="y"), output("b", id="y"))
    assert all(isinstance(edit, StripId) for edit in edits)
    assert [edit.place for edit in edits] == [Place(1), Place(3)]


@pytest.mark.parametrize("part", [Part.MODEL, Part.INPUT, Part.OTHER, Part.REFERENCE])
def test_any_other_item_that_is_there_twice_is_removed_once(part):
    (edit,) = planned(Item(part, id="x"), Item(part, id="x"))
    assert isinstance(edit, Drop)
    assert edit.place == Place(1)


def test_half_a_pair_is_settled_or_removed_by_which_half_it_is():
    pairing = Pairing(cut={"b": Cut(9, "compaction")})
    pairing.add(call("a"), 0)
    pairing.add(output("b"), 1)
    pairing.lose("a", Cut(9, "rollback"))
    settle, drop = plan(pairing.finish())
    assert isinstance(settle, Settle)
    assert settle.key == "a"
    assert isinstance(drop, Drop)
    assert drop.place == Place(1)


def test_an_output_that_evidence_contradicts_says_what_really_happened():
    (edit,) = plan([finding(rules.CONTRADICTED, key="a", evidence=FINISHED)])
    assert isinstance(edit, Reword)
    assert edit.settlement.outcome is Outcome.FINISHED
    assert edit.settlement.text.endswith("21 degrees")


@pytest.mark.parametrize("rule", [rules.UNDECODABLE, rules.ORDINAL, rules.NO_HEADER])
def test_what_is_wrong_with_a_file_is_left_to_its_format(rule):
    assert plan([finding(rule, detail="torn")]) == []


@pytest.mark.parametrize("code", [code for code in rules.RULES if code.startswith("LS0")])
def test_every_rule_about_calls_and_outputs_has_an_edit(code):
    found = finding(
        rules.RULES[code],
        key="a",
        family=FUNCTION,
        after=Place(0),
        other=Place(1),
        evidence=FINISHED,
        detail=Part.CALL.value,
    )
    edits = plan([found])
    assert edits
    assert all(edit.reason is found for edit in edits)


# --- outcomes and evidence ---------------------------------------------------------------------


def test_a_call_that_nobody_knows_of_is_settled_as_unknown():
    (edit,) = planned(call("a"))
    assert edit.settlement.outcome is Outcome.UNKNOWN
    assert edit.settlement.text == UNKNOWN_TEXT


def test_an_approval_that_nobody_gave_is_settled_as_never_started():
    (edit,) = planned(call("mcpr_1", MCP_APPROVAL))
    assert edit.settlement.outcome is Outcome.NEVER_STARTED
    assert edit.settlement.text.startswith(NEVER_STARTED_TEXT)


def test_a_call_that_a_witness_saw_finish_is_settled_with_its_output():
    (edit,) = plan(
        [finding(rules.NO_OUTPUT, key="a", family=FUNCTION, after=Place(3), evidence=FINISHED)]
    )
    assert edit.settlement.outcome is Outcome.FINISHED
    assert "21 degrees" in edit.settlement.text


@pytest.mark.parametrize("outcome", Outcome)
def test_what_the_caller_knows_of_a_call_comes_first(outcome):
    known = {"a": Evidence(outcome, "ended like that", "the callers text")}
    (edit,) = planned(call("a"), evidence=known)
    assert edit.settlement.outcome is outcome
    assert "the callers text" in edit.settlement.text


def test_what_the_caller_knows_outweighs_what_the_history_says():
    known = {"a": Evidence(Outcome.NEVER_STARTED, "never began")}
    found = finding(rules.NO_OUTPUT, key="a", family=FUNCTION, after=Place(3), evidence=FINISHED)
    (edit,) = plan([found], evidence=known)
    assert edit.settlement.outcome is Outcome.NEVER_STARTED


# --- policies ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "items"),
    [
        (Policy(settle=False), [call("a")]),
        (Policy(settle=False), [call("a"), call("b"), output("b")]),
        (Policy(drop_orphans=False), [output("a")]),
        (Policy(move_outputs=False), [output("a"), call("a")]),
    ],
    ids=["settle", "settle in a group", "drop", "move"],
)
def test_a_policy_forbids_what_it_says(policy, items):
    assert planned(*items) != []
    assert planned(*items, policy=policy) == []


def test_a_policy_forbids_nothing_else():
    edits = planned(call("a"), output("x"), policy=Policy(settle=False))
    assert [type(edit) for edit in edits] == [Drop]


def test_the_default_policy_settles_moves_drops_and_keeps_the_first():
    assert Policy() == Policy(settle=True, drop_orphans=True, move_outputs=True, keep="first")


# --- plans as a whole --------------------------------------------------------------------------


@pytest.mark.parametrize("family", families.ALL_FAMILIES, ids=lambda f: f.name)
@pytest.mark.parametrize("policy", [Policy(), Policy(keep="last"), Policy(settle=False)])
def test_no_plan_removes_a_call(family, policy):
    items = [
        call("a", family, id="x"),
        call("a", family, id="x"),
        output("a", FUNCTION),
        output("a", family),
        USER,
        call("b", family, id="x"),
        reasoning(),
    ]
    calls = {Place(at) for at, item in enumerate(items) if item.part is Part.CALL}
    edits = planned(*items, policy=policy)
    assert not calls & {edit.place for edit in edits if isinstance(edit, Drop | Move)}


def test_an_item_that_is_removed_is_removed_once_and_nothing_else_happens_to_it():
    # An orphan with a duplicate id: two findings about one item.
    edits = planned(Item(Part.MODEL, id="x"), output("a", id="x"))
    assert [type(edit) for edit in edits] == [Drop]


def test_every_edit_has_its_reason():
    edits = planned(output("x"), call("a"), reasoning(), USER, output("a"), output("a"))
    assert edits
    for edit in edits:
        assert edit.reason.code in rules.RULES


def test_the_same_findings_always_give_the_same_plan():
    items = [output("x"), call("a"), call("b"), output("b"), output("b"), reasoning(), USER]
    assert planned(*items) == planned(*items)


def test_nothing_wrong_means_nothing_to_do():
    assert planned(USER, call("a"), output("a")) == []
    assert plan([]) == []


def test_eight_times_the_findings_cost_about_eight_times_as_much():
    def seconds(count):
        findings = pair([(output(f"call_{n}"), n) for n in range(count)])
        return least_seconds(lambda: plan(findings))

    # Quadratic work takes some sixty times as long; the limit is far from both.
    assert seconds(4_000) < 28 * max(seconds(500), 0.001)


# --- in a few words ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([call("a")], "added an output for a (outcome unknown)"),
        ([call("mcpr_1", MCP_APPROVAL)], "added an output for mcpr_1 (never started)"),
        ([output("a")], "removed it"),
        ([output("a"), call("a")], "moved it after its call"),
        ([call("a", CUSTOM), output("a")], "made its type custom_tool_call_output"),
        ([call("a", id="x"), call("b", id="x"), output("a"), output("b")], "removed its id"),
    ],
)
def test_an_edit_is_described_in_a_few_words(items, said):
    (edit,) = planned(*items)
    assert describe(edit) == said


def test_a_new_id_is_described_with_the_id():
    (edit,) = planned(call("a"), call("a"))
    assert describe(edit) == f"gave it the id {edit.new}"


def test_a_reworded_output_is_described_with_its_outcome():
    (edit,) = plan([finding(rules.CONTRADICTED, key="a", evidence=FINISHED)])
    assert describe(edit) == "replaced it by what happened (finished)"


@pytest.mark.parametrize(
    ("items", "where"),
    [
        ([USER, call("a"), USER], [1]),
        ([USER, output("a")], [1]),
        ([output("a"), USER, call("a")], [0, 2]),
        ([call("a", CUSTOM), output("a")], [1]),
    ],
    ids=["settled", "dropped", "moved", "retyped"],
)
def test_an_edit_shows_where_something_goes_and_where_something_comes(items, where):
    (edit,) = planned(*items)
    assert shown_at(edit) == where


def test_an_edit_that_puts_an_output_into_a_turn_shows_there_too():
    use = call("a", families.TOOL_USE)
    (edit,) = planned(use, USER, SAID, order=Order.NEXT_TURN)
    assert set(shown_at(edit)) == {0, 1}
