"""Replies: drafts that say as little as their author cared to."""

import json

import pytest

from lockstitch.emulator.ids import Ids
from lockstitch.emulator.kinds import check_shape
from lockstitch.emulator.model import replies
from lockstitch.emulator.responses.drafting import finished
from lockstitch.emulator.responses.item_shapes import ITEM_SHAPES
from lockstitch.emulator.responses.minting import Mint

CALLS = [
    replies.call("get_weather", {"city": "Oslo"}),
    replies.custom_call("grep", "a b"),
    replies.computer_call({"type": "screenshot"}),
    replies.computer_call({"type": "screenshot"}, {"type": "wait"}),
    replies.shell_call("ls -l", "pwd"),
    replies.local_shell_call("ls", "-l"),
    replies.apply_patch_call({"type": "delete_file", "path": "a.txt"}),
    replies.tool_search_call({"query": "weather"}),
    replies.tool_search_call({"query": "weather"}, execution="server"),
    replies.program("1 + 1"),
    replies.approval_request("mail", "send", {"to": "a"}),
    replies.reasoning("why", content="because"),
]


def type_of(draft):
    return draft["type"]


@pytest.mark.parametrize("draft", CALLS, ids=type_of)
def test_a_finished_draft_is_an_item_that_the_client_may_send_back(draft):
    item = finished(draft, Ids(), Mint(0), encrypted=False)
    check_shape(ITEM_SHAPES[draft["type"]], item, "input[0]")


def test_there_is_a_constructor_for_each_family_of_calls():
    assert {draft["type"] for draft in CALLS} >= {
        "function_call",
        "custom_tool_call",
        "computer_call",
        "shell_call",
        "local_shell_call",
        "apply_patch_call",
        "tool_search_call",
        "program",
        "mcp_approval_request",
    }


def test_arguments_that_are_no_text_are_written_as_json():
    assert json.loads(replies.call("f", {"a": [1, None]})["arguments"]) == {"a": [1, None]}
    assert replies.call("f", [])["arguments"] == "[]"
    assert replies.call("f")["arguments"] == "{}"


def test_arguments_that_are_text_are_sent_as_they_are_even_if_broken():
    assert replies.call("f", '{"a": ')["arguments"] == '{"a": '


def test_a_text_in_a_reply_is_a_message():
    assert replies.reply("Hello").drafts == (replies.text("Hello"),)


def test_ids_can_be_given():
    assert replies.call("f", call_id="call_1", id="fc_1")["call_id"] == "call_1"
    assert replies.text("Hello", id="msg_1")["id"] == "msg_1"


def test_a_program_has_the_same_fingerprint_each_time_and_another_program_another():
    one = replies.program("1 + 1")
    assert one == replies.program("1 + 1")
    assert one["fingerprint"] != replies.program("1 + 2")["fingerprint"]
