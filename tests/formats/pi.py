"""Messages and sessions of pi."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.formats.sample import Sample, json_lines

DATA = Path(__file__).parents[1] / "data" / "pi"
"""Sessions that pi 0.73.1 wrote."""

USAGE = {
    "input": 1365,
    "output": 7,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 1372,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
}


def user(text: str = "go on", at: int = 1795033546341) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": at}


def call(key: str, **more: Any) -> dict[str, Any]:
    arguments = {"command": f"echo {key}"}
    return {"type": "toolCall", "id": key, "name": "bash", "arguments": arguments, **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def thinking(words: str = "Hm.") -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "thinkingSignature": "reasoning_content"}


def assistant(*parts: dict[str, Any], stop: str | None = None, **more: Any) -> dict[str, Any]:
    calls = any(part["type"] == "toolCall" for part in parts)
    return {
        "role": "assistant",
        "content": list(parts),
        "api": "openai-completions",
        "provider": "local",
        "model": "gpt-5.5",
        "usage": USAGE,
        "stopReason": stop or ("toolUse" if calls else "stop"),
        "timestamp": 1795033546427,
        "responseId": "chatcmpl-1",
        **more,
    }


def result(key: str | None, words: str = "done\n", **more: Any) -> dict[str, Any]:
    return {
        "role": "toolResult",
        "toolCallId": key,
        "toolName": "bash",
        "content": [text(words)],
        "details": {"truncation": None},
        "isError": False,
        "timestamp": 1795033546502,
        **more,
    }


HEADER = {
    "type": "session",
    "version": 3,
    "id": "01a1f056-3e3a-74dc-bc45-b78dddcee942",
    "timestamp": "2026-11-18T20:25:46.299Z",
    "cwd": "/project",
}
OLD_HEADER = {
    "type": "session",
    "id": "5b1b3e0c-5f8c-4f6e-9d5c-6d2a6f0a1b2c",
    "timestamp": "2025-11-18T20:25:46.299Z",
    "cwd": "/project",
    "provider": "local",
    "modelId": "gpt-5.5",
    "thinkingLevel": "off",
}
TIME = "2026-11-18T20:25:46.464Z"


def entry(own: str, parent: str | None, message: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "message",
        "id": own,
        "parentId": parent,
        "timestamp": TIME,
        "message": message,
    }


def other(own: str, parent: str | None, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": own, "parentId": parent, "timestamp": TIME, **fields}


def compaction(own: str, parent: str | None, kept: str) -> dict[str, Any]:
    return other(
        own,
        parent,
        "compaction",
        summary="## Goal\nTo count.",
        firstKeptEntryId=kept,
        tokensBefore=1572,
        details={"readFiles": [], "modifiedFiles": []},
        fromHook=False,
    )


def chain(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    """A session of these messages, one after the other, with the entries that pi puts first."""
    first = other("e000", None, "model_change", provider="local", modelId="gpt-5.5")
    records = [HEADER, first]
    for n, message in enumerate(messages, 1):
        records.append(entry(f"e{n:03}", f"e{n - 1:03}", message))
    return records


def linear(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    """A session of version 1."""
    return [
        OLD_HEADER,
        *({"type": "message", "timestamp": TIME, "message": message} for message in messages),
    ]


def recorded(name: str) -> list[dict[str, Any]]:
    """The entries of a session that pi wrote."""
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]


OPEN = [user("go"), assistant(thinking(), text("I look."), call("call_1")), user("and?")]
ORPHAN = [user("go"), result("call_1"), assistant(text("done"))]

SAMPLES = (
    Sample("pi", OPEN),
    Sample("pi", ORPHAN),
    Sample(
        "pi",
        [
            {"role": "compactionSummary", "summary": "So far.", "tokensBefore": 9, "timestamp": 1},
            user("go"),
            assistant(call("call_1|fc_1"), call("call_2|fc_2")),
            result("call_1|fc_1"),
            {
                "role": "bashExecution",
                "command": "ls",
                "output": "a.py",
                "exitCode": 0,
                "cancelled": False,
                "truncated": False,
                "timestamp": 2,
            },
        ],
        json_lines,
    ),
    Sample("pi", chain(*OPEN), json_lines, is_list=False),
    Sample("pi", chain(*ORPHAN), json_lines, is_list=False),
    Sample("pi", linear(*OPEN), json_lines, is_list=False),
    Sample("pi", recorded("killed"), json_lines, is_list=False),
    Sample(
        "pi",
        [
            *recorded("compacted")[:-2],
            entry("aaaaaaaa", recorded("compacted")[-3]["id"], user("turn 3")),
            entry("bbbbbbbb", "aaaaaaaa", assistant(call("call_3"))),
        ],
        json_lines,
        is_list=False,
    ),
)
