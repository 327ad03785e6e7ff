"""The official client of OpenAI, sync or async, asked in one way; and how it tells of a refusal."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from lockstitch.testing import EmulatorThread

# An answer that does not come within this never comes.
SECONDS = 10.0
MODEL = "gpt-5.5"
KINDS = ("sync", "async")


def sync_client(emulator: EmulatorThread, **settings: Any) -> OpenAI:
    return OpenAI(
        base_url=emulator.base_url, api_key="any", max_retries=0, timeout=SECONDS, **settings
    )


def async_client(emulator: EmulatorThread, **settings: Any) -> AsyncOpenAI:
    return AsyncOpenAI(
        base_url=emulator.base_url, api_key="any", max_retries=0, timeout=SECONDS, **settings
    )


class Client:
    """Either client. What its methods return is given to `now`, what they stream to `all`."""

    def __init__(self, kind: str, emulator: EmulatorThread) -> None:
        self._async = kind == "async"
        self._runner = asyncio.Runner()
        self._client: Any = async_client(emulator) if self._async else sync_client(emulator)
        self.responses = self._client.responses
        self.conversations = self._client.conversations

    def now(self, value: Any) -> Any:
        return self._runner.run(_awaited(value)) if inspect.isawaitable(value) else value

    def create(self, input: Any = "hello", **fields: Any) -> Any:
        return self.now(self.responses.create(model=MODEL, input=input, **fields))

    def all(self, stream: Any) -> list[Any]:
        stream = self.now(stream)
        return self._runner.run(_collected(stream)) if self._async else list(stream)

    def first(self, stream: Any, count: int) -> list[Any]:
        """The next so many of a stream that goes on."""
        take = _anext if self._async else next
        return [self.now(take(stream)) for _ in range(count)]

    def helped(self, **fields: Any) -> tuple[list[Any], Any]:
        """The events and the final response of the client's own helper for streams."""
        manager = self.responses.stream(model=MODEL, **fields)
        if self._async:
            return self._runner.run(_helped(manager))
        with manager as stream:
            return list(stream), stream.get_final_response()

    def close(self) -> None:
        self.now(self._client.close())
        self._runner.close()


@contextmanager
def client_of(kind: str, emulator: EmulatorThread) -> Iterator[Client]:
    client = Client(kind, emulator)
    try:
        yield client
    finally:
        client.close()


async def _awaited(value: Any) -> Any:
    return await value


async def _anext(stream: Any) -> Any:
    return await anext(stream)


async def _collected(stream: Any) -> list[Any]:
    return [each async for each in stream]


async def _helped(manager: Any) -> tuple[list[Any], Any]:
    async with manager as stream:
        return [event async for event in stream], await stream.get_final_response()


def refusal_of(ask: Callable[[], Any]) -> tuple[int, dict[str, Any]]:
    """The status and the error that the client was given."""
    with pytest.raises(openai.APIStatusError) as caught:
        ask()
    assert isinstance(caught.value.body, dict)
    return caught.value.status_code, caught.value.body


def invalid(message: str, param: str | None = "input", code: str | None = None) -> tuple[int, Any]:
    """What a request that breaks a rule is told."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return 400, error


def as_input(*items: Any) -> list[dict[str, Any]]:
    """Output items, as a client sends them back."""
    return [item.model_dump(mode="json", exclude_unset=True, warnings=False) for item in items]


class Connection:
    """A WebSocket of either client."""

    def __init__(self, kind: str, emulator: EmulatorThread) -> None:
        self._runner = asyncio.Runner()
        self._async = kind == "async"
        self._client: Any = async_client(emulator) if self._async else sync_client(emulator)
        self._opened: Any = self._now(self._client.responses.connect().enter())

    def create(self, input: Any = "hello", **fields: Any) -> None:
        self._now(self._opened.response.create(**({"model": MODEL, "input": input} | fields)))

    def steer(self, response: str, input: Any) -> None:
        self._now(self._opened.response.steer(previous_response_id=response, input=input))

    def receive(self) -> Any:
        return self._now(self._opened.recv())

    def until(self, *types: str) -> list[Any]:
        """The events up to the first of one of these types, with it."""
        events = [self.receive()]
        while events[-1].type not in types:
            events.append(self.receive())
        return events

    def finished(self) -> Any:
        """The response that ends next."""
        return self.until("response.completed", "response.incomplete", "response.failed")[
            -1
        ].response

    def close(self) -> None:
        self._now(self._opened.close())
        self._now(self._client.close())
        self._runner.close()

    def _now(self, value: Any) -> Any:
        if not inspect.isawaitable(value):
            return value
        return self._runner.run(asyncio.wait_for(_awaited(value), SECONDS))


@contextmanager
def connected(kind: str, emulator: EmulatorThread) -> Iterator[Connection]:
    connection = Connection(kind, emulator)
    try:
        yield connection
    finally:
        connection.close()
