import pydantic
import pytest
from openai.types.chat import ChatCompletionChunk
from openai.types.conversations import ConversationItem
from openai.types.realtime import RealtimeServerEvent
from openai.types.responses import (
    Response,
    ResponseItem,
    ResponsesServerEvent,
    ResponseStreamEvent,
)

from tests.emulator.strictly import strictly

CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "weather",
    "arguments": "{}",
    "status": "completed",
}
DONE = {
    "type": "response.output_item.done",
    "output_index": 0,
    "sequence_number": 3,
    "item": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "hello", "annotations": []}],
    },
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_767_225_600,
    "model": "gpt-5.5",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "temperature": 1,
    "top_p": 1.0,
}
DELETED = {"type": "conversation.item.deleted", "event_id": "event_1", "item_id": "item_1"}
CHUNK = {
    "id": "chatcmpl_1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "gpt-5.5",
    "choices": [{"index": 0, "delta": {"content": "hello"}, "finish_reason": None}],
}


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (ResponseStreamEvent, DONE),
        (ResponsesServerEvent, DONE),
        (Response, RESPONSE),
        (ResponseItem, CALL),
        (ConversationItem, CALL),
        (RealtimeServerEvent, DELETED),
        (ChatCompletionChunk, CHUNK),
    ],
)
def test_a_value_that_is_exactly_its_type_passes(type_, value):
    strictly(type_, value)


def test_an_alias_is_known_by_its_name_on_the_wire():
    strictly(ResponseItem, {**CALL, "async": True})
    with pytest.raises(
        AssertionError, match=r"\$\.async_: unknown to ResponseFunctionToolCallItem"
    ):
        strictly(ResponseItem, {**CALL, "async_": True})


def test_a_missing_required_field_fails_by_its_path():
    without = {name: value for name, value in CALL.items() if name != "call_id"}
    with pytest.raises(AssertionError, match=r"\$\.call_id: .* requires it, it is missing"):
        strictly(ResponseItem, without)


def test_an_unknown_field_at_depth_fails_by_its_path():
    part = {"type": "output_text", "text": "hello", "annotations": [], "colour": "red"}
    event = {**DONE, "item": {**DONE["item"], "content": [part]}}
    with pytest.raises(
        AssertionError, match=r"\$\.item\.content\[0\]\.colour: unknown to ResponseOutputText"
    ):
        strictly(ResponseStreamEvent, event)


@pytest.mark.parametrize("wrong", ["3", 3.5, True, None, [3]])
def test_a_wrong_json_type_fails_by_its_path(wrong):
    with pytest.raises(AssertionError, match=r"\$\.output_index: wants int, this is"):
        strictly(ResponseStreamEvent, {**DONE, "output_index": wrong})


def test_a_wrong_literal_fails_by_its_path():
    with pytest.raises(AssertionError, match=r"\$\.status: .*this is \"done\""):
        strictly(ResponseItem, {**CALL, "status": "done"})


def test_an_unknown_union_member_fails_with_the_known_ones():
    with pytest.raises(
        AssertionError, match=r"\$\.item: no member has type 'telepathy_call'; known: .*message"
    ):
        strictly(ResponseStreamEvent, {**DONE, "item": {"type": "telepathy_call"}})


def test_a_member_is_told_by_its_role_where_the_type_is_shared():
    message = {"id": "msg_1", "type": "message", "role": "user", "status": "completed"}
    with pytest.raises(AssertionError, match=r"\$\.content\[0\]: no member has type 'output_text'"):
        strictly(ResponseItem, {**message, "content": DONE["item"]["content"]})


def test_a_field_typed_object_takes_anything():
    call = {
        "id": "tsc_1",
        "type": "tool_search_call",
        "call_id": None,
        "execution": "server",
        "status": "completed",
    }
    for arguments in (None, "text", {"deep": [1, {"er": True}]}):
        strictly(ResponseItem, {**call, "arguments": arguments})


def test_any_pydantic_model_will_do():
    class Block(pydantic.BaseModel):
        text: str

    strictly(dict[str, Block | int], {"a": {"text": "hello"}, "b": 3})
    with pytest.raises(AssertionError, match=r"\$\.a\.more: unknown to Block"):
        strictly(dict[str, Block | int], {"a": {"text": "hello", "more": 1}})
    with pytest.raises(AssertionError, match=r"\$\.b: \"3\" is none of Block, int"):
        strictly(dict[str, Block | int], {"b": "3"})
