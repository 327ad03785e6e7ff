"""`lockstitch store …` and `lockstitch check store:URL`: what is printed, done, and refused."""

from __future__ import annotations

import asyncio
import errno
import gzip
import json
import os
import pty
import re
import signal
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lockstitch.cli import storing
from lockstitch.core.facts import (
    START,
    CallStarted,
    Ending,
    ItemCompleted,
    Mode,
    RequestPrepared,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
)
from lockstitch.core.records import Record
from lockstitch.ledgers import call_settled, item_added
from lockstitch.store import Journal, open_store
from lockstitch.store.contract import Summary
from lockstitch.store.errors import CannotOpen
from lockstitch.store.keys import Key, new_key
from lockstitch.store.memory import MemoryStore
from tests.cli.commands import PROGRAM, lockstitch, program
from tests.store.kept import held, keep, odd_records

URL = "sqlite:///store.db"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder of its own for each test, and no keys."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LOCKSTITCH_STORE_KEY", raising=False)
    monkeypatch.delenv("LOCKSTITCH_STORE_KEY_FILE", raising=False)
    return tmp_path


def stored(url: str = URL, **conversations: list[Record]) -> None:
    async def work() -> None:
        async with open_store(url) as store:
            for conversation, records in conversations.items():
                await keep(store, conversation, *records)

    asyncio.run(work())


def content(url: str = URL) -> dict[str, list[Record]]:
    async def work() -> dict[str, list[Record]]:
        async with open_store(url) as store:
            return await held(store)

    return asyncio.run(work())


# --- stats, migrate, key -----------------------------------------------------------------------


def test_stats_tell_how_much_there_is():
    stored(a=odd_records(), b=odd_records()[:2])
    code, out, err = lockstitch("store", "stats", URL)
    assert (code, err) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in out.splitlines() if "large" not in line)
    assert lines["store"] == URL
    assert (lines["conversations"], lines["records"]) == ("2", "9")
    told = json.loads(lockstitch("store", "stats", URL, "--output", "json").out)
    assert (told["conversations"], told["records"], told["large_bodies"]) == (2, 9, 1)
    assert told["bytes"] > 0


def test_a_store_that_is_not_there_is_not_begun(folder):
    for arguments in (
        ["stats"],
        ["list"],
        ["export", "out.jsonl"],
        ["delete", "--older-than", "1", "--yes"],
    ):
        ran = lockstitch("store", arguments[0], "sqlite:///typo.db", *arguments[1:])
        assert ran.code == 2
        assert "There is no store at sqlite:///typo.db" in ran.err
    assert list(folder.iterdir()) == []


def test_migrate_makes_a_store(folder):
    code, out, _ = lockstitch("store", "migrate", URL)
    assert code == 0
    assert out.splitlines()[0] == f"store   {URL}"
    assert (folder / "store.db").exists()


def test_a_new_key_is_printed_and_no_two_are_the_same():
    one, other = lockstitch("store", "key"), lockstitch("store", "key")
    assert one.code == 0
    assert Key.from_text(one.out.strip()).id != Key.from_text(other.out.strip()).id


# --- list --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_conversations_are_listed_by_name_with_their_records_and_when_they_were_written_to(
    kind, request
):
    url = URL if kind == "sqlite" else request.getfixturevalue("postgres_url")
    names = {"b": odd_records(), "a name": odd_records()[:2], "c\x1b[31m\n": odd_records()[:1]}
    before = time.time()
    stored(url, **names)
    code, out, err = lockstitch("store", "list", url)
    assert (code, err) == (0, "")
    listed = [re.fullmatch(r"(\S+ \S+)  +(\d+)  (.+?) *", line) for line in out.splitlines()]
    assert [one[2] for one in listed] == ["2", "7", "1"]
    for line, name in zip(listed, ("a name", "b", "c\\x1b[31m\\x0a"), strict=True):
        assert name in line[3]
    moments = [datetime.fromisoformat(one[1]).replace(tzinfo=UTC).timestamp() for one in listed]
    assert all(before - 60 <= moment <= time.time() for moment in moments)
    told = json.loads(lockstitch("store", "list", url, "--output", "json").out)
    assert [(one["conversation"], one["records"]) for one in told["conversations"]] == [
        (name, len(names[name])) for name in sorted(names)
    ]
    assert all(before <= one["changed"] <= time.time() for one in told["conversations"])
    assert all(one["created"] <= one["changed"] for one in told["conversations"])


