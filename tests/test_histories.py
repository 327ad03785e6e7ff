"""The front door: check, mend and trim on lists of wire items."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections import Counter
from types import MappingProxyType

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageToolCall
from openai.types.responses import ResponseFunctionToolCall
from pydantic import BaseModel

import lockstitch
from lockstitch import CannotTrim, Evidence, LockstitchError, Outcome, Policy
from lockstitch.core import rules, seen, trimming
from lockstitch.core.families import RESPONSES_FAMILIES
from lockstitch.core.items import Part
from lockstitch.core.mending import Drop, Settle
from lockstitch.dialects import DIALECTS
from lockstitch.dialects.detection import detect
from tests.generated import HISTORIES, dialects_and_histories, examples, hostile_items


def call(key="call_a", name="get_weather", **more):
    return {"type": "function_call", "call_id": key, "name": name, "arguments": "{}", **more}


def output(key="call_a", text="21 °C", **more):
    return {"type": "function_call_output", "call_id": key, "output": text, **more}


USER = {"role": "user", "content": "hello"}
PROGRAM_OUTPUT = {"type": "program_output", "call_id": "call_b", "output": "ok"}


# --- properties --------------------------------------------------------------------------------


@settings(max_examples=examples(1500))
@given(dialects_and_histories)
def test_a_mended_history_checks_clean_and_is_a_fixed_point(pair):
    dialect, history = pair
    mended = lockstitch.mend(history, dialect=dialect)
    assert lockstitch.check(mended, dialect=dialect) == []
    again = lockstitch.mend(mended, dialect=dialect)
    assert list(again) == list(mended)
    assert again.edits == []


@settings(max_examples=examples(300))
@given(dialects_and_histories)
def test_a_mended_history_keeps_the_last_output_too_when_told_so(pair):
    dialect, history = pair
    policy = lockstitch.Policy(keep="last")
    assert (
        lockstitch.check(lockstitch.mend(history, dialect=dialect, policy=policy), dialect=dialect)
        == []
    )


@settings(max_examples=examples(300))
@given(dialects_and_histories)
def test_mending_is_deterministic_and_leaves_its_input_alone(pair):
    dialect, history = pair
    before = copy.deepcopy(history)
    assert list(lockstitch.mend(history, dialect=dialect)) == list(
        lockstitch.mend(copy.deepcopy(history), dialect=dialect)
    )
    assert history == before


@settings(max_examples=examples(300))
@given(dialects_and_histories)
def test_mending_never_removes_a_call(pair):
    dialect, history = pair

    def calls(items):
        read = DIALECTS[dialect].read
        return sum(item.part.value == "call" for wire in items for item in read(wire))

    assert calls(lockstitch.mend(history, dialect=dialect)) == calls(history)


@settings(max_examples=examples(300))
@given(dialects_and_histories)
def test_mending_loses_nothing_that_is_not_in_its_report(pair):
    dialect, history = pair
    mended = lockstitch.mend(history, dialect=dialect)
    kept = Counter(text for wire in mended for text in _texts(wire))
    kept += Counter(text for wire in mended.removed for text in _texts(wire))
    before = Counter(text for wire in history for text in _texts(wire))
    assert not before - kept


def _texts(value):
    """Every text that a tool or a person wrote, wherever it stands."""
    if isinstance(value, dict):
        for name in ("output", "content", "text"):
            if isinstance(value.get(name), str) and value[name]:
                yield value[name]
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


@settings(max_examples=examples(1500))
@given(dialects_and_histories, st.integers(0, 12), st.booleans())
@example(("responses", [output(), call(), PROGRAM_OUTPUT, call("call_b")]), 2, False)
def test_trimming_never_yields_a_finding_that_was_not_there(pair, most, keep_leading):
    dialect, history = pair
    try:
        trimmed = lockstitch.trim(
            history, max_items=most, keep_leading=keep_leading, dialect=dialect
        )
    except lockstitch.CannotTrim:
        assert keep_leading
        return
    if len(trimmed) > most:
        _expect_only_the_newest_pair(trimmed[_leading(history, keep_leading, dialect) :], dialect)
    if trimmed and all(_is_foreign(wire, dialect) for wire in trimmed):
        return  # nothing else fits; `check` refuses to judge that
    before = _wrong(lockstitch.check(history, dialect=dialect))
    after = _wrong(lockstitch.check(trimmed, dialect=dialect))
    assert not after - before


def _expect_only_the_newest_pair(kept, dialect):
    """More than fits is kept for one reason: the newest calls of the current turn, and what a cut
    would tear from them."""
    dialect = DIALECTS[dialect]
    core = [dialect.read(wire) for wire in kept]
    allowed = trimming.cut_points(core)
    for at in range(1, len(kept)):
        allowed[at] = allowed[at] and dialect.may_begin(core[at])
    assert trimming.newest_pair(core, allowed) == 0


def _is_foreign(wire, dialect):
    return all(item.part is Part.OTHER for item in DIALECTS[dialect].read(wire))


def _leading(history, keep_leading, dialect):
    plain = [not DIALECTS[dialect].leads(wire) for wire in history]
    return plain.index(True) if keep_leading and True in plain else 0


def _wrong(findings):
    """What is wrong with which call. Without an output it is the same call, whether others that
    were made with it are still there or not."""
    return Counter(
        ("no output" if finding.rule in rules.OPEN_CALL else finding.code, finding.key)
        for finding in findings
    )


@settings(max_examples=examples(500))
@given(st.lists(hostile_items, max_size=8), st.sampled_from([None, *HISTORIES]))
def test_any_items_are_checked_or_refused(items, dialect):
    try:
        found = lockstitch.check(items, dialect=dialect)
    except lockstitch.NotAHistory:
        return
    for finding in found:
        assert finding.message
        assert finding.code.startswith("LS")


@settings(max_examples=examples(300))
@given(st.lists(hostile_items, max_size=8), st.sampled_from([None, *HISTORIES]))
def test_any_items_are_repaired_or_refused(items, dialect):
    try:
        mended = lockstitch.mend(items, dialect=dialect)
    except lockstitch.NotAHistory:
        return
    except lockstitch.CannotMend:
        assert any(_is_foreign(wire, dialect or detect(items).name) for wire in items)
        return
    if mended:
        assert lockstitch.check(mended, dialect=dialect) == [] or mended.edits == []


# --- what may be passed ------------------------------------------------------------------------


def codes(history, **more):
    return [(finding.code, finding.place.at) for finding in lockstitch.check(history, **more)]


@pytest.mark.parametrize("make", [list, tuple, iter], ids=["list", "tuple", "iterator"])
def test_any_iterable_of_items_is_a_history(make):
    items = [USER, call(), output()]
    assert lockstitch.check(make(items)) == []
    assert list(lockstitch.mend(make(items))) == items
    assert lockstitch.trim(make(items), max_items=2) == items[1:]


@pytest.mark.parametrize("door", [lockstitch.check, lockstitch.mend, lockstitch.trim])
@pytest.mark.parametrize("wrong", ["rollout.jsonl", b"[]", {"type": "message"}, 5, None])
def test_what_is_no_list_is_refused_at_every_door_with_what_was_expected(door, wrong):
    with pytest.raises(lockstitch.NotAHistory, match="Expected a list"):
        door(wrong)


@pytest.mark.parametrize("door", [lockstitch.check, lockstitch.mend, lockstitch.trim])
@pytest.mark.parametrize("name", ["input", "messages", "items"])
def test_who_passes_a_whole_request_is_told_where_the_list_is(door, name):
    with pytest.raises(lockstitch.NotAHistory, match=f"got dict. Pass the list in it.*'{name}'"):
        door({"model": "m", name: [USER]})


@pytest.mark.parametrize("door", [lockstitch.check, lockstitch.mend])
@pytest.mark.parametrize(
    ("evidence", "says"),
    [
        ({"call_1": "finished"}, r"evidence of call_1 is a str.*Evidence\(Outcome.FINISHED"),
        ({"call_1": Outcome.FINISHED}, r"evidence of call_1 is a Outcome.*Evidence\("),
        ({"call_1": Evidence("never started", "was not run")}, "Outcome.NEVER_STARTED"),
        ({"call_1": Evidence(Outcome.FINISHED, "finished", {"a": 1})}, "text .* is a dict"),
        (["call_1"], "evidence is a list.*by call id"),
    ],
    ids=["a word", "an outcome", "a word inside", "no text", "a list"],
)
def test_evidence_that_nobody_reads_is_refused_with_what_to_pass(door, evidence, says):
    with pytest.raises(lockstitch.NotEvidence, match=says):
        door([USER, call()], evidence=evidence)


def test_a_policy_that_is_none_is_refused_with_what_to_pass():
    with pytest.raises(lockstitch.UnknownPolicy, match=r"policy is a dict.*Policy\(keep"):
        lockstitch.mend([USER, call()], policy={"keep": "last"})


@pytest.mark.parametrize("door", [lockstitch.check, lockstitch.mend, lockstitch.trim])
@pytest.mark.parametrize("wrong", [None, 5, "text", ["nested"], object()])
def test_what_is_no_item_is_refused_at_every_door_with_its_position(door, wrong):
    with pytest.raises(lockstitch.NotAHistory, match="Item 1 is a"):
        door([USER, wrong])


def test_a_mapping_that_is_no_dictionary_is_read_and_given_back():
    proxy = MappingProxyType(call())
    mended = lockstitch.mend([proxy])
    assert mended[0] is proxy
    assert mended[1]["call_id"] == "call_a"


def test_objects_of_an_sdk_are_read_as_what_they_would_send_and_given_back():
    made = ResponseFunctionToolCall(
        type="function_call", call_id="call_a", name="get_weather", arguments="{}"
    )
    assert codes([made]) == [("LS001", 0)]
    mended = lockstitch.mend([made, USER])
    assert mended[0] is made
    assert mended[1]["type"] == "function_call_output"
    assert lockstitch.trim([USER, made, output()], max_bytes=400)[-2] is made


def tool_call():
    return ChatCompletionMessageToolCall(
        id="call_a", type="function", function={"name": "t", "arguments": "{}"}
    )


def test_a_message_of_an_sdk_is_a_message():
    message = ChatCompletionMessage(role="assistant", content=None, tool_calls=[tool_call()])
    assert codes([USER, message]) == [("LS001", 1)]
    answer = {"role": "tool", "tool_call_id": "call_a", "content": "21"}
    assert lockstitch.check([USER, message, answer]) == []


class ToolUseBlock(BaseModel):
    """A block as Anthropic's SDK returns it."""

    type: str
    id: str
    name: str
    input: dict


