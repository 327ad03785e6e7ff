"""What a rollback took back: the calls that we take for live are the calls that Codex sends.

No call of these histories has an output, so every one that is live is found open. Codex 0.166
does not write `thread_rolled_back` any more, but it still obeys it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lockstitch.testing import EmulatorThread
from tests.real_codex.codex_cli import CodexCli, needs_codex
from tests.real_codex.requests import asked, calls
from tests.real_codex.rollouts import findings, read_records

pytestmark = needs_codex

Record = dict[str, Any]


def event(kind: str, **fields: Any) -> Record:
    return {"type": "event_msg", "payload": {"type": kind, **fields}}


def item(kind: str, **fields: Any) -> Record:
    return {"type": "response_item", "payload": {"type": kind, **fields}}


def call(name: str) -> Record:
    return item("function_call", name="exec_command", arguments="{}", call_id=name)


def user(text: str, *kinds: str) -> Record:
    message = item("message", role="user", content=[{"type": "input_text", "text": text}])
    if kinds:
        metadata = {"content_item_kinds": list(kinds)}
        message["payload"]["internal_chat_message_metadata_passthrough"] = metadata
    return message


def compacted(*items: Record) -> Record:
    history = [one["payload"] for one in items]
    return {"type": "compacted", "payload": {"message": "", "replacement_history": history}}


def rollback(turns: int) -> Record:
    return event("thread_rolled_back", num_turns=turns)


def turn(name: str, *records: Record) -> list[Record]:
    return [
        event("task_started", turn_id=name, collaboration_mode_kind="default"),
        user(f"turn {name}", "user.text"),
        *records,
        event("task_complete", turn_id=name, last_agent_message=None),
    ]


ONE, TWO, THREE = turn("1", call("a")), turn("2", call("b")), turn("3", call("c"))
COMPACTED = compacted(user("turn 1"), user("turn 2"), call("h"))
COMPACTING = turn("2", call("b"), COMPACTED, call("c"))
FIRST_AGENT = "/" + "root"  # the name that Codex gives it
TWO_AGENTS = {
    "author": FIRST_AGENT,
    "recipient": f"{FIRST_AGENT}/a",
    "content": "go",
    "trigger_turn": True,
}

HISTORIES = {
    "nothing taken back": [*ONE, *TWO],
    "one turn": [*ONE, *TWO, rollback(1)],
    "more turns than there are": [*ONE, *TWO, rollback(9)],
    "twice": [*ONE, *TWO, rollback(1), *THREE, rollback(1)],
    "twice, further the second time": [*ONE, *TWO, rollback(1), *THREE, rollback(2)],
    "a turn with two messages": [*ONE, *turn("2", call("b"), user("and"), call("c")), rollback(1)],
    "up to a compaction": [*ONE, COMPACTED, *TWO, rollback(1)],
    "beyond a compaction": [*ONE, COMPACTED, *TWO, rollback(2)],
    "the turn of a compaction": [*ONE, *COMPACTING, rollback(1)],
    "the turn after that of a compaction": [*ONE, *COMPACTING, *turn("3", call("d")), rollback(1)],
    "half the turn of a compaction": [
        *ONE,
        *turn("2", call("b"), COMPACTED, user("and"), call("c")),
        rollback(1),
    ],
    "the second of two compactions": [
        *ONE,
        *turn("8", compacted(user("turn 1"), call("g"))),
        *COMPACTING,
        rollback(1),
    ],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_live_is_what_codex_sends(codex, emulator, history):
    assert found_open(codex, emulator, history) == calls(asked(emulator)[-1])


BEGINNINGS = {
    "plain": user("hello"),
    "plain, of another kind": user("hello", "unknown"),
    "context": user("<environment_context>\n x\n</environment_context>"),
    "context, of the user's kind": user("<turn_aborted>\nx\n</turn_aborted>", "user.text"),
    "context in capitals": user("<SKILL>\nx\n</SKILL>"),
    "context that does not end": user("<environment_context>\n x"),
    "context with more behind it": user("<skill>\nx\n</skill> is what I meant"),
    "AGENTS.md": user("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>"),
    "about AGENTS.md": user("# AGENTS.md instructions are missing"),
    "a goal": user("<goal_context>\nx\n</goal_context>"),
    "context of Codex": user('<codex_internal_context source="a">\nx\n</codex_internal_context>'),
    "context from outside": user("<external_a>\nx\n</external_a>"),
    "a hook": user('<hook_prompt hook_run_id="1">x</hook_prompt>'),
    "another tag": user("<user_instructions>\nx\n</user_instructions>"),
    "a message of an agent": item("agent_message", author="a", recipient="b", content=[]),
    "a message of an agent, as it was": item(
        "message",
        role="assistant",
        content=[
            {"type": "output_text", "text": json.dumps({**TWO_AGENTS, "other_recipients": []})}
        ],
    ),
    "a record of two agents": {
        "type": "inter_agent_communication",
        "payload": {**TWO_AGENTS, "other_recipients": []},
    },
}


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_turn_begins_where_codex_says_so(codex, emulator, beginning):
    history = [*ONE, *TWO, beginning, call("c"), rollback(1)]
    assert found_open(codex, emulator, history) == calls(asked(emulator)[-1])


def found_open(codex: CodexCli, emulator: EmulatorThread, history: list[Record]) -> set[str | None]:
    """The calls that are found open in a rollout of this history; then Codex resumes from it."""
    emulator.say("hello")
    thread = codex.run("hello").thread
    rollout = codex.rollout()
    header, *others = read_records(rollout)
    context = [record for record in others if record["type"] in ("turn_context", "world_state")]
    time = {"timestamp": header["timestamp"]}
    records = [
        {**time, "ordinal": n, **{name: one[name] for name in ("type", "payload")}}
        for n, one in enumerate([header, *context, *history])
    ]
    rollout.write_text("".join(json.dumps(record) + "\n" for record in records))
    codex.forget()
    found = {finding.key for finding in findings(rollout)}
    assert codex.resume("go on", thread=thread).thread == thread
    return found
