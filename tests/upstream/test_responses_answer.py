"""What the events of the Responses API tell."""

from typing import Any

import msgspec
import pytest

from lockstitch.core.facts import Ending
from lockstitch.upstream.contract import (
    Delta,
    Ended,
    Fate,
    Heard,
    ItemDone,
    Opened,
    UpstreamFailure,
)
from lockstitch.upstream.responses_answer import ResponsesAnswer, whole

CREATED = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}
ITEM = {"id": "msg_1", "type": "message"}


def ended(name: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{name}", "response": {"id": "resp_1", "status": name, **fields}}


def done(item: Any, index: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def heard(*events: Any, answer: ResponsesAnswer | None = None) -> list[Heard]:
    answer = answer or ResponsesAnswer()
    data = (each if isinstance(each, bytes) else msgspec.json.encode(each) for each in events)
    return [told for each in data for told in answer.hear(each)]


def failure_of(*events: Any, **fields: Any) -> UpstreamFailure:
    with pytest.raises(UpstreamFailure) as caught:
        heard(*events, answer=ResponsesAnswer(**fields))
    return caught.value


def test_an_answer_is_opened_said_and_ended():
    usage = {"input_tokens": 1, "new": {"x": None}}
    assert heard(CREATED, done(ITEM), ended(output=[ITEM], usage=usage)) == [
        Opened("resp_1"),
        ItemDone(b'{"id":"msg_1","type":"message"}'),
        Ended(Ending.COMPLETED, usage),
    ]


@pytest.mark.parametrize(
    "item",
    [
        b'{ "type" : "hologram",\t"id":"h_1", "n": 1.0, "big": 123456789012345678901234567890 }',
        b'{"id":"\\u00e9","text":"\\ud83d\\ude00 \\\\ud800 \\/","e":1E+2,"a":[{"b":null}]}',
        '{"id":"msg_1","text":"déjà vu 😀"}'.encode(),
        b"{}",
        b"[1,  2]",
        b"null",
    ],
)
def test_an_item_is_the_bytes_that_came(item):
    event = b'{"item" : %b ,"type":"response.output_item.done","output_index":0,"new":{}}' % item
    assert heard(CREATED, event)[1:] == [ItemDone(item)]
    end = b'{"type":"response.completed","response":{"id":"resp_1","output":[ %b ]}}' % item
    assert heard(CREATED, end)[1:-1] == [ItemDone(item)]
    body = b'{"id":"resp_1","status":"completed","output":[%b]}' % item
    assert whole(body) == [Opened("resp_1"), ItemDone(item), Ended(Ending.COMPLETED)]


def test_half_a_character_becomes_the_sign_for_one_and_nothing_else_changes():
    item = rb'{"id":"m","text":"\ud83d\ude00 \ud83d. \uDE00\ud83d\ud83d\ude00 \\ud800 \n","n": 1.0}'
    mended = (
        rb'{"id":"m","text":"\ud83d\ude00 \ufffd. \ufffd\ufffd\ud83d\ude00 \\ud800 \n","n": 1.0}'
    )
    event = b'{"type":"response.output_item.done","output_index":0,"item":%b}' % item
    assert heard(CREATED, event)[1:] == [ItemDone(mended)]
    delta = rb'{"type":"response.output_text.delta","delta":"a\ud83d"}'
    assert heard(CREATED, delta)[1:] == [Delta("a\ufffd")]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("output_text", "text"),
        ("refusal", "refusal"),
        ("reasoning_text", "reasoning"),
        ("reasoning_summary_text", "reasoning"),
        ("function_call_arguments", "arguments"),
        ("custom_tool_call_input", "arguments"),
        ("mcp_call_arguments", "arguments"),
    ],
)
def test_a_delta_is_told_with_its_kind_and_item(name, kind):
    delta = {"type": f"response.{name}.delta", "delta": "Hé", "item_id": "x_1", "obfuscation": "zz"}
    assert heard(CREATED, delta)[1:] == [Delta("Hé", kind, "x_1")]


@pytest.mark.parametrize(
    "event",
    [
        {
            "type": "response.telepathy.delta",
            "delta": {"x": 1},
            "item": 7,
            "response": [],
            "error": 1,
        },
        {"type": "response.in_progress", "response": {"id": "resp_1"}},
        {"type": "response.output_text.delta", "delta": {"not": "text"}},
        {"type": "response.output_text.delta", "delta": ""},
        {"type": "response.output_item.done"},
        {"type": "response.output_item.added", "item": ITEM, "output_index": "0"},
        {"no type": True},
        {},
        b"[DONE]",
    ],
)
def test_what_nobody_knows_is_passed_over(event):
    assert heard(CREATED, event) == [Opened("resp_1")]


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff", b'{"type": 7}', b'{"type":"error"'])
def test_what_cannot_be_read_is_lost(data):
    assert failure_of(CREATED, data).fate is Fate.LOST


