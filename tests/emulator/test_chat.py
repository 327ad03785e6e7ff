"""Chat Completions without sockets: shapes, pairs, what is asked, what is said."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk, completion_create_params

from lockstitch.emulator.chat import shapes as chat_shapes
from lockstitch.emulator.chat.rules import asked, check_request
from lockstitch.emulator.chat.speaking import Completion
from lockstitch.emulator.faults import parse
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.model import replies
from lockstitch.emulator.model.saying import CannotSay
from lockstitch.emulator.refusals import Refused
from tests.emulator.strictly import strictly

Message = dict[str, Any]

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def user(text: str = "hi") -> Message:
    return {"role": "user", "content": text}


def calls(*ids: str, **fields: Any) -> Message:
    made = [
        {"id": one, "type": "function", "function": {"name": f"tool_{one}", "arguments": "{}"}}
        for one in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": made, **fields}


def output(id: str, text: str = "done") -> Message:
    return {"role": "tool", "tool_call_id": id, "content": text}


def request(*messages: Message, **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-5.5", "messages": list(messages), **fields}


def refused(body: dict[str, Any]) -> Refused:
    with pytest.raises(Refused) as raised:
        check_request(body)
    return raised.value


@st.composite
def whole_histories(draw: st.DrawFn) -> list[Message]:
    """Any history in which every call is answered at once, outputs in any order."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(1, 5))):
        messages.append(user(draw(st.text(max_size=5))))
        for step in range(draw(st.integers(0, 2))):
            # Some models use an id again in a later round.
            ids = draw(st.lists(st.sampled_from("abcdef"), unique=True, min_size=1, max_size=4))
            named = [f"call_{one}{turn if step else ''}" for one in ids]
            messages.append(calls(*named))
            messages += [output(one) for one in draw(st.permutations(named))]
    return messages


# The shape


def test_the_parameters_are_those_of_the_official_client():
    official = set(completion_create_params.CompletionCreateParamsBase.__annotations__)
    assert set(chat_shapes.PARAMETERS) == official | {"stream"}


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({"messages": [user()]}, "model", "missing_required_parameter"),
        ({"model": "m"}, "messages", "missing_required_parameter"),
        ({"model": "m", "messages": []}, "messages", "empty_array"),
        ({"model": "m", "messages": "hi"}, "messages", "invalid_type"),
        ({"model": 1, "messages": [user()]}, "model", "invalid_type"),
        (request(user(), nonsense=1), "nonsense", "unknown_parameter"),
        (request(user(), n=0), "n", "invalid_value"),
        (request(user(), stream_options={"include_usage": True}), "stream_options", None),
        (request(user(), tool_choice="auto"), "tool_choice", None),
        (
            request(user(), tool_choice={"type": "custom", "custom": {"name": "x"}}),
            "tool_choice",
            None,
        ),
        (request(user(), parallel_tool_calls=True), "parallel_tool_calls", None),
        (request(user(), tools=[]), "tools", "empty_array"),
        (request(user(), tools=[TOOL, TOOL]), "tools[1].function.name", "invalid_value"),
        (request(user(), functions=[]), "functions", "unsupported_parameter"),
        (
            request(user(), max_tokens=1, max_completion_tokens=1),
            "max_tokens",
            "unsupported_parameter",
        ),
        (
            request(
                user(),
                tools=[TOOL],
                tool_choice={"type": "function", "function": {"name": "other"}},
            ),
            "tool_choice",
            None,
        ),
        (request("hi"), "messages[0]", "invalid_type"),
        (request({"content": "hi"}), "messages[0].role", "missing_required_parameter"),
        (request({"role": "robot", "content": "hi"}), "messages[0].role", "invalid_value"),
        (
            request({"role": "function", "name": "f", "content": ""}),
            "messages[0].role",
            "unsupported_value",
        ),
        (request({"role": "user"}), "messages[0].content", "missing_required_parameter"),
        (request({"role": "user", "content": None}), "messages.[0].content", None),
        (
            request({"role": "user", "content": "", "mood": "good"}),
            "messages[0].mood",
            "unknown_parameter",
        ),
        (
            request({"role": "user", "content": [{"type": "refusal", "refusal": "no"}]}),
            "messages[0].content[0].type",
            "invalid_value",
        ),
        (request(user(), {"role": "assistant"}), "messages.[1].content", None),
        (
            request(user(), {"role": "assistant", "tool_calls": []}),
            "messages[1].tool_calls",
            "empty_array",
        ),
        (
            request(user(), calls("a" * 65)),
            "messages[1].tool_calls[0].id",
            "string_above_max_length",
        ),
        (
            request(user(), {"role": "tool", "content": "x"}),
            "messages[1].tool_call_id",
            "missing_required_parameter",
        ),
    ],
)
def test_a_malformed_request_is_refused_where_it_is_malformed(body, param, code):
    said = refused(body)
    assert (said.param, said.code) == (param, code)
    assert (said.status, said.type) == (400, "invalid_request_error")


