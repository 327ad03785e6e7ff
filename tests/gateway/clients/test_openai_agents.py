"""OpenAI's Agents SDK through the gateway: every way it has to continue, with a provider that
forgets everything between two turns, and with streams that are cut."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIConversationsSession,
    RunConfig,
    Runner,
    function_tool,
)
from agents.models.openai_responses import OpenAIResponsesModel, OpenAIResponsesWSModel
from openai import AsyncOpenAI

from lockstitch.emulator import reasoning
from tests.emulator.official import MODEL, async_client
from tests.gateway.clients.asking import asked, calls_weather, kinds
from tests.gateway.clients.gateways import keeping_nothing, upstream

UNTRACED = RunConfig(tracing_disabled=True)
WHOLE = ["user", "function_call", "function_call_output"]
SAID = "weather returned: rain in Lund"


class Desk:
    """Agents of one test, and what their tools did."""

    def __init__(self, gateway: Any, emulator: Any) -> None:
        self.gateway = gateway
        self.emulator = emulator
        self.ran: list[str] = []
        self.forgets = False
        """Does the provider forget everything while a tool runs?"""

    def agent(self, client: AsyncOpenAI, transport: str = "http", **fields: Any) -> Agent[Any]:
        @function_tool
        def weather(city: str) -> str:
            """The weather in a city."""
            self.ran.append(city)
            if self.forgets:
                self.emulator.forget()
            return f"rain in {city}"

        speaks = OpenAIResponsesModel if transport == "http" else OpenAIResponsesWSModel
        model = speaks(model=MODEL, openai_client=client)
        return Agent(**({"name": "a", "model": model, "tools": [weather]} | fields))

    def asking(self, ask: Callable[[AsyncOpenAI], Awaitable[Any]]) -> Any:
        """What `ask` returns, with a client that is closed in the end."""

        async def within() -> Any:
            async with async_client(self.gateway) as client, asyncio.timeout(10):
                return await ask(client)

        return asyncio.run(within())


@pytest.fixture
def desk(gateway, emulator):
    return Desk(gateway, emulator)


@pytest.fixture(params=["upstream", "gateway"])
def either(request, emulator):
    """With an upstream that keeps state, and with one that keeps nothing."""
    named = {"upstream": "gateway", "gateway": "stateless"}[request.param]
    return Desk(request.getfixturevalue(named), emulator)


async def ran(agent, said, *, streamed=False, **continued):
    if not streamed:
        return await Runner.run(agent, said, run_config=UNTRACED, **continued)
    result = Runner.run_streamed(agent, said, run_config=UNTRACED, **continued)
    async for _ in result.stream_events():
        pass
    return result


@pytest.mark.parametrize("transport", ["http", "websocket"])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("by", ["full input", "previous_response_id", "conversation_id"])
def test_a_run_with_tools_goes_on_in_every_way(either, emulator, transport, streamed, by):
    emulator.say(reasoning("I think."), "I will look.")
    calls_weather(emulator)
    calls_weather(emulator, "call_2")

    async def thrice(client):
        agent = either.agent(client, transport)
        more: dict[str, Any] = {"streamed": streamed}
        if by == "conversation_id":
            more[by] = (await client.conversations.create()).id
        first = await ran(agent, "hello", **more)
        said: Any = "weather?"
        if by == "previous_response_id":
            more |= {by: first.last_response_id}
        elif by == "full input":
            said = [*first.to_input_list(), {"role": "user", "content": said}]
        second = await ran(agent, said, **more)
        if by == "previous_response_id":
            more |= {by: second.last_response_id}
        third = await ran(agent, "thanks", **more) if by != "full input" else None
        if transport == "websocket":
            await agent.model.close()
        return second, third

    second, third = either.asking(thrice)
    assert second.final_output == SAID
    assert third is None or third.final_output == "You said: thanks"
    assert either.ran == ["Lund", "Lund"]
    emulator.expect(turns_used=True)


@pytest.mark.parametrize("transport", ["http", "websocket"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_does_not_notice_that_the_provider_forgets_everything(
    desk, emulator, broken, transport, streamed
):
    calls_weather(emulator)
    calls_weather(emulator, "call_2")
    desk.forgets = True

    async def twice(client):
        agent = desk.agent(client, transport, model_settings=ModelSettings(store=True))
        more = {"auto_previous_response_id": True, "streamed": streamed}
        first = await ran(agent, "weather?", **more)
        emulator.forget()
        second = await ran(
            agent, "thanks", previous_response_id=first.last_response_id, streamed=streamed
        )
        if transport == "websocket":
            await agent.model.close()
        return first, second

    first, second = desk.asking(twice)
    assert first.final_output == SAID
    assert second.final_output == "You said: thanks"
    assert desk.ran == ["Lund", "Lund"]
    if transport == "http":
        broken["anchor-not-found"] = 3
        assert [kinds(one) for one in asked(emulator)] == [
            ["user"],
            ["function_call_output"],
            WHOLE,
            ["function_call_output"],
            [*WHOLE, *WHOLE[1:]],
            ["user"],
            [*WHOLE, *WHOLE[1:], "assistant", "user"],
        ]
    emulator.expect(turns_used=True)


@pytest.mark.parametrize("by", ["previous_response_id", "conversation_id"])
@pytest.mark.parametrize(
    "fault", ["cut before=first-byte how=reset", "cut after=response.in_progress how=close"]
)
def test_a_run_does_not_notice_a_stream_that_is_cut_before_anything_was_said(
    stateless, emulator, by, fault
):
    desk = Desk(stateless, emulator)
    calls_weather(emulator, faults=(fault,))
    calls_weather(emulator)
    emulator.say("It rains.", faults=(fault,))
    emulator.say("It rains.")

    async def run(client):
        more: dict[str, Any] = {"auto_previous_response_id": True}
        if by == "conversation_id":
            more = {by: (await client.conversations.create()).id}
        result = await ran(desk.agent(client), "weather?", streamed=True, **more)
        if by == "conversation_id":
            items = client.conversations.items.list(more[by], order="asc")
            return result, [item.type async for item in items]
        return result, None

    result, items = desk.asking(run)
    assert result.final_output == "It rains."
    assert desk.ran == ["Lund"]
    assert items in (None, ["message", "function_call", "function_call_output", "message"])
    emulator.expect(turns_used=True)


@pytest.mark.parametrize("transport", ["http", "websocket"])
@pytest.mark.parametrize("by", ["previous_response_id", "conversation_id"])
def test_a_run_whose_stream_was_cut_behind_a_call_is_begun_again(either, emulator, transport, by):
    """The response failed, so its call is nobody's, and no tool was run for it."""
    emulator.say("Hello.")
    calls_weather(emulator, faults=("cut after=response.output_item.done how=reset",))
    calls_weather(emulator, "call_2")

    async def run(client):
        agent = either.agent(client, transport)
        more: dict[str, Any] = {}
        if by == "conversation_id":
            more = {by: (await client.conversations.create()).id}
        first = await ran(agent, "hello", streamed=True, **more)
        if by == "previous_response_id":
            more = {by: first.last_response_id}
        with pytest.raises(Exception, match=r"response\.failed"):
            await ran(agent, "weather?", streamed=True, **more)
        result = await ran(agent, "weather?", streamed=True, **more)
        if transport == "websocket":
            await agent.model.close()
        return result

    assert either.asking(run).final_output == SAID
    assert either.ran == ["Lund"]
    assert [len(kinds(one)) for one in asked(emulator)][-1] in (1, 5)
    emulator.expect(turns_used=True)


