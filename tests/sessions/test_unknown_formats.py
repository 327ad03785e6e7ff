"""Files of formats that are not known: refused if they look like histories, passed over if not."""

from __future__ import annotations

import json
import sqlite3

import pytest

from lockstitch.sessions.errors import CannotRead, NotASession
from lockstitch.sessions.files import check_file, mended
from lockstitch.sessions.source import Source

UNKNOWN = {
    "an id deep inside": {"thread": {"turns": [{"steps": [{"toolCallId": "call_1"}]}]}},
    "a list of calls": {"log": [{"event": {"tool_calls": [{"name": "book", "args": {}}]}}]},
    "a type tag": {"history": [{"type": "tool_use", "name": "book"}]},
    "a request for approval": {"turns": [{"type": "mcp_approval_request", "id": "mcpr_1"}]},
    "a second list": {
        "messages": [{"role": "user", "content": "hi"}],
        "items": [{"type": "function_call", "call_id": "call_1", "name": "x"}],
    },
    "a second list under another name": {
        "messages": [{"role": "user", "content": "hi"}],
        "history": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "x"}}]},
        ],
    },
    "a second list in place of an anchor": {
        "messages": [{"role": "user", "content": "hi"}],
        "conversation": [{"role": "tool", "tool_call_id": "a", "content": "x"}],
    },
    "a call of a tool of Gemini itself": {
        "turns": [{"parts": [{"toolCall": {"toolType": "URL_CONTEXT", "args": {}}}]}]
    },
    "a call of Gemini": {
        "turns": [{"role": "model", "parts": [{"functionCall": {"name": "x", "args": {}}}]}]
    },
    "a response of Gemini": {
        "turns": [{"parts": [{"function_response": {"name": "x", "response": {}}}]}]
    },
    "a list in a list": {"messages": [{"role": "user", "content": "hi"}, [{"tool_call_id": "a"}]]},
}
OTHER = {
    "a package": {"name": "x", "scripts": {"test": "pytest"}, "args": []},
    "settings of an editor": {"configurations": [{"name": "run", "type": "debug", "args": ["a"]}]},
    "a tool's description": {"tools": [{"type": "function", "name": "x", "parameters": {}}]},
    "a schema": {"properties": {"call_id": {"type": "string"}, "tool_calls": {"type": "array"}}},
}


def one_line(value):
    return json.dumps(value)


def indented(value):
    return json.dumps(value, indent=2)


def second_line(value):
    return "{}\n" + json.dumps(value)


@pytest.mark.parametrize("write", [one_line, indented, second_line])
@pytest.mark.parametrize("value", UNKNOWN.values(), ids=UNKNOWN)
def test_what_looks_like_a_history_of_an_unknown_format_is_refused(value, write, tmp_path):
    path = tmp_path / "unknown.json"
    path.write_text(write(value))
    with pytest.raises(CannotRead, match="Known formats") as caught:
        check_file(Source(path))
    assert type(caught.value) is CannotRead  # so a folder does not pass over it
    with pytest.raises(CannotRead), mended(Source(path), beside=tmp_path):
        pass


@pytest.mark.parametrize("write", [one_line, second_line])
def test_a_request_that_was_stored_with_its_answer_is_read(write, tmp_path):
    call = {"type": "function_call", "call_id": "call_1", "name": "x", "arguments": "{}"}
    tools = [{"type": "function", "name": "x", "parameters": {"properties": {"call_id": {}}}}]
    request = {"input": [{"role": "user", "content": "hi"}], "tools": tools, "output": [call]}
    path = tmp_path / "stored.json"
    path.write_text(write(request))
    assert check_file(Source(path)).findings() == []


@pytest.mark.parametrize("value", OTHER.values(), ids=OTHER)
def test_what_only_has_similar_names_is_not_a_session_file(value, tmp_path):
    path = tmp_path / "other.json"
    path.write_text(json.dumps(value))
    with pytest.raises(NotASession):
        check_file(Source(path))


def database(path, values):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE message_store (id INTEGER PRIMARY KEY, message TEXT)")
        rows = [(json.dumps(value),) for value in values]
        connection.executemany("INSERT INTO message_store (message) VALUES (?)", rows)
    connection.close()
    return path


def test_a_database_of_an_unknown_program_with_calls_is_refused(tmp_path):
    call = {"type": "ai", "data": {"tool_calls": [{"name": "book", "args": {}, "id": "call_1"}]}}
    path = database(tmp_path / "chats.db", [{"type": "human", "data": {"content": "hi"}}, call])
    with pytest.raises(CannotRead, match=r"`tool_calls`.*format is not known") as caught:
        check_file(Source(path))
    assert type(caught.value) is CannotRead


def test_a_database_of_another_program_is_not_a_session(tmp_path):
    path = database(tmp_path / "other.db", [{"theme": "dark"}, ["a", "b"], "text"])
    with pytest.raises(NotASession, match="LangGraph or opencode"):
        check_file(Source(path))