def test_an_answer_can_be_sent_back_as_it_came():
    completion = Completion(
        request(user()), replies.reply("Look.", replies.call("look")), Ids(), 0.0
    )
    message = completion.body()["choices"][0]["message"]
    made = message["tool_calls"][0]["id"]
    check_request(request(user(), message, output(made), {**message, "tool_calls": None}))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "role",
                        "content",
                        "type",
                        "tools",
                        "messages",
                        "tool_calls",
                        "id",
                        "tool_choice",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_is_sent_is_taken_or_refused(junk):
    bodies = [
        {"model": "m", "messages": junk},
        {"model": "m", "messages": [junk, {"role": "assistant", "tool_calls": junk}]},
        request(user(), tools=[TOOL], tool_choice=junk),
        request(user(), tools=junk),
        request({"role": "user", "content": junk}),
    ]
    for body in bodies:
        try:
            check_request(body)
        except Refused:
            continue
        asked(body)


# Pairs


@given(whole_histories())
def test_a_whole_history_is_taken(messages):
    check_request(request(*messages))


@given(whole_histories(), st.data())
def test_a_call_without_its_output_is_refused_by_its_id(messages, data):
    outputs = [index for index, message in enumerate(messages) if message["role"] == "tool"]
    if not outputs:
        return
    gone = data.draw(st.sampled_from(outputs))
    unanswered = messages[gone]["tool_call_id"]
    said = refused(request(*messages[:gone], *messages[gone + 1 :]))
    assert said.rule == "call-without-output"
    assert said.message.endswith(f"did not have response messages: {unanswered}")


@given(whole_histories(), st.data())
def test_an_output_without_its_call_is_refused_where_it_stands(messages, data):
    made = [
        (index, place)
        for index, message in enumerate(messages)
        for place in range(len(message.get("tool_calls", ())))
    ]
    if not made:
        return
    at, place = data.draw(st.sampled_from(made))
    broken = copy.deepcopy(messages)
    gone = broken[at]["tool_calls"].pop(place)
    if not broken[at]["tool_calls"]:
        broken[at] = {"role": "assistant", "content": "…"}
    orphan = next(
        index for index in range(at, len(broken)) if broken[index].get("tool_call_id") == gone["id"]
    )
    said = refused(request(*broken))
    assert (said.rule, said.param) == ("output-without-call", f"messages.[{orphan}].role")


@given(whole_histories(), st.data())
def test_a_second_output_is_refused(messages, data):
    outputs = [index for index, message in enumerate(messages) if message["role"] == "tool"]
    if not outputs:
        return
    twice = data.draw(st.sampled_from(outputs))
    said = refused(request(*messages[: twice + 1], messages[twice], *messages[twice + 1 :]))
    assert (said.rule, said.param) == ("output-without-call", f"messages.[{twice + 1}].role")


def test_all_calls_without_an_output_are_listed():
    said = refused(request(user(), calls("a", "b", "c"), output("b"), user("and?")))
    assert said.message == (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: a, c"
    )
    assert said.error()["param"] == "messages.[3].role"


