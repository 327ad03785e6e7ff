"""Codex resumes what was mended: the same thread, every call with its one output.

Each test makes a rollout with the real Codex, damages it as the world does (or kills Codex, and
leaves that to Codex), mends it, lets Codex go on, and looks at the request that it sends."""

from __future__ import annotations

import pytest

from lockstitch.testing import EmulatorThread
from tests.real_codex.codex_cli import CodexCli, needs_codex
from tests.real_codex.drafts import HELD, patches, runs
from tests.real_codex.requests import asked, conversation, output_of
from tests.real_codex.rollouts import (
    a_call,
    an_output,
    assert_sound,
    change_lines,
    change_record,
    corrupted,
    cut_behind,
    doubled,
    ended,
    findings,
    mend,
    read_records,
    removed,
    tear_last_line,
    thread_of,
    without_ordinal,
)

pytestmark = needs_codex

PATCH = "*** Begin Patch\n*** Add File: receipt.txt\n+charged\n*** End Patch"
LONG_OUTPUT = "seq 1 4000"
"""19 kB: more than Codex writes in the next few turns."""


def two_turns(codex: CodexCli, emulator: EmulatorThread, *, first: str = "echo one") -> str:
    """A thread of two turns, each with a call."""
    emulator.say(runs("call_1", first))
    emulator.say("done 1")
    thread = codex.run("turn 1").thread
    emulator.say(runs("call_2", "echo two"))
    emulator.say("done 2")
    assert codex.resume("turn 2").thread == thread
    return thread


TWO_TURNS = [
    "user: turn 1",
    "call call_1",
    "output call_1",
    "assistant: done 1",
    "user: turn 2",
    "call call_2",
    "output call_2",
    "assistant: done 2",
]


# --- killed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_id", [False, True], ids=["last", "by id"])
def test_a_call_whose_tool_had_ended_is_resumed_with_what_it_really_gave(codex, emulator, by_id):
    emulator.say(runs("call_1", "echo charged"), faults=HELD)
    codex.run_and_kill("charge the card", when=ended("call_1"))
    rollout = codex.rollout()
    thread = thread_of(rollout)

    mend(rollout)

    assert codex.resume("go on", thread=thread if by_id else None).thread == thread
    request = asked(emulator)[-1]
    assert conversation(request) == [
        "user: charge the card",
        "call call_1",
        "output call_1",
        "user: go on",
    ]
    text = output_of("call_1", request)
    assert "exit code 0" in text
    assert text.endswith("charged\n")
    assert_sound(codex.rollout())


def test_unmended_the_same_call_is_told_as_aborted(codex, emulator):
    """Why there is something to mend at all."""
    emulator.say(runs("call_1", "echo charged"), faults=HELD)
    codex.run_and_kill("charge the card", when=ended("call_1"))

    assert codex.resume("go on").code == 0

    assert output_of("call_1", asked(emulator)[-1]) == "aborted"


def test_calls_that_ran_side_by_side_each_get_their_own_output(codex, emulator):
    emulator.say(
        runs("call_1", "echo one"),
        patches("call_2", PATCH),
        runs("call_3", "echo three"),
        faults=HELD,
    )
    codex.run_and_kill("all at once", when=ended("call_1", "call_2", "call_3"))

    mend(codex.rollout())

    assert codex.resume("go on").code == 0
    request = asked(emulator)[-1]
    assert output_of("call_1", request).endswith("one\n")
    assert "receipt.txt" in output_of("call_2", request)
    assert output_of("call_3", request).endswith("three\n")
    assert_sound(codex.rollout())


def test_mending_a_killed_session_only_adds_to_its_end(codex, emulator):
    """Codex points into the file by byte offset: what is there already must not move."""
    emulator.say(runs("call_1", "echo one"), runs("call_2", "echo two"), faults=HELD)
    codex.run_and_kill("charge the card", when=ended("call_1", "call_2"))
    before = codex.rollout().read_bytes()

    mend(codex.rollout())

    assert codex.rollout().read_bytes().startswith(before)


# --- damaged lines -----------------------------------------------------------------------------


