"""JSON documents: lists, request bodies, chat contexts; written back with only edits changed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core import seen
from lockstitch.sessions.errors import CannotRead, NotASession
from lockstitch.sessions.files import check_file
from lockstitch.sessions.source import Source
from tests.generated import HISTORIES, dialects_and_histories, examples
from tests.sessions.written import findings, mend, messages, told_in, written

CALL = {"type": "function_call", "call_id": "call_a", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_a", "output": "1"}
USER = {"role": "user", "content": "hi"}
PYDANTIC_AI_USER = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}
"""The one dialect whose messages have no role."""


@pytest.mark.parametrize("indent", [None, 2, 4])
@pytest.mark.parametrize("wrap", ["list", "input", "items"])
def test_an_open_call_is_found_at_its_line_and_settled_in_the_same_style(tmp_path, indent, wrap):
    history = [USER, CALL, {**USER, "content": "and?"}]
    document = history if wrap == "list" else {"model": "m", wrap: history, "tools": [1.50]}
    text = json.dumps(document, indent=indent)
    source = written(tmp_path / "d.json", text.encode())
    line = text[: text.index('"function_call"')].count("\n")
    assert findings(source) == [("LS001", max(1, line if indent else 1))]
    after = mend(source).decode()
    mended = json.loads(after)
    mended = mended if wrap == "list" else mended[wrap]
    assert [one.get("type") for one in mended] == [
        None,
        "function_call",
        "function_call_output",
        None,
    ]
    assert lockstitch.check(mended) == []
    expected = json.dumps(mended if wrap == "list" else {**document, wrap: mended}, indent=indent)
    assert json.loads(after) == json.loads(expected)
    if indent == 2:
        assert after == expected


def test_everything_outside_the_list_keeps_its_bytes(tmp_path):
    items = f"{json.dumps(CALL)} ,{json.dumps(USER)}"
    text = '{ "a" : 1.500,\n\t"input":[ ' + items + ' ]  ,"z": "\\u00e9" }\n'
    after = mend(written(tmp_path / "d.json", text.encode())).decode()
    head, tail = text.split(json.dumps(CALL))
    assert after.startswith(head + json.dumps(CALL))
    assert after.endswith(tail)


def test_the_first_element_can_go(tmp_path):
    source = written(tmp_path / "d.json", json.dumps([OUTPUT, USER], indent=2).encode())
    assert mend(source).decode() == json.dumps([USER], indent=2)


def test_the_only_element_can_go(tmp_path):
    source = written(tmp_path / "d.json", json.dumps([OUTPUT]).encode())
    assert json.loads(mend(source)) == []


@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
@pytest.mark.parametrize("first", [True, False])
def test_a_body_behind_an_anchor_may_hold_a_lone_output(tmp_path, field, first):
    body = {field: "resp_1", "input": [OUTPUT]} if first else {"input": [OUTPUT], field: "resp_1"}
    assert findings(written(tmp_path / "b.json", json.dumps(body).encode())) == []
    unanchored = {**body, field: None}
    assert findings(written(tmp_path / "c.json", json.dumps(unanchored).encode())) == [("LS002", 1)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[1, 2, 3]", "not of items"),
        (b'{"a": {"input": []}}', "holds no list of items"),
        (b'{"steps": [{"items": []}]}', "holds no list of items"),
    ],
)
def test_other_json_is_not_a_session(tmp_path, content, said):
    with pytest.raises(NotASession, match=said):
        check_file(written(tmp_path / "d.json", content))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'[{"role": "user"}, {"role": "us', "torn or not JSON"),
        (b'[{"role": "user"}\n', r"ends before it is whole \(line 2\)"),
        (b'{"input": []', "ends before it is whole"),
        (b'{"input"', "ends before it is whole"),
        (b'[{"role": "user"} {"role": "user"}]', "lacks a comma"),
        (b'[{"role": "user"}] []', "something behind its end"),
        (b'[{"role": "user", "content": "\xff"}]', "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"input" [1]}', "lacks a colon"),
        (b'{\n"input": [{"role": "user"},]}', "torn or not JSON"),
    ],
)
def test_a_broken_document_is_told_why_and_where(tmp_path, content, said):
    with pytest.raises(CannotRead, match=said):
        check_file(written(tmp_path / "d.json", content))


def test_an_empty_list_is_a_clean_history(tmp_path):
    assert findings(written(tmp_path / "d.json", b" [ ]\n")) == []


def test_an_element_that_is_no_object_is_found_and_goes(tmp_path):
    source = written(tmp_path / "d.json", json.dumps([USER, 7, USER]).encode())
    assert messages(source) == ["the element is not an object"]
    assert json.loads(mend(source)) == [USER, USER]


def test_the_dialect_can_be_given(tmp_path):
    text = json.dumps([{"role": "assistant", "content": "x"}, {**USER}]).encode()
    assert findings(written(tmp_path / "d.json", text), dialect="messages") == []


def test_a_long_document_is_read_twice_if_ids_are_suspected(tmp_path, monkeypatch):
    monkeypatch.setattr(seen, "EXACT_IDS", 4)
    history = [
        {"type": "message", "role": "user", "content": "x", "id": f"m{n}"} for n in range(30)
    ]
    history.append({**history[3]})
    source = written(tmp_path / "d.json", json.dumps(history).encode())
    assert [code for code, _ in findings(source)] == ["LS008"]


@settings(max_examples=examples(200))
@given(dialects_and_histories, st.sampled_from([None, 1, 2]))
def test_any_mended_document_checks_clean_and_equals_what_the_library_mends(
    tmp_path_factory, pair, indent
):
    dialect, history = pair
    if not history:
        return
    folder = tmp_path_factory.mktemp("document")
    source = written(folder / "d.json", json.dumps(history, indent=indent).encode())
    once = mend(source, dialect=dialect)
    assert findings(source, dialect=dialect) == []
    assert mend(Source(source.path), dialect=dialect) == once
    assert json.loads(once) == list(lockstitch.mend(history, dialect=told_in(history, dialect)))


@pytest.mark.parametrize("dialect", [name for name in sorted(HISTORIES) if name != "pydantic-ai"])
def test_a_clean_document_is_not_touched(tmp_path, dialect):
    said = USER if dialect != "pydantic-ai" else PYDANTIC_AI_USER
    content = json.dumps([said], indent=3).encode()
    assert mend(written(tmp_path / "d.json", content), dialect=dialect) == content