@pytest.mark.parametrize(
    ("made", "answer"),
    [
        (
            {"role": "assistant", "content": None, "tool_calls": [tool_call()]},
            {"role": "tool", "tool_call_id": "call_a", "content": "21"},
        ),
        (
            {
                "role": "assistant",
                "content": [ToolUseBlock(type="tool_use", id="call_a", name="t", input={})],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "call_a", "content": "21"}],
            },
        ),
    ],
    ids=["chat", "messages"],
)
def test_objects_of_an_sdk_inside_a_dictionary_are_read_too(made, answer):
    # `messages.append({"role": "assistant", "content": response.content})`: every tutorial.
    history = [USER, made, answer]
    assert lockstitch.check(history) == []
    assert list(lockstitch.mend(history)) == history
    assert lockstitch.trim(history, max_bytes=10_000) == history


# --- check -------------------------------------------------------------------------------------


def test_a_whole_history_has_no_findings():
    history = [
        {"role": "developer", "content": "be brief"},
        USER,
        {"type": "reasoning", "id": "rs_1", "summary": []},
        call("call_a", id="fc_1"),
        call("call_b", id="fc_2"),
        output("call_b"),
        output("call_a"),
        {"type": "message", "role": "assistant", "id": "msg_1", "content": []},
        USER,
        call("call_a", id="fc_3"),
        output("call_a"),
    ]
    assert lockstitch.check(history) == []


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ([call()], "LS001 call_a (get_weather) has no output"),
        ([output()], "LS002 output for call_a has no call"),
        (
            [output(), call()],
            "LS003 output for call_a (get_weather) comes before its call (item 1)",
        ),
        (
            [call(), output(), output()],
            "LS004 second output for call_a (get_weather); the first is at item 1",
        ),
        (
            [call(), call("call_b", "book"), output("call_b")],
            "LS010 call_a (get_weather) has no output, while 1 of the 2 calls made at once has one",
        ),
        (
            [{"type": "reasoning", "id": "rs_1"}, USER],
            "LS007 reasoning rs_1 is followed by a message from outside, not by what it led to",
        ),
    ],
)
def test_a_finding_says_what_is_wrong_where_and_with_whom(history, message):
    assert [str(finding) for finding in lockstitch.check(history)] == [message]


