"""Anthropic's Messages without sockets: shapes, pairs, thinking, what is asked, what is said."""

import copy
import json
from typing import Any, get_args, get_type_hints

import pytest
from anthropic.types import (
    ContentBlockParam,
    Message,
    MessageCountTokensParams,
    RawMessageStreamEvent,
    message_create_params,
)
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.emulator.faults import parse
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.messages import refusals as messages_refusals
from lockstitch.emulator.messages import shapes as messages_shapes
from lockstitch.emulator.messages.rules import asked, check_count, check_create
from lockstitch.emulator.messages.signing import Signer
from lockstitch.emulator.messages.speaking import Answer, count_input
from lockstitch.emulator.model import replies
from lockstitch.emulator.model.saying import CannotSay
from lockstitch.emulator.refusals import Refused
from tests.emulator.strictly import strictly

Block = dict[str, Any]
Said = dict[str, Any]

SIGNER = Signer(0)
TOOL = {"name": "look", "input_schema": {"type": "object"}}
THINKING = {"type": "enabled", "budget_tokens": 1024}
# Parameters that the official client sends as headers.
HEADERS = {"user_profile_id", "workspace_id"}


def user(*content: Block | str) -> Said:
    return {"role": "user", "content": _blocks(content) if content else "hi"}


def assistant(*content: Block | str) -> Said:
    return {"role": "assistant", "content": _blocks(content)}


def _blocks(content: tuple[Block | str, ...]) -> list[Block]:
    return [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]


def use(named: str, **fields: Any) -> Block:
    return {"type": "tool_use", "id": named, "name": f"tool_{named}", "input": {}, **fields}


def result(named: str, content: Any = "done") -> Block:
    return {"type": "tool_result", "tool_use_id": named, "content": content}


def thought(text: str = "Hm.", signer: Signer = SIGNER) -> Block:
    return {"type": "thinking", "thinking": text, "signature": signer.sign(text)}


