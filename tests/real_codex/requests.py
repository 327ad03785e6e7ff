"""What Codex sent, read without any of our own code: the request is the evidence."""

from __future__ import annotations

from typing import Any

from lockstitch.testing import EmulatorThread

Wire = dict[str, Any]


def asked(emulator: EmulatorThread) -> list[Wire]:
    """What was asked over HTTP and then what was asked over WebSocket, in order."""
    posted = emulator.requests("POST /v1/responses")
    return [*posted, *emulator.requests("frame response.create")]


def conversation(request: Wire) -> list[str]:
    """The input in short, without the context that Codex itself adds."""
    told = []
    for item in request["input"]:
        kind = item["type"]
        if kind == "message":
            text = item["content"][0]["text"]
            if item["role"] in ("user", "assistant") and not text.startswith("<"):
                told.append(f"{item['role']}: {text}")
        elif kind == "reasoning":
            told.append("reasoning")
        elif kind.endswith("_output"):
            told.append(f"output {item['call_id']}")
        else:
            told.append(f"call {item['call_id']}")
    return told


def output_of(call_id: str, request: Wire) -> str:
    """The text of the one output of a call, which stands behind the call and is of its family."""
    items = [item for item in request["input"] if item.get("call_id") == call_id]
    assert len(items) == 2, items
    call, output = items
    family = {
        "function_call": "function_call_output",
        "custom_tool_call": "custom_tool_call_output",
    }
    assert output["type"] == family[call["type"]]
    return str(output["output"])


def calls(request: Wire) -> set[str]:
    return {item["call_id"] for item in request["input"] if item["type"] == "function_call"}