def test_a_lone_output_is_right_behind_an_anchor_and_mending_leaves_it():
    # A wrong repair that users reported: an orphan guard on an anchored delta.
    delta = [output("call_behind_the_anchor"), USER]
    assert codes(delta) == [("LS002", 0)]
    assert lockstitch.check(delta, anchored=True) == []
    mended = lockstitch.mend(delta, anchored=True)
    assert list(mended) == delta
    assert not mended.changed


def test_an_output_that_denies_what_the_caller_knows_is_contradicted():
    known = {"call_a": Evidence(Outcome.FINISHED, "finished with exit code 0", "done")}
    history = [call(), output(text="aborted")]
    assert codes(history) == []
    assert codes(history, evidence=known) == [("LS012", 1)]


@pytest.fixture
def short_memory(monkeypatch):
    """Only four ids are remembered exactly: what happens after five thousand happens here."""
    monkeypatch.setattr(seen, "EXACT_IDS", 4)


@pytest.mark.usefixtures("short_memory")
def test_a_duplicate_id_is_found_in_a_history_of_any_length():
    said = [{"type": "message", "role": "assistant", "id": f"msg_{n}"} for n in range(20)]
    assert codes([*said, said[19]]) == [("LS008", 20)]
    assert codes([said[0], *said, said[19]]) == [("LS008", 1), ("LS008", 21)]


