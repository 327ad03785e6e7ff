"""All that Responses and Conversations send is what the official types say, strictly.

Every type of item is spoken over both transports, every ending is reached, every body is asked
for. A name of an event that is in the emulator and was never seen here fails, too."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai.pagination import SyncPage
from openai.types import Model
from openai.types.conversations import (
    Conversation,
    ConversationDeletedResource,
    ConversationItem,
    ConversationItemList,
)
from openai.types.responses import (
    CompactedResponse,
    Response,
    ResponseInputMessageItem,
    ResponseItemList,
    ResponseOutputItem,
    ResponseStreamEvent,
)
from openai.types.responses.input_token_count_response import InputTokenCountResponse
from openai.types.responses.responses_server_event import ResponsesServerEvent

import lockstitch.emulator
from lockstitch.emulator import (
    Settings,
    VirtualClock,
    call,
    custom_call,
    item,
    reasoning,
    refusal,
    text,
)
from lockstitch.testing import EmulatorThread
from tests.emulator.strictly import members_of, problems_of, strictly
from tests.emulator.wire import Answer, Socket, Wire

SEALED = ["reasoning.encrypted_content"]
MCP_ERROR = {"type": "mcp_protocol_error", "code": -32000, "message": "it broke"}

# Every type of item that the model says, with as little as a script has to say of it, and with
# what changes how it is streamed.
DRAFTS = {
    "text": text("Hello there, friend."),
    "commentary": text("Let me see.", phase="commentary"),
    "refusal": refusal("I will not do that."),
    "text and refusal": item(
        "message",
        content=[
            {"type": "output_text", "text": "Well, no."},
            {"type": "refusal", "refusal": "I will not."},
        ],
    ),
    "empty message": item("message"),
    "message with a text": item("message", content="Hello."),
    "reasoning": reasoning("First this, then that.", content="Deep thoughts."),
    "reasoning alone": reasoning(),
    "function_call": call("weather", {"city": "Lund", "days": 3}),
    "custom_tool_call": custom_call("patch", "*** Begin Patch"),
    "computer_call": item("computer_call"),
    "computer_call, several actions": item(
        "computer_call", actions=[{"type": "click", "button": "left", "x": 1, "y": 2}]
    ),
    "shell_call": item(
        "shell_call",
        action={"commands": ["ls -la", "pwd"], "max_output_length": None, "timeout_ms": 9},
    ),
    "shell_call, no commands": item("shell_call"),
    "local_shell_call": item("local_shell_call"),
    "apply_patch_call": item("apply_patch_call"),
    "tool_search_call": item("tool_search_call", arguments={"query": "maps"}),
    "tool_search_call of the server": item("tool_search_call", execution="server"),
    "tool_search_output": item("tool_search_output"),
    "program": item("program", code="await f()"),
    "program_output": item("program_output", result="9"),
    "mcp_approval_request": item("mcp_approval_request"),
    "mcp_call": item("mcp_call", output="done"),
    "mcp_call that failed": item("mcp_call", error=MCP_ERROR),
    "mcp_list_tools": item("mcp_list_tools", tools=[{"name": "look", "input_schema": {}}]),
    "mcp_list_tools that failed": item("mcp_list_tools", error="no such server"),
    "web_search_call": item("web_search_call"),
    "file_search_call": item("file_search_call", queries=["a"], results=None),
    "code_interpreter_call": item(
        "code_interpreter_call", code="print(1)", outputs=[{"type": "logs", "logs": "1"}]
    ),
    "image_generation_call": item("image_generation_call", result="aGk="),
    "compaction": item("compaction"),
}

TOLD_BY_BOTH = {
    "response.created",
    "response.in_progress",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.added",
    "response.content_part.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_part.done",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_text.delta",
    "response.reasoning_text.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.delta",
    "response.custom_tool_call_input.done",
    "response.shell_call_command.added",
    "response.shell_call_command.delta",
    "response.shell_call_command.done",
    "response.mcp_call.in_progress",
    "response.mcp_call_arguments.delta",
    "response.mcp_call_arguments.done",
    "response.mcp_call.completed",
    "response.mcp_call.failed",
    "response.mcp_list_tools.in_progress",
    "response.mcp_list_tools.completed",
    "response.mcp_list_tools.failed",
    "response.web_search_call.in_progress",
    "response.web_search_call.searching",
    "response.web_search_call.completed",
    "response.file_search_call.in_progress",
    "response.file_search_call.searching",
    "response.file_search_call.completed",
    "response.code_interpreter_call.in_progress",
    "response.code_interpreter_call_code.delta",
    "response.code_interpreter_call_code.done",
    "response.code_interpreter_call.interpreting",
    "response.code_interpreter_call.completed",
    "response.image_generation_call.in_progress",
    "response.image_generation_call.generating",
    "response.image_generation_call.completed",
    "response.compaction.compacting",
}
# A response in the background can only be asked for over HTTP, steering only over WebSocket.
TOLD_OVER_SSE = TOLD_BY_BOTH | {"response.queued"}
TOLD_OVER_WEBSOCKET = TOLD_BY_BOTH | {
    "response.steer.accepted",
    "response.steer.pending",
    "response.steer.failed",
}
# What looks like the name of an event and is the name of something else.
NO_EVENTS = {
    "response.create",
    "response.steer",
    "response.compaction",
    "response.input_tokens",
    # Of Realtime, in the list of all events that end a response.
    "response.done",
}


@pytest.fixture(scope="module")
def shared() -> Iterator[EmulatorThread]:
    # A clock that stands still unless a test moves it: what is stalled waits.
    with EmulatorThread(clock=VirtualClock(flowing=False)) as emulator:
        yield emulator


def numbered(events: list[dict[str, Any]]) -> bool:
    return [event["sequence_number"] for event in events] == list(range(len(events)))


def check_error(answer: Answer, status: int) -> dict[str, Any]:
    """An error body has exactly these fields."""
    assert answer.status == status, answer.body
    assert set(answer.body) == {"error"}
    error = answer.body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert isinstance(error["message"], str)
    assert isinstance(error["type"], str)
    assert error["param"] is None or isinstance(error["param"], str)
    assert error["code"] is None or isinstance(error["code"], str)
    return error


def check_compacted(body: dict[str, Any]) -> None:
    """The type of a compaction has a list of what the model says, and its own words are "all user
    messages, followed by a single compaction item": so its messages are checked as inputs."""
    *messages, compaction = body["output"]
    strictly(CompactedResponse, {**body, "output": [compaction]})
    assert compaction["type"] == "compaction"
    assert messages
    for message in messages:
        strictly(ResponseInputMessageItem, message)