def test_a_call_at_the_very_end_is_refused_too():
    said = refused(request(user(), calls("a")))
    assert said.param == "messages.[1].role"


def test_an_output_comes_before_anyone_else_speaks():
    said = refused(request(user(), calls("a"), user("wait"), output("a")))
    assert said.rule == "call-without-output"


def test_an_output_for_nothing_is_refused_in_the_providers_words():
    said = refused(request(user(), output("a")))
    assert said.message == (
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
        "with 'tool_calls'."
    )


# What is asked


def test_what_is_asked_is_read_from_the_whole_request():
    custom = {"type": "custom", "custom": {"name": "patch"}}
    system = {"role": "system", "content": "Be brief."}
    parts = {
        "role": "user",
        "content": [{"type": "text", "text": "look "}, {"type": "text", "text": "up"}],
    }
    body = request(
        system,
        parts,
        calls("a", "b"),
        output("b", "two"),
        output("a", "one"),
        tools=[TOOL, custom],
        tool_choice="required",
        parallel_tool_calls=False,
    )
    what = asked(body)
    assert (what.user, what.output, what.tool) == ("look up", "one", "tool_a")
    assert [(tool.type, tool.name) for tool in what.tools] == [
        ("function", "look"),
        ("custom", "patch"),
    ]
    assert what.tools[0].parameters == {"type": "object"}
    assert (what.choice, what.parallel, what.dialect) == ("required", False, "chat")
    assert (what.instructions, what.length) == ("Be brief.", 5)


def test_an_output_that_was_talked_about_is_no_longer_the_last():
    what = asked(request(user(), calls("a"), output("a"), user("thanks")))
    assert (what.user, what.output, what.choice) == ("thanks", None, "auto")


def test_allowed_tools_are_the_only_ones_offered():
    other = {"type": "function", "function": {"name": "other"}}
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "other"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    what = asked(request(user(), tools=[TOOL, other], tool_choice=choice))
    assert ([tool.name for tool in what.tools], what.choice) == (["other"], "required")


# What is said


def spoken(*drafts: Any, body: dict[str, Any] | None = None, **settings: Any) -> Completion:
    reply = replies.reply(*drafts, **settings)
    return Completion(body or request(user()), reply, Ids(1), 1_700_000_000.0)


def chunks(completion: Completion) -> list[Any]:
    """The chunks, each strictly one; the last event is [DONE]."""
    *events, done = completion.events()
    assert done.data == b"[DONE]"
    decoded = [json.loads(event.data) for event in events]
    for chunk in decoded:
        strictly(ChatCompletionChunk, chunk)
    return decoded


def test_a_text_is_a_message_that_stops():
    body = spoken("Hello there.").body()
    strictly(ChatCompletion, body)
    choice = body["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Hello there.", "stop")


def test_a_call_keeps_its_own_id_and_ends_with_tool_calls():
    completion = spoken(replies.reasoning("Hm."), replies.call("look", {"at": 1}, call_id="call_1"))
    body = completion.body()
    strictly(ChatCompletion, body)
    choice = body["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"][0] == {
        "id": "call_1",
        "type": "function",
        "function": {"name": "look", "arguments": '{"at":1}'},
    }
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0


