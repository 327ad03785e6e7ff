"""What the events of Anthropic's Messages tell."""

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
from lockstitch.upstream.messages_answer import MessagesAnswer

START = {"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 5}}}
TEXT = {"type": "text", "text": "", "citations": None}
THINKING = {"type": "thinking", "thinking": "", "signature": ""}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}


def block(index: int, begun: Any, *deltas: tuple[str, str, Any], stops: bool = True) -> list[Any]:
    events: list[Any] = [{"type": "content_block_start", "index": index, "content_block": begun}]
    for kind, field, value in deltas:
        delta = {"type": kind, field: value}
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
    if stops:
        events.append({"type": "content_block_stop", "index": index})
    return events


def said(text: str) -> tuple[str, str, str]:
    return ("text_delta", "text", text)


def given(json: str) -> tuple[str, str, str]:
    return ("input_json_delta", "partial_json", json)


def stop(reason: str | None) -> dict[str, Any]:
    usage = {"output_tokens": 7}
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def heard(*events: Any) -> list[Heard]:
    answer = MessagesAnswer()
    return [told for each in events for told in answer.hear(msgspec.json.encode(each))]


def content_of(*events: Any) -> list[Any]:
    (item,) = [each.item for each in heard(*events) if isinstance(each, ItemDone)]
    message = msgspec.json.decode(item)
    assert message.keys() == {"role", "content"}
    assert message["role"] == "assistant"
    return list(message["content"])


def test_a_message_is_one_item():
    told = heard(
        START, *block(0, TEXT, said("Hé"), said("llo")), stop("end_turn"), {"type": "message_stop"}
    )
    content = '[{"type":"text","text":"Héllo","citations":null}]'
    assert told == [
        Opened("msg_1"),
        Delta("Hé"),
        Delta("llo"),
        ItemDone(f'{{"role":"assistant","content":{content}}}'.encode()),
        Ended(Ending.COMPLETED, {"input_tokens": 5, "output_tokens": 7}),
    ]


def test_a_thought_keeps_its_signature():
    thought = ("thinking_delta", "thinking", "Hmm.")
    signed = ("signature_delta", "signature", "abc==")
    told = heard(START, *block(0, THINKING, thought, signed), stop("end_turn"))
    assert Delta("Hmm.", "reasoning") in told
    assert content_of(START, *block(0, THINKING, thought, signed), stop("end_turn")) == [
        {"type": "thinking", "thinking": "Hmm.", "signature": "abc=="}
    ]


def test_what_a_tool_is_given_is_the_json_that_came():
    pieces = (given(""), given('{"n": 1.0, '), given('"big": 12345678901234567890123}'))
    told = heard(START, *block(0, CALL, *pieces), stop("tool_use"))
    (item,) = [each.item for each in told if isinstance(each, ItemDone)]
    assert b'"input":{"n": 1.0, "big": 12345678901234567890123}' in item
    assert Delta('{"n": 1.0, ', "arguments", "toolu_1") in told


def test_a_tool_that_is_given_nothing_is_given_an_empty_object():
    assert content_of(START, *block(0, CALL, given("")), stop("tool_use")) == [CALL]


def test_what_is_no_json_is_wrapped():
    (call,) = content_of(START, *block(0, CALL, given("{oops")), stop("tool_use"))
    assert call["input"] == {"INVALID_JSON": "{oops"}


def test_blocks_and_deltas_that_nobody_knows_pass():
    odd = {"type": "hologram", "depth": 3, "content": "a"}
    events = [
        START,
        {"type": "ping"},
        {"type": "something_new", "x": 1},
        *block(0, odd, ("hologram_delta", "content", "b")),
        *block(1, {"type": "redacted_thinking", "data": "xyz"}),
        stop("end_turn"),
    ]
    assert content_of(*events) == [
        {"type": "hologram", "depth": 3, "content": "ab"},
        {"type": "redacted_thinking", "data": "xyz"},
    ]


def test_citations_are_collected():
    cited = [("citations_delta", "citation", {"n": number}) for number in (1, 2)]
    (text,) = content_of(START, *block(0, TEXT, said("So."), *cited), stop("end_turn"))
    assert text["citations"] == [{"n": 1}, {"n": 2}]


def test_an_empty_text_is_left_out():
    assert content_of(START, *block(0, TEXT), *block(1, CALL), stop("tool_use")) == [CALL]


def test_what_a_limit_cut_is_left_out():
    whole = [*block(0, TEXT, said("Hi")), *block(1, CALL, given('{"a":1}'))]
    half = block(2, CALL | {"id": "toolu_2"}, given('{"a'))
    open_block = block(2, CALL | {"id": "toolu_2"}, given("{}"), stops=False)
    thought = block(2, THINKING, ("thinking_delta", "thinking", "Hm"))
    for cut in (half, open_block, thought):
        content = content_of(START, *whole, *cut, stop("max_tokens"))
        assert [each["type"] for each in content] == ["text", "tool_use"]
        assert content[1]["input"] == {"a": 1}


def test_a_text_that_a_limit_cut_stays():
    content = content_of(START, *block(0, TEXT, said("Hi th"), stops=False), stop("max_tokens"))
    assert content[0]["text"] == "Hi th"


def test_a_message_of_which_nothing_is_left_is_no_item():
    told = heard(START, *block(0, CALL, given('{"a')), stop("max_tokens"))
    assert [type(each) for each in told] == [Opened, Delta, Ended]


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        ("end_turn", Ending.COMPLETED),
        ("tool_use", Ending.COMPLETED),
        ("stop_sequence", Ending.COMPLETED),
        ("something_new", Ending.COMPLETED),
        ("max_tokens", Ending.INCOMPLETE),
        ("model_context_window_exceeded", Ending.INCOMPLETE),
        ("refusal", Ending.FAILED),
    ],
)
def test_the_reason_to_stop_is_the_ending(reason, ending):
    told = heard(START, *block(0, TEXT, said("Hi")), stop(reason))
    assert isinstance(told[-1], Ended)
    assert told[-1].ending is ending
    assert told[-1].detail == ("" if ending is Ending.COMPLETED else reason)
    assert any(isinstance(each, ItemDone) for each in told) is (ending is not Ending.FAILED)


def test_a_message_that_never_began_has_begun_when_it_ends():
    told = heard(*block(0, TEXT, said("Hi")), stop("end_turn"))
    assert [type(each) for each in told] == [Delta, Opened, ItemDone, Ended]


@pytest.mark.parametrize("kind", [None, 5, [], {}, "new_delta"])
def test_a_delta_of_a_kind_that_nobody_knows_breaks_nothing(kind):
    odd = (kind, "text", "!")
    content = content_of(START, *block(0, TEXT, said("Hi"), odd), stop("end_turn"))
    assert content[0]["text"] == "Hi!"


def test_a_change_without_a_reason_ends_nothing():
    assert heard(START, stop(None)) == [Opened("msg_1")]


def test_what_comes_twice_is_heard_once():
    start, *rest = block(0, TEXT, said("Hi"))
    told = heard(START, START, start, start, *rest, stop("end_turn"), stop("end_turn"))
    assert [type(each) for each in told] == [Opened, Delta, ItemDone, Ended]


@pytest.mark.parametrize(("opened", "fate"), [(False, Fate.BUSY), (True, Fate.LOST)])
def test_an_error_in_the_stream_is_a_failure(opened, fate):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(UpstreamFailure) as caught:
        heard(*([START] if opened else []), error)
    assert (caught.value.fate, caught.value.code) == (fate, "overloaded_error")
