"""OpenAI Responses: reading, writing, and a provider that scans in order."""

from __future__ import annotations

import typing
from functools import cache

import pytest
import typing_extensions
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

import lockstitch
from lockstitch.core import families
from lockstitch.core.items import LONGEST_NOTE_CHARACTERS, Part, Place
from lockstitch.core.outcomes import MARK, Evidence, Outcome, Settlement
from lockstitch.dialects.responses import ITEM_TYPES, Responses
from tests.generated import examples

RESPONSES = Responses()
USER = {"type": "message", "role": "user", "content": "hi"}

CALLS = {
    "function": {"type": "function_call", "call_id": "call_a", "name": "t", "arguments": "{}"},
    "custom": {"type": "custom_tool_call", "call_id": "call_a", "name": "t", "input": "x"},
    "computer": {"type": "computer_call", "call_id": "call_a", "id": "cu_1"},
    "shell": {"type": "shell_call", "call_id": "call_a", "action": {"commands": ["ls"]}},
    "local shell": {"type": "local_shell_call", "call_id": "call_a", "id": "lsh_1"},
    "apply patch": {"type": "apply_patch_call", "call_id": "call_a", "status": "completed"},
    "tool search": {"type": "tool_search_call", "call_id": "call_a", "execution": "client"},
    "program": {"type": "program", "call_id": "call_a", "id": "prog_1"},
    "MCP approval": {"type": "mcp_approval_request", "id": "call_a", "name": "t"},
}
"""One call of each family, as it comes off the wire."""

