"""JSONL of request bodies: every line a conversation."""

from __future__ import annotations

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
