"""JSONL of items or messages: one conversation, one a line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

import lockstitch
from lockstitch.core import seen
from lockstitch.sessions.files import check_file
from lockstitch.sessions.source import Source
from tests.generated import dialects_and_histories, examples
from tests.sessions.written import (
    COMPRESSIONS,
    findings,
    jsonl,
    mend,
    messages,
    records,
    told_in,
    written,
)

CHAT_CALL = {"id": "call_a", "type": "function", "function": {"name": "book", "arguments": "{}"}}
CHAT = [
    {"role": "user", "content": "book it"},
    {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
    {"role": "user", "content": "hello?"},
    {"role": "tool", "tool_call_id": "call_a", "content": "booked", "extra": {"x": 1}},
]


def test_something_between_a_call_and_its_output_is_found(tmp_path):
    source = written(tmp_path / "c.jsonl", jsonl(CHAT))
    assert findings(source) == [("LS009", 4)]
    assert messages(source) == [
        "output for call_a (book) does not follow its call at once; line 3 comes between"
    ]


def test_the_output_is_moved_and_the_rest_keeps_its_bytes(tmp_path):
    before = jsonl(CHAT).splitlines()
    after = mend(written(tmp_path / "c.jsonl", jsonl(CHAT))).splitlines()
    assert [after[0], after[1], after[3]] == before[:3]
    assert json.loads(after[2]) == CHAT[3]


def test_text_alone_is_clean_in_every_dialect(tmp_path):
    source = written(tmp_path / "t.jsonl", jsonl([CHAT[0], CHAT[2]]))
    assert findings(source) == []
    for dialect in ("responses", "chat", "messages", "realtime"):
        assert findings(source, dialect=dialect) == []


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    source = written(tmp_path / "t.jsonl", b"\xef\xbb\xbf" + jsonl([CHAT[0], CHAT[2]]))
    assert findings(source) == []


def test_line_ends_of_windows_are_fine(tmp_path):
    content = jsonl([CHAT[0], CHAT[1], CHAT[3]]).replace(b"\n", b"\r\n")
    assert findings(written(tmp_path / "t.jsonl", content)) == []


def test_an_anchored_delta_may_hold_a_lone_output(tmp_path):
    lone = [{"type": "function_call_output", "call_id": "call_a", "output": "1"}]
    source = written(tmp_path / "d.jsonl", jsonl(lone))
    assert findings(source, anchored=True) == []
    assert findings(source) == [("LS002", 1)]


def test_torn_lines_are_found_and_go(tmp_path):
    source = written(tmp_path / "t.jsonl", jsonl([CHAT[0], b'{"role":"us', b"7", CHAT[2]]))
    assert messages(source) == ["the line is torn or not JSON", "the line is not an object"]
    assert records(mend(source)) == [CHAT[0], CHAT[2]]


def test_a_long_history_is_read_twice_if_ids_are_suspected(tmp_path, monkeypatch):
    monkeypatch.setattr(seen, "EXACT_IDS", 4)
    lines = [{"type": "message", "role": "user", "content": "x", "id": f"m{n}"} for n in range(20)]
    source = written(tmp_path / "t.jsonl", jsonl([*lines, lines[2]]))
    assert findings(source) == [("LS008", 21)]


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_compressed_files_are_read_and_written_compressed(tmp_path, suffix):
    pack, unpack = COMPRESSIONS[suffix]
    source = written(tmp_path / f"c.jsonl{suffix}", pack(jsonl(CHAT)))
    assert findings(source) == [("LS009", 4)]
    assert len(records(unpack(mend(source)))) == 4
    assert findings(Source(source.path)) == []


@settings(max_examples=examples(200))
@given(dialects_and_histories)
def test_any_mended_lines_check_clean_and_equal_what_the_library_mends(tmp_path_factory, pair):
    dialect, history = pair
    if not history:
        return
    whole = [{"role": "user", "content": "hi"}, *history]
    source = written(tmp_path_factory.mktemp("lines") / "h.jsonl", jsonl(whole))
    once = mend(source, dialect=dialect)
    assert findings(source, dialect=dialect) == []
    assert mend(Source(source.path), dialect=dialect) == once
    assert records(once) == list(lockstitch.mend(whole, dialect=told_in(whole, dialect)))


def test_the_dialect_is_told_by_the_first_line_that_tells(tmp_path):
    text = [{"role": "user", "content": "hi"}] * 500
    scan = check_file(written(tmp_path / "t.jsonl", jsonl([*text, *CHAT])))
    assert [one.finding.code for one in scan.findings()] == ["LS009"]
