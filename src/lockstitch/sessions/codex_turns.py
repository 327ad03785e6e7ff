"""Turns of a Codex rollout, and what a rollback takes back.

Measured on Codex 0.166, which counts what begins a turn by the text of user messages (what their
metadata says of them does not matter), and undoes a compaction along with the turn it was in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from lockstitch.core.items import Place
from lockstitch.sessions.cutting import DeadRange, bury
from lockstitch.sessions.lines import decoded, numbered_lines
from lockstitch.sessions.source import Source

# User messages that Codex itself writes: they are context, not turns, and a rollback does not
# count them. Tags of the first kind are matched in either case.
_CONTEXT: Final = re.compile(
    r"<(environment_context|skill|user_shell_command|turn_aborted|subagent_notification"
    r"|recommended_plugins)>.*</\1>"
    r"|# AGENTS\.md instructions.*</INSTRUCTIONS>",
    re.IGNORECASE | re.DOTALL,
)
_CONTEXT_AS_IT_IS: Final = re.compile(
    r"<goal_context>.*</goal_context>"
    r'|<codex_internal_context source="[a-z][a-z0-9_]*">.*</codex_internal_context>'
    r"|<(external_[^>]*)>.*</\1>"
    r'|<hook_prompt hook_run_id="[^"]*[^"\s][^"]*">.*</hook_prompt>'
    r"|Warning: apply_patch was requested via .*Use the apply_patch tool instead of exec_command\."
    r"|Warning: The maximum number of unified exec processes you can keep open is.*"
    r"|Warning: Your account was flagged for potentially high-risk cyber activity.*",
    re.DOTALL,
)
_AGENT_FIELDS: Final = frozenset({"author", "recipient", "content", "trigger_turn"})


def begins_turn(item: Any) -> bool:
    """Is this response item a turn, in the sense of a rollback's `num_turns`?"""
    if not isinstance(item, dict):
        return False
    if item.get("type") == "agent_message":
        return True
    content = item.get("content")
    if item.get("type") != "message" or not isinstance(content, list):
        return False
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    if item.get("role") == "assistant":
        return len(texts) == 1 and _is_from_an_agent(texts[0])
    if item.get("role") != "user":
        return False
    inputs = [part for part in content if isinstance(part, dict)]
    return not any(
        part.get("type") == "input_text" and _is_context(part.get("text")) for part in inputs
    )


def _is_context(text: Any) -> bool:
    if not isinstance(text, str):
        return False
    text = text.strip()
    return bool(_CONTEXT.fullmatch(text) or _CONTEXT_AS_IT_IS.fullmatch(text))


def _is_from_an_agent(text: Any) -> bool:
    """Older versions keep what one agent tells another as JSON in an assistant message."""
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return False
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return isinstance(found, dict) and found.keys() >= _AGENT_FIELDS


class _Event(NamedTuple):
    """A line that matters to rollbacks."""

    line: int
    what: str
    """``begin`` (of a turn's records), ``turn``, ``compacted`` or ``rollback``."""
    value: Any = None


def dead_ranges(source: Source) -> tuple[list[DeadRange], set[int]]:
    """What rollbacks took back, and the lines of the compactions that they undid. A reading of
    its own: the turns must be known in full."""
    events = list(_events(source))
    undone = _undone_compactions(events)
    turns: list[Place] = []
    dead: list[DeadRange] = []
    for line, what, value in events:
        if what == "turn":
            turns.append(Place(line))
        elif what == "compacted" and line not in undone:
            turns = [Place(line, n) for n, item in enumerate(value, 1) if begins_turn(item)]
        elif what == "rollback" and turns:
            start = turns[max(0, len(turns) - value)]
            dead = bury(DeadRange(start, line), dead)
            turns = [turn for turn in turns if turn < start]
    return dead, undone


def _undone_compactions(events: list[_Event]) -> set[int]:
    """Compactions in turns that were taken back. Codex reads backwards here, and takes whatever
    stands between two `task_started` for one turn, however many messages it holds."""
    undone: set[int] = set()
    pending = 0
    counts = False
    compacted: list[int] = []
    for event in reversed([_Event(0, "begin"), *events]):
        if event.what == "rollback":
            pending += event.value
        elif event.what == "turn":
            counts = True
        elif event.what == "compacted":
            compacted.append(event.line)
        elif event.what == "begin":
            if pending:
                undone.update(compacted)
                pending -= counts
            counts = False
            compacted = []
    return undone


def _events(source: Source) -> Iterator[_Event]:
    with source.open() as stream:
        for number, line in numbered_lines(stream, source.name):
            try:
                record = decoded(line)
                kind, payload = record["type"], record["payload"]
            except (ValueError, RecursionError, KeyError, TypeError):
                continue
            if not isinstance(payload, dict):
                continue
            if kind == "response_item":
                if begins_turn(payload):
                    yield _Event(number, "turn")
            elif kind == "inter_agent_communication":
                yield _Event(number, "turn")
            elif kind == "compacted":
                history = payload.get("replacement_history")
                yield _Event(number, "compacted", history if isinstance(history, list) else [])
            elif kind == "event_msg" and payload.get("type") == "task_started":
                yield _Event(number, "begin")
            elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
                count = payload.get("num_turns")
                if isinstance(count, int) and count > 0:
                    yield _Event(number, "rollback", count)
