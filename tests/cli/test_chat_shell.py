"""Commands of `lockstitch chat`: their end, whatever ends them, and their output."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from lockstitch.cli import chat_shell
from lockstitch.cli.chat_shell import shell

TIMEOUT_SECONDS = 30


def test_a_command_runs_in_the_folder_without_input(tmp_path):
    assert asyncio.run(shell("pwd; cat; echo no >&2; exit 3", tmp_path, 10)) == (
        f"{tmp_path}\nno\nExit code 3."
    )


def test_the_output_of_a_command_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(chat_shell, "MOST_SHELL_BYTES", 10)
    said = asyncio.run(shell("head -c 300000 /dev/zero | tr '\\0' x", tmp_path, 10))
    assert said == "xxxxxxxxxx\n… and 299,990 bytes more.\nExit code 0."


def test_a_command_that_takes_too_long_is_ended_with_its_children(tmp_path):
    said = asyncio.run(shell("echo first; sleep 60 & echo $!; wait", tmp_path, 0.5))
    first, child, ended = said.split("\n")
    assert (first, ended) == ("first", "Stopped: it took longer than 0.5 seconds.")
    assert is_gone(int(child))


def test_what_a_command_leaves_running_is_not_waited_for_and_is_ended(tmp_path):
    child, ended = asyncio.run(shell("sleep 60 & echo $!", tmp_path, TIMEOUT_SECONDS)).split("\n")
    assert ended == "Exit code 0."
    assert is_gone(int(child))


def test_what_left_the_group_of_a_command_is_not_waited_for(tmp_path):
    said = asyncio.run(shell("setsid sh -c 'echo $$; exec sleep 60' & sleep 0.3", tmp_path, 20))
    child, ended = said.split("\n")
    os.kill(int(child), signal.SIGKILL)
    assert ended == "Exit code 0."


def test_a_command_that_is_cancelled_gives_an_output(tmp_path):
    async def cancelled():
        running = asyncio.create_task(shell("touch begun; sleep 60", tmp_path, 60))
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.01)
        running.cancel()
        return await running

    assert asyncio.run(cancelled()) == "Stopped by the user."


def is_gone(process):
    """It was killed; whoever inherits it may take a moment to bury it."""
    ends = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < ends:
        with suppress(FileNotFoundError, ProcessLookupError):
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX":
                time.sleep(0.01)
                continue
        return True
    return False
