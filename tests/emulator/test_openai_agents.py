"""OpenAI's Agents SDK against the emulator: every way it has to continue, and how it goes wrong.

The failures at the end are the SDK's own, of 0.24.0. They are here because a strict provider must
show them: a test that fails is a failure mended there, or a rule that is lost here."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import openai
import pytest
from agents import (
    Agent,
    LocalShellTool,
    ModelSettings,
    OpenAIConversationsSession,
    RunConfig,
    Runner,
    function_tool,
    responses_websocket_session,
)
from agents.exceptions import MaxTurnsExceeded, UserError
from agents.models.openai_responses import OpenAIResponsesModel, OpenAIResponsesWSModel
from openai import AsyncOpenAI
from openai.types.responses import ResponseTextDeltaEvent

from lockstitch.emulator import call, item, reasoning, text
from lockstitch.testing import EmulatorThread
from tests.emulator.official import MODEL, async_client

CREATE = "POST /v1/responses"
FRAME = "frame response.create"
UNTRACED = RunConfig(tracing_disabled=True)
ASKED = "weather, please"


@pytest.fixture
def emulator() -> Iterator[EmulatorThread]:
    with EmulatorThread() as running:
        yield running


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


@function_tool(failure_error_function=None)
def broken(city: str) -> str:
    """A tool that raises."""
    raise RuntimeError(city)


def agent_of(client: AsyncOpenAI, **fields: Any) -> Agent[Any]:
    model = OpenAIResponsesModel(model=MODEL, openai_client=client)
    return Agent(**({"name": "a", "model": model, "tools": [weather]} | fields))


def asking(emulator: EmulatorThread, ask: Callable[[AsyncOpenAI], Awaitable[Any]]) -> Any:
    """What `ask` returns, with a client that is closed in the end."""

    async def asked() -> Any:
        async with async_client(emulator) as client:
            return await ask(client)

    return asyncio.run(asked())


def calls_weather(emulator: EmulatorThread, call_id: str = "call_1") -> None:
    emulator.say(call("weather", {"city": "Lund"}, call_id=call_id))


def inputs(emulator: EmulatorThread, what: str = CREATE) -> list[list[str]]:
    """What each request sent: the types of its items, messages by their role."""
    return [
        [item.get("type") or item["role"] for item in request["input"]]
        if isinstance(request["input"], list)
        else ["user"]
        for request in emulator.requests(what)
    ]


# Every way to continue


def test_a_tool_is_run_and_its_output_told(emulator):
    calls_weather(emulator)
    result = asking(
        emulator, lambda client: Runner.run(agent_of(client), ASKED, run_config=UNTRACED)
    )
    assert result.final_output == "weather returned: rain in Lund"
    assert inputs(emulator) == [["user"], ["user", "function_call", "function_call_output"]]
    emulator.expect(violations=0, turns_used=True)


def test_a_local_shell_is_answered_by_the_call_id(emulator):
    action = {"type": "exec", "command": ["ls"], "env": {}}
    emulator.say(item("local_shell_call", call_id="call_1", action=action))
    shell = LocalShellTool(executor=lambda request: " ".join(request.data.action.command))
    result = asking(
        emulator,
        lambda client: Runner.run(agent_of(client, tools=[shell]), ASKED, run_config=UNTRACED),
    )
    assert result.final_output == "local_shell_call returned: ls"
    (sent,) = [one for one in emulator.requests(CREATE)[-1]["input"] if "output" in one]
    assert sent == {"type": "local_shell_call_output", "call_id": "call_1", "output": "ls"}
    emulator.expect(violations=0, turns_used=True)


def test_reasoning_is_sent_back_with_its_call(emulator):
    emulator.say(reasoning("I think."), call("weather", {"city": "Lund"}))
    emulator.say(reasoning("I think again."), text("It rains."))

    async def twice(client: AsyncOpenAI) -> Any:
        agent = agent_of(client)
        first = await Runner.run(agent, ASKED, run_config=UNTRACED)
        asked = [*first.to_input_list(), {"role": "user", "content": "sure?"}]
        return await Runner.run(agent, asked, run_config=UNTRACED)

    asking(emulator, twice)
    assert inputs(emulator)[-1] == [
        "user",
        "reasoning",
        "function_call",
        "function_call_output",
        "reasoning",
        "message",
        "user",
    ]
    emulator.expect(violations=0, turns_used=True)


def test_a_run_continues_the_last_response(emulator):
    async def twice(client: AsyncOpenAI) -> Any:
        agent = agent_of(client)
        first = await Runner.run(agent, "one", run_config=UNTRACED)
        second = await Runner.run(
            agent, "two", previous_response_id=first.last_response_id, run_config=UNTRACED
        )
        return first.last_response_id, second

    last, second = asking(emulator, twice)
    assert second.final_output == "You said: two"
    assert [request.get("previous_response_id") for request in emulator.requests(CREATE)] == [
        None,
        last,
    ]
    assert inputs(emulator) == [["user"], ["user"]]
    emulator.expect(violations=0)


def test_a_run_continues_its_own_responses(emulator):
    calls_weather(emulator)
    calls_weather(emulator, "call_2")

    def run(client: AsyncOpenAI) -> Awaitable[Any]:
        return Runner.run(
            agent_of(client), ASKED, auto_previous_response_id=True, run_config=UNTRACED
        )

    result = asking(emulator, run)
    assert result.final_output == "weather returned: rain in Lund"
    assert inputs(emulator) == [["user"], ["function_call_output"], ["function_call_output"]]
    emulator.expect(violations=0, turns_used=True)


def test_a_run_goes_on_in_a_conversation(emulator):
    calls_weather(emulator)

    async def twice(client: AsyncOpenAI) -> list[str]:
        conversation = (await client.conversations.create()).id
        for said in (ASKED, "thanks"):
            await Runner.run(
                agent_of(client), said, conversation_id=conversation, run_config=UNTRACED
            )
        items = client.conversations.items.list(conversation, order="asc")
        return [item.type async for item in items]

    assert asking(emulator, twice) == [
        "message",
        "function_call",
        "function_call_output",
        "message",
        "message",
        "message",
    ]
    assert inputs(emulator) == [["user"], ["function_call_output"], ["user"]]
    emulator.expect(violations=0, turns_used=True)


def test_a_session_is_kept_in_a_conversation(emulator):
    calls_weather(emulator)

    async def twice(client: AsyncOpenAI) -> Any:
        session = OpenAIConversationsSession(openai_client=client)
        agent = agent_of(client)
        await Runner.run(agent, ASKED, session=session, run_config=UNTRACED)
        await Runner.run(agent, "thanks", session=session, run_config=UNTRACED)
        items = await session.get_items()
        newest = await session.get_items(limit=2)
        popped = await session.pop_item()
        left = await session.get_items()
        await session.clear_session()
        return items, newest, popped, left

    items, newest, popped, left = asking(emulator, twice)
    kinds = [item["type"] for item in items]
    assert kinds == ["message", "function_call", "function_call_output", *["message"] * 3]
    assert newest == items[-2:]
    assert popped == items[-1]
    assert left == items[:-1]
    assert len(inputs(emulator)[-1]) == 5
    emulator.expect(violations=0, turns_used=True)


def test_a_run_is_streamed(emulator):
    calls_weather(emulator)

    async def streamed(client: AsyncOpenAI) -> Any:
        result = Runner.run_streamed(agent_of(client), ASKED, run_config=UNTRACED)
        events = [event async for event in result.stream_events()]
        return result.final_output, events

    output, events = asking(emulator, streamed)
    assert output == "weather returned: rain in Lund"
    deltas = [
        event.data.delta
        for event in events
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent)
    ]
    assert "".join(deltas) == output
    names = [event.name for event in events if event.type == "run_item_stream_event"]
    assert names == ["tool_called", "tool_output", "message_output_created"]
    emulator.expect(violations=0, turns_used=True)


# Over WebSocket


def test_a_run_over_websocket_goes_over_one_connection(emulator):
    calls_weather(emulator)

    async def run(client: AsyncOpenAI) -> Any:
        model = OpenAIResponsesWSModel(model=MODEL, openai_client=client)
        try:
            return await Runner.run(agent_of(client, model=model), ASKED, run_config=UNTRACED)
        finally:
            await model.close()

    assert asking(emulator, run).final_output == "weather returned: rain in Lund"
    assert inputs(emulator, FRAME) == [["user"], ["user", "function_call", "function_call_output"]]
    emulator.expect(
        violations=0, turns_used=True, requests={"GET /v1/responses": 1, CREATE: 0, FRAME: 2}
    )


@pytest.mark.parametrize("store", [True, False])
def test_a_run_over_websocket_continues_its_own_responses(emulator, store):
    calls_weather(emulator)

    async def run(client: AsyncOpenAI) -> Any:
        model = OpenAIResponsesWSModel(model=MODEL, openai_client=client)
        agent = agent_of(client, model=model, model_settings=ModelSettings(store=store))
        try:
            result = Runner.run_streamed(
                agent, ASKED, auto_previous_response_id=True, run_config=UNTRACED
            )
            async for _ in result.stream_events():
                pass
            return await Runner.run(
                agent,
                "thanks",
                previous_response_id=result.last_response_id,
                run_config=UNTRACED,
            )
        finally:
            await model.close()

    assert asking(emulator, run).final_output == "You said: thanks"
    assert inputs(emulator, FRAME) == [["user"], ["function_call_output"], ["user"]]
    emulator.expect(violations=0, turns_used=True)


def test_the_sdks_own_websocket_session_works(emulator):
    calls_weather(emulator)

    async def run() -> Any:
        async with responses_websocket_session(
            api_key="any", base_url=emulator.base_url
        ) as session:
            session.run_config.tracing_disabled = True
            agent = Agent(name="a", model=MODEL, tools=[weather])
            return await session.run(agent, ASKED)

    assert asyncio.run(run()).final_output == "weather returned: rain in Lund"
    emulator.expect(
        violations=0, turns_used=True, requests={"GET /v1/responses": 1, CREATE: 0, FRAME: 2}
    )


def test_a_refusal_over_websocket_reaches_the_run(emulator):
    async def run(client: AsyncOpenAI) -> Any:
        model = OpenAIResponsesWSModel(model=MODEL, openai_client=client)
        anchor = "resp_" + "0" * 48
        try:
            return await Runner.run(
                agent_of(client, model=model),
                ASKED,
                previous_response_id=anchor,
                run_config=UNTRACED,
            )
        finally:
            await model.close()

    with pytest.raises(Exception, match="previous_response_not_found"):
        asking(emulator, run)
    emulator.expect(violations={"anchor-not-found": 1})


# What goes wrong in the SDK: it does not know which calls are open

NO_OUTPUT = "No tool output found for function call call_1."
NO_CALL = "No tool call found for function call output with call_id call_1."


@pytest.mark.parametrize("by", ["previous_response_id", "conversation_id"])
@pytest.mark.parametrize("stopped", ["stop_on_first_tool", "max_turns", "a tool that raises"])
def test_a_run_that_stops_early_leaves_a_call_open(emulator, by, stopped):
    name = "broken" if stopped == "a tool that raises" else "weather"
    emulator.say(call(name, {"city": "Lund"}, call_id="call_1"))

    async def twice(client: AsyncOpenAI) -> Any:
        settings: dict[str, Any] = {"tools": [weather, broken]}
        if stopped == "stop_on_first_tool":
            settings["tool_use_behavior"] = stopped
        agent = agent_of(client, **settings)
        continued: dict[str, Any] = {"auto_previous_response_id": True}
        if by == "conversation_id":
            continued = {by: (await client.conversations.create()).id}
        turns = 1 if stopped == "max_turns" else 10
        with contextlib.suppress(MaxTurnsExceeded, UserError):
            await Runner.run(agent, ASKED, max_turns=turns, run_config=UNTRACED, **continued)
        if by == "previous_response_id":
            [made] = answers(emulator)
            continued = {by: made["id"]}
        return await Runner.run(agent, "next", run_config=UNTRACED, **continued)

    with pytest.raises(openai.BadRequestError, match=NO_OUTPUT):
        asking(emulator, twice)
    emulator.expect(violations={"call-without-output": 1})


def answers(emulator: EmulatorThread) -> list[Any]:
    """The bodies of the responses that were sent."""
    bodies = [entry.readable().get("data") for entry in emulator.entries() if entry.sent]
    return [body for body in bodies if isinstance(body, dict) and body.get("object") == "response"]


def test_an_answer_that_is_lost_makes_the_output_come_twice(emulator):
    """The client asks again, as clients do; the conversation has the output already."""
    calls_weather(emulator)
    emulator.fault("lose path=/v1/responses request=2")

    async def run(client: AsyncOpenAI) -> Any:
        conversation = (await client.conversations.create()).id
        retrying = client.with_options(max_retries=1)
        return await Runner.run(
            agent_of(retrying), ASKED, conversation_id=conversation, run_config=UNTRACED
        )

    with pytest.raises(openai.BadRequestError, match=NO_CALL):
        asking(emulator, run)
    assert inputs(emulator) == [["user"], ["function_call_output"], ["function_call_output"]]
    emulator.expect(violations={"output-without-call": 1}, faults_struck=True)
