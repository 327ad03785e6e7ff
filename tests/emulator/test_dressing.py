import copy
import json
import typing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.conversations import ConversationItem
from openai.types.responses import ResponseItem

from lockstitch.emulator.ids import PREFIXES, Ids
from lockstitch.emulator.responses.dressing import (
    DEFAULTS,
    dressed,
    in_conversation,
)
from lockstitch.emulator.responses.item_shapes import ITEM_SHAPES, MESSAGE_SHAPES
from lockstitch.emulator.responses.part_shapes import ALSO_TAKEN_PARTS
from lockstitch.emulator.responses.shapes import check_items
from tests.emulator.shaped import items_of, messages
from tests.emulator.strictly import fields_of, members_of, strictly

# A trigger asks for something: it is no part of any context, and is not kept.
KEPT_TYPES = [name for name in ITEM_SHAPES if name != "compaction_trigger"]
INSIDES = {
    "function_call_output": {"output": ""},
    "custom_tool_call_output": {"output": ""},
    "local_shell_call": {"action": {"type": "exec", "command": []}},
}
LENIENT = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def types_in(union):
    return {
        literal
        for member in members_of(union)
        for literal in typing.get_args(fields_of(member)["type"].annotation)
    }


def hears(item):
    parts = item.get("content")
    return isinstance(parts, list) and any(p["type"] in ALSO_TAKEN_PARTS for p in parts)


def is_as_the_types_say(item):
    kept = dressed(item, Ids())
    strictly(ResponseItem, kept)
    strictly(ConversationItem, in_conversation(kept))
    return kept


@pytest.mark.parametrize("named", KEPT_TYPES)
def test_a_dressed_item_is_exactly_what_the_official_types_say(named):
    @LENIENT
    @given(items_of(named))
    def holds(item):
        check_items([item])
        is_as_the_types_say(item)

    holds()


@pytest.mark.parametrize("role", MESSAGE_SHAPES)
def test_a_dressed_message_is_exactly_what_the_official_types_say(role):
    @LENIENT
    @given(messages(role).filter(lambda message: not hears(message)))
    def holds(message):
        check_items([message])
        is_as_the_types_say(message)

    holds()


def test_every_type_that_the_official_types_keep_is_covered():
    covered = {"message", *KEPT_TYPES}
    assert types_in(ResponseItem) == covered
    assert types_in(ConversationItem) == covered


def test_every_type_with_a_status_gets_one():
    with_status = {
        literal
        for member in members_of(ResponseItem)
        if "status" in fields_of(member)
        for literal in typing.get_args(fields_of(member)["type"].annotation)
    }
    assert {named for named, default in DEFAULTS.items() if "status" in default} == with_status


@LENIENT
@given(st.sampled_from(KEPT_TYPES).flatmap(items_of) | messages("user") | messages("assistant"))
def test_dressing_changes_nothing_in_the_item_it_came_from(item):
    before = copy.deepcopy(item)
    dressed(item, Ids())
    assert item == before


@LENIENT
@given(st.sampled_from(KEPT_TYPES).flatmap(items_of) | messages("user") | messages("assistant"))
def test_a_dressed_item_can_be_sent_back_and_stays_as_it_is(item):
    kept = dressed(item, Ids())
    check_items([kept])
    assert dressed(kept, Ids(1)) == kept


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"role": "user", "content": "hi"}, [{"type": "input_text", "text": "hi"}]),
        (
            {"role": "assistant", "content": "hi"},
            [{"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}],
        ),
    ],
)
def test_an_easy_message_gets_its_type_its_id_its_status_and_its_part(message, content):
    ids = Ids()
    assert dressed(message, ids) == {
        "id": Ids().item("message"),
        "type": "message",
        "role": message["role"],
        "content": content,
        "status": "completed",
    }


def test_an_id_that_was_given_is_kept_and_a_null_one_is_not():
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    assert dressed({**call, "id": "fc_mine"}, Ids())["id"] == "fc_mine"
    assert dressed({**call, "id": None}, Ids())["id"].startswith("fc_")


@pytest.mark.parametrize("named", KEPT_TYPES)
def test_a_new_id_begins_with_the_prefix_of_its_type(named):
    kept = dressed({"type": named, **INSIDES.get(named, {})}, Ids())
    assert kept["id"].startswith(PREFIXES.get(named, "item"))


def test_the_id_of_a_local_shell_output_names_its_call_and_stays():
    output = {"type": "local_shell_call_output", "id": "call_1", "output": "{}"}
    assert dressed(output, Ids()) == {**output, "status": "completed"}


@pytest.mark.parametrize("own", [{}, {"id": None}, {"id": "lsho_1"}])
def test_a_local_shell_output_that_has_a_call_id_is_kept_by_it(own):
    output = {"type": "local_shell_call_output", "call_id": "call_1", "output": "{}", **own}
    assert dressed(output, Ids()) == {
        "type": "local_shell_call_output",
        "id": "call_1",
        "output": "{}",
        "status": "completed",
    }


def test_a_picture_without_detail_is_kept_with_auto():
    picture = {"type": "input_image", "image_url": "https://example.com/a.png"}
    kept = is_as_the_types_say({"role": "user", "content": [picture]})
    assert kept["content"] == [{**picture, "detail": "auto"}]
    output = {"type": "function_call_output", "call_id": "call_1", "output": [picture]}
    assert is_as_the_types_say(output)["output"] == [{**picture, "detail": "auto"}]


def test_a_phase_is_kept_on_the_assistants_messages_alone():
    for role, kept in (("assistant", True), ("user", False)):
        message = {"role": role, "content": "hi", "phase": "commentary"}
        assert ("phase" in is_as_the_types_say(message)) is kept


def test_a_search_with_a_call_id_was_the_clients():
    search = {"type": "tool_search_call", "arguments": {}}
    assert is_as_the_types_say(search)["execution"] == "server"
    assert is_as_the_types_say({**search, "call_id": "call_1"})["execution"] == "client"


def test_a_conversation_shows_custom_calls_without_a_status():
    call = {"type": "custom_tool_call", "call_id": "call_1", "name": "patch", "input": "x"}
    kept = dressed(call, Ids())
    assert kept["status"] == "completed"
    assert "status" not in in_conversation(kept)
    assert kept["status"] == "completed"


def test_an_audio_part_is_kept_as_it_came():
    part = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
    assert dressed({"role": "user", "content": [part]}, Ids())["content"] == [part]


def test_an_item_of_an_unknown_type_keeps_all_it_has():
    kept = dressed({"type": "telepathy_call", "thought": None}, Ids())
    assert kept == {"id": Ids().draw("item"), "type": "telepathy_call", "thought": None}


def test_a_reference_stays_a_reference():
    assert dressed({"id": "msg_1"}, Ids()) == {"type": "item_reference", "id": "msg_1"}


def test_the_same_source_of_ids_gives_the_same_items():
    sent = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]

    def listed(ids: Ids) -> str:
        return json.dumps([dressed(item, ids) for item in sent])

    assert listed(Ids(7)) == listed(Ids(7))