def test_items_only_in_the_whole_are_told_before_the_end():
    other = {"id": "fc_1", "type": "function_call"}
    told = heard(CREATED, done(ITEM), ended(output=[ITEM, other]))
    assert [each.item for each in told if isinstance(each, ItemDone)] == [
        msgspec.json.encode(ITEM),
        msgspec.json.encode(other),
    ]
    assert isinstance(told[-1], Ended)


def test_a_whole_without_output_ends_an_answer_too():
    assert heard(CREATED, done(ITEM), ended(usage=None, output=None))[-1] == Ended(Ending.COMPLETED)
    assert heard(CREATED, {"type": "response.completed"})[-1] == Ended(Ending.COMPLETED)


@pytest.mark.parametrize(
    ("event", "end"),
    [
        (
            ended("incomplete", incomplete_details={"reason": "max_output_tokens"}),
            Ended(Ending.INCOMPLETE, None, "max_output_tokens"),
        ),
        (ended("incomplete"), Ended(Ending.INCOMPLETE, None, "incomplete")),
        (
            ended("failed", error={"code": "server_error", "message": "Sorry."}),
            Ended(Ending.FAILED, None, "server_error: Sorry."),
        ),
        (ended("failed", error=None), Ended(Ending.FAILED, None, "failed")),
        (ended("cancelled"), Ended(Ending.FAILED, None, "cancelled")),
    ],
)
def test_an_answer_that_ends_early_says_why(event, end):
    assert heard(CREATED, event) == [Opened("resp_1"), end]


def test_an_answer_begins_and_ends_once():
    assert heard(CREATED, CREATED, ended(), ended(), CREATED, done(ITEM)) == [
        Opened("resp_1"),
        Ended(Ending.COMPLETED),
    ]


def test_an_answer_whose_beginning_comes_late_or_never_is_whole():
    late = heard(done(ITEM), CREATED, ended(output=[ITEM]))
    never = heard(done(ITEM), ended(output=[ITEM]))
    assert (
        late
        == never
        == [
            Opened("resp_1"),
            ItemDone(msgspec.json.encode(ITEM)),
            Ended(Ending.COMPLETED),
        ]
    )


def test_late_words_of_another_answer_are_not_of_this_one():
    answer = ResponsesAnswer(unlike="resp_1")
    second = {"type": "response.created", "response": {"id": "resp_2"}}
    assert heard(CREATED, done(ITEM), ended(output=[ITEM]), second, answer=answer) == [
        Opened("resp_2")
    ]


def test_an_item_that_waits_is_told_last_when_the_stream_is_cut():
    answer = ResponsesAnswer()
    assert heard(CREATED, done(ITEM, 1), answer=answer) == [Opened("resp_1")]
    assert answer.last() == [ItemDone(msgspec.json.encode(ITEM))]
    assert not answer.said_all


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "Slow.", "param": None},
        {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Slow."}},
        {"error": {"code": "rate_limit_exceeded", "message": "Slow."}},
    ],
)
def test_an_error_is_busy_before_the_answer_began_and_lost_after(event):
    before, after = failure_of(event), failure_of(CREATED, event)
    assert (before.fate, after.fate) == (Fate.BUSY, Fate.LOST)
    assert before.code == after.code == "rate_limit_exceeded"
    assert "Slow." in str(before)


def test_an_error_says_what_the_provider_says_also_after_the_answer_began():
    event = {"type": "error", "code": "previous_response_not_found", "message": "?"}
    assert failure_of(CREATED, event).fate is Fate.ANCHOR_LOST


def test_an_error_in_a_frame_has_its_status_in_itself():
    frame = {"type": "error", "status": 400, "error": {"message": "No.", "code": None}}
    failure = failure_of(frame, framed=True)
    assert (failure.fate, failure.status) == (Fate.REFUSED, 400)


@pytest.mark.parametrize("status", ["queued", "in_progress", "dreaming", None])
def test_a_response_that_goes_on_is_not_whole(status):
    assert whole(msgspec.json.encode({"id": "resp_1", "status": status, "output": []})) is None