@pytest.mark.usefixtures("short_memory")
def test_a_second_output_is_called_so_in_a_history_of_any_length():
    pairs = [item for n in range(20) for item in (call(f"call_{n}"), output(f"call_{n}"))]
    (finding,) = lockstitch.check([*pairs, output("call_19")])
    assert (finding.code, finding.other.at) == ("LS004", 39)


# --- mend --------------------------------------------------------------------------------------


def test_mending_what_is_whole_gives_back_the_very_objects():
    history = [USER, call(), output()]
    mended = lockstitch.mend(history)
    assert all(new is old for new, old in zip(mended, history, strict=True))
    assert not mended.changed
    assert mended.edits == mended.removed == []


def test_mending_touches_nothing_but_what_it_mends():
    strange = {"type": "a_type_of_next_year", "x": [1, None]}
    history = [strange, call("call_a"), USER, call("call_b"), output("call_b")]
    mended = lockstitch.mend(history)
    assert [item for item in mended if any(item is old for old in history)] == history
    assert len(mended) == len(history) + 1


def test_an_interrupted_call_is_never_said_not_to_have_run():
    # A wrong repair that users reported.
    mended = lockstitch.mend([USER, call()])
    text = mended[2]["output"]
    assert "Outcome unknown" in text
    assert "may have taken effect" in text
    (edit,) = mended.edits
    assert isinstance(edit, Settle)
    assert edit.settlement.outcome is Outcome.UNKNOWN


def test_the_three_outcomes_are_told_apart_to_the_model():
    known = {
        "call_b": Evidence(Outcome.NEVER_STARTED, "was never begun"),
        "call_c": Evidence(Outcome.FINISHED, "finished with exit code 0", "21 degrees"),
    }
    history = [call("call_a"), call("call_b"), call("call_c")]
    told = [item["output"] for item in lockstitch.mend(history, evidence=known)[3:]]
    assert "Outcome unknown" in told[0]
    assert "Never started" in told[1]
    assert "Recovered" in told[2]
    assert "21 degrees" in told[2]


def test_an_approval_that_nobody_gave_is_settled_as_never_started():
    request = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "t", "server_label": "s"}
    mended = lockstitch.mend([USER, request, USER])
    assert mended[2]["approve"] is False
    assert mended[2]["approval_request_id"] == "mcpr_1"
    assert mended.edits[0].settlement.outcome is Outcome.NEVER_STARTED


def test_what_the_caller_knows_replaces_an_output_that_denies_it():
    known = {"call_a": Evidence(Outcome.FINISHED, "finished with exit code 0", "done")}
    denial = output(text="aborted by user after 3s")
    mended = lockstitch.mend([call(), denial], evidence=known)
    assert "done" in mended[1]["output"]
    assert mended.removed == [denial]
    assert lockstitch.check(mended, evidence=known) == []


