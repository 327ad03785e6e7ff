"""Replays: at home everything stays; abroad what belongs to one upstream is left or named."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core import families
from lockstitch.emulator.refusals import Refused
from lockstitch.emulator.responses.admission import Made, admitted, check_answered
from lockstitch.emulator.responses.context import Context
from lockstitch.emulator.responses.item_shapes import ITEM_SHAPES
from lockstitch.emulator.responses.minting import Mint
from lockstitch.emulator.responses.shapes import check_items
from lockstitch.gateway.deciding.portable import (
    ID_STAYS,
    CannotTravel,
    NotWhole,
    _travelling,
    abroad,
    at_home,
)
from tests.emulator.shaped import items_of
from tests.generated import HISTORIES, examples
from tests.turns import call, output, reasoning, said, user

REFERENCE = {"type": "item_reference", "id": "fc_1"}


def pair(family, key):
    """A call of a family and an output that answers it, with everything a provider adds."""
    made = {"type": family.call_type, "call_id": key, "id": f"i_{key}", "status": "completed"}
    answer = {"type": family.output_type, "call_id": key, "id": f"o_{key}", "output": "ok"}
    if family is families.MCP_APPROVAL:
        made = {"type": family.call_type, "id": key, "name": "t", "server_label": "s"}
        answer = {"type": family.output_type, "id": f"o_{key}", "approval_request_id": key}
    if family is families.LOCAL_SHELL:
        answer = {"type": family.output_type, "id": key, "output": "ok"}
    if family is families.APPLY_PATCH:
        answer["status"] = "failed"
    if family is families.TOOL_SEARCH:
        made["execution"] = answer["execution"] = "client"
    return made, answer


# --- abroad ------------------------------------------------------------------------------------


@settings(max_examples=examples(500))
@given(HISTORIES["responses"])
def test_what_was_whole_is_whole_abroad(history):
    whole = list(lockstitch.mend(history, dialect="responses"))
    before = copy.deepcopy(whole)
    if any(item.get("type") == "item_reference" for item in whole):
        with pytest.raises(CannotTravel):
            abroad(whole)
    else:
        sent = abroad(whole)
        assert lockstitch.check(sent, dialect="responses") == []
        assert abroad(sent) == sent
    assert whole == before


_rounds = st.lists(
    st.tuples(
        st.lists(st.sampled_from(families.RESPONSES_FAMILIES), min_size=1, max_size=3),
        st.sampled_from(["carried", "kept", None]),
        st.booleans(),
    ),
    max_size=4,
)


@settings(max_examples=examples(300))
@given(_rounds)
def test_pairs_of_every_family_travel_together(rounds):
    history = [user(id="msg_user")]
    for n, (chosen, thought, spoke) in enumerate(rounds):
        if thought is not None:
            history.append(reasoning(f"rs_{n}", "x" if thought == "carried" else None))
        pairs = [pair(family, f"k{n}_{m}") for m, family in enumerate(chosen)]
        history += [made for made, _ in pairs]
        history += [answer for _, answer in pairs]
        if spoke:
            history.append(said(id=f"msg_{n}", status="completed"))
    assert lockstitch.check(history) == []
    sent = abroad(history)
    assert lockstitch.check(sent) == []
    typed = [{"type": "message", **item} for item in sent]
    check_answered(admitted(Context(), typed, Made(), Mint(0), sent=typed))
    assert [item for item in sent if item.get("type") == "reasoning"] == []
    calls = [item for item in history if item.get("type") != "reasoning"]
    assert len(sent) == len(calls)
    for now, then in zip(sent, calls, strict=True):
        assert now.get("call_id") == then.get("call_id")
        if now.get("type") not in ID_STAYS:
            assert "id" not in now


@pytest.mark.parametrize("type_", sorted(ITEM_SHAPES))
@settings(max_examples=examples(30))
@given(st.data())
def test_an_item_that_travels_still_has_the_shape_of_its_type(type_, data):
    item = data.draw(items_of(type_))
    item = {"type": type_, **item}
    try:
        check_items([item])
    except Refused:
        return  # what is wrong about it was so before
    travelling = _travelling(item)
    if travelling is not None:
        check_items([travelling])


def test_ids_reasoning_and_status_stay_behind_and_what_was_said_travels():
    history = [
        user(id="msg_1"),
        reasoning("rs_1", "secret"),
        call("a", id="fc_1", status="completed"),
        output("a", id="fco_1", status="completed"),
        said(id="msg_2", status="completed", phase="final"),
    ]
    assert abroad(history) == [user(), call("a"), output("a"), said(phase="final")]


def test_how_a_call_ended_is_not_lost_with_its_status():
    made, answer = pair(families.APPLY_PATCH, "a")
    assert abroad([made, answer])[1]["status"] == "failed"


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ({"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}, "file file-1"),
        ({"role": "user", "content": [{"type": "input_image", "file_id": "file-1"}]}, "file-1"),
        ({"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}, "summary"),
        (
            {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": None},
            "image_generation_call ig_1",
        ),
        (
            {"type": "code_interpreter_call", "id": "ci_1", "container_id": "cntr_1", "code": ""},
            "container cntr_1",
        ),
        (REFERENCE, "fc_1"),
        ({"id": "fc_1"}, "fc_1"),
        ({"type": "agent_message", "encrypted_content": "x"}, "encrypted content"),
    ],
)
def test_what_only_one_upstream_holds_is_named(item, name):
    with pytest.raises(CannotTravel) as caught:
        abroad([user(), item])
    assert len(caught.value.names) == 1
    assert name in caught.value.names[0]
    assert "another upstream" in str(caught.value)


def test_everything_that_cannot_travel_is_named_once():
    file = {"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}
    with pytest.raises(CannotTravel) as caught:
        abroad([file, file, REFERENCE])
    assert len(caught.value.names) == 2


def test_a_screenshot_in_a_file_cannot_travel_and_one_in_a_link_can():
    made, answer = pair(families.COMPUTER, "a")
    shot = {"type": "computer_screenshot", "image_url": "data:image/png;base64,"}
    assert abroad([made, {**answer, "output": shot}])[1]["output"] == shot
    with pytest.raises(CannotTravel, match="file file-1"):
        abroad([made, {**answer, "output": {"type": "computer_screenshot", "file_id": "file-1"}}])


def test_citations_of_files_stay_behind_and_links_travel():
    link = {"type": "url_citation", "url": "https://example.org"}
    file = {"type": "file_citation", "file_id": "file-1", "index": 0}
    part = {"type": "output_text", "text": "hi", "annotations": [file, link]}
    sent = abroad([{"type": "message", "role": "assistant", "content": [part]}])
    assert sent[0]["content"][0]["annotations"] == [link]
    assert part["annotations"] == [file, link]


def test_a_file_that_comes_with_its_content_needs_no_id():
    part = {"type": "input_file", "file_id": "file-1", "file_data": "data:"}
    sent = abroad([{"role": "user", "content": [part]}])
    assert sent[0]["content"] == [{"type": "input_file", "file_data": "data:"}]


@pytest.mark.parametrize(
    ("settings_", "name"),
    [
        ({"prompt": {"id": "pmpt_1"}}, "prompt pmpt_1"),
        (
            {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]},
            "vector store vs_1",
        ),
        ({"tools": [{"type": "code_interpreter", "container": "cntr_1"}]}, "container cntr_1"),
        (
            {"tools": [{"type": "code_interpreter", "container": {"file_ids": ["file-1"]}}]},
            "file file-1",
        ),
        (
            {
                "tools": [
                    {
                        "type": "shell",
                        "environment": {"type": "container_reference", "container_id": "cntr_1"},
                    }
                ]
            },
            "container cntr_1",
        ),
    ],
)
def test_settings_name_what_only_one_upstream_holds(settings_, name):
    with pytest.raises(CannotTravel) as caught:
        abroad([user()], settings=settings_)
    assert caught.value.names == (name,)


def test_names_in_a_users_own_schema_are_no_pointers():
    schema = {"type": "object", "properties": {"file_id": {"default": "file-1"}}}
    tools = [{"type": "function", "name": "t", "parameters": schema}]
    assert abroad([user()], settings={"tools": tools}) == [user()]
    made, answer = pair(families.TOOL_SEARCH, "a")
    abroad([{**made, "arguments": {"file_id": "file-1"}}, answer])


def test_a_reference_travels_as_what_it_stands_for():
    known = {"fc_1": call("a", id="fc_1"), "rs_1": reasoning()}
    sent = abroad(
        [{"type": "item_reference", "id": "rs_1"}, REFERENCE, output("a")], lookup=known.get
    )
    assert sent == [call("a"), output("a")]


def test_a_reference_that_turns_out_to_be_half_a_pair_is_refused():
    with pytest.raises(NotWhole, match="has no output"):
        abroad([REFERENCE, user()], lookup={"fc_1": call("a")}.get)


def test_a_replay_that_is_not_whole_is_never_sent():
    with pytest.raises(NotWhole, match="output for a has no call"):
        abroad([output("a")])
    with pytest.raises(NotWhole) as caught:
        at_home([output("a")])
    assert len(caught.value.findings) == 1


def test_a_call_that_broke_off_stays_behind_unless_it_was_answered():
    half = call("a", status="incomplete")
    assert abroad([user(), half]) == [user()]
    assert abroad([user(), half, output("a")]) == [user(), call("a"), output("a")]
    made, answer = pair(families.COMPUTER, "a")
    assert abroad([{**made, "status": "incomplete"}, answer])[0]["status"] == "completed"


def test_types_that_nobody_knows_travel_untouched():
    new = {"type": "a_new_type", "id": "x_1", "status": "odd"}
    assert abroad([new]) == [new]


# --- at home -----------------------------------------------------------------------------------


@settings(max_examples=examples(200))
@given(HISTORIES["responses"])
def test_at_home_everything_stays_as_it_is(history):
    whole = list(lockstitch.mend(history, dialect="responses"))
    assert at_home(whole) == whole


def test_at_home_a_reference_becomes_what_it_stands_for_where_that_is_known():
    made = call("a", id="fc_1")
    assert at_home([REFERENCE, output("a")], lookup={"fc_1": made}.get) == [made, output("a")]
    assert at_home([REFERENCE, output("a")]) == [REFERENCE, output("a")]


def test_at_home_a_call_that_broke_off_stays():
    half = call("a", status="incomplete")
    assert at_home([user(), half]) == [user(), half]
