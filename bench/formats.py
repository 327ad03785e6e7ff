"""One conversation in every format of messages: a question, then calls with their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Wire = dict[str, Any]

TOOL = "read_file"
OUTPUT = "def main() -> None: ...\n" * 16


class Step(NamedTuple):
    """A call of the model, by number."""

    number: int

    @property
    def key(self) -> str:
        return f"call_{self.number:06d}"

    @property
    def arguments(self) -> Wire:
        return {"path": f"src/file_{self.number}.py"}

    @property
    def text(self) -> str:
        return f'{{"path": "src/file_{self.number}.py"}}'


Writer = Callable[[Step], Iterator[Wire]]


def _responses(step: Step) -> Iterator[Wire]:
    yield {
        "type": "function_call",
        "call_id": step.key,
        "name": TOOL,
        "arguments": step.text,
        "status": "completed",
    }
    yield {"type": "function_call_output", "call_id": step.key, "output": OUTPUT}


def _chat(step: Step) -> Iterator[Wire]:
    function = {"name": TOOL, "arguments": step.text}
    call = {"id": step.key, "type": "function", "function": function}
    yield {"role": "assistant", "content": None, "tool_calls": [call]}
    yield {"role": "tool", "tool_call_id": step.key, "content": OUTPUT}


def _messages(step: Step) -> Iterator[Wire]:
    call = {"type": "tool_use", "id": step.key, "name": TOOL, "input": step.arguments}
    yield {"role": "assistant", "content": [call]}
    result = {"type": "tool_result", "tool_use_id": step.key, "content": OUTPUT}
    yield {"role": "user", "content": [result]}


def _langchain(step: Step) -> Iterator[Wire]:
    call = {"name": TOOL, "args": step.arguments, "id": step.key, "type": "tool_call"}
    plain: Wire = {"additional_kwargs": {}, "response_metadata": {}, "id": None}
    calls = {"tool_calls": [call], "invalid_tool_calls": []}
    yield {"type": "ai", "content": "", **plain, **calls}
    yield {
        "type": "tool",
        "content": OUTPUT,
        "name": TOOL,
        "tool_call_id": step.key,
        "status": "success",
        **plain,
    }


def _pydantic_ai(step: Step) -> Iterator[Wire]:
    call = {
        "part_kind": "tool-call",
        "tool_name": TOOL,
        "args": step.text,
        "tool_call_id": step.key,
    }
    yield {"kind": "response", "parts": [call], "model_name": "gpt-5.5"}
    result = {
        "part_kind": "tool-return",
        "tool_name": TOOL,
        "content": OUTPUT,
        "tool_call_id": step.key,
    }
    yield {"kind": "request", "parts": [result], "instructions": None}


def _vercel(step: Step) -> Iterator[Wire]:
    named = {"toolCallId": step.key, "toolName": TOOL}
    yield {
        "role": "assistant",
        "content": [{"type": "tool-call", **named, "input": step.arguments}],
    }
    output = {"type": "text", "value": OUTPUT}
    yield {"role": "tool", "content": [{"type": "tool-result", **named, "output": output}]}


def _vercel_ui(step: Step) -> Iterator[Wire]:
    part = {
        "type": f"tool-{TOOL}",
        "toolCallId": step.key,
        "state": "output-available",
        "input": step.arguments,
        "output": OUTPUT,
    }
    yield {"id": f"msg_{step.number}", "role": "assistant", "parts": [part]}
    again = {"type": "text", "text": "And the next one."}
    yield {"id": f"usr_{step.number}", "role": "user", "parts": [again]}


def _gemini(step: Step) -> Iterator[Wire]:
    call = {"id": step.key, "name": TOOL, "args": step.arguments}
    yield {"role": "model", "parts": [{"functionCall": call}]}
    result = {"id": step.key, "name": TOOL, "response": {"result": OUTPUT}}
    yield {"role": "user", "parts": [{"functionResponse": result}]}


def _bedrock(step: Step) -> Iterator[Wire]:
    call = {"toolUseId": step.key, "name": TOOL, "input": step.arguments}
    yield {"role": "assistant", "content": [{"toolUse": call}]}
    result = {"toolUseId": step.key, "content": [{"text": OUTPUT}], "status": "success"}
    yield {"role": "user", "content": [{"toolResult": result}]}


def _pi(step: Step) -> Iterator[Wire]:
    call = {"type": "toolCall", "id": step.key, "name": TOOL, "arguments": step.arguments}
    yield {"role": "assistant", "content": [call], "stopReason": "toolUse"}
    yield {
        "role": "toolResult",
        "toolCallId": step.key,
        "toolName": TOOL,
        "content": [{"type": "text", "text": OUTPUT}],
        "isError": False,
    }


def _opencode(step: Step) -> Iterator[Wire]:
    state = {
        "status": "completed",
        "input": step.arguments,
        "output": OUTPUT,
        "title": TOOL,
        "metadata": {},
        "time": {"start": step.number, "end": step.number + 1},
    }
    part = {"id": f"prt_{step.number}", "type": "tool", "callID": step.key, "tool": TOOL}
    info = {"id": f"msg_{step.number}", "role": "assistant"}
    yield {"info": info, "parts": [{**part, "state": state}]}
    again = {"id": f"prt_u{step.number}", "type": "text", "text": "And the next one."}
    yield {"info": {"id": f"usr_{step.number}", "role": "user"}, "parts": [again]}


_WRITERS: dict[str, Writer] = {
    "responses": _responses,
    "chat": _chat,
    "messages": _messages,
    "langchain": _langchain,
    "pydantic-ai": _pydantic_ai,
    "vercel": _vercel,
    "vercel-ui": _vercel_ui,
    "gemini": _gemini,
    "bedrock": _bedrock,
    "pi": _pi,
    "opencode": _opencode,
}

FORMATS = tuple(_WRITERS)


def conversation(name: str, calls: int) -> list[Wire]:
    """So many calls with their results, in the format of that name."""
    write = _WRITERS[name]
    return [item for number in range(calls) for item in write(Step(number))]
