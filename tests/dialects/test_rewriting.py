"""Carrying out a plan: every edit, where it lands, and what is left alone."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings

import lockstitch
from lockstitch.core import families, mending, rules
from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.core.mending import Drop, Move, Rekey, Retype, Reword, Settle, StripId
from lockstitch.core.outcomes import Outcome, Settlement, settlement
from lockstitch.dialects import DIALECTS
from lockstitch.dialects.rewriting import Rewriter, capture, rewrite_all
from tests.generated import dialects_and_histories, examples

RESPONSES = DIALECTS["responses"]
CHAT = DIALECTS["chat"]
MESSAGES = DIALECTS["messages"]
WHY = Finding(rule=rules.NO_OUTPUT, place=Place(0))
OF_SERVER = Finding(rule=rules.NO_OUTPUT, place=Place(0), family=families.SERVER_TOOL_USE)


def call(key="a", **more):
    return {"type": "function_call", "call_id": key, "name": "t", **more}


def output(key="a", text="ok", **more):
    return {"type": "function_call_output", "call_id": key, "output": text, **more}


def settle(after, *, key="a", family=families.FUNCTION, into=None, reason=WHY):
    return Settle(
        reason=reason,
        family=family,
        key=key,
        after=after,
        into=into,
        settlement=settlement(None),
    )


def move(place, after, into=None):
    return Move(reason=WHY, place=place, after=after, into=into)


def drop(place):
    return Drop(reason=WHY, place=place)


USER = {"role": "user", "content": "hi"}


def test_a_plan_without_edits_gives_back_the_very_objects():
    history = [call(), output(), USER]
    result, origins, removed = rewrite_all(RESPONSES, history, [])
    assert all(new is old for new, old in zip(result, history, strict=True))
    assert origins == [0, 1, 2]
    assert removed == []


def test_a_settled_call_gets_its_output_behind_the_place_that_the_plan_names():
    history = [call("a"), call("b"), USER]
    result, origins, _ = rewrite_all(
        RESPONSES, history, [settle(Place(1), key="a"), settle(Place(1), key="b")]
    )
    assert [wire.get("call_id") for wire in result] == ["a", "b", "a", "b", None]
    assert origins == [0, 1, None, None, 2]


def test_a_dropped_item_is_gone_and_kept_in_the_report():
    history = [call(), output(), output(text="again")]
    edit = drop(Place(2))
    result, origins, removed = rewrite_all(RESPONSES, history, [edit])
    assert result == history[:2]
    assert origins == [0, 1]
    assert removed == [(edit, history[2])]


@pytest.mark.parametrize(
    ("place", "after", "order"),
    [(0, 2, ["user", "call", "output"]), (2, 0, ["call", "output", "user"])],
    ids=["forward", "back"],
)
def test_an_output_moves_forward_or_back(place, after, order):
    names = {"call": call(), "output": output(), "user": USER}
    history = [names["output"], USER, names["call"]]
    if place == 2:
        history = [names["call"], USER, names["output"]]
    result, _, removed = rewrite_all(RESPONSES, history, [move(Place(place), Place(after))])
    assert result == [names[name] for name in order]
    assert removed == []


def test_an_output_that_moves_is_the_same_output():
    moved = output(text="as it was", a_field_of_next_year=1)
    result, _, _ = rewrite_all(RESPONSES, [moved, call()], [move(Place(0), Place(1))])
    assert result[1] is moved


def test_a_retyped_output_is_kept_in_the_report_as_it_was():
    history = [{"type": "custom_tool_call", "call_id": "a"}, output()]
    edit = Retype(reason=WHY, place=Place(1), family=families.CUSTOM)
    result, origins, removed = rewrite_all(RESPONSES, history, [edit])
    assert result[1]["type"] == "custom_tool_call_output"
    assert origins == [0, None]
    assert removed == [(edit, history[1])]


def test_a_reworded_output_is_kept_in_the_report_as_it_was():
    history = [call(), output(text="aborted")]
    edit = Reword(reason=WHY, place=Place(1), settlement=Settlement(Outcome.FINISHED, "21"))
    result, _, removed = rewrite_all(RESPONSES, history, [edit])
    assert result[1]["output"] == "21"
    assert removed == [(edit, history[1])]


def test_a_rekeyed_call_and_a_stripped_id_lose_nothing():
    history = [call("a", id="fc_1"), call("a", id="fc_1")]
    edits = [
        Rekey(reason=WHY, place=Place(1), old="a", new="a_1"),
        StripId(reason=WHY, place=Place(1)),
    ]
    result, _, removed = rewrite_all(RESPONSES, history, edits)
    assert result == [history[0], call("a_1")]
    assert removed == []


def test_the_history_that_was_passed_is_left_as_it_was():
    history = [output("x"), call("a", id="i"), call("a", id="i"), output("a")]
    before = copy.deepcopy(history)
    rewrite_all(
        RESPONSES,
        history,
        [
            drop(Place(0)),
            Rekey(reason=WHY, place=Place(2), old="a", new="b"),
            StripId(reason=WHY, place=Place(2)),
            settle(Place(2), key="b"),
        ],
    )
    assert history == before


def test_only_the_positions_that_a_plan_names_are_busy():
    edits = [drop(Place(7)), settle(Place(2)), move(Place(9), Place(4))]
    assert Rewriter(RESPONSES, edits, {Place(9): output()}).positions() == {2, 4, 7, 9}


def test_what_a_plan_moves_is_captured_before_anything_changes():
    history = [call(), USER, output(text="late")]
    edits = [move(Place(2), Place(0)), drop(Place(1))]
    assert capture(RESPONSES, edits, lambda at: history[at]) == {Place(2): history[2]}


def test_a_rewriter_that_is_fed_one_item_at_a_time_says_what_stands_in_its_place():
    late = output(text="late")
    rewriter = Rewriter(RESPONSES, [move(Place(2), Place(0))], {Place(2): late})
    first = rewriter.rewrite(0, call())
    assert (first.left, first.arrivals) == (call(), [late])
    moved = rewriter.rewrite(2, late)
    assert (moved.left, moved.arrivals) == (None, [])


# --- messages of blocks ------------------------------------------------------------------------


def use(key="a"):
    return {"type": "tool_use", "id": key, "name": "t", "input": {}}


def result_of(key="a", text="ok"):
    return {"type": "tool_result", "tool_use_id": key, "content": text}


def server_use(key="s"):
    return {"type": "server_tool_use", "id": key, "name": "web_search", "input": {}}


TEXT = {"type": "text", "text": "hm"}


def says(role, *blocks):
    return {"role": role, "content": list(blocks)}


def test_a_block_is_dropped_and_its_neighbours_stay():
    history = [says("assistant", use()), says("user", result_of(), result_of("x"), TEXT)]
    result, _, removed = rewrite_all(MESSAGES, history, [drop(Place(1, 1))])
    assert result[1] == says("user", result_of(), TEXT)
    assert [wire for _, wire in removed] == [result_of("x")]


def test_several_blocks_of_one_message_are_dropped_each_for_its_own_reason():
    history = [says("user", result_of("x"), TEXT, result_of("y"))]
    edits = [drop(Place(0, 2)), drop(Place(0, 0))]
    result, _, removed = rewrite_all(MESSAGES, history, edits)
    assert result == [says("user", TEXT)]
    assert {edit.place: wire for edit, wire in removed} == {
        Place(0, 0): result_of("x"),
        Place(0, 2): result_of("y"),
    }


def test_a_result_moves_into_the_message_that_the_plan_names():
    history = [says("assistant", use()), says("user", TEXT), says("user", result_of())]
    result, _, _ = rewrite_all(MESSAGES, history, [move(Place(2), Place(0), into=1)])
    assert result == [says("assistant", use()), says("user", result_of(), TEXT)]


def test_a_result_moves_within_its_message():
    history = [says("assistant", use()), says("user", TEXT, result_of())]
    result, _, _ = rewrite_all(MESSAGES, history, [move(Place(1, 1), Place(0), into=1)])
    assert result[1] == says("user", result_of(), TEXT)


def test_a_message_that_lost_all_its_blocks_can_still_take_a_result():
    history = [says("assistant", use()), says("user", result_of("x"))]
    edits = [drop(Place(1)), settle(Place(0), family=families.TOOL_USE, into=1)]
    result, _, _ = rewrite_all(MESSAGES, history, edits)
    assert [block["tool_use_id"] for block in result[1]["content"]] == ["a"]


def test_the_servers_result_goes_beside_its_use_however_many_there_are():
    history = [says("assistant", server_use("s"), TEXT, server_use("t"))]
    edits = [
        settle(Place(0, 0), key="s", family=families.SERVER_TOOL_USE, reason=OF_SERVER),
        settle(Place(0, 2), key="t", family=families.SERVER_TOOL_USE, reason=OF_SERVER),
    ]
    result, _, _ = rewrite_all(MESSAGES, history, edits)
    assert [block.get("tool_use_id") or block.get("id") for block in result[0]["content"]] == [
        "s",
        "s",
        None,
        "t",
        "t",
    ]


def test_the_servers_result_finds_its_use_where_blocks_before_it_are_dropped():
    history = [says("assistant", result_of("x"), TEXT, server_use("s"))]
    edits = [
        drop(Place(0, 0)),
        settle(Place(0, 2), key="s", family=families.SERVER_TOOL_USE, reason=OF_SERVER),
    ]
    result, _, _ = rewrite_all(MESSAGES, history, edits)
    kinds = [block["type"] for block in result[0]["content"]]
    assert kinds == ["text", "server_tool_use", "web_search_tool_result"]


def test_the_servers_own_result_is_moved_as_it_is():
    pages = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "x"}]}
    history = [says("assistant", pages, server_use("s"))]
    edit = Move(reason=OF_SERVER, place=Place(0, 0), after=Place(0, 1), into=None)
    result, _, _ = rewrite_all(MESSAGES, history, [edit])
    assert result == [says("assistant", server_use("s"), pages)]


def test_in_a_dialect_without_turns_an_output_never_goes_into_another_message():
    made = {"role": "assistant", "tool_calls": [{"id": "a"}]}
    edit = settle(Place(0), family=families.CHAT_TOOL, into=1)
    result, _, _ = rewrite_all(CHAT, [made, USER], [edit])
    assert [wire["role"] for wire in result] == ["assistant", "tool", "user"]


@settings(max_examples=examples(300))
@given(dialects_and_histories)
def test_a_history_with_only_simple_findings_is_whole_after_one_round(pair):
    # `mending.SETTLED_AT_ONCE`: "uncovers nothing".
    name, history = pair
    findings = lockstitch.check(history, dialect=name)
    if {finding.code for finding in findings} <= mending.SETTLED_AT_ONCE:
        mended, _, _ = rewrite_all(DIALECTS[name], history, mending.plan(findings))
        assert lockstitch.check(mended, dialect=name) == []