def test_the_chunks_say_what_the_body_says():
    drafts = ("One.", "Two.", replies.call("look", {"at": "the sea"}), replies.call("look"))
    body, said = spoken(*drafts).body(), chunks(spoken(*drafts))
    message = body["choices"][0]["message"]
    deltas = [chunk["choices"][0]["delta"] for chunk in said]
    assert deltas[0] == {"role": "assistant", "content": "", "refusal": None}
    assert "".join(delta.get("content") or "" for delta in deltas) == message["content"]
    assert message["content"] == "One.\n\nTwo."
    called = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    for index, call in enumerate(message["tool_calls"]):
        first, *rest = [one for one in called if one["index"] == index]
        assert (first["id"], first["function"]["name"]) == (call["id"], "look")
        given = "".join(one["function"]["arguments"] for one in rest)
        assert given == call["function"]["arguments"]
    assert said[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert {chunk["id"] for chunk in said} == {body["id"]}


def test_a_refusal_is_no_content():
    message = spoken(replies.refusal("I cannot.")).body()["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "I cannot.")
    said = chunks(spoken(replies.refusal("I cannot.")))
    deltas = [chunk["choices"][0]["delta"] for chunk in said]
    assert "".join(delta.get("refusal") or "" for delta in deltas) == "I cannot."


def test_a_custom_call_is_told_with_its_input():
    completion = spoken(replies.custom_call("patch", "*** Begin", call_id="call_1"))
    body = completion.body()
    strictly(ChatCompletion, body)
    assert body["choices"][0]["message"]["tool_calls"] == [
        {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    ]
    # The official types of chunks know no custom calls; the API sends them all the same.
    events = [json.loads(event.data) for event in completion.events() if event.name == "chunk"]
    called = [c["choices"][0]["delta"]["tool_calls"][0] for c in events[1:]]
    assert called[0]["type"] == "custom"
    assert "".join(call["custom"]["input"] for call in called) == "*** Begin"


def test_usage_comes_in_a_chunk_of_its_own_and_only_when_asked_for():
    streamed = request(user(), stream=True, stream_options={"include_usage": True})
    said = chunks(spoken("Hi.", body=streamed, input_tokens=7, output_tokens=3))
    assert said[-1]["choices"] == []
    assert said[-1]["usage"]["total_tokens"] == 10
    assert all(chunk["usage"] is None for chunk in said[:-1])
    assert not any("usage" in chunk for chunk in chunks(spoken("Hi.")))


def test_every_choice_is_spoken_and_calls_have_ids_of_their_own():
    body = request(user(), n=3)
    said = spoken(replies.call("look"), body=body)
    made = [choice["message"]["tool_calls"][0]["id"] for choice in said.body()["choices"]]
    assert len(set(made)) == 3
    ends = [
        chunk["choices"][0]["index"]
        for chunk in chunks(said)
        if chunk["choices"][0]["finish_reason"]
    ]
    assert ends == [0, 1, 2]


def test_no_more_is_said_than_was_allowed():
    body = request(user(), max_completion_tokens=2)
    choice = spoken("One two three four", body=body).body()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("One two ", "length")


@pytest.mark.parametrize(("ends", "reason"), [("completed", "stop"), ("incomplete", "length")])
def test_how_a_reply_ends_is_the_finish_reason(ends, reason):
    assert spoken("Hi.", ends=ends).body()["choices"][0]["finish_reason"] == reason


def test_a_reply_that_fails_is_an_error():
    with pytest.raises(Refused, match="failed"):
        spoken("Hi.", ends="failed").body()
    last = list(spoken("Hi.", ends="failed").events())[-1]
    assert last.name == "error"
    assert json.loads(last.data)["error"]["code"] == "server_error"


@pytest.mark.parametrize("type", ["shell_call", "computer_call", "mcp_call"])
def test_what_chat_has_no_word_for_is_the_scripts_mistake(type):
    with pytest.raises(CannotSay, match=type):
        spoken(replies.item(type))


@pytest.mark.parametrize("at", range(7))
@pytest.mark.parametrize("side", ["before", "after"])
def test_wherever_it_is_cut_short_each_choice_ends_once(at, side):
    completion = spoken("One two", body=request(user(), n=2))
    events, sent = completion.events(), []
    for event in events:
        if side == "before" and event.number == at:
            break
        sent.append(event)
        if event.number == at:
            break
    sent += completion.finish(parse(f"incomplete {side}={at} reason=content_filter"))
    decoded = [json.loads(event.data) for event in sent[:-1]]
    ends = [
        choice["index"]
        for chunk in decoded
        for choice in chunk["choices"]
        if choice["finish_reason"]
    ]
    assert ends == [0, 1]
    assert sent[-1].name == "[DONE]"
    assert decoded[-1]["choices"][0]["finish_reason"] == "content_filter"