# Streams


def events_over_sse(emulator: EmulatorThread, wire: Wire) -> Iterator[list[dict[str, Any]]]:
    """Streams in which everything is said that can be."""
    for draft in DRAFTS.values():
        emulator.say(draft)
        yield wire.stream(include=SEALED)
        emulator.say(draft)
        yield wire.stream(store=False)
    for ends in ("incomplete", "failed"):
        emulator.say("Half an answer", ends=ends)
        yield wire.stream()
    emulator.say("Too long an answer", call("f"), faults=("error before=6",))
    yield wire.stream()
    emulator.say("One two three four five")
    yield wire.stream(max_output_tokens=2)
    emulator.say(call("weather", {"city": "Lund"}))
    yield wire.stream(max_output_tokens=1)
    yield wire.stream(background=True)
    yield wire.stream([{"role": "user", "content": "hi"}, {"type": "compaction_trigger"}])


def frames_over_websocket(emulator: EmulatorThread, wire: Wire) -> Iterator[list[dict[str, Any]]]:
    ends = ("response.completed", "response.incomplete", "response.failed", "error")
    for lane in ({}, {"stream_id": "lane-1"}):
        with wire.socket() as socket:
            for draft in DRAFTS.values():
                emulator.say(draft)
                socket.create(include=SEALED, **lane)
                yield socket.until(*ends)
            for how in ("incomplete", "failed"):
                emulator.say("Half an answer", ends=how)
                socket.create(**lane)
                yield socket.until(*ends)
            emulator.say("Too long an answer", faults=("error before=6",))
            socket.create(**lane)
            yield socket.until(*ends)
            socket.create(generate=False, **lane)
            yield socket.until(*ends)
            yield from steering_frames(emulator, socket, lane)


