"""Turns: what a rollback counts, and what it takes back. Measured on the real Codex."""

from __future__ import annotations

import pytest

from lockstitch.core.items import Place
from lockstitch.sessions.codex_turns import begins_turn, dead_ranges
from lockstitch.sessions.cutting import DeadRange
from tests.sessions.rollouts import (
    assistant,
    compacted,
    context,
    event,
    legacy,
    record,
    rolled_back,
    user,
)
from tests.sessions.written import jsonl, written

BEGIN = event({"type": "task_started"})
AGENT = '{"author": "a", "recipient": "b", "content": "c", "trigger_turn": true}'


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (user("go")["payload"], True),
        (context()["payload"], False),
        (user("<ENVIRONMENT_CONTEXT>x</ENVIRONMENT_CONTEXT>")["payload"], False),
        (user("<environment_context> never closed")["payload"], True),
        (user("# AGENTS.md instructions for /p\n<INSTRUCTIONS>x</INSTRUCTIONS>")["payload"], False),
        (user("<user_instructions>be brief</user_instructions>")["payload"], True),
        (user("<turn_aborted>x</turn_aborted>")["payload"], False),
        (user("<goal_context>x</goal_context>")["payload"], False),
        (assistant()["payload"], False),
        (assistant(AGENT)["payload"], True),
        ({"type": "agent_message"}, True),
        ("text", False),
        ({"type": "message", "role": "user", "content": "not a list"}, False),
    ],
)
def test_only_what_somebody_said_begins_a_turn(item, expected):
    assert begins_turn(item) is expected


def ranges(tmp_path, *records):
    return dead_ranges(written(tmp_path / "r.jsonl", jsonl(legacy(records))))


def test_a_rollback_takes_back_from_the_turn_it_names(tmp_path):
    found = ranges(tmp_path, user(), assistant(), user(), assistant(), rolled_back(1))
    assert found == ([DeadRange(Place(4), 6)], set())


def test_rollbacks_add_up(tmp_path):
    found, _ = ranges(tmp_path, user(), user(), user(), rolled_back(1), rolled_back(1), user())
    assert found == [DeadRange(Place(3), 6)]


def test_a_compaction_goes_with_the_turn_it_was_in(tmp_path):
    summary = [user("summary")["payload"]]
    lines = [BEGIN, user("one"), BEGIN, user("two"), compacted(summary), rolled_back(1)]
    found, undone = ranges(tmp_path, *lines)
    assert undone == {6}
    assert found == [DeadRange(Place(5), 7)]


def test_what_agents_tell_each_other_begins_a_turn(tmp_path):
    said = record("inter_agent_communication", {"content": "x"})
    found, _ = ranges(tmp_path, user(), said, rolled_back(1))
    assert found == [DeadRange(Place(3), 4)]