def test_a_session_is_kept_in_a_conversation(either, emulator):
    calls_weather(emulator)

    async def twice(client):
        session = OpenAIConversationsSession(openai_client=client)
        agent = either.agent(client)
        await Runner.run(agent, "weather?", session=session, run_config=UNTRACED)
        await Runner.run(agent, "thanks", session=session, run_config=UNTRACED)
        items = await session.get_items()
        popped = await session.pop_item()
        left = await session.get_items()
        await session.clear_session()
        return items, popped, left

    items, popped, left = either.asking(twice)
    kinds_of = [item["type"] for item in items]
    assert kinds_of == ["message", "function_call", "function_call_output", *["message"] * 3]
    assert popped == items[-1]
    assert left == items[:-1]


def test_a_run_goes_on_through_a_gateway_that_was_started_again(either, emulator):
    calls_weather(emulator)

    async def first(client):
        return await ran(either.agent(client), "weather?", auto_previous_response_id=True)

    last = either.asking(first).last_response_id
    either.gateway.restart()

    async def second(client):
        return await ran(either.agent(client), "thanks", previous_response_id=last)

    assert either.asking(second).final_output == "You said: thanks"


@pytest.mark.parametrize("guard", ["refuse", "mend"])
@pytest.mark.parametrize("by", ["previous_response_id", "conversation_id"])
def test_a_run_that_stopped_early_left_a_call_open(make_gateway, emulator, guard, by):
    """The provider would refuse the next run; the gateway knows of the call: it tells or mends."""
    gateway = make_gateway(upstream(keeping_nothing(emulator), state="gateway", guard=guard))
    desk = Desk(gateway, emulator)
    calls_weather(emulator)

    async def twice(client):
        agent = desk.agent(client, tool_use_behavior="stop_on_first_tool")
        more: dict[str, Any] = {"auto_previous_response_id": True}
        if by == "conversation_id":
            more = {by: (await client.conversations.create()).id}
        first = await ran(agent, "weather?", **more)
        if by == "previous_response_id":
            more = {by: first.last_response_id}
        return await ran(agent, "next", **more)

    if guard == "mend":
        assert desk.asking(twice).final_output == "You said: next"
    else:
        with pytest.raises(Exception, match="No tool output found for function call call_1"):
            desk.asking(twice)