def steering_frames(
    emulator: EmulatorThread, socket: Socket, lane: dict[str, str]
) -> Iterator[list[dict[str, Any]]]:
    """Steering that is taken and has to wait for every family, and steering that is not taken."""
    calls = [
        call("f"),
        custom_call("g", "x"),
        *(
            item(name)
            for name in (
                "computer_call",
                "shell_call",
                "local_shell_call",
                "apply_patch_call",
                "tool_search_call",
                "mcp_approval_request",
            )
        ),
    ]
    emulator.say(*calls, faults=("stall after=response.created seconds=9",))
    socket.create(**lane)
    first = socket.until("response.created")
    socket.steer(first[0]["response"]["id"], "Be brief.")
    frames = [*first, *socket.until("response.steer.accepted")]
    emulator.advance(9)
    frames += socket.until("response.steer.pending")
    assert numbered(frames)
    assert len(frames[-1]["required_input"]) == len(calls)
    yield frames
    socket.steer(first[0]["response"]["id"], "Too late.")
    yield socket.until("response.steer.failed")
    socket.steer("resp_nobody", "")
    yield socket.until("response.steer.failed")


def test_every_event_over_sse_is_strictly_an_event(shared):
    wire = Wire(shared)
    seen = set()
    for events in events_over_sse(shared, wire):
        assert numbered(events)
        for event in events:
            strictly(ResponseStreamEvent, event)
            seen.add(event["type"])
    assert seen == TOLD_OVER_SSE


def test_every_frame_over_websocket_is_strictly_a_frame_of_its_lane(shared):
    seen = set()
    for frames in frames_over_websocket(shared, Wire(shared)):
        for frame in frames:
            strictly(ResponsesServerEvent, frame)
            seen.add(frame["type"])
    assert seen == TOLD_OVER_WEBSOCKET


def test_a_lane_is_on_every_frame_of_its_response_and_nowhere_else(shared):
    plain = frames_over_websocket(shared, Wire(shared))
    lanes = {frame.get("stream_id") for frames in plain for frame in frames}
    assert lanes == {None, "lane-1"}


def test_no_event_is_in_the_code_that_was_not_seen():
    """The names in the code, whole or the beginning of a name, are all among those above."""
    told = TOLD_OVER_SSE | TOLD_OVER_WEBSOCKET
    unseen = {
        name
        for name in names_in_the_code()
        if name not in told | NO_EVENTS and not any(seen.startswith(f"{name}.") for seen in told)
    }
    assert unseen == set()


def test_the_events_are_all_known_to_the_client():
    known = {
        literal
        for union in (ResponseStreamEvent, ResponsesServerEvent)
        for member in members_of(union)
        for literal in member.model_fields["type"].annotation.__args__
    }
    assert known >= TOLD_OVER_SSE | TOLD_OVER_WEBSOCKET


def names_in_the_code() -> set[str]:
    """What looks like the name of an event of Responses, in the emulator but for Realtime."""
    named = re.compile(r"response(\.[a-z_]+)+")
    return {
        node.value.rstrip(".")
        for home in lockstitch.emulator.__path__
        for file in Path(home).rglob("*.py")
        if "realtime" not in str(file.relative_to(home))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and named.fullmatch(node.value.rstrip("."))
    }


# Items


@pytest.mark.parametrize("name", DRAFTS)
def test_an_item_is_strict_wherever_it_is_shown(shared, name):
    """In the response, in the one that is retrieved, in the input of the next, in a list."""
    wire = Wire(shared)
    shared.say(DRAFTS[name])
    made = wire.create(include=SEALED).body
    strictly(Response, made)
    assert len(made["output"]) == 1
    strictly(ResponseOutputItem, made["output"][0])
    strictly(Response, wire.get(f"/responses/{made['id']}").body)

    conversation = wire.post("/conversations", items=made["output"]).body
    listed = wire.get(f"/conversations/{conversation['id']}/items").body
    strictly(ConversationItemList, listed)
    [kept] = listed["data"]
    one = wire.get(f"/conversations/{conversation['id']}/items/{kept['id']}").body
    strictly(ConversationItem, one)
    assert one == kept