def test_a_torn_last_line_is_left_behind_and_the_thread_goes_on(codex, emulator):
    thread = two_turns(codex, emulator)
    tear_last_line(codex.rollout(), after=90)

    mend(codex.rollout())

    assert codex.resume("go on").thread == thread
    assert conversation(asked(emulator)[-1]) == [*TWO_TURNS, "user: go on"]
    assert_sound(codex.rollout())


def test_an_output_torn_while_it_was_written_is_recovered(codex, emulator):
    thread = two_turns(codex, emulator)
    cut_behind(codex.rollout(), an_output("call_2"))
    tear_last_line(codex.rollout(), after=200)

    mend(codex.rollout())

    assert codex.resume("go on").thread == thread
    request = asked(emulator)[-1]
    assert conversation(request) == [*TWO_TURNS[:-1], "user: go on"]
    assert output_of("call_2", request).endswith("two\n")
    assert_sound(codex.rollout())


def test_a_corrupted_call_line_takes_its_output_along(codex, emulator):
    thread = two_turns(codex, emulator)
    change_record(codex.rollout(), a_call("call_1"), corrupted)

    mend(codex.rollout())

    assert codex.resume("go on").thread == thread
    assert conversation(asked(emulator)[-1]) == [
        "user: turn 1",
        "assistant: done 1",
        *TWO_TURNS[4:],
        "user: go on",
    ]
    assert_sound(codex.rollout())


def test_an_output_that_was_written_twice_is_sent_once(codex, emulator):
    thread = two_turns(codex, emulator)
    change_record(codex.rollout(), an_output("call_1"), doubled)

    mend(codex.rollout())

    assert codex.resume("go on").thread == thread
    assert conversation(asked(emulator)[-1]) == [*TWO_TURNS, "user: go on"]
    assert_sound(codex.rollout())


def test_unmended_an_output_that_was_written_twice_ends_every_turn(codex, emulator, broken):
    two_turns(codex, emulator)
    change_record(codex.rollout(), an_output("call_1"), doubled)

    for turn in (1, 2):
        refused = codex.resume("go on")

        assert refused.code == 1
        assert "Duplicate item found" in refused.stdout
        broken["duplicate-item"] = turn


def test_a_last_line_without_its_ordinal_no_longer_keeps_codex_from_resuming(codex, emulator):
    thread = two_turns(codex, emulator)
    change_lines(codex.rollout(), lambda lines: [*lines[:-1], without_ordinal(lines[-1])])
    refused = codex.resume("go on")
    assert "missing an ordinal" in refused.stderr

    mend(codex.rollout())

    assert codex.resume("go on").thread == thread
    assert conversation(asked(emulator)[-1]) == [*TWO_TURNS, "user: go on"]
    assert_sound(codex.rollout())


# --- the header --------------------------------------------------------------------------------


@pytest.mark.parametrize("forgotten", [False, True], ids=["known thread", "unknown thread"])
@pytest.mark.parametrize("left", [0, 300], ids=["removed", "torn"])
@pytest.mark.parametrize("by_id", [False, True], ids=["last", "by id"])
def test_a_rollout_that_lost_its_header_is_the_same_thread_again(
    codex, emulator, forgotten, left, by_id
):
    thread = two_turns(codex, emulator)
    change_lines(codex.rollout(), lambda lines: [lines[0][:left] + b"\n" * bool(left), *lines[1:]])
    if forgotten:
        codex.forget()

    mend(codex.rollout())

    assert codex.resume("go on", thread=thread if by_id else None).thread == thread
    request = asked(emulator)[-1]
    assert conversation(request) == [*TWO_TURNS, "user: go on"]
    assert request["input"][0] == asked(emulator)[0]["input"][0], "other instructions"
    assert_sound(codex.rollout())


def test_unmended_a_rollout_without_its_header_is_silently_left_for_a_new_thread(codex, emulator):
    thread = two_turns(codex, emulator)
    change_lines(codex.rollout(), lambda lines: lines[1:])

    assert codex.resume("go on").thread != thread

    assert conversation(asked(emulator)[-1]) == ["user: go on"]


# --- in the middle -----------------------------------------------------------------------------


