"""`lockstitch chat`, driven as a pipe drives it, as a terminal does, and killed."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw
import pytest

from lockstitch import check
from lockstitch.cli import app, chat_shell, chat_tools
from lockstitch.cli.chat_lines import Lines
from lockstitch.cli.chat_shell import shell
from lockstitch.cli.chat_tools import Refused, Toolbox
from lockstitch.emulator import call
from lockstitch.store.journal import kept_ledger
from lockstitch.store.opening import open_store
from tests.cli.commands import PROGRAM, lockstitch, program

TIMEOUT_SECONDS = 30


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
    assert ran.out.endswith("You said: hello\nTo go on: lockstitch chat t\n")


def test_each_line_is_a_message_and_empty_ones_are_none(chat):
    ran = chat("one", "", "  ", "two")
    assert re.findall("You said: (.*)", ran.out) == ["one", "two"]
    assert [item["content"] for item in history() if item["role"] == "user"] == ["one", "two"]


def test_a_thread_that_is_not_named_is_a_new_one(home, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    ran = lockstitch("chat")
    assert ran.code == 0
    assert re.search(r"To go on: lockstitch chat chat-\d{8}-\d{6}\n", ran.out)


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
    assert "lockstitch: The provider refused the request" in ran.err
    assert "Traceback" not in ran.err
    assert "You said: two" in ran.out
    assert emulator.violations().keys() <= {"emulator-fault"}


def test_what_a_model_says_cannot_control_the_terminal(chat, emulator):
    emulator.say("\x1b[2Jgone\r\u202e", call("list_folder", {"path": "\x1b[2J"}))
    ran = chat("hello", options=["--base-url", emulator.base_url])
    assert not re.search("[\x1b\r\u202e]", ran.out)
    assert r"\x1b[2Jgone\x0d\x202e" in ran.out


def test_a_thread_that_somebody_else_holds_is_waited_for(chat):
    chat("hello")

    async def claimed():
        async with open_store(store_url()) as store:
            await store.claim("t", owner="somebody", seconds=0.5)

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
    ran = chat(WRITE, options=["--yes-to", "write-file"])
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
        yield process
    finally:
        process.kill()
        process.communicate()


def type_in(process, line):
    process.stdin.write(f"{line}\n".encode())
    process.stdin.flush()


def read_until(descriptor, words):
    """What is printed until these words come."""
    found, ends = b"", time.monotonic() + TIMEOUT_SECONDS
    while words.encode() not in found:
        ready, _, _ = select.select([descriptor], [], [], max(0, ends - time.monotonic()))
        chunk = os.read(descriptor, 65_536) if ready else b""
        assert chunk, f"{words!r} did not come: {found.decode()}"
        found += chunk
    return found.decode()


SLEEP = shown("run_shell", {"command": "echo asleep; sleep 60"})


def test_ctrl_c_stops_the_turn_and_the_thread_is_whole(home):
    with running("t", "--yes-to", "run_shell") as process:
        type_in(process, SLEEP)
        read_until(process.stdout.fileno(), "-> run_shell")
        process.send_signal(signal.SIGINT)
        read_until(process.stdout.fileno(), "Stopped. What was said and done until here is kept.")
        out, err = process.communicate(b"and now?\n", timeout=TIMEOUT_SECONDS)
        assert (process.returncode, err) == (0, b"")
        assert b"You said: and now?" in out
    (output,) = outputs()
    assert output.endswith("Stopped by the user.")
    assert check(history()) == []


def test_ctrl_c_once_more_leaves(home):
    with running("t", "--yes-to", "run_shell") as process:
        type_in(process, SLEEP)
        read_until(process.stdout.fileno(), "-> run_shell")
        process.send_signal(signal.SIGINT)
        read_until(process.stdout.fileno(), "Stopping")
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_SECONDS) == app.INTERRUPTED
        assert process.stderr.read() == b""
    assert len(outputs()) == 1


def test_sigterm_stops_the_turn_and_leaves(home):
    with running("t", "--yes-to", "run_shell") as process:
        type_in(process, SLEEP)
        read_until(process.stdout.fileno(), "-> run_shell")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_SECONDS) == app.INTERRUPTED
    assert len(outputs()) == 1


def test_after_kill_9_it_says_what_was_in_flight_and_does_not_run_it_twice(home, chat):
    with running("t", "--yes-to", "run_shell") as process:
        type_in(process, shown("run_shell", {"command": "echo ran >> ran.txt; sleep 60"}))
        read_until(process.stdout.fileno(), "-> run_shell")
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
    child, terminal = pty.fork()
    if child == 0:
        os.execv(PROGRAM, [str(PROGRAM), "chat", "t"])
    try:
        read_until(terminal, "> ")
        os.write(terminal, f"{WRITE}\ny\n".encode())
        read_until(terminal, "Run it?")
        assert not (home / "a.txt").exists()
        os.write(terminal, b"n\n")
        read_until(terminal, "Never started")
        read_until(terminal, "> ")
        os.write(terminal, b"\x04")
        read_until(terminal, "To go on: lockstitch chat t")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        child = 0
        assert not (home / "a.txt").exists()
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
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


# --- files -------------------------------------------------------------------------------------


@pytest.fixture
def tools(tmp_path):
    """A working folder with ways out of it."""
    folder, outside = tmp_path / "work", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (folder / "file_link").symlink_to(outside / "secret.txt")
    (folder / "folder_link").symlink_to(outside)
    (folder / "dangling_link").symlink_to(outside / "new.txt")
    (folder / "circle").symlink_to(folder / "circle")
    return Toolbox(folder)


WAYS_OUT = [
    "../outside/secret.txt",
    "file_link",
    "folder_link/secret.txt",
    "folder_link/new.txt",
    "dangling_link",
    "sub/../../outside/secret.txt",
    "/etc/hostname",
    "..",
    "folder_link",
    "a\0b",
]


@pytest.mark.parametrize("path", WAYS_OUT)
def test_no_path_leads_out_of_the_folder(tools, tmp_path, path):
    for use in (tools.read_file, tools.list_folder, lambda path: tools.write_file(path, "x")):
        with pytest.raises(Refused, match=r"is outside the working folder|leads nowhere"):
            use(path)
    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["secret.txt"]
    assert (tmp_path / "outside" / "secret.txt").read_text() == "secret"


def test_an_absolute_path_into_the_folder_is_a_path_into_the_folder(tools):
    tools.write_file(str(tools.folder / "sub" / "a.txt"), "one\r\ntwo\n")
    assert (tools.folder / "sub" / "a.txt").read_bytes() == b"one\r\ntwo\n"
    assert tools.list_folder("sub") == "a.txt"


def test_what_is_no_file_or_too_large_or_not_text_is_told(tools, monkeypatch):
    monkeypatch.setattr(chat_tools, "LARGEST_FILE_BYTES", 10)
    os.mkfifo(tools.folder / "pipe")
    (tools.folder / "large").write_text("x" * 11)
    (tools.folder / "picture").write_bytes(b"\xff\xd8")
    for path, why in [
        ("pipe", "There is no file"),
        (".", "There is no file"),
        ("missing", "There is no file"),
        ("circle", "There is no file|leads nowhere"),
        ("large", "larger than 10 bytes"),
        ("picture", "is not text"),
    ]:
        with pytest.raises(Refused, match=why):
            tools.read_file(path)
    with pytest.raises(Refused, match="There is no folder"):
        tools.list_folder("large")
    with pytest.raises(Refused, match="is a folder"):
        tools.write_file(".", "x")


def test_a_long_folder_is_listed_in_part(tools, monkeypatch):
    monkeypatch.setattr(chat_tools, "MOST_NAMES", 2)
    for name in ("a", "b", "c"):
        (tools.folder / "many" / name).mkdir(parents=True)
    assert tools.list_folder("many") == "a/\nb/\n… and 1 more"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tools, monkeypatch):
    tools.write_file("sub/a.txt", "old")
    (tools.folder / "sub" / "a.txt").chmod(0o640)
    with pytest.raises(UnicodeEncodeError):
        tools.write_file("sub/a.txt", "half a pair: \ud800")
    assert tools.list_folder("sub") == "a.txt"
    assert tools.read_file("sub/a.txt") == "old"
    tools.write_file("sub/a.txt", "new")
    assert (tools.folder / "sub" / "a.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("name", "arguments", "effect", "asks"),
    [
        ("read_file", {"path": "a"}, "read", False),
        ("list_folder", {}, "read", False),
        ("write_file", {"path": "a", "content": ""}, "idempotent", True),
        ("run_shell", {"command": "ls"}, "once", True),
    ],
)
def test_a_tool_declares_what_it_does_to_the_world(tools, name, arguments, effect, asks):
    (made,) = [one for one in tools.tools if one.name == name]
    assert (made.effect.value, made.asks_first(arguments)) == (effect, asks)


# --- commands ----------------------------------------------------------------------------------


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


def test_what_a_command_leaves_running_is_ended_with_it(tmp_path):
    child, _ = asyncio.run(shell("sleep 60 & echo $!", tmp_path, 10)).split("\n")
    assert is_gone(int(child))


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


def test_without_its_parts_it_says_what_to_install(home, tmp_path):
    (tmp_path / "openai.py").write_text("raise ModuleNotFoundError(name='openai')")
    ran = program("chat", env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert ran.returncode == app.TROUBLE
    assert b"pip install 'lockstitch[openai,sqlite]'" in ran.stderr
    assert b"Traceback" not in ran.stderr
