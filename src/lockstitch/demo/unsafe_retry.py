"""Case C: a proxy retries a request without its `previous_response_id`.

A tool output is valid only after the response that made the call. If the provider has lost that
response and the proxy just drops `previous_response_id`, it sends an output without its call."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from aiohttp import ClientSession, web
from openai import AsyncOpenAI

from lockstitch.demo.playing import KEY, MODEL, Case, Stage
from lockstitch.emulator import call
from lockstitch.gateway.config import Config, Upstream
from lockstitch.gateway.config.model import LogSettings
from lockstitch.gateway.server import Gateway
from lockstitch.gateway.watching import logs
from lockstitch.runner import tool
from lockstitch.store.opening import open_store

ASKED: Final = "Is the harbour in Bergen open?"
ANSWER: Final = "Yes: the harbour in Bergen is open until ten."


async def harbour(city: str) -> str:
    """Whether a harbour is open."""
    return f"{city}: open until 22:00"


async def naive(stage: Stage) -> Sequence[Mapping[str, Any]]:
    """Run the agent through a proxy that retries without `previous_response_id`."""
    async with _proxy(stage) as base_url:
        return await _agent(stage, base_url)


async def gateway(stage: Stage) -> Sequence[Mapping[str, Any]]:
    """Run the agent through the gateway, which resends the stored history in full."""
    async with _gateway(stage) as base_url:
        return await _agent(stage, base_url)


async def _agent(stage: Stage, base_url: str) -> Sequence[Mapping[str, Any]]:
    """Run an agent that sends only new items, with `previous_response_id`."""
    tools: list[Any] = [tool(harbour).for_responses()]
    async with AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0) as client:
        stage.tell("user", ASKED)
        history: list[Mapping[str, Any]] = [{"role": "user", "content": ASKED}]
        response = await client.responses.create(model=MODEL, input=ASKED, tools=tools)
        while True:
            outputs: list[Any] = []
            for item in response.output:
                history.append(item.to_dict())
                stage.tell_item(item.to_dict())
                if item.type == "function_call":
                    said = await harbour(**json.loads(item.arguments))
                    outputs.append(
                        {"type": "function_call_output", "call_id": item.call_id, "output": said}
                    )
                    stage.tell_item(outputs[-1])
            if not outputs:
                return history
            history += outputs
            stage.forget()
            stage.tell("fault", "the provider loses the response with the call")
            response = await client.responses.create(
                model=MODEL, input=outputs, tools=tools, previous_response_id=response.id
            )


@asynccontextmanager
async def _proxy(stage: Stage) -> AsyncIterator[str]:
    async with ClientSession(headers={"authorization": f"Bearer {KEY}"}) as upstream:

        async def passed(body: Mapping[str, Any]) -> tuple[int, Any]:
            async with upstream.post(f"{stage.base_url}/responses", json=body) as answer:
                return answer.status, await answer.json()

        async def handle(request: web.BaseRequest) -> web.Response:
            body = json.loads(await request.read())
            status, said = await passed(body)
            if status == 400 and said["error"]["code"] == "previous_response_not_found":
                stage.tell("proxy", "retries without previous_response_id")
                del body["previous_response_id"]
                status, said = await passed(body)
            return web.json_response(said, status=status)

        runner = web.ServerRunner(web.Server(handle))
        await runner.setup()
        listening = _socket()
        try:
            await web.SockSite(runner, listening).start()
            yield _base_url(listening)
        finally:
            await runner.cleanup()


@asynccontextmanager
async def _gateway(stage: Stage) -> AsyncIterator[str]:
    logs.configure(LogSettings(level="error"))
    upstream = Upstream(name="provider", url=stage.base_url)
    async with open_store("memory:") as store:
        gateway = Gateway(Config(store="memory:", upstreams=(upstream,)), store)
        listening = _socket()
        await gateway.start([listening], None)
        try:
            yield _base_url(listening)
        finally:
            await gateway.drain(0)


def _socket() -> socket.socket:
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    return listening


def _base_url(listening: socket.socket) -> str:
    return f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


def _none(folder: Path) -> int:
    """The tool only reads."""
    return 0


CASE: Final = Case(
    letter="C",
    title="An unsafe retry",
    story="An agent sends a tool output with previous_response_id. The provider has lost that"
    " response, and the proxy in between retries.",
    names=("Without Lockstitch: a simple proxy", "With Lockstitch: the gateway"),
    script=[call("harbour", {"city": "Bergen"}, call_id="call_bergen"), ANSWER],
    naive=naive,
    lockstitch=gateway,
    lost="the output was sent without its call.",
    refusal="No tool call found for function call output",
    effects=_none,
    wanted_effects=0,
)