def test_an_item_says_nothing_that_is_not_so(shared):
    wire = Wire(shared)
    shared.say(*(DRAFTS[f"{name} that failed"] for name in ("mcp_call", "mcp_list_tools")))
    failed, _ = wire.create().body["output"]
    assert failed["status"] == "failed"
    shared.say(DRAFTS["computer_call, several actions"])
    [acts] = wire.create().body["output"]
    assert "action" not in acts
    shared.say(DRAFTS["reasoning"], DRAFTS["mcp_call"])
    begun = [event["item"] for event in wire.stream() if event["type"].endswith("item.added")]
    assert (begun[0]["summary"], begun[0]["content"]) == ([], [])
    assert (begun[1]["arguments"], begun[1]["output"]) == ("", None)


# One of each family, answered; the outputs as little as their types allow.
PAIRS = {
    "function_call": (call("f"), {"type": "function_call_output", "output": "1"}),
    "custom_tool_call": (
        custom_call("g", "x"),
        {"type": "custom_tool_call_output", "output": [{"type": "input_text", "text": "2"}]},
    ),
    "computer_call": (
        item("computer_call"),
        {
            "type": "computer_call_output",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="},
        },
    ),
    "shell_call": (
        item("shell_call"),
        {
            "type": "shell_call_output",
            "output": [
                {"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
            ],
        },
    ),
    "apply_patch_call": (
        item("apply_patch_call"),
        {"type": "apply_patch_call_output", "status": "completed"},
    ),
    "tool_search_call": (item("tool_search_call"), {"type": "tool_search_output", "tools": []}),
    "program": (
        item("program"),
        {"type": "program_output", "id": "progo_1", "result": "3", "status": "completed"},
    ),
}


def answered(pair: str, made: dict[str, Any]) -> dict[str, Any]:
    return {**PAIRS[pair][1], "call_id": made["output"][0]["call_id"]}


@pytest.mark.parametrize("pair", PAIRS)
def test_an_output_is_strict_wherever_it_is_listed(shared, pair):
    wire = Wire(shared)
    shared.say(PAIRS[pair][0])
    conversation = wire.post("/conversations").body["id"]
    made = wire.create(conversation=conversation).body
    following = wire.create([answered(pair, made)], conversation=conversation)
    strictly(Response, following.body)
    strictly(ResponseItemList, wire.get(f"/responses/{following.body['id']}/input_items").body)
    strictly(ConversationItemList, wire.get(f"/conversations/{conversation}/items").body)


def test_an_approval_and_a_local_shell_are_strict_wherever_they_are_listed(shared):
    wire = Wire(shared)
    conversation = wire.post("/conversations").body["id"]
    shared.say(item("mcp_approval_request"), item("local_shell_call"))
    asked, shell = wire.create(conversation=conversation).body["output"]
    given = [
        {"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": False},
        {"type": "local_shell_call_output", "id": shell["call_id"], "output": "{}"},
    ]
    following = wire.create(given, conversation=conversation).body
    strictly(ResponseItemList, wire.get(f"/responses/{following['id']}/input_items").body)
    strictly(ConversationItemList, wire.get(f"/conversations/{conversation}/items").body)


def test_what_a_user_can_say_is_strict_where_it_is_listed(shared):
    wire = Wire(shared)
    parts = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
        {"type": "input_file", "file_id": "file_1"},
    ]
    said = [
        {"role": "user", "content": "hi"},
        {"type": "message", "role": "user", "content": parts},
        {"role": "system", "content": "be kind"},
        {"role": "developer", "content": "be brief"},
        {"role": "assistant", "content": "Hello."},
        {"type": "function_call_output", "name": "alarm", "output": "it rings"},
        {"type": "additional_tools", "role": "developer", "tools": []},
    ]
    made = wire.create(said).body
    strictly(ResponseItemList, wire.get(f"/responses/{made['id']}/input_items").body)
    conversation = wire.post("/conversations", items=said).body
    strictly(ConversationItemList, wire.get(f"/conversations/{conversation['id']}/items").body)