OUTPUTS = {
    "function": {"type": "function_call_output", "call_id": "call_a", "output": "ok"},
    "custom": {"type": "custom_tool_call_output", "call_id": "call_a", "output": "ok"},
    "computer": {
        "type": "computer_call_output",
        "call_id": "call_a",
        "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA=="},
    },
    "shell": {
        "type": "shell_call_output",
        "call_id": "call_a",
        "output": [{"stdout": "ok", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    },
    "local shell": {"type": "local_shell_call_output", "id": "lsh_1", "output": "ok"},
    "apply patch": {
        "type": "apply_patch_call_output",
        "call_id": "call_a",
        "status": "completed",
    },
    "tool search": {
        "type": "tool_search_output",
        "call_id": "call_a",
        "execution": "client",
        "tools": [],
    },
    "program": {
        "type": "program_output",
        "call_id": "call_a",
        "id": "po_1",
        "result": "ok",
        "status": "completed",
    },
    "MCP approval": {
        "type": "mcp_approval_response",
        "approval_request_id": "call_a",
        "approve": True,
    },
}

every_family = pytest.mark.parametrize(
    "family", families.RESPONSES_FAMILIES, ids=lambda family: family.name
)


def read(wire):
    (item,) = RESPONSES.read(wire)
    return item


# --- OpenAI's own types ------------------------------------------------------------------------


@cache
def _members():
    """For each item type that may be sent: its TypedDicts."""
    found: dict[str, list[type]] = {}
    for member in typing.get_args(ResponseInputItemParam):
        hint = typing_extensions.get_type_hints(member).get("type")
        for literal in _literals(hint):
            found.setdefault(literal, []).append(member)
    return found


def _literals(hint):
    if typing_extensions.get_origin(hint) is typing.Literal:
        return list(typing.get_args(hint))
    return [one for inner in typing.get_args(hint) for one in _literals(inner)]


def _exhaust(value):
    # pydantic checks an Iterable only when it is walked.
    if isinstance(value, dict):
        for inner in value.values():
            _exhaust(inner)
    elif not isinstance(value, str | bytes) and hasattr(value, "__iter__"):
        for inner in value:
            _exhaust(inner)


def assert_openai_takes(wire):
    """The item is one that OpenAI's SDK lets one send: no field missing, wrong or made up."""
    (member,) = _members()[wire["type"]]
    hints = typing_extensions.get_type_hints(member, include_extras=True)
    required = {
        name
        for name, hint in hints.items()
        if typing_extensions.get_origin(hint) is typing_extensions.Required
    }
    assert required <= set(wire), f"missing: {required - set(wire)}"
    assert set(wire) <= set(hints), f"unknown: {set(wire) - set(hints)}"
    _exhaust(TypeAdapter(member).validate_python(wire, strict=True))


@every_family
@pytest.mark.parametrize("outcome", Outcome)
def test_every_synthetic_output_is_one_that_openai_takes(family, outcome):
    wire = RESPONSES.output(family, "call_a", Settlement(outcome, f"{MARK} text"))
    assert_openai_takes(wire)


@every_family
def test_every_synthetic_output_answers_its_call(family):
    call = CALLS[family.name]
    wire = RESPONSES.output(family, "call_a", Settlement(Outcome.UNKNOWN, "text"))
    assert lockstitch.check([call, wire, USER], dialect="responses") == []


@every_family
@pytest.mark.parametrize("other", families.RESPONSES_FAMILIES, ids=lambda family: family.name)
def test_every_output_that_is_made_one_of_another_family_is_one_that_openai_takes(family, other):
    wrong = (
        {**OUTPUTS[other.name], "id": "call_a"}
        if other is families.LOCAL_SHELL
        else OUTPUTS[other.name]
    )
    retyped = RESPONSES.retype(wrong, 0, family)
    assert_openai_takes(retyped)
    item = read(retyped)
    assert item.key == "call_a"
    assert family.accepts(item.family)


# --- reading -----------------------------------------------------------------------------------


@every_family
def test_a_call_is_read_with_its_family_and_its_key(family):
    item = read(CALLS[family.name])
    assert (item.part, item.family, item.key) == (Part.CALL, family, "call_a")
    assert item.lone is False


@every_family
def test_an_output_is_read_with_its_family_and_its_key(family):
    item = read(OUTPUTS[family.name])
    key = "lsh_1" if family is families.LOCAL_SHELL else "call_a"
    assert (item.part, item.family, item.key) == (Part.OUTPUT, family, key)
    assert item.lone is False


@every_family
def test_a_pair_of_each_family_is_whole(family):
    assert lockstitch.check([CALLS[family.name], OUTPUTS[family.name], USER]) == []


@every_family
def test_half_a_pair_of_each_family_is_found(family):
    (finding,) = lockstitch.check([CALLS[family.name], USER])
    assert (finding.code, finding.family) == ("LS013" if family.asks_first else "LS001", family)
    (finding,) = lockstitch.check([OUTPUTS[family.name], USER])
    assert finding.code == "LS002"


def test_the_name_of_the_tool_is_read_for_people():
    assert read(CALLS["function"]).name == "t"
    assert read({**CALLS["function"], "name": 7}).name is None


def test_a_function_output_without_a_call_id_is_an_event_and_never_an_orphan():
    event = {"type": "function_call_output", "name": "alarm", "output": "it is seven"}
    assert read(event).part is Part.INPUT
    assert read({**event, "call_id": None}).part is Part.INPUT
    assert lockstitch.check([USER, event]) == []
    assert list(lockstitch.mend([USER, event])) == [USER, event]


def test_a_local_shell_call_is_joined_by_its_call_id_and_by_its_id():
    item = read(CALLS["local shell"])
    assert (item.key, item.alias) == ("call_a", "lsh_1")
    for answer in (OUTPUTS["local shell"], OUTPUTS["function"]):
        assert lockstitch.check([CALLS["local shell"], answer]) == []


def test_a_local_shell_call_without_a_call_id_is_joined_by_its_id():
    item = read({"type": "local_shell_call", "id": "lsh_1"})
    assert (item.key, item.alias) == ("lsh_1", None)


def test_a_patch_output_without_text_is_an_output():
    assert "output" not in OUTPUTS["apply patch"]
    assert lockstitch.check([CALLS["apply patch"], OUTPUTS["apply patch"]]) == []


@pytest.mark.parametrize("execution", ["server", None])
def test_a_search_without_a_call_id_is_joined_by_position_or_stands_alone(execution):
    call = {"type": "tool_search_call", "call_id": None, "execution": execution}
    answer = {"type": "tool_search_output", "call_id": None, "execution": execution, "tools": []}
    for history in ([call, answer], [call], [answer], [answer, USER, call, answer]):
        assert lockstitch.check([*history, USER], dialect="responses") == []


def test_a_search_that_the_server_ran_stands_alone_even_with_a_call_id():
    call = {"type": "tool_search_call", "call_id": "ts_1", "execution": "server"}
    answer = {"type": "tool_search_output", "call_id": "ts_1", "execution": "server", "tools": []}
    for history in ([call, answer], [call], [answer]):
        assert lockstitch.check([*history, USER]) == []


def test_a_search_that_the_client_must_run_wants_its_output():
    for key in ("ts_1", None):
        call = {"type": "tool_search_call", "call_id": key, "execution": "client"}
        assert [f.code for f in lockstitch.check([call, USER])] == ["LS001"]


def test_a_program_may_still_be_answered_by_the_server_until_the_user_speaks():
    child = {**CALLS["function"], "call_id": "child", "caller": {"type": "program"}}
    answer = {**OUTPUTS["function"], "call_id": "child"}
    assert lockstitch.check([USER, CALLS["program"], child, answer]) == []
    assert [f.code for f in lockstitch.check([CALLS["program"], USER])] == ["LS001"]


def test_an_approval_is_joined_by_its_id_and_has_no_call_id():
    assert lockstitch.check([CALLS["MCP approval"], OUTPUTS["MCP approval"]]) == []
    wrong = {"type": "mcp_approval_response", "call_id": "call_a", "approve": True}
    codes = [f.code for f in lockstitch.check([CALLS["MCP approval"], wrong])]
    assert codes == ["LS013", "LS002"]


@pytest.mark.parametrize(
    ("wire", "part"),
    [
        ({"type": "message", "role": "assistant", "content": []}, Part.MODEL),
        ({"type": "message", "role": "developer", "content": "x"}, Part.INPUT),
        ({"role": "assistant", "content": "x"}, Part.MODEL),
        ({"role": "user", "content": "x"}, Part.INPUT),
        ({"type": "reasoning", "id": "rs_1", "summary": []}, Part.REASONING),
        ({"type": "item_reference", "id": "msg_1"}, Part.REFERENCE),
        ({"id": "msg_1"}, Part.REFERENCE),
        ({"type": "compaction", "encrypted_content": "x"}, Part.COMPACTION),
        ({"type": "compaction_trigger"}, Part.OTHER),
        ({"type": "additional_tools", "role": "developer", "tools": []}, Part.OTHER),
        ({"type": "a_type_of_next_year", "call_id": "call_a"}, Part.OTHER),
        ({}, Part.OTHER),
    ],
)
def test_what_is_no_call_and_no_output_is_read_for_the_part_it_plays(wire, part):
    item = read(wire)
    assert item.part is part
    assert item.key is None


@pytest.mark.parametrize("kind", sorted(families.SELF_CONTAINED))
def test_nothing_answers_a_call_that_holds_its_own_result(kind):
    wire = {"type": kind, "id": "ws_1", "status": "completed"}
    assert read(wire).part is Part.MODEL
    assert lockstitch.check([wire, USER]) == []


@pytest.mark.parametrize("value", [None, "", 7, [], {}, ["call_a"]])
@every_family
def test_a_key_that_is_no_text_is_no_key(family, value):
    joining = {"call_id": value, "id": value, "approval_request_id": value}
    for wire in ({**CALLS[family.name], **joining}, {**OUTPUTS[family.name], **joining}):
        assert read(wire).key is None


def test_only_a_short_text_is_carried_as_a_note():
    longest = "x" * LONGEST_NOTE_CHARACTERS
    assert read({**OUTPUTS["function"], "output": longest}).note == longest
    assert read({**OUTPUTS["function"], "output": longest + "x"}).note is None
    assert read(OUTPUTS["shell"]).note is None


def test_the_types_that_are_known_are_those_of_the_facts():
    assert {
        *CALLS_AND_OUTPUTS,
        *families.SELF_CONTAINED,
        "message",
        "reasoning",
        "compaction",
        "compaction_trigger",
        "item_reference",
        "additional_tools",
    } == ITEM_TYPES


CALLS_AND_OUTPUTS = {wire["type"] for wire in (*CALLS.values(), *OUTPUTS.values())}


@pytest.mark.parametrize("name", ["MCP approval", "local shell"])
def test_the_item_id_of_a_call_is_used_once_even_where_it_joins(name):
    # "ids are unique": the provider says "Duplicate item found with id ...".
    call, answer = CALLS[name], OUTPUTS[name]
    assert "LS008" in [f.code for f in lockstitch.check([call, answer, USER, call, answer])]


# --- writing -----------------------------------------------------------------------------------


def test_an_approval_that_nobody_gave_is_refused_with_the_reason():
    wire = RESPONSES.output(
        families.MCP_APPROVAL, "mcpr_1", Settlement(Outcome.NEVER_STARTED, "why")
    )
    assert (wire["approve"], wire["approval_request_id"]) == (False, "mcpr_1")
    assert wire["reason"] == "why"


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("function", lambda wire: wire["output"]),
        ("custom", lambda wire: wire["output"]),
        ("shell", lambda wire: wire["output"][0]["stdout"]),
        ("local shell", lambda wire: wire["output"]),
        ("apply patch", lambda wire: wire["output"]),
        ("program", lambda wire: wire["result"]),
        ("MCP approval", lambda wire: wire["reason"]),
    ],
)
def test_a_synthetic_output_tells_the_model_its_outcome_wherever_it_can_hold_text(name, where):
    (family,) = [f for f in families.RESPONSES_FAMILIES if f.name == name]
    for outcome in Outcome:
        assert where(RESPONSES.output(family, "k", Settlement(outcome, "the text"))) == "the text"