@pytest.mark.parametrize("family", RESPONSES_FAMILIES, ids=lambda family: family.name)
def test_an_output_of_any_family_stops_denying_what_the_caller_knows(family):
    """Also in a field where outputs of its family do not speak."""
    asked = {"type": family.call_type, "call_id": "call_a", "id": "call_a", "name": "t"}
    joined = {"call_id": "call_a", "approval_request_id": "call_a"}
    denied = {"type": family.output_type, **joined, "output": "aborted"}
    known = {"call_a": Evidence(Outcome.FINISHED, "finished", "done")}
    mended = lockstitch.mend([asked, denied], evidence=known)
    assert lockstitch.check(mended, evidence=known) == []
    assert "aborted" not in str(mended)


def test_not_only_the_tail_is_mended():
    # A wrong repair that users reported.
    history = [call("call_a"), USER, call("call_b"), output("call_b"), USER, output("call_x")]
    mended = lockstitch.mend(history)
    assert [item.get("call_id") for item in mended] == [
        "call_a",
        "call_a",
        None,
        "call_b",
        "call_b",
        None,
    ]


def test_of_calls_made_at_once_the_one_without_an_output_gets_its_own():
    history = [call("call_a"), call("call_b"), call("call_c"), output("call_c"), output("call_a")]
    mended = lockstitch.mend(history)
    assert [item["call_id"] for item in mended] == [
        "call_a",
        "call_b",
        "call_c",
        "call_b",
        "call_c",
        "call_a",
    ]


@pytest.mark.parametrize(("keep", "text"), [("first", "1"), ("last", "3")])
def test_of_several_outputs_the_policy_says_which_stays(keep, text):
    history = [call(), output(text="1"), USER, output(text="2"), output(text="3")]
    mended = lockstitch.mend(history, policy=Policy(keep=keep))
    assert list(mended) == [call(), output(text=text), USER]
    assert len(mended.removed) == 2


def test_the_last_of_very_many_outputs_stays_when_told_so():
    history = [call(), *(output(text=str(n)) for n in range(30))]
    mended = lockstitch.mend(history, policy=Policy(keep="last"))
    assert list(mended) == [call(), output(text="29")]
    assert len(mended.removed) == 29


def test_a_real_output_is_never_given_up_for_our_own_placeholder():
    # Mended once, and then the real output came after all.
    settled = lockstitch.mend([call()])
    mended = lockstitch.mend([*settled, output(text="21 degrees")])
    assert [item.get("output") for item in mended] == [None, "21 degrees"]


@pytest.mark.parametrize(
    ("policy", "history"),
    [
        (Policy(settle=False), [call()]),
        (Policy(drop_orphans=False), [output()]),
        (Policy(move_outputs=False), [output(), call()]),
    ],
    ids=["settle", "drop_orphans", "move_outputs"],
)
def test_a_policy_that_forbids_the_mending_leaves_the_history_as_it_is(policy, history):
    assert list(lockstitch.mend(history, policy=policy)) == history


def test_what_is_removed_is_in_the_report_with_its_reason():
    mended = lockstitch.mend([USER, output("call_x", "who asked?")])
    assert list(mended) == [USER]
    assert mended.removed == [output("call_x", "who asked?")]
    (edit,) = mended.edits
    assert isinstance(edit, Drop)
    assert edit.reason.code == "LS002"


def test_two_calls_that_share_an_id_keep_their_own_outputs():
    history = [call(name="first"), call(name="second"), output(text="1"), output(text="2")]
    first, second, one, two = lockstitch.mend(history)
    assert first["call_id"] == one["call_id"] == "call_a"
    assert second["call_id"] == two["call_id"] != "call_a"
    assert (one["output"], two["output"]) == ("1", "2")


def bound(history):
    """Which output answers which call, by order of appearance under each id."""
    waiting: dict[str, list[str]] = {}
    answers = {}
    for item in history:
        if "name" in item:
            waiting.setdefault(item["call_id"], []).append(item["name"])
        elif "output" in item:
            answers[waiting[item["call_id"]].pop(0)] = item["output"]
    return answers