def test_an_encrypted_store_is_listed_with_its_key_and_without(monkeypatch):
    monkeypatch.setenv("LOCKSTITCH_STORE_KEY", new_key())
    stored(a=odd_records())
    sealed = lockstitch("store", "list", URL)
    monkeypatch.delenv("LOCKSTITCH_STORE_KEY")
    assert lockstitch("store", "list", URL) == sealed
    assert re.search(r" 7  -  +a  +-\n", sealed.out)


def test_of_an_empty_store_nothing_is_listed_and_that_is_told():
    lockstitch("store", "migrate", URL)
    code, out, err = lockstitch("store", "list", URL)
    assert (code, out, err) == (0, "", f"lockstitch: There is no conversation in {URL}.\n")
    ran = lockstitch("store", "list", URL, "--output", "json")
    assert json.loads(ran.out) == {"store": URL, "conversations": []}


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_list_is_printed_as_it_is_read(monkeypatch, output):
    """What was read is printed before the next is asked for: memory holds one."""

    class Torn(MemoryStore):
        async def conversations(self):
            for n in range(4):
                yield Summary(f"thread-{n}", 1, 0.0, 0.0)
            raise CannotOpen("the rest cannot be read")

    class Opening:
        async def __aenter__(self):
            return Torn()

        async def __aexit__(self, *_):
            pass

    monkeypatch.setattr(storing, "open_store", lambda *_, **__: Opening())
    code, out, err = lockstitch("store", "list", "memory:", "--output", output)
    assert (code, err) == (2, "lockstitch: the rest cannot be read\n")
    assert all(f"thread-{n}" in out for n in range(4))


@pytest.mark.parametrize(
    "arguments",
    [
        ["stats"],
        ["list"],
        ["list", "mysql://me:hunter2@host/x"],
        ["stats", "mysql://me:hunter2@host/x"],
        ["export", "sqlite://x", "out.jsonl"],
        ["delete", "memory:"],
        ["delete", "memory:", "--older-than", "1", "--conversation", "a"],
        ["delete", "memory:", "--older-than", "-1"],
        ["import", "memory:", "missing.jsonl"],
        ["rotate", "memory:"],
        ["nonsense"],
    ],
)
def test_a_mistake_gets_a_message_and_exit_code_2(arguments):
    ran = lockstitch("store", *arguments)
    assert ran.code == 2
    assert ran.err.strip()
    assert "hunter2" not in ran.err
    assert "a fault of its own" not in ran.err


# --- export and import -------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"{}", b"no export\n", b'{"type": []}\n'])
def test_what_is_no_export_makes_no_store(folder, content):
    (folder / "wrong.jsonl").write_bytes(content)
    ran = lockstitch("store", "import", "sqlite:///new.db", "wrong.jsonl")
    assert ran.code == 2
    assert "is no export of a store" in ran.err
    assert not (folder / "new.db").exists()


def test_an_export_that_is_imported_is_the_same_store(folder):
    stored(a=odd_records(), b=odd_records()[:2])
    code, out, err = lockstitch("store", "export", URL, "out.jsonl")
    assert (code, out, err) == (0, "Exported 2 conversations, 9 records.\n", "")
    assert (folder / "out.jsonl").stat().st_mode & 0o077 == 0
    code, out, err = lockstitch("store", "import", "sqlite:///other.db", "out.jsonl")
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == [
        "conversations  2",
        "records        9",
        "skipped        0",
        "refused        0",
    ]
    assert content("sqlite:///other.db") == content(URL)


