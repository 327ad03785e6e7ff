"""What a call asks for, read from its wire item, however odd that is."""

from __future__ import annotations

import pytest

from lockstitch.ledgers import Ledger, item_added
from lockstitch.runner.asked import Asked, asked_of


def only_call(dialect, item):
    ledger = Ledger(dialect)
    ledger.append(item_added(item, "model"))
    (call,) = ledger.calls.values()
    return asked_of(ledger, call)


def in_chat(**body):
    made = {"id": "call_1", "type": "function", **body}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ({"function": {"name": "f", "arguments": '{"a":1}'}}, Asked("f", '{"a":1}')),
        ({"function": {"name": "f", "arguments": {"a": 1}}}, Asked("f", '{"a":1}')),
        ({"function": {"name": "f", "arguments": None}}, Asked("f", "{}")),
        ({"function": {"name": "f"}}, Asked("f", "{}")),
        ({"custom": {"name": "f", "input": "a"}}, Asked("f", "a")),
        ({"function": "f"}, Asked("", "{}")),
        ({"function": 1.5}, Asked("", "{}")),
        ({}, Asked("", "{}")),
    ],
)
def test_what_a_call_of_chat_completions_asks_for(body, asked):
    assert only_call("chat", in_chat(**body)) == asked


@pytest.mark.parametrize(
    ("given", "arguments"), [({"a": 1}, '{"a":1}'), (None, "{}"), ("a", "a"), (5, "5")]
)
def test_what_a_call_of_messages_asks_for(given, arguments):
    block = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": given}
    message = {"role": "assistant", "content": [{"type": "text", "text": "Hm."}, block]}
    assert only_call("messages", message) == Asked("f", arguments)