def test_ids_that_mending_gave_are_no_trouble_in_a_later_round():
    once = lockstitch.mend([call("k", "A"), call("k", "B"), output("k", "1"), output("k", "2")])
    later = [call("k", "C"), call("k", "D"), output("k", "3"), output("k", "4")]
    mended = lockstitch.mend([*once, USER, *later])
    assert mended[:4] == list(once)
    assert bound(mended) == {"A": "1", "B": "2", "C": "3", "D": "4"}


def custom(kind, **more):
    return {"type": kind, "call_id": "call_a", **more}


def test_an_output_goes_to_the_call_of_its_own_family_where_two_share_an_id():
    history = [
        custom("custom_tool_call", name="other", input=""),
        call(name="own"),
        output(text="of own"),
    ]
    answers = bound(lockstitch.mend(history))
    assert answers["own"] == "of own"
    assert "Outcome unknown" in answers["other"]


def test_no_output_is_lost_where_two_families_share_an_id():
    history = [
        call(name="function"),
        custom("custom_tool_call", name="custom", input=""),
        custom("custom_tool_call_output", output="of custom"),
        output(text="of function"),
    ]
    assert bound(lockstitch.mend(history)) == {"function": "of function", "custom": "of custom"}


@pytest.mark.parametrize(
    "history",
    [
        [{"type": "reasoning", "id": "rs_1"}, output("gone"), call(id="fc_1"), output()],
        [{"type": "reasoning", "id": "rs_1"}, output(), call(id="fc_1")],
        [
            call("call_b"),
            {"type": "reasoning", "id": "rs_1"},
            output("call_b"),
            call(id="fc_1"),
            output(),
        ],
    ],
    ids=["an orphan", "an early output", "a late output of another call"],
)
def test_reasoning_is_not_taken_from_the_call_that_it_led_to(history):
    # "Item 'fc_X' of type 'function_call' was provided without its required 'reasoning' item"
    mended = lockstitch.mend(history)
    kinds = [item.get("id") for item in mended]
    assert "rs_1" in kinds
    assert kinds.index("fc_1") == kinds.index("rs_1") + 1


def test_of_two_copies_of_reasoning_the_one_without_its_follower_goes():
    # A turn that was cut after its reasoning, and then retried.
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    history = [USER, thought, USER, thought, call(id="fc_1"), output()]
    assert list(lockstitch.mend(history)) == [USER, USER, thought, call(id="fc_1"), output()]


def test_mending_gives_the_same_bytes_whatever_the_hash_seed():
    script = """
import random, msgspec, lockstitch
kinds = ["function_call", "function_call_output", "custom_tool_call", "local_shell_call",
         "local_shell_call_output", "mcp_approval_request", "reasoning", "message"]
for seed in range(60):
    r = random.Random(seed)
    history = [
        {"type": kind, "id": r.choice("abcxyz"), "role": "user", "content": "hm"}
        | ({} if kind == "message" else {"call_id": r.choice("abc"), "output": "ok"})
        for kind in r.choices(kinds, k=12)
    ]
    mended = lockstitch.mend(history, dialect="responses")
    print(msgspec.json.encode([list(mended), lockstitch.trim(history, max_items=5),
                               [str(f) for f in lockstitch.check(history)]]).decode())
"""
    answers = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in (0, 1, 2)
    }
    assert len(answers) == 1
    assert len(answers.pop()) > 10_000


# --- trim --------------------------------------------------------------------------------------

SYSTEM = {"role": "system", "content": "be brief"}


def test_the_newest_items_that_fit_are_kept_and_are_the_very_objects():
    history = [USER, call(), output(), {"role": "user", "content": "and now?"}]
    trimmed = lockstitch.trim(history, max_items=3)
    assert all(new is old for new, old in zip(trimmed, history[1:], strict=True))


def test_a_pair_of_an_earlier_turn_that_does_not_fit_goes_whole():
    history = [USER, call(), output(), USER]
    assert lockstitch.trim(history, max_items=2) == [USER]
    assert lockstitch.trim(history, max_items=0) == []


def test_the_newest_pair_of_the_current_turn_stays_however_large_its_output_is():
    giant = output("call_b", "x" * 5_000_000)
    history = [USER, call(), output(), USER, call("call_b"), giant]
    assert lockstitch.trim(history, max_bytes=10_000) == history[4:]
    assert lockstitch.trim(history, max_tokens=100) == history[4:]
    assert lockstitch.trim(history, max_items=0) == history[4:]
    said = {"type": "message", "role": "assistant", "content": "It is long."}
    assert lockstitch.trim([*history, said], max_bytes=10_000) == [*history[4:], said]


