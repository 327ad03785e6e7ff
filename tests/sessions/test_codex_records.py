"""Records of a rollout: what one line says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from lockstitch.core.outcomes import Outcome
from lockstitch.sessions.codex_records import (
    decode_record,
    lenient_record,
    read_evidence,
)
from tests.generated import anything, examples
from tests.sessions.rollouts import call, ended, event


def evidence(record):
    return read_evidence(json.dumps(record).encode(), 7)


@pytest.mark.parametrize(
    ("record", "outcome", "summary", "text"),
    [
        (ended(), Outcome.FINISHED, "finished with exit code 0", "hi\n"),
        (
            ended(exit_code=2, status="failed"),
            Outcome.FINISHED,
            "finished with exit code 2",
            "hi\n",
        ),
        (ended(status="declined"), Outcome.NEVER_STARTED, "was declined", "It was declined."),
        (
            event(
                {
                    "type": "item_completed",
                    "item": {
                        "type": "FileChange",
                        "status": "completed",
                        "stdout": "A b.txt",
                        "stderr": "warned",
                    },
                }
            ),
            Outcome.FINISHED,
            "finished",
            "A b.txt\nwarned",
        ),
        (
            event(
                {
                    "type": "item_completed",
                    "item": {
                        "type": "McpToolCall",
                        "status": "completed",
                        "result": {"content": [{"type": "text", "text": "42"}]},
                    },
                }
            ),
            Outcome.FINISHED,
            "finished",
            "42",
        ),
        (
            event(
                {
                    "type": "item_completed",
                    "item": {
                        "type": "McpToolCall",
                        "status": "failed",
                        "error": {"message": "no such tool"},
                    },
                }
            ),
            Outcome.FINISHED,
            "failed",
            "no such tool",
        ),
        (
            event({"type": "exec_command_end", "call_id": "a", "exit_code": 1, "stdout": "x"}),
            Outcome.FINISHED,
            "finished with exit code 1",
            "x",
        ),
        (
            event({"type": "patch_apply_end", "call_id": "a", "success": False, "stderr": "no"}),
            Outcome.FINISHED,
            "failed",
            "no",
        ),
        (
            event(
                {
                    "type": "mcp_tool_call_end",
                    "call_id": "a",
                    "result": {"Ok": {"content": [{"type": "text", "text": "ok"}]}},
                }
            ),
            Outcome.FINISHED,
            "finished",
            "ok",
        ),
    ],
)
def test_an_event_tells_how_a_call_ended(record, outcome, summary, text):
    found = evidence(record)
    assert (found.outcome, found.summary, found.text, found.at) == (outcome, summary, text, 7)


@pytest.mark.parametrize(
    "record",
    [
        ended(status="in_progress"),
        event({"type": "item_completed", "item": 7}),
        {"payload": 7},
        [],
    ],
)
def test_an_event_that_tells_nothing_is_no_evidence(record):
    assert evidence(record) is None


@settings(max_examples=examples(200))
@given(anything, anything)
def test_no_payload_is_too_odd_to_be_read(payload, item):
    for record in (
        {"type": "event_msg", "payload": payload},
        {"type": "event_msg", "payload": {"type": "item_completed", "item": item}},
    ):
        line = json.dumps(record).encode()
        evidence(record)
        found = lenient_record(line)
        assert (found is not None) == isinstance(record["payload"], dict)


def test_what_pairing_needs_is_decoded_and_nothing_else():
    record = decode_record(json.dumps(call("call_a", id="fc_1")).encode())
    assert (record.type, record.payload.type, record.payload.call_id) == (
        "response_item",
        "function_call",
        "call_a",
    )
    assert not hasattr(record.payload, "arguments")
