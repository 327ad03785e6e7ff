"""`lockstitch mend` among the rollouts of a real Codex: what it leaves there does no harm.

Codex rebuilds its databases from the rollouts, with every new version of their format for one."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.real_codex.codex_cli import LONGEST_RUN_SECONDS, needs_codex
from tests.real_codex.drafts import HELD, runs
from tests.real_codex.requests import asked, conversation, output_of
from tests.real_codex.rollouts import ended, thread_of

pytestmark = needs_codex

ONE_TICK_SECONDS = 1.1
"""Codex tells the age of threads in seconds."""


def mend(rollout: Path, *options: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "lockstitch", "mend", *options, str(rollout)],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=LONGEST_RUN_SECONDS,
    )


def test_a_mended_copy_beside_its_rollout_does_not_keep_codex_from_resuming(codex, emulator):
    emulator.say(runs("call_1", "echo charged"), faults=HELD)
    codex.run_and_kill("charge the card", when=ended("call_1"))
    thread = thread_of(codex.rollout())

    mend(codex.rollout())
    codex.forget()

    assert codex.resume("go on").thread == thread
    assert codex.resume("go on", thread=thread).thread == thread


def test_a_rollout_mended_in_place_is_resumed_with_its_backup_beside_it(codex, emulator):
    emulator.say(runs("call_1", "echo charged"), faults=HELD)
    codex.run_and_kill("charge the card", when=ended("call_1"))
    thread = thread_of(codex.rollout())

    mend(codex.rollout(), "--in-place")
    codex.forget()

    assert codex.resume("go on").thread == thread
    assert output_of("call_1", asked(emulator)[-1]).endswith("charged\n")


def test_mending_an_older_thread_does_not_make_it_the_last_one(codex, emulator):
    emulator.say(runs("call_1", "echo charged"), faults=HELD)
    codex.run_and_kill("charge the card", when=ended("call_1"))
    older = codex.rollout()
    time.sleep(ONE_TICK_SECONDS)
    newer = codex.run("something else").thread
    time.sleep(ONE_TICK_SECONDS)

    mend(older, "--in-place")
    codex.forget()

    assert codex.resume("go on").thread == newer
    assert conversation(asked(emulator)[-1])[0] == "user: something else"