def test_calls_made_at_once_stay_with_all_their_outputs_in_the_current_turn():
    made = [call("call_b"), call("call_c"), output("call_b"), output("call_c", "x" * 10_000)]
    assert lockstitch.trim([USER, *made], max_bytes=100) == made


def test_the_newest_pair_of_a_turn_of_messages_stays_behind_its_question():
    history = [
        {"role": "user", "content": "an old question"},
        {"role": "assistant", "content": "an old answer"},
        {"role": "user", "content": "read it"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "read"}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x" * 9_000}],
        },
    ]
    assert lockstitch.trim(history, max_bytes=100) == history[2:]


@pytest.mark.parametrize(
    "message",
    [
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "I book it.",
            "tool_calls": [{"id": "a", "function": {"name": "book", "arguments": '{"n": '}}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I book it."},
                {
                    "type": "toolCall",
                    "id": "a",
                    "name": "book",
                    "arguments": {},
                    "partialJson": "{",
                },
            ],
            "stopReason": "toolUse",
        },
        {
            "kind": "response",
            "parts": [
                {"part_kind": "thinking", "content": "I book it."},
                {"part_kind": "tool-call", "tool_call_id": "a", "tool_name": "b", "args": '{"n": '},
            ],
        },
    ],
    ids=["chat", "pi", "pydantic-ai"],
)
def test_a_message_that_goes_with_its_call_is_reported_with_all_that_was_in_it(message):
    said = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Book it."}]}
    user = said if "kind" in message else USER
    mended = lockstitch.mend([user, message])
    assert list(mended) == [user]
    assert mended.removed == [message]


def test_an_item_of_an_unknown_type_stays_if_nothing_else_fits():
    history = [USER, {"type": "a_type_of_next_year"}]
    assert lockstitch.trim(history, max_items=1) == history[1:]


def test_outputs_without_calls_among_unknown_items_are_not_removed_since_nothing_would_be_left():
    history = [{"type": "a_type_of_next_year"}, output()]
    with pytest.raises(lockstitch.CannotMend, match=r"Nothing was changed.*anchored=True"):
        lockstitch.mend(history)
    assert list(lockstitch.mend(history, anchored=True)) == history


def test_without_limits_everything_stays():
    history = [USER, call(), output()]
    assert lockstitch.trim(history) == history
    assert lockstitch.trim([], max_items=3) == []


@pytest.mark.parametrize("most", [0, 40, 100, 150, 10_000])
def test_what_is_left_is_within_the_bytes(most):
    history = [USER, call(), output(), USER, call("call_b"), output("call_b", "x" * 50), USER]
    trimmed = lockstitch.trim(history, max_bytes=most)
    assert sum(len(msgspec.json.encode(item)) for item in trimmed) <= most
    assert lockstitch.check(trimmed) == []
    if most == 10_000:
        assert trimmed == history


def test_tokens_are_counted_by_the_callers_function():
    history = [{"role": "user", "content": "word " * n} for n in (50, 3, 2)]
    counted = []

    def count(item):
        counted.append(item)
        return len(item["content"].split())

    assert lockstitch.trim(history, max_tokens=5, count=count) == history[1:]
    assert all(any(item is one for one in history) for item in counted)


@pytest.mark.parametrize("odd", ["\ud83d", 10**30])
def test_whatever_json_can_say_has_a_size(odd):
    history = [USER, {"role": "user", "content": odd}]
    assert lockstitch.trim(history, max_bytes=1_000) == history
    assert lockstitch.trim(history, max_bytes=20) == []


