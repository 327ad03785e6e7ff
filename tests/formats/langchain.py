"""Lists of LangChain messages, in each of their shapes."""

from __future__ import annotations

from typing import Any

from tests.formats.sample import Sample, json_lines


def human(text: Any = "Book it.", **more: Any) -> dict[str, Any]:
    return {
        "content": text,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": "human",
        "name": None,
        "id": None,
        **more,
    }


def call(key: str | None = "call_1", name: str = "book", **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": key, "type": "tool_call"}


def ai(*calls: Any, text: Any = "", **more: Any) -> dict[str, Any]:
    return {
        "content": text,
        "additional_kwargs": {},
        "response_metadata": {"finish_reason": "tool_calls", "model_name": "gpt-5.5"},
        "type": "ai",
        "name": None,
        "id": "run-1",
        "tool_calls": list(calls),
        "invalid_tool_calls": [],
        "usage_metadata": {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12},
        **more,
    }


def tool(key: Any = "call_1", text: Any = "booked", **more: Any) -> dict[str, Any]:
    return {
        "content": text,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": "tool",
        "name": "book",
        "id": None,
        "tool_call_id": key,
        "artifact": None,
        "status": "success",
        **more,
    }


def in_data(message: dict[str, Any]) -> dict[str, Any]:
    """The message as `messages_to_dict` writes it."""
    return {"type": message["type"], "data": message}


CLASSES = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}


def constructed(message: dict[str, Any]) -> dict[str, Any]:
    """The message as `langchain_core.load.dumps` writes it."""
    path = ["langchain", "schema", "messages", CLASSES[message["type"]]]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": message}


def raw(key: str = "call_1", arguments: str = '{"flight": "SK 802"}') -> dict[str, Any]:
    function = {"name": "book", "arguments": arguments}
    return {"id": key, "type": "function", "function": function}


def block(key: str = "call_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": "book", "input": {"flight": "SK 802"}}


OPEN = [human(), ai(call(flight="SK 802")), human("Did it work?")]
ORPHAN = [human(), tool(), ai(text="Booked.")]

SAMPLES = (
    Sample("langchain", OPEN),
    Sample("langchain", ORPHAN, json_lines),
    Sample("langchain", [in_data(one) for one in OPEN]),
    Sample("langchain", [in_data(one) for one in ORPHAN]),
    Sample("langchain", [constructed(one) for one in OPEN]),
    Sample(
        "langchain",
        [
            human([{"type": "text", "text": "Book both."}]),
            ai(
                call("call_1", flight="SK 802"),
                call("call_2", flight="SK 803"),
                text=[{"type": "text", "text": "I book."}, block("call_1"), block("call_2")],
                additional_kwargs={"tool_calls": [raw("call_1"), raw("call_2")]},
            ),
            tool("call_1"),
            human("And?"),
        ],
    ),
    Sample("langchain", [human(), ai(text=[block()]), human("And?")]),
    Sample("langchain", [human(), ai(additional_kwargs={"tool_calls": [raw()]}), human("And?")]),
    Sample(
        "langchain",
        [
            human(),
            ai(
                invalid_tool_calls=[
                    {
                        "name": "book",
                        "args": '{"flight": SK 802}',
                        "id": "call_1",
                        "error": None,
                        "type": "invalid_tool_call",
                    }
                ]
            ),
            human("And?"),
        ],
    ),
)
