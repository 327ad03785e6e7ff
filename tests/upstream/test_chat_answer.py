"""What the chunks of Chat Completions tell."""

from typing import Any

import msgspec
import pytest

from lockstitch.core.facts import Ending
from lockstitch.upstream.chat_answer import ChatAnswer
from lockstitch.upstream.contract import (
    Delta,
    Ended,
    Fate,
    Heard,
    ItemDone,
    Opened,
    UpstreamFailure,
)


def chunk(delta: Any = None, reason: str | None = None, index: int = 0, **more: Any) -> Any:
    choice = {"index": index, "delta": delta or {}, "finish_reason": reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], **more}


def piece(index: int | None, arguments: str, **more: Any) -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    return {"tool_calls": [{**place, "function": {"arguments": arguments}, **more}]}


def begun(index: int, name: str, word: str = "function") -> dict[str, Any]:
    given = {"function": "arguments", "custom": "input"}[word]
    body = {"name": name, given: ""}
    return {"tool_calls": [{"index": index, "id": f"call_{index}", "type": word, word: body}]}


def heard(*chunks: Any) -> list[Heard]:
    answer = ChatAnswer()
    data = (each if isinstance(each, bytes) else msgspec.json.encode(each) for each in chunks)
    told = [each for one in data for each in answer.hear(one)]
    return [*told, *answer.last()]


def message_of(*chunks: Any) -> Any:
    (item,) = [each.item for each in heard(*chunks) if isinstance(each, ItemDone)]
    return msgspec.json.decode(item)


ROLE = {"role": "assistant", "content": "", "refusal": None}


def test_a_message_is_one_item_and_its_usage_comes_after_it():
    usage = {"prompt_tokens": 1, "new": 2}
    told = heard(
        chunk(ROLE),
        chunk({"content": "Hé"}),
        chunk({"content": "llo"}),
        chunk(reason="stop"),
        {"id": "chatcmpl-1", "choices": [], "usage": usage},
        b"[DONE]",
    )
    assert told == [
        Opened("chatcmpl-1"),
        Delta("Hé"),
        Delta("llo"),
        ItemDone('{"role":"assistant","content":"Héllo"}'.encode()),
        Ended(Ending.COMPLETED, usage),
    ]


def test_calls_are_put_together_by_their_index():
    message = message_of(
        chunk({**ROLE, "content": None}),
        chunk(begun(1, "g")),
        chunk(begun(0, "f")),
        chunk(piece(0, '{"a"')),
        chunk(piece(1, "{}")),
        chunk(piece(0, ":1}")),
        chunk(reason="tool_calls"),
    )
    assert message == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
            {"id": "call_1", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }


def test_arguments_are_told_with_their_call():
    told = heard(chunk(begun(0, "f")), chunk(piece(0, "{}")))
    assert told[1:] == [Delta("{}", "arguments", "call_0")]


def test_a_server_that_counts_no_calls_and_repeats_names_is_understood():
    whole = {"id": "call_9", "type": "function", "function": {"name": "f", "arguments": "{"}}
    again = {"id": "call_9", "type": "function", "function": {"name": "f", "arguments": "}"}}
    message = message_of(
        chunk({"role": "assistant", "tool_calls": [whole]}),
        chunk({"role": "assistant", "tool_calls": [again]}),
        chunk(reason="tool_calls"),
    )
    assert message["role"] == "assistant"
    assert message["tool_calls"] == [{**whole, "function": {"name": "f", "arguments": "{}"}}]