def test_pipes_do_as_well():
    stored(a=odd_records())
    ran = program("store", "export", URL)
    assert ran.returncode == 0
    assert ran.stderr == b"Exported 1 conversation, 7 records.\n"
    again = program("store", "import", "sqlite:///other.db", "-", stdin=ran.stdout)
    assert again.returncode == 0
    assert content("sqlite:///other.db") == content(URL)


def test_some_conversations_may_be_exported():
    stored(a=odd_records(), b=odd_records()[:2], c=odd_records()[:1])
    options = ["--conversation", "c", "--conversation", "b"]
    ran = lockstitch("store", "export", URL, "out.jsonl", *options)
    assert ran.out == "Exported 2 conversations, 3 records.\n"


def test_an_export_that_fails_leaves_nothing_and_does_not_overwrite(folder):
    stored(a=odd_records())
    ran = lockstitch("store", "export", URL, "out.jsonl", "--conversation", "nobody")
    assert ran.code == 2
    assert "no conversation 'nobody'" in ran.err
    (folder / "there.jsonl").write_text("mine")
    ran = lockstitch("store", "export", URL, "there.jsonl")
    assert (ran.code, (folder / "there.jsonl").read_text()) == (2, "mine")
    assert "--force" in ran.err
    assert lockstitch("store", "export", URL, "there.jsonl", "--force").code == 0
    assert lockstitch("store", "export", URL, "no/folder/out.jsonl").code == 2
    assert {path.suffix for path in folder.iterdir()} == {".db", ".jsonl"}
    assert not (folder / "out.jsonl").exists()