def test_without_a_function_a_token_is_four_bytes():
    size = len(msgspec.json.encode(USER))
    tokens = -(-size // 4)
    assert lockstitch.trim([USER, USER], max_tokens=2 * tokens) == [USER, USER]
    assert lockstitch.trim([USER, USER], max_tokens=2 * tokens - 1) == [USER]


def test_the_tightest_limit_counts():
    history = [USER] * 6
    assert len(lockstitch.trim(history, max_items=4, max_tokens=3, count=lambda item: 1)) == 3
    assert len(lockstitch.trim(history, max_items=2, max_tokens=3, count=lambda item: 1)) == 2


def test_leading_instructions_stay_and_count():
    history = [SYSTEM, {"role": "developer", "content": "x"}, USER, call(), output(), USER]
    trimmed = lockstitch.trim(history, max_items=4, keep_leading=True)
    assert trimmed == [*history[:2], history[5]]
    assert lockstitch.trim(history, max_items=5, keep_leading=True) == [*history[:2], *history[3:]]
    assert lockstitch.trim(history, max_items=6, keep_leading=True) == history


def test_an_instruction_in_the_middle_is_an_item_like_any_other():
    history = [USER, SYSTEM, USER]
    assert lockstitch.trim(history, max_items=1, keep_leading=True) == [USER]


@pytest.mark.parametrize(
    "limits",
    [{"max_items": 1}, {"max_bytes": 40}, {"max_tokens": 1, "count": lambda item: 1}],
    ids=["items", "bytes", "tokens"],
)
def test_leading_instructions_that_do_not_fit_are_an_error(limits):
    with pytest.raises(lockstitch.CannotTrim, match="keep_leading=False"):
        lockstitch.trim([SYSTEM, SYSTEM, USER], keep_leading=True, **limits)
    assert len(lockstitch.trim([SYSTEM, SYSTEM, USER], **limits)) <= 1


def test_nothing_is_trimmed_from_what_fits_whatever_leads():
    tools = {"type": "additional_tools", "role": "developer", "tools": []}
    history = [tools, USER, call(), output(), USER]
    assert lockstitch.trim(history, max_items=100, keep_leading=True) == history


@pytest.mark.parametrize("limit", ["max_items", "max_bytes", "max_tokens"])
def test_a_limit_below_nothing_is_refused(limit):
    assert lockstitch.trim([USER], **{limit: 0}) == []
    with pytest.raises(CannotTrim, match="A limit is -1"):
        lockstitch.trim([USER], **{limit: -1})


@pytest.mark.parametrize("keep", ["middle", "", None])
def test_a_policy_that_does_not_exist_is_refused(keep):
    with pytest.raises(LockstitchError, match="Choose one of: 'first', 'last'"):
        Policy(keep=keep)


def test_searches_that_stand_alone_do_not_keep_a_history_from_being_trimmed():
    searched = {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []}
    history = [searched, USER, USER, USER, searched, USER]
    assert lockstitch.trim(history, max_items=4) == history[2:]


def test_a_trimmed_conversation_of_messages_begins_with_the_user():
    history = [
        USER,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
        {"role": "assistant", "content": "it is 21 degrees"},
        USER,
        {"role": "assistant", "content": "you are welcome"},
    ]
    for most in range(6):
        trimmed = lockstitch.trim(history, max_items=most)
        assert trimmed == ([] if most < 2 else history[4:])
    assert lockstitch.trim(history, max_items=6) == history


# --- ids and placeholders ----------------------------------------------------------------------


def test_each_of_many_items_with_one_id_gets_an_id_of_its_own():
    history = []
    for n in range(12):
        history.append({"type": "computer_call", "id": "cu_1", "call_id": f"call_{n}"})
        history.append({"type": "computer_call_output", "call_id": f"call_{n}", "output": {}})
    mended = lockstitch.mend(history)
    ids = [item["id"] for item in mended if item["type"] == "computer_call"]
    assert ids == ["cu_1", *(f"cu_1_ls{n}" for n in range(2, 13))]


@pytest.mark.parametrize("keep", ["first", "last"])
def test_no_policy_prefers_a_placeholder_to_what_really_came(keep):
    policy = lockstitch.Policy(keep=keep)
    for texts in (["real", "aborted"], ["aborted", "real"]):
        history = [call(), *(output(text=text) for text in texts)]
        mended = lockstitch.mend(history, policy=policy)
        assert [item["output"] for item in mended if "output" in item] == ["real"]


def test_a_result_of_the_wrong_family_becomes_one_of_the_tool_that_was_used():
    used = {"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "s", "content": "1"}
    history = [
        USER,
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result]},
    ]
    mended = lockstitch.mend([*history, USER], dialect="messages")
    blocks = [block for m in mended if isinstance(m["content"], list) for block in m["content"]]
    assert [b["type"] for b in blocks[:2]] == ["server_tool_use", "code_execution_tool_result"]
