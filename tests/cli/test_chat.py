"""`lockstitch chat`, driven as a pipe drives it, as a terminal does, and killed."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from lockstitch import check
from lockstitch.cli import app
from lockstitch.cli.chat_lines import Lines
from lockstitch.cli.chatting import Options, _how_to_go_on
from lockstitch.cli.runner_commands import MODEL, MODES
from lockstitch.emulator import call
from lockstitch.store.data_folder import data_folder
from lockstitch.store.journal import kept_ledger
from lockstitch.store.opening import open_store
from tests.cli.commands import PROGRAM, lockstitch, program

TIMEOUT_SECONDS = 30

END_OF_INPUT = b"\x04"
"""What Ctrl-D sends."""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A working folder and a data folder of one's own, and no key."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return folder


@pytest.fixture
def chat(home, tmp_path, monkeypatch):
    """The chat, with these lines on its standard input."""

    def talk(*lines, thread="t", options=()):
        typed = tmp_path / "typed"
        typed.write_text("".join(f"{line}\n" for line in lines))
        with typed.open() as stdin, monkeypatch.context() as patched:
            patched.setattr(sys, "stdin", stdin)
            return lockstitch("chat", thread, *options)

    return talk


def store_url():
    return f"sqlite:///{Path(os.environ['XDG_DATA_HOME']) / 'lockstitch' / 'chat.db'}"


def history(thread="t"):
    async def read():
        async with open_store(store_url(), create=False) as store:
            return (await kept_ledger(store, thread)).history()

    return asyncio.run(read())


def outputs(thread="t"):
    return [item["output"] for item in history(thread) if "output" in item]


def shown(command, arguments):
    return f"{command} {json.dumps(arguments)}"


# --- what is said ------------------------------------------------------------------------------


def test_without_a_key_it_says_that_it_talks_to_an_emulator_and_where_the_thread_is(chat):
    ran = chat("hello")
    assert (ran.code, ran.err) == (0, "")
    assert "There is no OPENAI_API_KEY, so this talks to an emulator" in ran.out
    assert f"Thread t in {store_url()}." in ran.out
    assert ran.out.endswith("You said: hello\nTo continue: lockstitch chat t\n")


def test_each_line_is_a_message_and_empty_ones_are_none(chat):
    ran = chat("one", "", "  ", "two")
    assert re.findall("You said: (.*)", ran.out) == ["one", "two"]
    assert [item["content"] for item in history() if item["role"] == "user"] == ["one", "two"]


def test_a_thread_that_is_not_named_is_a_new_one(home, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    ran = lockstitch("chat")
    assert ran.code == 0
    assert re.search(r"To continue: lockstitch chat chat-\d{8}-\d{6}\n", ran.out)


def test_threads_are_kept_where_somebody_says(chat, home):
    ran = chat("hello", options=["--store", "sqlite:///here.db"])
    assert "Thread t in sqlite:///here.db." in ran.out
    assert (home / "here.db").exists()


def test_the_command_that_goes_on_leads_to_the_same_thread(chat, emulator):
    options = ["--store", "sqlite:///a b.db", "--base-url", emulator.base_url, "--mode", "full"]
    ran = chat("hello", options=[*options, "--model", "m"])
    (command,) = re.findall(r"To continue: lockstitch chat (.*)\n", ran.out)
    words = shlex.split(command)
    assert words[0] == "t"
    given = dict(zip(words[1::2], words[2::2], strict=True))
    assert given == {
        "--store": "sqlite:///a b.db",
        "--base-url": emulator.base_url,
        "--mode": "full",
        "--model": "m",
    }
    again = chat(thread=words[0], options=words[1:])
    assert "Thread t in sqlite:///a b.db." in again.out


def test_what_is_in_memory_cannot_be_gone_on_with(chat):
    ran = chat("hello", options=["--store", "memory:"])
    assert ran.out.endswith("The thread was kept in memory, and is gone.\n")
    assert "To continue" not in ran.out


def test_a_password_is_not_in_the_command_that_goes_on():
    url = "postgresql://me:hunter2@host/chats"
    said = _how_to_go_on(Options(model=MODEL, mode=MODES[0], store=url), "t")
    assert said == "To continue: lockstitch chat t --store URL"


@pytest.mark.parametrize(
    "url", ["notaurl", "ftp://host/v1", "http://", "http://host:port/v1", "http://[::1/v1"]
)
def test_an_address_that_is_none_is_refused_before_anybody_types(chat, home, url):
    ran = chat("hello", options=["--base-url", url])
    assert ran.code == app.TROUBLE
    assert "must begin with http:// or https:// and a host" in " ".join(ran.err.split())
    assert list(home.iterdir()) == []


def test_a_data_folder_that_cannot_be_made_is_told_with_what_to_do(chat, home, monkeypatch):
    (home / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "file"))
    ran = chat("hello")
    assert ran.code == app.TROUBLE
    assert "cannot be made: Not a directory. Choose where to keep what must last" in ran.err


def test_threads_are_kept_in_the_data_folder_of_this_system(chat, home, monkeypatch):
    # The XDG rules: a path that is not absolute must be ignored.
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    monkeypatch.setenv("HOME", str(home))
    chat("hello")
    assert (data_folder(os.environ) / "chat.db").exists()
    assert not (home / "data").exists()


@pytest.mark.parametrize("mode", ["previous_response_id", "conversation", "full"])
def test_a_key_and_an_address_are_enough_in_every_mode(chat, emulator, monkeypatch, mode):
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")
    monkeypatch.setenv("OPENAI_BASE_URL", emulator.base_url)
    ran = chat("list_folder", "thanks", options=["--mode", mode, "--model", "gpt-5.5-mini"])
    assert (ran.code, ran.err) == (0, "")
    assert f"gpt-5.5-mini at {emulator.base_url}" in ran.out
    assert "You said: thanks" in ran.out
    assert "sesame" not in ran.out
    assert emulator.violations() == {}
    assert [body["model"] for body in emulator.requests("POST /v1/responses")] == [
        "gpt-5.5-mini"
    ] * 3


def test_a_retry_is_shown_and_the_answer_comes_whole(chat, emulator):
    emulator.say("A rather long answer.", faults=["cut after=response.output_text.delta how=reset"])
    emulator.say("A rather long answer.")
    ran = chat("hello", options=["--base-url", emulator.base_url])
    assert ran.code == 0
    assert "\nRetrying, attempt 2: lost: " in ran.out
    assert "\nA rather long answer.\n" in ran.out


def test_a_turn_that_fails_is_told_and_the_chat_goes_on(chat, emulator):
    emulator.fault("status code=400")
    ran = chat("one", "two", options=["--base-url", emulator.base_url])
    assert ran.code == app.TROUBLE
    assert "lockstitch: The provider returned an error" in ran.err
    assert "Traceback" not in ran.err
    assert "You said: two" in ran.out
    assert emulator.violations().keys() <= {"emulator-fault"}


def test_what_a_model_says_cannot_control_the_terminal(chat, emulator):
    emulator.say("\x1b[2Jgone\r\u202e", call("list_folder", {"path": "\x1b[2J"}))
    ran = chat("hello", options=["--base-url", emulator.base_url])
    assert not re.search("[\x1b\r\u202e]", ran.out)
    assert r"\x1b[2Jgone\x0d\u202e" in ran.out


def test_a_thread_that_somebody_else_holds_is_waited_for(chat):
    chat("hello")

    async def claimed():
        async with open_store(store_url()) as store:
            await store.claim("t", owner="somebody", seconds=4.0)

    asyncio.run(claimed())
    ran = chat("again")
    assert ran.code == 0
    assert re.search(r"held by somebody .* Waiting for it, for at most 30 seconds", ran.out)
    assert "You said: again" in ran.out


# --- approval ----------------------------------------------------------------------------------

WRITE = shown("write_file", {"path": "a.txt", "content": "hi"})


def test_files_are_read_and_listed_without_asking(chat, home):
    (home / "a.txt").write_text("hello from a file")
    ran = chat(shown("list_folder", {"path": "."}), shown("read_file", {"path": "a.txt"}))
    assert "?" not in ran.out.split("README")[1]
    assert '-> read_file {"path": "a.txt"}\n<- read_file: hello from a file\n' in ran.out
    assert outputs() == ["a.txt", "hello from a file"]


def test_a_file_is_written_when_somebody_says_yes(chat, home):
    ran = chat(WRITE, "y")
    assert '?  write_file {"path": "a.txt", "content": "hi"}\n' in ran.out
    assert (home / "a.txt").read_text() == "hi"


def test_a_file_is_not_written_when_somebody_says_no_and_the_model_is_told(chat, home):
    ran = chat(WRITE, "what?", "n")
    assert "Say y, n or a." in ran.out
    assert list(home.iterdir()) == []
    (output,) = outputs()
    assert "Never started" in output
    assert check(history()) == []


def test_always_holds_for_one_tool_and_for_the_rest_of_the_chat(chat, home):
    again = shown("write_file", {"path": "b.txt", "content": "hi"})
    command = shown("run_shell", {"command": "echo done"})
    ran = chat(WRITE, "a", again, command, "y")
    assert re.findall(r"^\?  (\w+)", ran.out, re.MULTILINE) == ["write_file", "run_shell"]
    assert sorted(path.name for path in home.iterdir()) == ["a.txt", "b.txt"]
    assert outputs()[-1] == "done\nExit code 0."
    assert chat(WRITE, thread="other").out.count("?  write_file") == 1


def test_nobody_is_asked_about_a_tool_that_was_said_yes_to(chat, home):
    ran = chat(WRITE, options=["--yes-to", "run-shell,write-file"])
    assert "?  " not in ran.out
    assert (home / "a.txt").read_text() == "hi"


def test_a_tool_that_does_not_exist_cannot_be_said_yes_to(chat):
    ran = chat(options=["--yes-to", "rm"])
    assert ran.code == app.TROUBLE
    assert "There is no tool 'rm'. Choose of: read_file, list_folder," in ran.err


def test_a_call_that_nobody_answered_waits_and_another_process_asks_again(chat, home):
    ran = chat(WRITE)
    assert ran.code == 0
    assert "Nobody answered: the call waits in the thread." in ran.out
    assert not (home / "a.txt").exists()

    ran = chat("y", "thanks")
    assert "(write_file) was asked for, and has not been started.\nGoing on from there." in ran.out
    assert (home / "a.txt").read_text() == "hi"
    assert "You said: thanks" in ran.out
    assert check(history()) == []


# --- stopped and killed ------------------------------------------------------------------------


@contextmanager
def running(*arguments):
    """The chat as a process, with its standard input open."""
    process = subprocess.Popen(
        [PROGRAM, "chat", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process, Printed(process.stdout.fileno())
    finally:
        process.kill()
        process.communicate()


def type_in(process, line):
    process.stdin.write(f"{line}\n".encode())
    process.stdin.flush()


class Printed:
    """What a chat prints, up to the words that are waited for and no further."""

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._rest = b""

    def until(self, words):
        ends = time.monotonic() + TIMEOUT_SECONDS
        while words.encode() not in self._rest:
            patience = max(0, ends - time.monotonic())
            ready, _, _ = select.select([self._descriptor], [], [], patience)
            chunk = os.read(self._descriptor, 65_536) if ready else b""
            assert chunk, f"{words!r} did not come: {self._rest.decode()}"
            self._rest += chunk
        self._rest = self._rest.partition(words.encode())[2]


SLEEP = shown("run_shell", {"command": "echo asleep; sleep 60"})


def test_ctrl_c_stops_the_turn_and_the_thread_is_whole(home):
    with running("t", "--yes-to", "run_shell") as (process, printed):
        type_in(process, SLEEP)
        printed.until("-> run_shell")
        process.send_signal(signal.SIGINT)
        printed.until("Stopped. Everything up to this point is saved.")
        out, err = process.communicate(b"and now?\n", timeout=TIMEOUT_SECONDS)
        assert (process.returncode, err) == (0, b"")
        assert b"You said: and now?" in out
    (output,) = outputs()
    assert output.endswith("Stopped by the user.")
    assert check(history()) == []


def test_ctrl_c_once_more_leaves(home):
    with running("t", "--yes-to", "run_shell") as (process, printed):
        type_in(process, SLEEP)
        printed.until("-> run_shell")
        process.send_signal(signal.SIGINT)
        printed.until("Stopping")
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_SECONDS) == app.INTERRUPTED
        assert process.stderr.read() == b""
    assert len(outputs()) == 1


def test_sigterm_stops_the_turn_and_leaves(home):
    with running("t", "--yes-to", "run_shell") as (process, printed):
        type_in(process, SLEEP)
        printed.until("-> run_shell")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_SECONDS) == app.INTERRUPTED
    assert len(outputs()) == 1


def test_after_kill_9_it_says_what_was_in_flight_and_does_not_run_it_twice(home, chat):
    with running("t", "--yes-to", "run_shell") as (process, printed):
        type_in(process, shown("run_shell", {"command": "echo ran >> ran.txt; sleep 60"}))
        printed.until("-> run_shell")
        wait_for(home / "ran.txt")
        process.kill()
        process.wait(TIMEOUT_SECONDS)
    forget_claims()
    ran = chat("thanks")
    assert "(run_shell) had been started, and nothing says how it ended." in ran.out
    assert "<- run_shell (outcome unknown): [lockstitch] Outcome unknown." in ran.out
    assert (home / "ran.txt").read_text() == "ran\n"
    assert check(history()) == []


def wait_for(path):
    ends = time.monotonic() + TIMEOUT_SECONDS
    while not path.exists():
        assert time.monotonic() < ends, path
        time.sleep(0.01)


def forget_claims():
    """As if half a minute had passed: a dead process's claim has run out."""
    connection = apsw.Connection(store_url().removeprefix("sqlite:///"))
    connection.execute("UPDATE conversations SET until = 0 WHERE until IS NOT NULL")
    connection.close()