def test_an_export_that_cannot_be_written_is_told_with_what_to_do(folder, monkeypatch):
    stored(a=odd_records())
    (folder / "file").write_text("")
    missing = f"there is no folder {folder}/no. Create it, or name another file"
    for name, said in (("no/out.jsonl", missing), ("file/out.jsonl", "Name another place.")):
        code, _, err = lockstitch("store", "export", URL, name)
        assert (code, said in err) == (2, True), err

    def refusing(**_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(storing.tempfile, "mkstemp", refusing)
    code, _, err = lockstitch("store", "export", URL, "out.jsonl")
    assert (code, err) == (
        2,
        f"lockstitch: {folder}/out.jsonl cannot be written: Permission denied. Name a file in a"
        " folder that you may write to, or - for standard output.\n",
    )


def test_an_export_replaces_no_device_and_no_link_and_never_the_store(folder):
    stored(a=odd_records())
    null = folder / "null"
    null.symlink_to("/dev/null")
    assert lockstitch("store", "export", URL, "null", "--force").code == 0
    assert null.is_char_device()
    (folder / "target.jsonl").write_text("old")
    (folder / "link.jsonl").symlink_to("target.jsonl")
    assert lockstitch("store", "export", URL, "link.jsonl", "--force").code == 0
    assert (folder / "link.jsonl").is_symlink()
    assert len((folder / "target.jsonl").read_text().splitlines()) > 7
    code, _, err = lockstitch("store", "export", URL, "./store.db", "--force")
    assert (code, err) == (2, "lockstitch: ./store.db: is the store itself. Name another file.\n")
    assert len(content()["a"]) == 7


def test_conversations_that_differ_are_named_and_the_exit_code_is_1():
    stored(a=odd_records(), b=odd_records())
    lockstitch("store", "export", URL, "out.jsonl")
    stored("sqlite:///other.db", a=odd_records()[:1], b=[Record(1, b"{}", at=1.0)])
    ran = lockstitch("store", "import", "sqlite:///other.db", "out.jsonl", "--output", "json")
    assert ran.code == 1
    told = json.loads(ran.out)
    assert (told["conversations"], told["records"], told["refused"]) == (1, 6, ["b"])
    assert "Conversation 'b' is there with other records" in ran.err
    assert content("sqlite:///other.db")["b"] == [Record(1, b"{}", at=1.0)]


def test_a_torn_export_is_told_with_its_line(folder):
    stored(a=odd_records(), b=odd_records())
    lockstitch("store", "export", URL, "out.jsonl")
    whole = (folder / "out.jsonl").read_bytes()
    (folder / "torn.jsonl").write_bytes(whole[:-200])
    ran = lockstitch("store", "import", "sqlite:///other.db", "torn.jsonl")
    assert ran.code == 2
    assert "torn.jsonl" in ran.err
    assert "complete conversations before that are in the store" in ran.err
    assert list(content("sqlite:///other.db")) == ["a"]


# --- delete ------------------------------------------------------------------------------------


def test_named_conversations_are_deleted():
    stored(a=odd_records(), b=odd_records(), c=odd_records())
    options = ["--conversation", "a", "--conversation", "c", "--yes", "--vacuum"]
    code, out, err = lockstitch("store", "delete", URL, *options)
    assert (code, out, err) == (0, f"store    {URL}\ndeleted  2\n", "")
    assert list(content()) == ["b"]


def test_a_conversation_that_is_not_there_is_told():
    stored(a=odd_records())
    ran = lockstitch("store", "delete", URL, "--conversation", "x", "--conversation", "a", "--yes")
    assert ran.code == 2
    assert "There is no conversation 'x'" in ran.err
    assert content() == {}


def test_what_is_older_is_deleted():
    stored(a=odd_records())
    ran = lockstitch("store", "delete", URL, "--older-than", "1", "--yes", "--output", "json")
    assert json.loads(ran.out)["deleted"] == 0
    ran = lockstitch("store", "delete", URL, "--older-than", "0", "--yes", "--output", "json")
    assert json.loads(ran.out)["deleted"] == 1
    assert content() == {}


def test_without_a_terminal_nothing_is_deleted_unasked():
    stored(a=odd_records())
    ran = program("store", "delete", URL, "--older-than", "0")
    assert ran.returncode == 2
    assert b"This would delete 1 conversation from sqlite:///store.db. Say --yes" in ran.stderr
    assert list(content()) == ["a"]


@pytest.mark.parametrize(("answer", "code", "left"), [("y", 0, []), ("n", 130, ["a"])])
def test_on_a_terminal_it_asks(answer, code, left):
    stored(a=odd_records())
    shown, ran = on_a_terminal("store", "delete", URL, "--conversation", "a", typed=answer + "\n")
    assert "Delete 'a' from sqlite:///store.db, for good? [y/N]" in shown
    assert ran == code
    assert list(content()) == left


def on_a_terminal(*arguments: str, typed: str = "") -> tuple[str, int]:
    """Run the program with a terminal for all its streams; what was shown, and the exit code."""
    here, there = pty.openpty()
    ran = subprocess.Popen([PROGRAM, *arguments], stdin=there, stdout=there, stderr=there)
    os.close(there)
    os.write(here, typed.encode())
    shown = b""
    try:
        while piece := os.read(here, 65536):
            shown += piece
    except OSError:
        pass  # the other end is closed
    os.close(here)
    return shown.decode(errors="replace"), ran.wait(timeout=60)


def test_a_bar_is_shown_on_a_terminal_only():
    stored(a=odd_records())
    shown, code = on_a_terminal("store", "export", URL, "out.jsonl")
    assert code == 0
    assert "Exporting" in shown
    assert b"Exporting" not in program("store", "export", URL).stderr


# --- keys --------------------------------------------------------------------------------------


def test_a_store_becomes_encrypted_and_changes_its_key(folder, monkeypatch):
    stored(a=odd_records())
    before = content()
    old, new = new_key(), new_key()
    (folder / "keys").write_text(f"{old}\n")
    monkeypatch.setenv("LOCKSTITCH_STORE_KEY_FILE", "keys")
    ran = lockstitch("store", "rotate", URL, "--vacuum", "--output", "json")
    assert ran.code == 0
    assert json.loads(ran.out)["sealed"] == 7
    assert b'{"fact":"opened"}' not in (folder / "store.db").read_bytes()
    assert content() == before
    (folder / "keys").write_text(f"{new}\n{old}\n")
    assert lockstitch("store", "rotate", URL).out.splitlines() == [
        f"store    {URL}",
        f"key      {Key.from_text(new).id.hex()}",
        "records  7",
        "sealed   7",
    ]
    (folder / "keys").write_text(f"{new}\n")
    assert content() == before


def test_an_encrypted_store_without_its_key_is_told(monkeypatch):
    monkeypatch.setenv("LOCKSTITCH_STORE_KEY", new_key())
    stored(a=odd_records())
    monkeypatch.setenv("LOCKSTITCH_STORE_KEY", new_key())
    ran = lockstitch("store", "export", URL, "out.jsonl")
    assert ran.code == 2
    assert "is encrypted with the key" in ran.err
    monkeypatch.delenv("LOCKSTITCH_STORE_KEY")
    for arguments in (["store", "export", URL, "out.jsonl"], ["check", f"store:{URL}"]):
        ran = lockstitch(*arguments)
        assert ran.code == 2
        assert "is encrypted, and no key was given" in ran.err


# --- check store: ------------------------------------------------------------------------------


def conversation(
    name: str, *, imported: bool = False, started: bool = False, settled: bool = False
) -> None:
    """A conversation with one call, which was started or settled, or neither."""
    call = {"type": "function_call", "call_id": f"call_{name}", "name": "f", "arguments": "{}"}

    async def work() -> None:
        async with open_store(URL) as store, await Journal.open(store, name) as journal:
            await journal.append(item_added("Hello"))
            if imported:
                await journal.append(item_added(call, "import"))
            else:
                await journal.append(
                    RequestPrepared(mode=Mode.CHAIN, base=START, covers=2, sent=(2,)),
                    RequestSent(request=3),
                    ResponseOpened(request=3, id="resp_1"),
                    ItemCompleted(request=3, item=json.dumps(call).encode()),
                    ResponseEnded(request=3, ending=Ending.COMPLETED),
                )
            (made,) = journal.ledger.unsettled()
            if started:
                await journal.append(CallStarted(call=made.seq))
            if settled:
                await journal.append(call_settled(journal.ledger, made, "done"))

    asyncio.run(work())


def test_a_store_is_checked_conversation_by_conversation():
    conversation("whole", settled=True)
    conversation("begun", started=True)
    conversation("broken")
    code, out, err = lockstitch("check", f"store:{URL}")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        f"store:{URL}#begun: LS001 call_begun (f) has no output [entry 6]",
        f"store:{URL}#broken: LS001 call_broken (f) has no output; it was never started [entry 6]",
        "Found 2 problems in 2 of 3 conversations (23 records).",
    ]