def request(*messages: Said, **fields: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-5", "max_tokens": 2048, "messages": list(messages), **fields}


def refused(body: dict[str, Any]) -> Refused:
    with pytest.raises(Refused) as raised:
        check_create(body, SIGNER)
    return raised.value


@st.composite
def whole_histories(draw: st.DrawFn) -> list[Said]:
    """Any history in which the message after a call begins with its result."""
    messages = [user()]
    made = 0
    for _ in range(draw(st.integers(1, 4))):
        uses = [use(f"toolu_{made + more}") for more in range(draw(st.integers(0, 3)))]
        made += len(uses)
        said = ["Look."] if draw(st.booleans()) or not uses else []
        messages.append(assistant(*draw(st.permutations([*said, *uses]))))
        results = [result(one["id"]) for one in draw(st.permutations(uses))]
        told = ["Go on."] if draw(st.booleans()) or not results else []
        messages.append(user(*results, *told))
        if draw(st.booleans()):
            messages.append(user("And?"))
    return messages


def places(messages: list[Said], type: str) -> list[tuple[int, int]]:
    return [
        (index, place)
        for index, message in enumerate(messages)
        for place, block in enumerate(message["content"])
        if isinstance(block, dict) and block["type"] == type
    ]


def without(messages: list[Said], index: int, place: int) -> list[Said]:
    broken = copy.deepcopy(messages)
    del broken[index]["content"][place]
    if not broken[index]["content"]:
        broken[index] |= {"content": "…"}
    return broken


# The shape


def test_the_parameters_are_those_of_the_official_client():
    official = set(message_create_params.MessageCreateParamsBase.__annotations__) - HEADERS
    assert set(messages_shapes.CREATE.fields) == official | {"stream"}
    counted = set(MessageCountTokensParams.__annotations__) - HEADERS
    assert set(messages_shapes.COUNT.fields) == counted


def test_the_blocks_are_those_of_the_official_client():
    hints = [get_type_hints(block)["type"] for block in get_args(ContentBlockParam)]
    official = {get_args(hint)[0] for hint in hints}
    assert set(messages_shapes.BLOCKS) == official


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"model": "m", "messages": [user()]}, "max_tokens: Field required"),
        ({"max_tokens": 1, "messages": [user()]}, "model: Field required"),
        ({"max_tokens": 1, "model": "m"}, "messages: Field required"),
        (request(user(), nonsense=1), "nonsense: Extra inputs are not permitted"),
        (request(user(), max_tokens="9"), "max_tokens: Input should be a valid integer"),
        (request(user(), max_tokens=0), "max_tokens: Input should be greater than or equal to 1"),
        (request(), "messages: at least one message is required"),
        (request(user(), messages="hi"), "messages: Input should be a valid list"),
        (request(assistant("hi"), user()), 'messages: first message must use the "user" role'),
        (
            request({"role": "system", "content": "x"}),
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` '
            'parameter, not "system" as an input message role.',
        ),
        (
            request({"role": "tool", "content": "x"}),
            "messages.0.role: Input should be 'user' or 'assistant'",
        ),
        (request({"role": "user"}), "messages.0.content: Field required"),
        (request(user({"type": "text"})), "messages.0.content.0.text.text: Field required"),
        (
            request(user({"text": "hi"})),
            "messages.0.content.0: Unable to extract tag using discriminator 'type'",
        ),
        (
            request(user(), assistant(use("a", input="{}")), user(result("a"))),
            "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
        ),
        (
            request(user(), assistant(use("a.b")), user(result("a.b"))),
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        ),
        (
            request(user(), assistant({"type": "thinking", "thinking": "Hm."}), user()),
            "messages.1.content.0.thinking.signature: Field required",
        ),
        (request(user("")), "messages: text content blocks must be non-empty"),
        (request(user("  ")), "messages: text content blocks must contain non-whitespace text"),
        (
            request({"role": "user", "content": ""}),
            "messages.0: user messages must have non-empty content",
        ),
        (
            request(user(use("a"))),
            "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages",
        ),
        (
            request(user(), assistant("hi")),
            "This model does not support assistant message prefill. The conversation must end "
            "with a user message.",
        ),
        (
            request(user(), tools=[{"name": "no spaces", "input_schema": {}}]),
            "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        ),
        (request(user(), tools=[TOOL, TOOL]), "tools: Tool names must be unique."),
        (
            request(user(), tools=[TOOL], tool_choice={"type": "tool", "name": "other"}),
            "tool_choice: Tool 'other' not found in provided tools",
        ),
        (
            request(user(), max_tokens=1024, thinking=THINKING),
            "max_tokens: `max_tokens` must be greater than `thinking.budget_tokens`.",
        ),
        (
            request(user(), thinking={"type": "enabled", "budget_tokens": 9}),
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        ),
    ],
)
def test_a_malformed_request_is_refused_in_the_words_of_the_api(body, said):
    assert refused(body).message == said


def test_a_block_of_an_unknown_type_is_refused_with_those_that_are_known():
    said = refused(request(user({"type": "fallback"}))).message
    start = "messages.0.content.0: Input tag 'fallback' found using 'type' does not match any of"
    assert said.startswith(start)
    assert "'tool_result'" in said


def test_what_the_last_version_took_away_the_older_still_have():
    document = {"type": "document", "source": {"type": "text", "data": "x"}}
    cited = {"type": "text", "text": "x", "citations": [{}]}
    for body, said in (
        (request(user(), temperature=1.0), "temperature: Extra inputs are not permitted"),
        (request(user(), assistant(document), user()), "messages.1.content.0: `document` blocks"),
        (request(user(cited)), "messages.0.content.0.text.citations: "),
    ):
        assert refused(body).message.startswith(said)
        check_create(body, SIGNER, version="2023-06-01")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["role", "content", "type", "name", "id", "input_schema"]),
                inner | st.sampled_from(["text", "tool_use", "custom", "web_search_20250305"]),
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_is_sent_is_taken_or_refused(junk):
    bodies = [
        request(junk),
        request(user()) | {"messages": junk},
        request({"role": "user", "content": junk}),
        request(user(), tools=junk),
        request(user(), tools=[junk, TOOL], tool_choice=junk),
        request(user(), system=junk, thinking=junk),
    ]
    for body in bodies:
        try:
            check_create(body, SIGNER)
        except Refused:
            continue
        asked(body)


# Pairs


@given(whole_histories())
def test_a_whole_history_is_taken(messages):
    check_create(request(*messages), SIGNER)


@given(whole_histories(), st.data())
def test_a_call_without_its_result_is_refused_by_its_id(messages, data):
    results = places(messages, "tool_result")
    if not results:
        return
    index, place = data.draw(st.sampled_from(results))
    gone = messages[index]["content"][place]["tool_use_id"]
    assert refused(request(*without(messages, index, place))).message == (
        f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {gone}. Each `tool_use` block must have a corresponding `tool_result` block in "
        "the next message."
    )


@given(whole_histories(), st.data())
def test_a_result_without_its_call_is_refused_by_its_id(messages, data):
    uses = places(messages, "tool_use")
    if not uses:
        return
    index, place = data.draw(st.sampled_from(uses))
    gone = messages[index]["content"][place]["id"]
    orphan = [block.get("tool_use_id") for block in messages[index + 1]["content"]].index(gone)
    assert refused(request(*without(messages, index, place))).message == (
        f"messages.{index + 1}.content.{orphan}: unexpected `tool_use_id` found in `tool_result` "
        f"blocks: {gone}. Each `tool_result` block must have a corresponding `tool_use` block in "
        "the previous message."
    )


@given(whole_histories(), st.data())
def test_a_second_result_is_refused(messages, data):
    results = places(messages, "tool_result")
    if not results:
        return
    index, place = data.draw(st.sampled_from(results))
    broken = copy.deepcopy(messages)
    broken[index]["content"].insert(place, broken[index]["content"][place])
    said = refused(request(*broken))
    twice = broken[index]["content"][place]["tool_use_id"]
    assert said.rule == "duplicate-output"
    assert said.message == (
        f"messages.{index}.content.{place + 1}: each tool_use must have a single result. Found "
        f"multiple `tool_result` blocks with id: {twice}"
    )


def test_an_id_is_used_once():
    once = (assistant(use("a")), user(result("a")))
    said = refused(request(user(), *once, *once))
    assert said.message == "messages.3.content.0: `tool_use` ids must be unique"


def test_results_come_before_anything_else_in_their_message():
    said = refused(request(user(), assistant(use("a")), user("Here:", result("a"))))
    assert said.rule == "call-without-output"
    check_create(request(user(), assistant(use("a")), user(result("a"), "There.")), SIGNER)


def test_consecutive_messages_of_one_role_are_one_turn():
    """Anthropic's API reference: "Consecutive `user` or `assistant` turns in your request will be
    combined into a single turn." """
    spread = [assistant(use("a")), assistant("More.", use("b")), user(result("b"))]
    body = request(user(), *spread, user(result("a", "one")))
    check_create(body, SIGNER)
    assert (asked(body).output, asked(body).tool) == ("one", "tool_a")
    between = refused(request(user(), *spread, user("Well?"), user(result("a"))))
    assert between.message.startswith("messages.1: `tool_use` ids were found")
    assert "immediately after: a. Each" in between.message
    twice = refused(request(user(), *spread, user(result("a")), user(result("b"))))
    assert twice.message.startswith("messages.5.content.0: each tool_use must have a single")


def test_the_providers_own_tools_are_answered_in_the_same_turn():
    used, answered = searched()
    check_create(request(user(), assistant(used), assistant(answered, "Found."), user()), SIGNER)


def test_the_thought_comes_first_in_a_turn_of_several_messages():
    spread = [assistant(thought()), assistant(use("a")), user(result("a"))]
    check_create(request(user(), *spread, thinking=THINKING), SIGNER)
    said = refused(request(user(), assistant("Hm."), *spread, thinking=THINKING))
    assert said.message.startswith("messages.1.content.0.type: Expected `thinking`")


def test_all_calls_without_a_result_are_listed():
    said = refused(request(user(), assistant(use("a"), use("b"), use("c")), user(result("b"))))
    assert "immediately after: a, c. Each" in said.message


def test_a_call_at_the_very_end_is_refused_too():
    assert refused(request(user(), assistant(use("a")))).rule == "call-without-output"


def searched(named: str = "srvtoolu_1", answer: str = "web_search_tool_result") -> list[Block]:
    use = {"type": "server_tool_use", "id": named, "name": "web_search", "input": {}}
    return [use, {"type": answer, "tool_use_id": named, "content": []}]


def test_the_providers_own_tools_are_answered_in_the_same_message():
    check_create(request(user(), assistant(*searched(), "Found."), user()), SIGNER)
    alone = refused(request(user(), assistant(searched()[0], "Found."), user()))
    assert alone.message == (
        "messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding "
        "`web_search_tool_result` block"
    )
    orphan = refused(request(user(), assistant(searched()[1], "Found."), user()))
    assert orphan.message == (
        "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: "
        "srvtoolu_1. Each `web_search_tool_result` block must have a corresponding "
        "`server_tool_use` block before it."
    )
    other = searched(answer="web_fetch_tool_result")
    assert refused(request(user(), assistant(*other), user())).rule == "output-without-call"


# Thinking


def test_a_thought_of_ones_own_is_taken():
    messages = (user(), assistant(thought(), use("a")), user(result("a")))
    check_create(request(*messages, thinking=THINKING), SIGNER)
    check_create(request(*messages), SIGNER)


@pytest.mark.parametrize(
    "block",
    [
        thought(signer=Signer(1)),
        thought() | {"thinking": "Changed."},
        thought() | {"signature": ""},
    ],
)
def test_a_thought_that_is_anothers_or_was_changed_is_refused(block):
    said = refused(request(user(), assistant(block, "Hi."), user()))
    assert said.message == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_what_was_redacted_elsewhere_is_refused():
    block = {"type": "redacted_thinking", "data": "abc"}
    said = refused(request(user(), assistant(block, "Hi."), user()))
    assert said.message == "messages.1.content.0: Invalid `data` in `redacted_thinking` block"


@pytest.mark.parametrize("content", [("Look.", thought(), use("a")), (use("a"),)])
def test_the_thought_comes_first_while_tools_are_called(content):
    said = refused(request(user(), assistant(*content), user(result("a")), thinking=THINKING))
    found = "text" if len(content) > 1 else "tool_use"
    assert said.message.startswith(
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        f"`{found}`. When `thinking` is enabled, a final `assistant` message must start with"
    )


def test_no_thought_is_needed_for_calls_long_past():
    check_create(
        request(user(), assistant(use("a")), user(result("a"), "So?"), assistant("So."), user(),
                thinking=THINKING),
        SIGNER,
    )  # fmt: skip


def test_a_message_does_not_end_with_a_thought():
    said = refused(request(user(), assistant(thought())))
    assert said.message == (
        "messages.1: The final block in an assistant message cannot be `thinking`."
    )


# What is asked


def test_what_is_asked_is_read_from_the_whole_request():
    body = request(
        user("look up"),
        assistant(use("a"), use("b")),
        user(result("a", "one"), result("b", [{"type": "text", "text": "two"}])),
        tools=[TOOL, {"type": "web_search_20250305", "name": "web_search"}],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        system=[{"type": "text", "text": "Be brief."}],
    )
    check_create(body, SIGNER)
    what = asked(body)
    assert (what.user, what.output, what.tool) == ("look up", "two", "tool_b")
    assert [(tool.type, tool.name) for tool in what.tools] == [
        ("function", "look"),
        ("web_search_20250305", "web_search"),
    ]
    assert (what.choice, what.parallel, what.dialect) == ("required", False, "messages")
    assert (what.instructions, what.length) == ("Be brief.", 3)


def test_what_the_user_says_with_a_result_is_the_last_word():
    what = asked(request(user(), assistant(use("a")), user(result("a"), "thanks")))
    assert (what.user, what.output, what.choice) == ("thanks", None, "auto")


# What is said


def spoken(*drafts: Any, body: dict[str, Any] | None = None, **settings: Any) -> Answer:
    return Answer(body or request(user()), replies.reply(*drafts, **settings), Ids(1), SIGNER)


def decoded(events: Any) -> list[Any]:
    """The events, each strictly one of the official client's."""
    said = [json.loads(event.data) for event in events]
    for event in said:
        if event["type"] != "ping":
            strictly(RawMessageStreamEvent, event)
    return said


def built(said: list[Any]) -> list[Block]:
    """The blocks, put together from the deltas as a client does."""
    blocks: list[Block] = []
    for event in said:
        match event:
            case {"type": "content_block_start", "content_block": block}:
                blocks.append(dict(block))
            case {"type": "content_block_delta", "delta": {"partial_json": piece}}:
                blocks[-1]["input"] = (blocks[-1]["input"] or "") + piece
            case {"type": "content_block_delta", "delta": {"text": piece}}:
                blocks[-1]["text"] += piece
            case {"type": "content_block_delta", "delta": {"thinking": piece}}:
                blocks[-1]["thinking"] += piece
            case {"type": "content_block_delta", "delta": {"signature": piece}}:
                blocks[-1]["signature"] += piece
    for block in blocks:
        if isinstance(block.get("input"), str):
            block["input"] = json.loads(block["input"])
    return blocks


DRAFTS = (
    replies.reasoning("I should look."),
    "Let me look.",
    replies.call("look", {"at": "the sea"}),
    replies.call("look", {}, call_id="toolu_mine"),
)


def test_a_reply_is_thought_text_and_calls():
    body = spoken(*DRAFTS).body()
    strictly(Message, body)
    assert [block["type"] for block in body["content"]] == [
        "thinking", "text", "tool_use", "tool_use",
    ]  # fmt: skip
    assert body["content"][2]["id"].startswith("toolu_")
    assert body["content"][2]["input"] == {"at": "the sea"}
    assert body["content"][3]["id"] == "toolu_mine"
    assert (body["stop_reason"], body["stop_sequence"]) == ("tool_use", None)


def test_the_events_say_what_the_body_says():
    body, said = spoken(*DRAFTS).body(), decoded(spoken(*DRAFTS).events())
    names = [event["type"] for event in said]
    assert names[:3] == ["message_start", "content_block_start", "ping"]
    assert names[-2:] == ["message_delta", "message_stop"]
    assert built(said) == body["content"]
    assert said[0]["message"] | {"content": [], "stop_reason": None} == said[0]["message"]
    assert said[-2]["delta"]["stop_reason"] == "tool_use"
    assert said[-2]["usage"]["output_tokens"] == body["usage"]["output_tokens"]


def test_an_answer_can_be_sent_back_as_it_came():
    body = spoken(*DRAFTS).body()
    results = [result(block["id"]) for block in body["content"] if block["type"] == "tool_use"]
    said = {"role": "assistant", "content": body["content"]}
    check_create(request(user(), said, user(*results), thinking=THINKING), SIGNER)


def test_an_empty_text_is_not_said():
    answer = spoken("")
    assert answer.body()["content"] == []
    assert answer.body()["stop_reason"] == "end_turn"
    decoded(answer.events())


def test_a_refusal_is_text_and_the_reason_to_stop():
    body = spoken(replies.refusal("I cannot.")).body()
    assert (body["content"][0]["text"], body["stop_reason"]) == ("I cannot.", "refusal")


def test_a_thought_can_be_asked_for_by_its_signature_alone():
    body = request(user(), thinking={"type": "adaptive", "display": "omitted"})
    block = spoken(replies.reasoning("Hm."), "Hi.", body=body).body()["content"][0]
    assert block == {"type": "thinking", "thinking": "", "signature": SIGNER.sign("")}


def test_no_more_is_said_than_was_allowed():
    answer = spoken("One two three four", body=request(user(), max_tokens=2))
    body = answer.body()
    assert (body["content"][0]["text"], body["stop_reason"]) == ("One two ", "max_tokens")
    call = spoken(*DRAFTS[2:], body=request(user(), max_tokens=1)).body()
    assert call["content"] == [call["content"][0] | {"input": {}}]


def test_a_reply_that_fails_is_an_error():
    with pytest.raises(Refused):
        spoken("Hi.", ends="failed").body()
    last = json.loads(list(spoken("Hi.", ends="failed").events())[-1].data)
    error = {"type": "api_error", "message": "Internal server error"}
    assert last == {"type": "error", "error": error}


@pytest.mark.parametrize(
    "draft", [replies.item("shell_call"), replies.custom_call("p", "x"), replies.call("f", "[1")]
)
def test_what_this_api_has_no_word_for_is_the_scripts_mistake(draft):
    with pytest.raises(CannotSay):
        spoken(draft)


LENGTH = sum(1 for _ in spoken(*DRAFTS).events()) - 2


@pytest.mark.parametrize("at", range(1, LENGTH))
@pytest.mark.parametrize("side", ["before", "after"])
def test_wherever_it_is_cut_short_what_began_is_ended(at, side):
    answer = spoken(*DRAFTS)
    sent = []
    for event in answer.events():
        if side == "before" and event.number == at:
            break
        sent.append(event)
        if event.number == at:
            break
    said = decoded([*sent, *answer.finish(parse(f"incomplete {side}={at}"))])
    begun = [event["index"] for event in said if event["type"] == "content_block_start"]
    ended = [event["index"] for event in said if event["type"] == "content_block_stop"]
    assert begun == ended
    assert said[-2]["delta"]["stop_reason"] == "max_tokens"
    assert said[-1]["type"] == "message_stop"


# Refusals and counts


@pytest.mark.parametrize(
    ("status", "type"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_each_status_has_its_error_type(status, type):
    body = messages_refusals.body(Refused("rule", "No.", status), "req_1")
    error = {"type": type, "message": "No."}
    assert body == {"type": "error", "error": error, "request_id": "req_1"}


def test_a_count_follows_the_same_rules_and_needs_no_max_tokens():
    body = {"model": "m", "messages": [user("hello")], "tools": [TOOL]}
    check_count(body, SIGNER)
    assert count_input(body) > count_input(body | {"tools": []}) > 0
    with pytest.raises(Refused, match="tool_use"):
        check_count(body | {"messages": [user(), assistant(use("a")), user()]}, SIGNER)
