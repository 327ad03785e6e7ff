"""Was the conversation right? Judged from what the provider has, and from its record."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import msgspec

from lockstitch.core.outcomes import MARK, NEVER_STARTED_TEXT, UNKNOWN_TEXT, Outcome
from lockstitch.dialects.screenshots import SCREENSHOT
from lockstitch.facts import Mode
from tests.ledgers.socket_driver import Talk
from tests.ledgers.socket_filters import REDACTED
from tests.ledgers.socket_model import Wire

_CALL_ENDS = ("_call", "program", "mcp_approval_request")
_OUTPUT_ENDS = ("_output", "mcp_approval_response")


def judge(talk: Talk) -> None:
    """Raise AssertionError unless everything was as it must be."""
    account, broken = talk.desk.account, talk.desk.emulator.record.broken
    assert broken == account.allowed, f"{broken} were broken, and {account.allowed} expected"
    context = final_context(talk)
    assert text_of(context[-1]) == talk.desk.model.final()
    _judge_users(talk, context)
    _judge_calls(talk, context)
    assert max(account.effects.values(), default=1) == 1, "an effect was had twice"


def final_context(talk: Talk) -> list[Wire]:
    """All that the model saw and said, up to the end."""
    exchange = talk.desk.ledger.exchange(talk.requests.last)
    emulator = talk.desk.emulator
    if talk.desk.mode is Mode.CONVERSATION:
        assert exchange.anchor is not None
        return list(emulator.conversations.get(exchange.anchor).items.values())
    if talk.desk.stored and exchange.id in emulator.responses.ids_stored():
        after = emulator.responses.get(exchange.id or "").after
        assert after is not None
        return list(after)
    requests = [
        entry.data
        for entry in emulator.record.entries()
        if not entry.sent and entry.what == "POST /v1/responses"
    ]
    sent = msgspec.json.decode(requests[-1])["input"]
    return [*sent, *(talk.desk.ledger.wire(seq) for seq in exchange.said)]


def _judge_users(talk: Talk, context: list[Wire]) -> None:
    account = talk.desk.account
    users = [text_of(item) for item in context if item.get("role") == "user"]
    assert max(Counter(users).values(), default=1) == 1, f"said twice: {users}"
    known = set(account.users) | account.maybe
    assert set(users) <= known, f"of another branch: {set(users) - known}"
    assert [said for said in users if said in account.users] == account.users, users


def _judge_calls(talk: Talk, context: list[Wire]) -> None:
    account = talk.desk.account
    calls: dict[str, Wire] = {}
    outputs: dict[str, list[Wire]] = {}
    for item in context:
        kind = str(item.get("type"))
        if kind.endswith(_CALL_ENDS) and (key := _key(item)):
            assert key not in calls, f"call {key} is there twice"
            calls[key] = item
        elif kind.endswith(_OUTPUT_ENDS) and (key := _key(item)):
            outputs.setdefault(key, []).append(item)
    whole = {key for key, item in calls.items() if item.get("status") != "incomplete"}
    missing = set(account.calls) - set(calls) - account.dropped
    assert not missing, f"not in the conversation: {missing}"
    strange = whole - set(account.calls) - account.maybe
    assert not strange, f"calls of another branch: {strange}"
    for key, item in calls.items():
        found = outputs.get(key, [])
        if item["type"] == "program":
            # It may still run; and it is answered by us only where nobody else will.
            assert len(found) <= 1, f"{key} has {len(found)} outputs"
            ours = [output for output in found if _words(output).startswith(MARK)]
            assert all(UNKNOWN_TEXT in _words(output) for output in ours), f"{key}: {ours}"
            continue
        assert len(found) == (key in whole), f"{key} has {len(found)} outputs"
        if found:
            _judge_output(talk, key, found[0])


def _judge_output(talk: Talk, key: str, output: Wire) -> None:
    account = talk.desk.account
    if key in account.redacted and output.get("output") == REDACTED:
        return
    if key in account.never_started:
        assert account.effects[key] == 0, f"{key} was run, and told as never started"
        told = NEVER_STARTED_TEXT in _words(output) or _is_blank(output, Outcome.NEVER_STARTED)
        assert told, f"{key} was never started: {output}"
    elif key in account.unknown:
        told = UNKNOWN_TEXT in _words(output) or _is_blank(output, Outcome.UNKNOWN)
        assert told, f"nobody knows how {key} ended: {output}"
    else:
        assert account.effects[key] == 1, f"{key} had its effect {account.effects[key]} times"
        for name, value in account.outputs[key].items():
            given = _as_it_was(output[name]) if name == "approval_request_id" else output[name]
            assert given == value, f"{key}: {output} is not what the tool gave"


def _is_blank(output: Wire, outcome: Outcome) -> bool:
    """Two families have no place for words."""
    if output["type"] == "computer_call_output":
        return bool(output["output"]["image_url"] == SCREENSHOT[outcome])
    return (output["type"], output.get("status")) == ("tool_search_output", "incomplete")


def _words(output: Wire) -> str:
    said: Any = output.get("output", output.get("reason", output.get("result")))
    return str(said[0].get("stdout") if isinstance(said, list) else said)


def _key(item: Wire) -> str | None:
    if item["type"] == "mcp_approval_request" or item["type"] == "local_shell_call_output":
        return _as_it_was(item["id"])
    return item.get("call_id") or _as_it_was(item.get("approval_request_id"))


def _as_it_was(key: str | None) -> str | None:
    """Where an id joins two items, both may be sent under another one."""
    return key and re.sub(r"_ls\d*$", "", key)


def text_of(item: Wire) -> str:
    content = item.get("content") or ""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