def test_nobody_says_that_a_call_that_was_brought_along_was_never_started():
    """Whoever had it before may have run it."""
    conversation("brought", imported=True)
    code, out, _ = lockstitch("check", f"store:{URL}")
    assert code == 1
    assert out.splitlines()[0] == (
        f"store:{URL}#brought: LS001 call_brought (f) has no output [entry 3]"
    )


def test_a_whole_store_is_clean():
    conversation("a", settled=True)
    assert lockstitch("check", f"store:{URL}") == (0, "All clean: 1 conversation, 8 records.\n", "")


def test_rules_may_be_chosen_for_a_store_too():
    conversation("broken")
    assert lockstitch("check", f"store:{URL}", "--ignore", "LS001").code == 0
    told = json.loads(lockstitch("check", f"store:{URL}", "--output", "json").out)
    (file,) = told["files"]
    assert file["format"] == "store"
    assert file["findings"][0]["call_id"] == "call_broken"


def test_files_and_stores_are_checked_together(folder):
    conversation("broken")
    (folder / "history.jsonl").write_text('{"role":"user","content":"Hello"}\n')
    code, out, _ = lockstitch("check", "history.jsonl", f"store:{URL}")
    assert code == 1
    assert out.splitlines()[-1] == "Found 1 problem in 1 of 2 files (8 records)."