@pytest.mark.parametrize("name", ["computer", "apply patch", "program"])
def test_a_status_is_that_of_the_outcome(name):
    (family,) = [f for f in families.RESPONSES_FAMILIES if f.name == name]
    finished = RESPONSES.output(family, "k", Settlement(Outcome.FINISHED, "x"))
    assert finished["status"] == "completed"
    for outcome in (Outcome.UNKNOWN, Outcome.NEVER_STARTED):
        unfinished = RESPONSES.output(family, "k", Settlement(outcome, "x"))
        assert unfinished["status"] in ("incomplete", "failed")


@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.NEVER_STARTED])
def test_a_shell_call_that_did_not_finish_is_not_said_to_have_exited(outcome):
    (chunk,) = RESPONSES.output(families.SHELL, "k", Settlement(outcome, "x"))["output"]
    assert chunk["outcome"]["type"] != "exit"


@pytest.mark.parametrize(("code", "told"), [(2, 2), (None, 1)])
def test_a_call_that_finished_with_an_error_is_not_told_as_a_success(code, told):
    # A wrong repair that users reported: "marking every synthetic output as success".
    known = {
        "call_a": Evidence(Outcome.FINISHED, "failed", "no such file", failed=True, exit_code=code)
    }
    mended = lockstitch.mend([CALLS["shell"]], evidence=known)
    assert mended[1]["output"][0]["outcome"] == {"type": "exit", "exit_code": told}
    mended = lockstitch.mend([CALLS["apply patch"]], evidence=known)
    assert mended[1]["status"] == "failed"


