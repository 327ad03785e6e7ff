"""Databases of the OpenAI Agents SDK."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from tests.formats.sample import Sample


def database(items: Any, path: Path) -> None:
    """The items as rows of a `SQLiteSession`."""
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP,"
            " updated_at TIMESTAMP)"
        )
        connection.execute(
            "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT NOT NULL,"
            " message_data TEXT NOT NULL, created_at TIMESTAMP)"
        )
        connection.execute("INSERT INTO agent_sessions VALUES ('thread-42', NULL, NULL)")
        connection.executemany(
            "INSERT INTO agent_messages (session_id, message_data) VALUES ('thread-42', ?)",
            [(json.dumps(item),) for item in items],
        )
    connection.close()


SAMPLES = (
    Sample(
        "agents-sqlite",
        [
            {"role": "user", "content": "go"},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "book",
                "arguments": "{}",
            },
            {"role": "user", "content": "and?"},
        ],
        database,
    ),
)