def test_an_empty_store_has_nothing_wrong():
    lockstitch("store", "migrate", URL)
    assert lockstitch("check", f"store:{URL}").code == 0


def test_a_conversation_that_is_no_ledger_is_told_and_the_others_are_checked():
    stored(odd=odd_records())
    conversation("broken")
    code, out, err = lockstitch("check", f"store:{URL}")
    assert code == 2
    assert f"store:{URL}#odd: Entry " in err
    assert "call_broken (f) has no output" in out


def test_a_store_that_cannot_be_opened_is_told():
    ran = lockstitch("check", "store:sqlite:///typo.db")
    assert ran.code == 2
    assert "There is no store at sqlite:///typo.db" in ran.err


def test_a_store_that_may_not_be_looked_at_is_told():
    url = f"sqlite:///{'x' * 300}"
    for ran in (lockstitch("check", f"store:{url}"), lockstitch("store", "stats", url)):
        assert ran.code == 2
        assert f"{url} cannot be opened: File name too long. Look at the path" in ran.err


def test_the_file_of_a_store_is_no_session_and_who_names_it_is_told_what_to_name(folder):
    conversation("broken")
    code, _, err = lockstitch("check", "store.db")
    assert code == 2
    assert err == (
        "lockstitch: store.db: is a store of Lockstitch, not a session. "
        "Check what it holds: lockstitch check store:sqlite:///store.db\n"
    )
    assert lockstitch("check", ".").code == 2  # in a folder it is passed over, and nothing is left


# --- stopping ----------------------------------------------------------------------------------


def test_a_compressed_export_is_read_too(folder):
    stored(a=odd_records())
    lockstitch("store", "export", URL, "out.jsonl")
    packed = gzip.compress((folder / "out.jsonl").read_bytes())
    (folder / "out.jsonl.gz").write_bytes(packed)
    assert lockstitch("store", "import", "sqlite:///other.db", "out.jsonl.gz").code == 0
    assert content("sqlite:///other.db") == content(URL)


def test_ctrl_c_is_exit_code_130_and_no_traceback():
    command = [PROGRAM, "store", "import", URL, "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": "."}
    ) as running:
        while not list(Path().glob("lockstitch-*/stdin")):  # it has begun to read
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 130
        assert b"Traceback" not in running.stderr.read()
    assert list(Path().iterdir()) == []


def test_a_reader_of_a_list_that_has_seen_enough_is_no_error():
    async def work() -> None:
        async with open_store(URL) as store:
            for n in range(2000):  # more than a pipe holds
                name = f"{n:04}-{'x' * 50}"
                await store.begin(name, [], owner="test", seconds=1, release=True)

    asyncio.run(work())
    for output in ("text", "json"):
        shell = f"'{PROGRAM}' store list {URL} --output {output} | head -n 1"
        ran = subprocess.run(["sh", "-c", shell], capture_output=True, timeout=60, check=False)
        assert ran.stdout.count(b"\n") == 1
        assert ran.stderr == b""


def test_a_reader_that_has_seen_enough_is_no_error():
    stored(a=[Record(n, b"{}", b"x" * 3000) for n in range(1, 200)])
    shell = f"'{PROGRAM}' store export {URL} | head -n 1"
    ran = subprocess.run(["sh", "-c", shell], capture_output=True, timeout=60, check=False)
    assert ran.stdout == b'{"line":"lockstitch store","version":1}\n'
    assert b"Traceback" not in ran.stderr