def test_an_output_is_taken_whole_and_put_as_an_item_of_its_own():
    wire = OUTPUTS["function"]
    assert RESPONSES.take(wire, {0}) == (None, [wire])
    assert RESPONSES.put([wire]) == [wire]
    assert RESPONSES.beside(families.FUNCTION, Place(0)) is False


def test_an_output_never_stands_inside_another_item():
    with pytest.raises(AssertionError):
        RESPONSES.put_into(USER, [OUTPUTS["function"]])
    with pytest.raises(AssertionError):
        RESPONSES.put_beside(USER, 0, OUTPUTS["function"])


@pytest.mark.parametrize(
    ("wire", "field"),
    [
        (CALLS["function"], "call_id"),
        (OUTPUTS["function"], "call_id"),
        (CALLS["MCP approval"], "id"),
        (OUTPUTS["MCP approval"], "approval_request_id"),
    ],
)
def test_an_id_is_replaced_where_it_joins_and_nothing_else_is(wire, field):
    noted = {**wire, "metadata": {"call_id": "call_a"}, "x": "call_a"}
    changed = RESPONSES.rekey(noted, 0, "call_a", "call_b")
    assert changed == {**noted, field: "call_b"}
    assert list(changed) == list(noted)


def test_the_item_id_of_a_call_is_left_alone_when_its_call_id_is_replaced():
    wire = {**CALLS["function"], "id": "fc_1"}
    assert RESPONSES.rekey(wire, 0, "call_a", "call_b") == {**wire, "call_id": "call_b"}