# --- on a terminal -----------------------------------------------------------------------------


def test_on_a_terminal_it_prompts_and_takes_nothing_typed_ahead_for_an_answer(home):
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, "chat", "t"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    printed = Printed(terminal)
    try:
        printed.until("> ")
        os.write(terminal, f"{WRITE}\ny\n".encode())
        printed.until("Run it?")
        assert not (home / "a.txt").exists()
        os.write(terminal, b"n\n")
        printed.until("Never started")
        printed.until("> ")
        os.write(terminal, END_OF_INPUT)
        printed.until("To continue: lockstitch chat t")
        assert process.wait(TIMEOUT_SECONDS) == 0
        assert not (home / "a.txt").exists()
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def test_lines_come_in_order_and_end(tmp_path):
    async def read():
        ours, theirs = os.pipe()
        os.write(theirs, "one\ntwö\nthr".encode())
        lines = Lines(ours)
        first = await lines.next()
        os.write(theirs, b"ee")
        os.close(theirs)
        rest = [await lines.next() for _ in range(4)]
        os.close(ours)
        return [first, *rest]

    assert asyncio.run(read()) == ["one", "twö", "three", None, None]


def test_without_its_parts_it_says_what_to_install(home, tmp_path):
    (tmp_path / "openai.py").write_text("raise ModuleNotFoundError(name='openai')")
    ran = program("chat", env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert ran.returncode == app.TROUBLE
    assert b"pip install 'lockstitch[openai,sqlite]'" in ran.stderr
    assert b"Traceback" not in ran.stderr