def test_names_and_ids_that_come_again_empty_are_not_taken_away():
    # Several servers fill in every field of every piece.
    message = message_of(
        chunk(begun(0, "f")),
        chunk({"role": "", **piece(0, "{", id="", type="")}),
        chunk({"tool_calls": [{"index": 0, "id": "", "function": {"name": "", "arguments": "}"}}]}),
        chunk(reason="tool_calls"),
    )
    assert message["tool_calls"] == [
        {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ]


@pytest.mark.parametrize("at_once", [True, False], ids=["in one chunk", "one after the other"])
@pytest.mark.parametrize("index", [0, None])
def test_a_server_that_gives_all_calls_one_index_is_understood(index, at_once):
    def whole(key, name):
        (call,) = piece(index, "{", id=key)["tool_calls"]
        return {**call, "type": "function", "function": {"name": name, "arguments": "{"}}

    first, second = whole("call_1", "f"), whole("call_2", "g")
    chunks = [chunk({"tool_calls": [first, second]})]
    if not at_once:
        chunks = [chunk({"tool_calls": [first]}), chunk(piece(index, "}"))]
        chunks += [chunk({"tool_calls": [second]}), chunk(piece(index, "}"))]
    message = message_of(*chunks, chunk(reason="tool_calls"))
    given = "{" if at_once else "{}"
    assert message["tool_calls"] == [
        {"id": key, "type": "function", "function": {"name": name, "arguments": given}}
        for key, name in (("call_1", "f"), ("call_2", "g"))
    ]


@pytest.mark.parametrize("given", [{}, {"id": None}, {"id": ""}, {"id": 7}])
def test_a_call_without_an_id_gets_one_or_nobody_could_answer_it(given):
    def calls():
        body = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
        made = [{"index": n, **given, **body} for n in range(2)]
        return message_of(chunk({"tool_calls": made}), chunk(reason="tool_calls"))["tool_calls"]

    ids = [call["id"] for _ in range(2) for call in calls()]
    assert all(isinstance(one, str) and one for one in ids)
    assert len(set(ids)) == 4


def test_calls_of_one_message_that_have_one_id_get_others():
    body = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    made = [{"index": n, **body} for n in range(3)]
    message = message_of(chunk({"tool_calls": made}), chunk(reason="tool_calls"))
    ids = [call["id"] for call in message["tool_calls"]]
    assert ids[0] == "call_0"
    assert len(set(ids)) == 3


def test_fields_that_nobody_knows_pass():
    signed = {"extra_content": {"google": {"thought_signature": "abc"}}}
    message = message_of(
        chunk({"reasoning_content": "Hm", "new": {"x": 1}}),
        chunk({"reasoning_content": "m.", "annotations": [1]}),
        chunk({"annotations": [2], "content": "Hi"}),
        chunk({"tool_calls": [{**begun(0, "f")["tool_calls"][0], **signed}]}),
        chunk(piece(0, "{}")),
        chunk(reason="tool_calls"),
    )
    assert message["reasoning_content"] == "Hmm."
    assert message["new"] == {"x": 1}
    assert message["annotations"] == [1, 2]
    assert message["tool_calls"][0]["extra_content"] == signed["extra_content"]


def test_a_half_call_is_no_call_when_a_limit_cut_it():
    message = message_of(
        chunk({"content": "Let me"}),
        chunk(begun(0, "f")),
        chunk(piece(0, "{}")),
        chunk(begun(1, "g")),
        chunk(piece(1, '{"a": "b')),
        chunk(reason="length"),
    )
    assert message["content"] == "Let me"
    assert [call["id"] for call in message["tool_calls"]] == ["call_0"]


@pytest.mark.parametrize("given", ["", "{", '{"a', "[", "1", "tru", '"x"'])
def test_no_call_is_left_of_one_half_call(given):
    message = message_of(chunk(begun(0, "f")), chunk(piece(0, given)), chunk(reason="length"))
    assert message == {"role": "assistant", "content": ""}


def test_of_free_text_the_last_call_counts_as_cut():
    message = message_of(
        chunk(begun(0, "f", "custom")),
        chunk(begun(1, "g", "custom")),
        chunk({"tool_calls": [{"index": 1, "custom": {"input": "whole?"}}]}),
        chunk(reason="length"),
    )
    assert [call["id"] for call in message["tool_calls"]] == ["call_0"]


def test_arguments_that_a_model_wrote_wrong_are_passed_on():
    message = message_of(chunk(begun(0, "f")), chunk(piece(0, "{oops")), chunk(reason="stop"))
    assert message["tool_calls"][0]["function"]["arguments"] == "{oops"


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("stop", Ended(Ending.COMPLETED)),
        ("tool_calls", Ended(Ending.COMPLETED)),
        ("something new", Ended(Ending.COMPLETED)),
        ("length", Ended(Ending.INCOMPLETE, None, "length")),
        ("content_filter", Ended(Ending.FAILED, None, "content_filter")),
    ],
)
def test_the_reason_to_finish_is_the_ending(reason, end):
    assert heard(chunk({"content": "Hi"}), chunk(reason=reason))[-1] == end


def test_nothing_is_said_by_a_message_that_was_filtered():
    told = heard(chunk(begun(0, "f")), chunk(piece(0, "{}")), chunk(reason="content_filter"))
    assert not [each for each in told if isinstance(each, ItemDone)]


def test_a_refusal_is_told_and_kept():
    told = heard(chunk(ROLE | {"content": None}), chunk({"refusal": "No."}), chunk(reason="stop"))
    assert Delta("No.", "refusal") in told
    assert ItemDone(b'{"role":"assistant","content":null,"refusal":"No."}') in told


def test_a_message_without_a_word_can_be_sent_back():
    assert message_of(chunk({"role": "assistant", "content": None}), chunk(reason="stop")) == {
        "role": "assistant",
        "content": "",
    }


def test_of_several_choices_the_first_is_the_answer():
    message = message_of(
        chunk({"content": "other"}, index=1),
        chunk({"content": "this"}),
        chunk(index=1, reason="length"),
        chunk(reason="stop"),
    )
    assert message["content"] == "this"


def test_a_stream_that_is_done_without_a_reason_is_over():
    assert heard(chunk({"content": "Hi"}), b"[DONE]")[-1] == Ended(Ending.COMPLETED)


def test_a_message_that_did_not_finish_is_not_told():
    assert heard(chunk(ROLE), chunk({"content": "Hi"})) == [Opened("chatcmpl-1"), Delta("Hi")]


@pytest.mark.parametrize(("opened", "fate"), [(False, Fate.BUSY), (True, Fate.LOST)])
def test_an_error_in_the_stream_is_a_failure(opened, fate):
    error = {"error": {"message": "Slow.", "code": "rate_limit_exceeded"}}
    with pytest.raises(UpstreamFailure) as caught:
        heard(*([chunk(ROLE)] if opened else []), error)
    assert caught.value.fate is fate