SAID = Settlement(Outcome.FINISHED, "what happened")


@pytest.mark.parametrize("name", ["function", "custom"])
def test_rewording_touches_the_text_alone(name):
    # Children of a program point to it by `caller`; without it they belong to nobody.
    wire = {**OUTPUTS[name], "caller": {"type": "program", "caller_id": "p"}, "x": 1}
    assert RESPONSES.reword(wire, 0, SAID) == {**wire, "output": "what happened"}
    assert wire["output"] == "ok"


@pytest.mark.parametrize("name", ["function", "custom", "local shell", "apply patch"])
def test_a_reworded_output_still_answers_its_call_and_openai_takes_it(name):
    wire = {**OUTPUTS[name], "output": "aborted by user"}
    reworded = RESPONSES.reword(wire, 0, SAID)
    assert_openai_takes(reworded)
    assert reworded["output"] == "what happened"
    assert reworded["type"] == wire["type"]
    assert lockstitch.check([CALLS[name], reworded]) == []


def test_a_patch_that_really_finished_is_not_left_as_failed():
    wire = {**OUTPUTS["apply patch"], "status": "failed", "output": "aborted"}
    assert RESPONSES.reword(wire, 0, SAID)["status"] == "completed"


def test_stripping_an_id_leaves_the_rest():
    wire = {**CALLS["function"], "id": "fc_1"}
    assert RESPONSES.strip_id(wire, 0) == CALLS["function"]


@pytest.mark.parametrize("part", ["function", "custom"])
def test_text_and_content_parts_survive_a_change_of_family(part):
    (family,) = [f for f in families.RESPONSES_FAMILIES if f.name == part]
    for value in ("text", [{"type": "input_text", "text": "x"}]):
        wire = {"type": "function_call_output", "call_id": "k", "output": value}
        assert RESPONSES.retype(wire, 0, family)["output"] == value


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({**OUTPUTS["tool search"], "tools": [{"type": "custom", "name": "grep"}]}, "grep"),
        ({**OUTPUTS["apply patch"], "status": "failed"}, "failed"),
        (OUTPUTS["shell"], "ok"),
        (OUTPUTS["program"], "ok"),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else None,
)
def test_what_an_output_says_survives_a_change_of_family(wrong, told):
    retyped = RESPONSES.retype(wrong, 0, families.FUNCTION)
    assert told in str(retyped["output"])


def test_a_change_of_family_does_not_keep_an_id_of_the_old_one():
    # "Invalid 'input[5].id': 'call_X'. Expected an ID that begins with 'ctc'."
    wrong = {**OUTPUTS["custom"], "id": "ctco_1"}
    assert RESPONSES.retype(wrong, 0, families.FUNCTION).get("id") != "ctco_1"


@pytest.mark.parametrize(
    "broken",
    [
        # A program whose call id was used before: the synthetic output's id is taken.
        [
            CALLS["program"],
            {**OUTPUTS["program"], "id": "call_a_output"},
            {**CALLS["program"], "id": "prog_2"},
            USER,
        ],
        # Two programs with one item id.
        [
            CALLS["program"],
            OUTPUTS["program"],
            {**CALLS["program"], "call_id": "call_b"},
            {**OUTPUTS["program"], "call_id": "call_b", "id": "po_2"},
        ],
    ],
    ids=["synthetic id taken", "item id used twice"],
)
def test_mending_never_leaves_a_program_without_the_id_that_it_must_have(broken):
    mended = lockstitch.mend(broken)
    programs = [wire for wire in mended if wire["type"] in ("program", "program_output")]
    assert all("id" in wire for wire in programs)
    assert len({wire["id"] for wire in programs}) == len(programs)


def test_unknown_types_and_fields_come_through_mending_untouched():
    strange = {"type": "a_type_of_next_year", "id": "call_a", "x": {"y": [1, None]}}
    noted = {**CALLS["function"], "a_field_of_next_year": [1, 2], "id": "fc_1"}
    mended = lockstitch.mend([strange, noted, USER])
    assert mended[0] is strange
    assert mended[1] is noted
    assert mended[3] is USER