# Bodies


def test_a_response_says_back_all_that_it_was_asked(shared):
    wire = Wire(shared)
    conversation = wire.post("/conversations").body["id"]
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    request = {
        "conversation": {"id": conversation},
        "instructions": "Be brief.",
        "max_output_tokens": 99,
        "max_tool_calls": 3,
        "metadata": {"a": "b"},
        "parallel_tool_calls": False,
        "prompt_cache_key": "k",
        "reasoning": {"effort": "low", "summary": "auto"},
        "safety_identifier": "s",
        "service_tier": "flex",
        "temperature": 0.5,
        "text": {
            "format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True},
            "verbosity": "low",
        },
        "tool_choice": {"type": "function", "name": "f"},
        "tools": [
            {"type": "function", "name": "f", "parameters": schema, "strict": False},
            {"type": "function", "name": "plain"},
            {"type": "custom", "name": "g"},
            {"type": "web_search"},
            {"type": "file_search", "vector_store_ids": ["vs_1"]},
            {"type": "mcp", "server_label": "m", "server_url": "https://m.example"},
            {"type": "code_interpreter", "container": {"type": "auto"}},
            {"type": "image_generation"},
            {"type": "local_shell"},
            {"type": "shell"},
            {"type": "apply_patch"},
        ],
        "top_logprobs": 2,
        "top_p": 0.5,
        "truncation": "auto",
        "user": "u",
    }
    made = wire.create(**request).body
    strictly(Response, made)
    said_back = request.keys() - {"tools", "service_tier"}
    assert {name: made[name] for name in said_back} == {name: request[name] for name in said_back}
    assert [tool["type"] for tool in made["tools"]] == [tool["type"] for tool in request["tools"]]


def test_the_bodies_beside_a_create_are_strict(shared):
    wire = Wire(shared)
    made = wire.create().body
    check_compacted(wire.post("/responses/compact", model="m", input="hi").body)
    check_compacted(
        wire.post("/responses/compact", model="m", previous_response_id=made["id"]).body
    )
    strictly(InputTokenCountResponse, wire.post("/responses/input_tokens", input="hi").body)
    empty = wire.get(f"/responses/{made['id']}/input_items", after="").body
    strictly(ResponseItemList, empty)
    deleted = wire.delete(f"/responses/{made['id']}")
    assert deleted.status == 200
    assert deleted.body == {"id": made["id"], "object": "response", "deleted": True}


def test_a_response_is_strict_at_every_moment_of_its_life():
    clock = VirtualClock(flowing=False)
    with EmulatorThread(clock=clock) as emulator:
        wire = Wire(emulator)
        emulator.say("One", call("f"), pace=1.0)
        made = wire.create(background=True).body
        strictly(Response, made)
        seen = [made["status"]]
        for _ in range(20):
            emulator.advance(1.0)
            body = wire.get(f"/responses/{made['id']}").body
            strictly(Response, body)
            seen.append(body["status"])
        assert seen[0] == "queued"
        assert seen[-1] == "completed"
        assert "in_progress" in seen

        emulator.say("One", pace=1.0)
        made = wire.create(background=True).body
        cancelled = wire.post(f"/responses/{made['id']}/cancel").body
        strictly(Response, cancelled)
        assert cancelled["status"] == "cancelled"


@pytest.mark.parametrize("ends", ["completed", "incomplete", "failed"])
def test_a_whole_body_is_strict_however_it_ends(shared, ends):
    shared.say("Hello", ends=ends)
    body = Wire(shared).create().body
    strictly(Response, body)
    assert body["status"] == ends