def test_a_session_mended_in_the_middle_keeps_its_later_turns(codex, emulator):
    thread = two_turns(codex, emulator)
    change_record(codex.rollout(), an_output("call_1"), removed)

    mend(codex.rollout())

    assert codex.resume("turn 3").thread == thread
    request = asked(emulator)[-1]
    assert conversation(request) == [*TWO_TURNS, "user: turn 3"]
    assert output_of("call_1", request).endswith("one\n")
    assert_sound(codex.rollout())
    assert codex.resume("turn 4").thread == thread
    assert conversation(asked(emulator)[-1])[-3:] == [
        "user: turn 3",
        "assistant: You said: turn 3",
        "user: turn 4",
    ]
    assert_sound(codex.rollout())


def test_a_session_that_went_on_after_the_kill_is_mended_in_the_middle(codex, emulator):
    """Codex has read the file since, and told the model `aborted` twice."""
    emulator.say(runs("call_0", "echo charged"), faults=HELD)
    codex.run_and_kill("turn 0", when=ended("call_0"))
    thread = thread_of(codex.rollout())
    for turn in (1, 2):
        emulator.say(runs(f"call_{turn}", f"echo {turn}"))
        emulator.say(f"done {turn}")
        assert codex.resume(f"turn {turn}").thread == thread
    assert output_of("call_0", asked(emulator)[-1]) == "aborted"

    mend(codex.rollout())

    assert codex.resume("go on").thread == thread
    request = asked(emulator)[-1]
    assert conversation(request) == [
        "user: turn 0",
        "call call_0",
        "output call_0",
        *TWO_TURNS,
        "user: go on",
    ]
    assert output_of("call_0", request).endswith("charged\n")
    assert_sound(codex.rollout())


# --- what else points into the file ------------------------------------------------------------


def test_a_fork_of_a_thread_that_is_mended_later_loses_nothing(codex, emulator):
    """A fork holds a byte offset into the rollout of its parent."""
    thread = two_turns(codex, emulator, first=LONG_OUTPUT)
    change_record(codex.rollout(), a_call("call_1"), corrupted)
    assert codex.resume("turn 3").thread == thread
    parent = codex.rollout()
    fork = codex.fork("aside", thread=thread).thread

    mend(parent)

    assert codex.resume("aside again", thread=fork).thread == fork
    assert "assistant: done 2" in conversation(asked(emulator)[-1])
    assert conversation(asked(emulator)[-1])[-3:] == [
        "user: aside",
        "assistant: You said: aside",
        "user: aside again",
    ]


def test_a_fork_that_was_refused_goes_on_when_its_parent_is_mended(codex, emulator, broken):
    thread = two_turns(codex, emulator, first=LONG_OUTPUT)
    parent = codex.rollout()
    change_record(parent, an_output("call_1"), doubled)
    assert codex.resume("turn 3").code == 1
    assert codex.fork("aside", thread=thread).code == 1
    broken["duplicate-item"] = 2
    (fork,) = [thread_of(path) for path in codex.rollouts() if path != parent]

    mend(parent)

    assert codex.resume("aside again", thread=fork).thread == fork
    assert conversation(asked(emulator)[-1]) == [
        *TWO_TURNS,
        "user: turn 3",
        "user: aside",
        "user: aside again",
    ]


def test_a_mended_thread_can_be_forked(codex, emulator, broken):
    """Codex's own index of the thread holds a byte offset too, and refuses a file that shrank."""
    thread = two_turns(codex, emulator, first=LONG_OUTPUT)
    change_record(codex.rollout(), an_output("call_1"), doubled)
    assert codex.resume("turn 3").code == 1
    broken["duplicate-item"] = 1

    mend(codex.rollout())

    assert codex.fork("aside", thread=thread).thread != thread
    assert conversation(asked(emulator)[-1]) == [*TWO_TURNS, "user: turn 3", "user: aside"]


def test_a_fork_is_checked_without_the_history_that_stands_in_its_parent(codex, emulator):
    thread = two_turns(codex, emulator)
    fork = codex.fork("aside", thread=thread).thread
    (path,) = [path for path in codex.rollouts() if thread_of(path) == fork]

    assert read_records(path)[0]["ordinal"] > 0
    assert not findings(path)
    assert_sound(path)