def test_an_unknown_type_with_a_call_id_is_not_judged():
    strange = {"type": "a_type_of_next_year", "call_id": "call_a"}
    assert read(strange).unread == "type `a_type_of_next_year` with a `call_id`"
    for function in (lockstitch.check, lockstitch.mend, lockstitch.trim):
        with pytest.raises(lockstitch.NotAHistory, match=r"Item 1 .*`a_type_of_next_year`"):
            function([USER, strange])


# --- a provider that scans in order ------------------------------------------------------------
# Written from the facts and from nothing else: an output needs an earlier call of its key and its
# family that has none yet; a call needs exactly one; ids are unique; reasoning needs its follower.

_PAIRS = {
    "function_call": ("function_call_output",),
    "custom_tool_call": ("custom_tool_call_output",),
    "shell_call": ("shell_call_output",),
    "apply_patch_call": ("apply_patch_call_output",),
    "local_shell_call": ("local_shell_call_output", "function_call_output"),
    "mcp_approval_request": ("mcp_approval_response",),
}
_ANSWERS = {answer for answers in _PAIRS.values() for answer in answers}


def refusal(history):
    """Why a provider would refuse this input; None if it takes it."""
    waiting: list[tuple[str, str]] = []
    ids: set[str] = set()
    for at, wire in enumerate(history):
        kind = wire["type"]
        if "id" in wire and kind != "local_shell_call_output":
            if wire["id"] in ids:
                return f"duplicate item {wire['id']}"
            ids.add(wire["id"])
        key = wire.get("approval_request_id") or wire.get("call_id") or wire.get("id")
        if kind in _PAIRS:
            if any(key == other for _, other in waiting):
                return f"{key} is open already"
            waiting.append((kind, key))
        elif kind in _ANSWERS:
            match = [one for one in waiting if one[1] == key and kind in _PAIRS[one[0]]]
            if not match:
                return f"no call for {key}"
            waiting.remove(match[0])
        elif kind == "reasoning" and "id" in wire:
            rest = [other for other in history[at + 1 :] if other["type"] != "reasoning"]
            follower = rest[0] if rest else USER
            if follower["type"] in _ANSWERS or follower.get("role") == "user":
                return f"reasoning {wire['id']} without its follower"
    return f"no output for {waiting[0][1]}" if waiting else None


@st.composite
def inputs(draw):
    """Histories of six families; each key belongs to one family, or to all."""
    shared = draw(st.booleans())
    history = []
    for n in range(draw(st.integers(0, 9))):
        call = draw(st.sampled_from(sorted(_PAIRS)))
        key = draw(st.sampled_from("abc")) + ("" if shared else call)
        item_id = draw(st.sampled_from([None, "i1", "i2"]))
        kind = draw(st.integers(0, 9))
        if kind <= 3:
            wire = {"type": call, "call_id": key, "id": item_id}
            if call == "mcp_approval_request":
                wire = {"type": call, "id": f"{key}{n}"}
            elif call == "local_shell_call":
                wire["id"] = f"lsh_{n}"
        elif kind <= 7:
            answer = draw(st.sampled_from(_PAIRS[call]))
            wire = {"type": answer, "call_id": key, "id": item_id, "output": "x"}
            if call == "mcp_approval_request":
                wire = {"type": answer, "approval_request_id": f"{key}{draw(st.integers(0, 8))}"}
            elif answer == "local_shell_call_output":
                wire = {"type": answer, "id": key, "output": "x"}
        elif kind == 8:
            wire = {"type": "reasoning", "id": item_id}
        else:
            wire = {"type": "message", "role": draw(st.sampled_from(["user", "assistant"]))}
        history.append({name: value for name, value in wire.items() if value is not None})
    return history


@settings(max_examples=examples(300))
@given(inputs())
def test_check_finds_nothing_exactly_where_a_provider_takes_the_input(history):
    findings = lockstitch.check(history, dialect="responses")
    assert (findings == []) is (refusal(history) is None), (findings, refusal(history))


@settings(max_examples=examples(300))
@given(inputs())
def test_a_provider_takes_every_mended_input(history):
    assert refusal(lockstitch.mend(history, dialect="responses")) is None
