"""opencode: messages with parts, as its API, its export and its database have them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.formats.sample import Sample

RECORDED = Path(__file__).parents[1] / "data" / "opencode"


def user(text: str = "Look at it.", *, number: int = 1) -> dict[str, Any]:
    return {
        "info": {
            "id": f"msg_{number:03}",
            "sessionID": "ses_1",
            "role": "user",
            "time": {"created": 1795033398541 + number},
            "agent": "build",
            "model": {"providerID": "local", "modelID": "m"},
        },
        "parts": [{"id": f"prt_{number:03}0", "type": "text", "text": text}],
    }


def assistant(*parts: dict[str, Any], number: int = 2, **more: Any) -> dict[str, Any]:
    given = ({"type": "step-start"}, *parts)
    return {
        "info": {
            "id": f"msg_{number:03}",
            "sessionID": "ses_1",
            "parentID": "msg_001",
            "role": "assistant",
            "mode": "build",
            "agent": "build",
            "path": {"cwd": "/project", "root": "/"},
            "cost": 0,
            "tokens": {"input": 7, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            "modelID": "m",
            "providerID": "local",
            "time": {"created": 1795033399765},
            **more,
        },
        "parts": [{"id": f"prt_{number:03}{n}", **part} for n, part in enumerate(given)],
    }


def tool(call: str | None, status: str, **state: Any) -> dict[str, Any]:
    """A tool part as opencode writes it in this state."""
    base: dict[str, Any] = {"status": status, "input": {"command": "make", "description": "build"}}
    if status == "pending":
        base |= {"input": {}, "raw": ""}
    else:
        base["time"] = {"start": 1795033400871}
    if status == "running":
        base["metadata"] = {"output": ""}
    if status == "completed":
        base |= {"output": "done", "title": "build", "metadata": {"exit": 0}}
    if status == "error":
        base |= {"error": "The user rejected permission to use this tool."}
    if status in ("completed", "error"):
        base["time"]["end"] = 1795033401071
    part = {"type": "tool", "tool": "bash", "callID": call, "state": {**base, **state}}
    return part if call is not None else {n: v for n, v in part.items() if n != "callID"}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said, "time": {"start": 1, "end": 2}}


def database(path: Path, recorded: str) -> Path:
    """A database from a recorded dump."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((RECORDED / f"{recorded}.sql").read_text())
    return path


def as_database(value: Any, path: Path) -> None:
    """A session as rows of a database. ``value`` has the rows of each table."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        dump = (RECORDED / "killed_while_running.sql").read_text()
        statements = [line for line in dump.split(";\n") if not line.startswith("INSERT")]
        connection.executescript(";\n".join(statements))
        connection.execute(
            "INSERT INTO session (id, project_id, slug, directory, title, version, time_created,"
            " time_updated) VALUES ('ses_1', 'p', 's', '/', 't', '1.18.33', 1, 1)"
        )
        for n, message in enumerate(value):
            connection.execute(
                "INSERT INTO message VALUES (?, 'ses_1', ?, ?, ?)",
                (f"msg_{n:03}", n, n, json.dumps(message["data"])),
            )
            for k, part in enumerate(message["rows"]):
                connection.execute(
                    "INSERT INTO part VALUES (?, ?, 'ses_1', ?, ?, ?)",
                    (f"prt_{n:03}{k}", f"msg_{n:03}", k, k, json.dumps(part)),
                )
        connection.commit()


def rows(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages as the rows of a database, for `as_database`."""
    return [
        {
            "data": {n: v for n, v in message["info"].items() if n not in ("id", "sessionID")},
            "rows": [{n: v for n, v in part.items() if n != "id"} for part in message["parts"]],
        }
        for message in history
    ]


KILLED = [
    user(),
    assistant(
        {"type": "reasoning", "text": "hm", "metadata": {"openai": {"itemId": "rs_1"}}},
        text("Looking."),
        tool("call_1", "completed"),
        tool("call_2", "running", title="build", metadata={"output": "cc -c a.c\n"}),
        {"type": "patch", "hash": "0a", "files": ["/project/a.c"]},
    ),
]
CUT_OFF = [user(), assistant(text("Looking."), tool("call_1", "pending"))]
WITHOUT_ID = [user(), assistant(tool("", "completed", metadata={"exit": 0}), finish="tool-calls")]

SAMPLES = (
    Sample("opencode", KILLED),
    Sample("opencode", CUT_OFF),
    Sample("opencode", WITHOUT_ID),
    Sample("opencode", {"info": {"id": "ses_1"}, "messages": KILLED}, is_list=False),
    Sample(
        "opencode",
        {"sessionID": "ses_1", "messageID": "msg_2", **KILLED[1]["parts"][4]},
        is_list=False,
        is_repaired=False,
    ),
)
