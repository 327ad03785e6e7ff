"""What the tests of several clients share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from lockstitch.emulator import call
from lockstitch.testing import EmulatorThread

CREATE = "POST /v1/responses"
FRAME = "frame response.create"
ENDS = ("response.completed", "response.incomplete", "response.failed", "error")
PATIENCE_SECONDS = 10.0

WEATHER: dict[str, Any] = {
    "type": "function",
    "name": "weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}


def calls_weather(emulator: EmulatorThread, call_id: str = "call_1", **settings: Any) -> None:
    """The model asks for the weather next."""
    emulator.say(call("weather", {"city": "Lund"}, call_id=call_id), **settings)


def output_of(call_id: str = "call_1", output: str = "rain") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def asked(emulator: EmulatorThread) -> list[dict[str, Any]]:
    """What the provider was asked, over HTTP and then over WebSocket, in order."""
    return [*emulator.requests(CREATE), *emulator.requests(FRAME)]


def kinds(request: dict[str, Any]) -> list[str]:
    """The input of a request: the types of its items, messages by their role."""
    if not isinstance(request["input"], list):
        return ["user"]
    return [
        item["role"] if item.get("type", "message") == "message" else item["type"]
        for item in request["input"]
    ]


def told(emulator: EmulatorThread) -> list[dict[str, Any]]:
    """The events that the provider sent, in order."""
    found = []
    for entry in emulator.entries():
        data = entry.readable().get("data") if entry.sent else None
        if isinstance(data, dict) and "sequence_number" in data:
            found.append(data)
    return found


def until(what: Callable[[], bool], says: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not what():
        assert time.monotonic() < deadline, says
        time.sleep(0.01)
