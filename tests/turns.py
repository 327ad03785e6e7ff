"""Ledgers for tests: items of each dialect in few words, and whole turns through a ledger."""

from __future__ import annotations

from lockstitch.core.continuation import Continue, Replay
from lockstitch.core.facts import (
    By,
    Ending,
    Mode,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
)
from lockstitch.ledgers import Ledger, item_added, item_completed, request_prepared

DIALECTS = ("responses", "realtime", "chat", "messages", "pi")


class Words:
    """What is said in one dialect."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect

    def user(self, text="hi"):
        if self.dialect == "realtime":
            part = {"type": "input_text", "text": text}
            return {"type": "message", "role": "user", "content": [part]}
        return {"role": "user", "content": text}

    def said(self, text="fine"):
        if self.dialect in ("responses", "realtime"):
            part = {"type": "output_text", "text": text}
            return {"type": "message", "role": "assistant", "content": [part]}
        if self.dialect in ("messages", "pi"):
            return {"role": "assistant", "content": [{"type": "text", "text": text}]}
        return {"role": "assistant", "content": text}

    def calls(self, *keys):
        """The wire items of calls that are made at once."""
        if self.dialect == "chat":
            function = {"name": "t", "arguments": "{}"}
            made = [{"id": key, "type": "function", "function": function} for key in keys]
            return [{"role": "assistant", "content": None, "tool_calls": made}]
        if self.dialect == "messages":
            made = [{"type": "tool_use", "id": key, "name": "t", "input": {}} for key in keys]
            return [{"role": "assistant", "content": made}]
        if self.dialect == "pi":
            made = [{"type": "toolCall", "id": key, "name": "t", "arguments": {}} for key in keys]
            return [{"role": "assistant", "content": made}]
        return [call(key) for key in keys]

    def output(self, key, text="ok"):
        if self.dialect == "chat":
            return {"role": "tool", "tool_call_id": key, "content": text}
        if self.dialect == "messages":
            result = {"type": "tool_result", "tool_use_id": key, "content": text}
            return {"role": "user", "content": [result]}
        if self.dialect == "pi":
            content = [{"type": "text", "text": text}]
            made = {"role": "toolResult", "toolCallId": key, "toolName": "t"}
            return {**made, "content": content, "isError": False}
        return output(key, text)


def call(key="call_a", **more):
    return {"type": "function_call", "call_id": key, "name": "t", "arguments": "{}", **more}


def output(key="call_a", text="ok", **more):
    return {"type": "function_call_output", "call_id": key, "output": text, **more}


def said(text="fine", **more):
    part = {"type": "output_text", "text": text}
    return {"type": "message", "role": "assistant", "content": [part], **more}


def reasoning(id="rs_1", carried=None, **more):
    content = {} if carried is None else {"encrypted_content": carried}
    return {"type": "reasoning", "id": id, "summary": [], **content, **more}


def user(text="hi", **more):
    return {"role": "user", "content": text, **more}


def ledger_of(*items, dialect="responses", by=By.USER):
    """A ledger to which these items were given."""
    ledger = Ledger(dialect)
    for item in items:
        ledger.append(item_added(item, by))
    return ledger


def prepare(ledger, mode=Mode.CHAIN, *, items=None, tip=None, conversation=None, new=None):
    """Plan a request, which must be possible, and record it; its position."""
    plan = ledger.plan(mode, tip=tip, conversation=conversation)
    assert isinstance(plan, Continue | Replay), plan
    ledger.extend(request_prepared(ledger, plan, items=items, conversation=new))
    return len(ledger)


def send(ledger, mode=Mode.CHAIN, **named):
    """The same, and it leaves."""
    request = prepare(ledger, mode, **named)
    ledger.append(RequestSent(request=request))
    return request


def answer(ledger, request, *items, id="resp_1", ending=Ending.COMPLETED):
    """The provider answers a request with these items."""
    ledger.append(ResponseOpened(request=request, id=id))
    for item in items:
        ledger.append(item_completed(request, item))
    ledger.append(ResponseEnded(request=request, ending=ending))
    return request


def turn(ledger, *items, mode=Mode.CHAIN, id="resp_1", ending=Ending.COMPLETED, **named):
    """A whole turn: planned, sent, answered; the position of the request."""
    request = send(ledger, mode, **named)
    return answer(ledger, request, *items, id=id, ending=ending)


def texts(wires):
    """The words of messages, for short comparisons."""
    said = []
    for wire in wires:
        content = wire.get("content", wire.get("output", wire.get("call_id")))
        said.append(content if isinstance(content, str) else content[0].get("text"))
    return said