def test_conversations_are_strict(shared):
    wire = Wire(shared)
    made = wire.post("/conversations", metadata={"a": "b"})
    strictly(Conversation, made.body)
    path = f"/conversations/{made.body['id']}"
    strictly(Conversation, wire.get(path).body)
    strictly(Conversation, wire.post(path, metadata={"c": "d"}).body)
    strictly(ConversationItemList, wire.get(f"{path}/items").body)
    added = wire.post(f"{path}/items", items=[{"role": "user", "content": "hi"}]).body
    strictly(ConversationItemList, added)
    item_path = f"{path}/items/{added['data'][0]['id']}"
    strictly(ConversationItem, wire.get(item_path).body)
    strictly(Conversation, wire.delete(item_path).body)
    strictly(ConversationDeletedResource, wire.delete(path).body)


def test_models_are_strict(shared):
    wire = Wire(shared)
    listed = wire.get("/models").body
    assert problems_of(SyncPage[Model], listed) == []
    strictly(Model, wire.get(f"/models/{listed['data'][0]['id']}").body)


# Refusals


def test_every_refusal_has_exactly_an_error(shared):
    wire = Wire(shared)
    unknown = "resp_" + "0" * 48
    check_error(wire.post("/responses"), 400)
    check_error(wire.create(previous_response_id=unknown), 400)
    check_error(wire.create(previous_response_id="nonsense"), 400)
    check_error(wire.create(conversation="conv_0"), 404)
    check_error(wire.create(nonsense=1), 400)
    check_error(wire.create([{"type": "nonsense"}]), 400)
    check_error(wire.create([{"type": "item_reference", "id": "msg_0"}]), 404)
    check_error(wire.create([{"type": "function_call_output", "call_id": "c", "output": ""}]), 400)
    check_error(wire.get("/responses"), 405)
    check_error(wire.get(f"/responses/{unknown}"), 404)
    check_error(wire.get(f"/responses/{unknown}/input_items"), 404)
    check_error(wire.delete(f"/responses/{unknown}"), 404)
    check_error(wire.post(f"/responses/{unknown}/cancel"), 404)
    check_error(wire.post("/responses/compact"), 400)
    check_error(wire.get("/conversations/conv_0"), 404)
    check_error(wire.get("/conversations/conv_0/items"), 404)
    check_error(wire.post("/conversations", items="nonsense"), 400)
    check_error(wire.get("/models/nonsense"), 404)
    check_error(wire.get("/nowhere"), 404)
    made = wire.create().body
    check_error(wire.post(f"/responses/{made['id']}/cancel"), 400)
    check_error(wire.get(f"/responses/{made['id']}/input_items", limit=0), 400)
    check_error(wire.get(f"/responses/{made['id']}/input_items", order="up"), 400)


@pytest.mark.parametrize("status", [400, 401, 404, 409, 429, 500, 502, 503])
def test_a_status_that_a_fault_asks_for_comes_with_exactly_an_error(status):
    with EmulatorThread(faults=[f"status code={status}"]) as emulator:
        check_error(Wire(emulator).create(), status)


def test_a_wrong_key_is_refused_with_exactly_an_error():
    with EmulatorThread(settings=Settings(key="right")) as emulator:
        error = check_error(Wire(emulator).create(), 401)
    assert error["code"] == "invalid_api_key"


def test_every_error_frame_is_strict(shared):
    wire = Wire(shared)
    with wire.socket() as socket:
        sent = [
            {"previous_response_id": "resp_" + "0" * 48},
            {"stream_id": "lane-1", "conversation": "conv_0"},
            {"stream_id": "no good"},
            {"stream_id": 7},
            {"nonsense": 1},
        ]
        for fields in sent:
            socket.create(**fields)
            frame = socket.receive()
            strictly(ResponsesServerEvent, frame)
            assert frame["type"] == "error"
            assert set(frame["error"]) == {"message", "type", "param", "code"}
        socket.send(type="nonsense")
        strictly(ResponsesServerEvent, socket.receive())
        socket.send(type="response.steer", input="no target")
        strictly(ResponsesServerEvent, socket.receive())
        socket.raw.send("{")
        strictly(ResponsesServerEvent, socket.receive())
        shared.fault("status code=429")
        socket.create()
        frame = socket.receive()
        strictly(ResponsesServerEvent, frame)
        assert frame["status"] == 429
        assert frame["error"]["headers"] == {"Retry-After": "1"}
