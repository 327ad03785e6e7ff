"""JSONL of request bodies: every line a conversation."""

from __future__ import annotations

from lockstitch.core import seen
from lockstitch.sessions.files import check_file
from tests.sessions.written import findings, jsonl, mend, records, written

CALL = {"type": "function_call", "call_id": "call_a", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_a", "output": "1"}
TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
WHOLE = {"model": "m", "input": [CALL, OUTPUT]}
OPEN = {"model": "m", "input": [{"role": "user", "content": "x"}, CALL]}
ANCHORED = {"model": "m", "previous_response_id": "resp_1", "input": [OUTPUT]}
TEXT = {"model": "m", "input": "hello"}
ANTHROPIC = {
    "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [TOOL_USE]}]
}


def test_each_request_is_checked_by_itself(tmp_path):
    source = written(tmp_path / "b.jsonl", jsonl([WHOLE, OPEN, ANCHORED, TEXT, ANTHROPIC]))
    scan = check_file(source)
    assert scan.format == "requests"
    assert [(one.finding.code, one.line, one.label) for one in scan.findings()] == [
        ("LS001", 2, "input"),
        ("LS001", 5, "messages"),
    ]


def test_only_broken_requests_are_written_anew(tmp_path):
    source = written(tmp_path / "b.jsonl", jsonl([WHOLE, OPEN, b'{"torn', ANCHORED, ANTHROPIC]))
    before = source.path.read_bytes().splitlines()
    after = mend(source).splitlines()
    assert after[0] == before[0]
    assert after[2] == before[3]
    assert findings(source) == []
    assert [one.get("type") for one in records(mend(source))[1]["input"]] == [
        None,
        "function_call",
        "function_call_output",
    ]


def test_what_is_no_object_stays_as_it_is(tmp_path):
    body = {"input": ["hello", CALL]}
    source = written(tmp_path / "b.jsonl", jsonl([body, WHOLE]))
    assert records(mend(source))[0]["input"][:2] == ["hello", CALL]


def test_a_long_request_is_read_twice_if_ids_are_suspected(tmp_path, monkeypatch):
    monkeypatch.setattr(seen, "EXACT_IDS", 4)
    said = [{"type": "message", "role": "user", "content": "x", "id": f"m{n}"} for n in range(20)]
    source = written(tmp_path / "b.jsonl", jsonl([{"input": [*said, said[2]]}, WHOLE]))
    assert findings(source) == [("LS008", 1)]


def test_requests_of_a_batch_file_are_found_in_their_body(tmp_path):
    batch = {"custom_id": "1", "method": "POST", "url": "/v1/responses", "body": OPEN}
    source = written(tmp_path / "b.jsonl", jsonl([batch]))
    assert [one.label for one in check_file(source).findings()] == ["body.input"]
    mended = records(mend(source))[0]
    assert mended["custom_id"] == "1"
    assert len(mended["body"]["input"]) == 3
