"""Databases of LangGraph's SqliteSaver."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from tests.formats import langchain
from tests.formats.sample import Sample

CLASSES = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
TABLES = (
    "CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',"
    " checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB,"
    " metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))",
    "CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',"
    " checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT"
    " NULL, type TEXT, value BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id,"
    " idx))",
)
ID = "1f1e38e4-8860-624c-8001-3e72bca8ad78"


def as_object(message: Any) -> Any:
    """A message as LangGraph's serializer stores it."""
    kind = message.get("type") if isinstance(message, dict) else None
    name = CLASSES.get(str(kind), "AIMessage")
    module = f"langchain_core.messages.{kind!s}"
    holder = [module, name, message, "model_validate_json"]
    return msgspec.msgpack.Ext(5, msgspec.msgpack.encode(holder))


def database(checkpoint: Any, path: Path) -> None:
    """The checkpoint as the newest one of a thread; its messages as objects."""
    path.unlink(missing_ok=True)
    stored = dict(checkpoint)
    values = stored.get("channel_values")
    if isinstance(values, dict):
        stored["channel_values"] = {
            name: [as_object(one) for one in value] if isinstance(value, list) else value
            for name, value in values.items()
        }
    with sqlite3.connect(path) as connection:
        for table in TABLES:
            connection.execute(table)
        connection.execute(
            "INSERT INTO checkpoints VALUES ('42', '', ?, NULL, 'msgpack', ?, ?)",
            (ID, msgspec.msgpack.encode(stored), b'{"source": "loop", "step": 1, "parents": {}}'),
        )
    connection.close()


def checkpoint(messages: list[Any]) -> dict[str, Any]:
    version = "00000000000000000000000000000003.0.58"
    return {
        "v": 4,
        "ts": "2026-11-18T20:26:06.679903+00:00",
        "id": ID,
        "channel_values": {"messages": messages, "branch:to:tools": None},
        "channel_versions": {"messages": version, "branch:to:tools": version},
        "versions_seen": {"__input__": {}},
        "updated_channels": ["messages"],
    }


SAMPLES = (
    Sample("langgraph", checkpoint(langchain.OPEN), database, is_list=False),
    Sample("langgraph", checkpoint(langchain.ORPHAN), database, is_list=False),
)
