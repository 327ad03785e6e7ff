"""Rollouts on disk: read, damaged on purpose, mended."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lockstitch.core.findings import Finding
from lockstitch.core.mending import MOST_ROUNDS, Policy
from lockstitch.sessions.codex import CodexRollout
from lockstitch.sessions.source import Source

Record = dict[str, Any]
Match = Callable[[Record], bool]

CALLS = ("function_call", "custom_tool_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output")


def read_records(path: Path) -> list[Record]:
    """The records of a rollout; what is torn, or still being written, is left out."""
    records = []
    for line in path.read_bytes().splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return records


def thread_of(path: Path) -> str:
    """The thread that the name of a rollout tells."""
    found = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", path.name)
    assert found is not None
    return found[0]


# --- what a record is --------------------------------------------------------------------------


def a_call(call_id: str) -> Match:
    return lambda record: _is_item(record, CALLS, call_id)


def an_output(call_id: str) -> Match:
    return lambda record: _is_item(record, OUTPUTS, call_id)


def _is_item(record: Record, types: tuple[str, ...], call_id: str) -> bool:
    payload = record["payload"]
    return (
        record["type"] == "response_item"
        and payload.get("type") in types
        and payload["call_id"] == call_id
    )


def ended(*call_ids: str) -> Callable[[list[Record]], bool]:
    """Has every one of these tools ended, as far as the rollout tells?"""

    def look(records: list[Record]) -> bool:
        events = [r["payload"] for r in records if r["payload"].get("type") == "item_completed"]
        return set(call_ids) <= {event["item"]["id"] for event in events}

    return look


# --- damage ------------------------------------------------------------------------------------


def change_lines(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def change_record(path: Path, match: Match, change: Callable[[bytes], bytes]) -> None:
    """Put something else in place of the one line whose record matches."""
    lines = path.read_bytes().splitlines(keepends=True)
    (at,) = [n for n, line in enumerate(lines) if match(json.loads(line))]
    lines[at] = change(lines[at])
    path.write_bytes(b"".join(lines))


def removed(line: bytes) -> bytes:
    return b""


def doubled(line: bytes) -> bytes:
    return line + line


def corrupted(line: bytes) -> bytes:
    return line[:120] + bytes(len(line[120:-1])) + line[-1:]


def without_ordinal(line: bytes) -> bytes:
    return re.sub(rb'"ordinal":\d+,', b"", line, count=1)


def tear_last_line(path: Path, *, after: int) -> None:
    """Leave only the first bytes of the last line."""
    change_lines(path, lambda lines: [*lines[:-1], lines[-1][:after]])


def cut_behind(path: Path, match: Match) -> None:
    """Remove every line behind the one whose record matches."""
    records = read_records(path)
    (at,) = [n for n, record in enumerate(records) if match(record)]
    change_lines(path, lambda lines: lines[: at + 1])


# --- checked and mended ------------------------------------------------------------------------


def findings(path: Path) -> list[Finding]:
    scan = CodexRollout().scan(Source(path))
    return [finding for one in scan.conversations for finding in one.findings]


def mend(path: Path) -> None:
    """Mend a rollout where it is, in as many rounds as it takes."""
    for _ in range(MOST_ROUNDS):
        source = Source(path)
        out = io.BytesIO()
        if not CodexRollout().write(source, out, CodexRollout().scan(source), Policy()):
            break
        beside = path.with_name(path.name + ".new")
        beside.write_bytes(out.getvalue())
        os.replace(beside, path)
    assert not findings(path)


def assert_sound(path: Path) -> None:
    """Nothing is found, and the ordinals rise by one from line to line."""
    assert not findings(path)
    ordinals = [record["ordinal"] for record in read_records(path)]
    assert ordinals == list(range(ordinals[0], ordinals[0] + len(ordinals)))
