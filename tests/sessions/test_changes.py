"""The report of a mending: one change for each edit, with what stood and what stands."""

from __future__ import annotations

import json

from lockstitch.sessions.files import mended
from tests.sessions.written import jsonl, written

CALLS = [{"id": key, "type": "function", "function": {"name": "f"}} for key in ("a", "b")]
HISTORY = [
    {"role": "tool", "tool_call_id": "nobody", "content": "orphan"},
    {"role": "assistant", "content": None, "tool_calls": CALLS},
    {"role": "user", "content": "hm"},
    {"role": "tool", "tool_call_id": "b", "content": "late"},
    b'{"torn',
]


def test_every_edit_is_told_with_what_it_did(tmp_path):
    source = written(tmp_path / "h.jsonl", jsonl(HISTORY))
    with mended(source, beside=tmp_path) as ready:
        told = [(c.code, c.at, c.removed, c.what.split(": ")[-1]) for c in ready.changes]
        moved = next(change for change in ready.changes if change.code == "LS009")
    assert told == [
        ("LS002", 1, True, "removed it"),
        ("LS010", 2, False, "added an output for a (outcome unknown)"),
        ("LS009", 4, False, "moved it after its call"),
        ("LS101", 5, True, "removed it"),
    ]
    assert json.loads(moved.before[0]) == HISTORY[3]


def test_what_is_removed_is_in_the_report_in_full(tmp_path):
    source = written(tmp_path / "h.jsonl", jsonl(HISTORY))
    with mended(source, beside=tmp_path) as ready:
        removed = [change.before for change in ready.changes if change.removed]
    assert removed == [[jsonl(HISTORY[:1])], [b'{"torn\n']]
