"""Databases of the OpenAI Agents SDK, made and read back by the SDK itself."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from agents import SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession, EncryptedSession
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core import mending
from lockstitch.core.mending import Policy
from lockstitch.sessions import agents_sqlite_opening
from lockstitch.sessions.agents_sqlite import AgentsDatabase, is_sqlite
from lockstitch.sessions.errors import CannotRead, CannotWrite, NotASession
from lockstitch.sessions.source import Source
from tests.generated import HISTORIES, examples


def call(key="call_a", name="get_weather", **more):
    return {"type": "function_call", "call_id": key, "name": name, "arguments": "{}", **more}


def output(key="call_a", text="21 °C", **more):
    return {"type": "function_call_output", "call_id": key, "output": text, **more}


def user(text="hello"):
    return {"role": "user", "content": text}


def said(text="done"):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content}


WHOLE = [user(), call(), output(), said()]


# --- the SDK's side ----------------------------------------------------------------------------


def store(path, items, session="thread-42", **options):
    with contextlib.closing(SQLiteSession(session, path, **options)) as made:
        asyncio.run(made.add_items(items))


def load(path, session="thread-42", **options):
    with contextlib.closing(SQLiteSession(session, path, **options)) as made:
        return asyncio.run(made.get_items())


@contextlib.contextmanager
def advanced(path, session="thread-42", **options):
    made = AdvancedSQLiteSession(session_id=session, db_path=path, create_tables=True, **options)
    with contextlib.closing(made):
        yield made


def load_branch(path, branch, session="thread-42", **options):
    with advanced(path, session, **options) as made:
        return asyncio.run(made.get_items(branch_id=branch))


def rows(path, query, *parameters):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(query, parameters).fetchall()


def change(path, query, *parameters):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(query, parameters)


# --- our side ----------------------------------------------------------------------------------


def scanned(path):
    return AgentsDatabase().scan(Source(path))


def codes(scan):
    return {one.label: [f.code for f in one.findings] for one in scan.conversations}


def write_once(path, target, policy=None):
    source = Source(path)
    database = AgentsDatabase()
    with target.open("wb") as raw:
        out = source.compressing(raw)
        changes = database.write(source, out, database.scan(source), policy or Policy())
        if out is not raw:
            out.close()
    return changes


def mended(path, policy=None):
    """Mended as the command line does it, in rounds: the new file and everything that was done."""
    done = []
    for turn in range(mending.MOST_ROUNDS):
        target = path.with_name(f"{turn}-{path.name}")
        changes = write_once(path, target, policy)
        if not changes:
            return path, done
        done += changes
        path = target
    raise AssertionError(f"not whole: {codes(scanned(path))}")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sessions.db"


# --- reading -----------------------------------------------------------------------------------


def test_a_sqlite_database_is_known_by_its_first_bytes(path):
    store(path, WHOLE)
    assert is_sqlite(path.read_bytes()[:100])
    assert not is_sqlite(b'{"role": "user"}')


def test_a_whole_database_has_no_findings_and_nothing_is_written(path):
    store(path, WHOLE)
    scan = scanned(path)
    assert (scan.format, scan.word, scan.records) == ("agents-sqlite", "row", 4)
    assert codes(scan) == {"session thread-42": []}
    assert mended(path) == (path, [])


def test_a_finding_names_the_row_and_the_session(path):
    store(path, [user(), call()], session="other")
    store(path, WHOLE)
    (found,) = scanned(path).findings()
    assert found.label == "session other"
    assert found.finding.place.at == 2
    assert found.finding.code == "LS001"
    store(path, [output(text="again")])
    second = scanned(path).findings()[1]
    assert second.message == "second output for call_a (get_weather); the first is at row 5"


def test_an_anchored_database_may_begin_with_an_output(path):
    store(path, [output(), said()])
    assert codes(scanned(path)) == {"session thread-42": ["LS002"]}
    scan = AgentsDatabase().scan(Source(path), anchored=True)
    assert codes(scan) == {"session thread-42": []}


def test_chat_messages_are_checked_as_chat_messages(path):
    asked = {"role": "assistant", "content": None, "tool_calls": [{"id": "call_a"}]}
    store(path, [user(), asked, user("well?")])
    assert codes(scanned(path)) == {"session thread-42": ["LS001"]}
    new, (done,) = mended(path)
    answer = load(new)[2]
    assert answer["role"] == "tool"
    assert answer["tool_call_id"] == "call_a"
    assert [json.loads(data) for data in done.after] == [answer]
    assert lockstitch.check(load(new)) == []


def test_a_refusal_does_not_make_a_history_one_of_chat_messages(path):
    refused = {"type": "message", "role": "assistant", "content": [{"type": "refusal"}]}
    store(path, [user(), refused, call()])
    assert codes(scanned(path)) == {"session thread-42": ["LS001"]}


def test_encrypted_items_pass_through(path):
    pytest.importorskip("cryptography")
    inner = SQLiteSession("thread-42", path)
    outer = EncryptedSession("thread-42", inner, encryption_key="secret")
    asyncio.run(outer.add_items([user(), call()]))
    inner.close()
    assert "__enc__" in load(path)[0]
    assert codes(scanned(path)) == {"session thread-42": []}


def test_ids_are_settled_by_a_second_reading_when_there_are_many(path, monkeypatch):
    monkeypatch.setattr("lockstitch.core.seen.EXACT_IDS", 3)
    history = [said(str(n)) | {"id": f"msg_{n}"} for n in range(40)]
    store(path, [*history, said("again") | {"id": "msg_1"}])
    (found,) = scanned(path).findings()
    assert found.finding.code == "LS008"
    assert found.message == "item id msg_1 is already used (row 2)"


def test_what_is_only_in_the_wal_is_seen(path):
    live = SQLiteSession("thread-42", path)
    asyncio.run(live.add_items([user(), call()]))
    assert Path(f"{path}-wal").stat().st_size > 0
    assert codes(scanned(path)) == {"session thread-42": ["LS001"]}
    new, _ = mended(path)
    assert lockstitch.check(load(new)) == []
    live.close()


def test_a_wal_that_was_copied_along_is_seen_and_nothing_appears_beside_it(path, tmp_path):
    live = SQLiteSession("thread-42", path)
    asyncio.run(live.add_items([user(), call()]))
    folder = tmp_path / "copied"
    folder.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", folder)
    live.close()
    copied = folder / path.name
    assert codes(scanned(copied)) == {"session thread-42": ["LS001"]}
    assert sorted(os.listdir(folder)) == [path.name, f"{path.name}-wal"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs another user")
@pytest.mark.parametrize("suffixes", [[""], ["", "-wal"], ["", "-wal", "-shm"]])
def test_a_database_in_a_read_only_folder_is_read(path, suffixes):
    live = SQLiteSession("thread-42", path)
    asyncio.run(live.add_items([user(), call()]))
    if suffixes == [""]:
        live.close()
    with tempfile.TemporaryDirectory() as folder:
        for suffix in suffixes:
            shutil.copy(f"{path}{suffix}", folder)
            os.chmod(f"{folder}/{path.name}{suffix}", 0o444)
        os.chmod(folder, 0o555)
        try:
            assert _codes_as_nobody(Path(folder, path.name)) == {"session thread-42": ["LS001"]}
            assert set(os.listdir(folder)) == {f"{path.name}{suffix}" for suffix in suffixes}
        finally:
            os.chmod(folder, 0o755)
    live.close()


def _codes_as_nobody(path):
    """What a reader without any rights finds; root may write into a read-only folder."""
    if os.geteuid() != 0:
        return codes(scanned(path))
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setuid(65534)
            os.write(written, json.dumps(codes(scanned(path))).encode())
        except BaseException as error:
            os.write(written, json.dumps(repr(error)).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(written)
    with open(read, "rb") as answer:
        return json.load(answer)


def test_reading_and_writing_leave_the_file_and_its_folder_as_they_were(path, tmp_path):
    store(path, [user(), call(), user("well?")])
    before = path.read_bytes()
    target = tmp_path / "out" / "mended.db"
    target.parent.mkdir()
    assert write_once(path, target)
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["out", path.name]
    assert os.listdir(target.parent) == [target.name]


def test_a_path_with_odd_characters_is_opened(tmp_path):
    path = tmp_path / "a?b#c%20d é.db"
    store(path, [user(), call()])
    assert codes(scanned(path)) == {"session thread-42": ["LS001"]}


# --- mending: SQLiteSession --------------------------------------------------------------------


BROKEN = {
    "an open call in the middle": [user(), call(), user("well?"), said()],
    "an open call at the end": [user(), call()],
    "an orphan output": [user(), output("call_x"), said()],
    "a second output": [user(), call(), output(), output(text="again"), said()],
    "an output before its call": [user(), output(), call(), said()],
    "an output of another family": [
        user(),
        call(),
        {"type": "custom_tool_call_output", "call_id": "call_a", "output": "21 °C"},
    ],
    "an id used twice": [user(), call(), call(), output(), output(), said()],
    "half of a group": [user(), call(), call("call_b"), output("call_b"), said()],
    "the same item id": [user(), said() | {"id": "msg_1"}, said("so") | {"id": "msg_1"}],
    "reasoning alone": [user(), {"type": "reasoning", "id": "rs_1", "summary": []}, user()],
}


@pytest.mark.parametrize("history", BROKEN.values(), ids=BROKEN)
def test_a_mended_database_is_read_back_by_the_sdk_with_every_pair_whole(path, history):
    store(path, history)
    before = path.read_bytes()
    new, changes = mended(path)
    assert changes
    items = load(new)
    assert lockstitch.check(items) == []
    assert mended(new) == (new, [])
    assert path.read_bytes() == before
    if "used twice" not in str(changes):
        assert [i.get("type") for i in items] == [i.get("type") for i in lockstitch.mend(history)]


@pytest.mark.parametrize("history", BROKEN.values(), ids=BROKEN)
def test_the_same_database_is_always_mended_to_the_same_rows(path, tmp_path, history):
    store(path, history)
    everything = "SELECT * FROM agent_messages ORDER BY id"
    write_once(path, tmp_path / "one.db")
    write_once(path, tmp_path / "two.db")
    assert rows(tmp_path / "one.db", everything) == rows(tmp_path / "two.db", everything)


def test_an_output_is_put_behind_its_call_and_rows_behind_it_move_up(path):
    store(path, [user(), call(), user("well?")])
    change(path, "UPDATE agent_messages SET created_at = '2001-02-03 04:05:06' WHERE id = 2")
    store(path, WHOLE, session="other")
    new, (done,) = mended(path)
    assert (done.code, done.at, done.label) == ("LS001", 2, "session thread-42")
    assert done.what == (
        "call_a (get_weather) has no output: added an output for call_a (outcome unknown)"
    )
    assert done.before == []
    found = rows(new, "SELECT id, session_id, message_data, created_at FROM agent_messages")
    assert [row[0] for row in found] == list(range(1, 9))
    assert found[2][1] == "thread-42"
    assert found[2][2].encode() == done.after[0]
    assert found[2][3] == "2001-02-03 04:05:06"
    assert load(new, session="other") == WHOLE
    assert rows(new, "SELECT seq FROM sqlite_sequence WHERE name = 'agent_messages'") == [(8,)]
    store(new, [user("more")])
    assert rows(new, "SELECT MAX(id) FROM agent_messages") == [(9,)]


def test_untouched_rows_keep_their_exact_text(path):
    store(path, [user(), call(), user("well?")])
    odd = '{ "role":"user",\t"content": "\\u00e9 é" , "x": 1.50}'
    change(path, "UPDATE agent_messages SET message_data = ? WHERE id = 3", odd)
    new, _ = mended(path)
    assert rows(new, "SELECT message_data FROM agent_messages WHERE id = 4") == [(odd,)]


def test_what_is_removed_or_moved_is_in_the_report(path):
    store(path, [output(text="early"), call(), output("call_x", "lost")])
    texts = [text.encode() for (text,) in rows(path, "SELECT message_data FROM agent_messages")]
    _, (moved, dropped) = mended(path)
    assert (moved.code, moved.at, moved.before, moved.after) == ("LS003", 1, texts[:1], texts[:1])
    assert (dropped.code, dropped.at, dropped.before, dropped.after) == ("LS002", 3, texts[2:], [])


def test_only_the_broken_session_is_touched(path):
    store(path, WHOLE[:2], session="whole")
    store(path, [user(), call()], session="broken")
    store(path, WHOLE[2:], session="whole")
    store(path, [user("well?")], session="broken")
    new, changes = mended(path)
    assert [one.label for one in changes] == ["session broken"]
    assert load(new, session="whole") == WHOLE
    assert [item.get("type") for item in load(new, session="broken")] == [
        None,
        "function_call",
        "function_call_output",
        None,
    ]


def test_tables_may_have_any_name(path):
    names = {"sessions_table": "chats", "messages_table": "chat_lines_é"}
    store(path, [user(), call(), user()], **names)
    assert codes(scanned(path)) == {"session thread-42": ["LS001"]}
    new, _ = mended(path)
    assert lockstitch.check(load(new, **names)) == []


def test_every_pair_of_tables_in_a_file_is_checked(path):
    names = {"sessions_table": "chats", "messages_table": "lines"}
    store(path, WHOLE)
    store(path, [user(), call(), user()], **names)
    assert codes(scanned(path)) == {
        "session thread-42 of agent_messages": [],
        "session thread-42 of lines": ["LS001"],
    }
    new, _ = mended(path)
    assert load(new) == WHOLE
    assert lockstitch.check(load(new, **names)) == []


def test_foreign_tables_that_refer_to_messages_follow_them(path):
    store(path, [user(), call(), user("well?")])
    change(path, "CREATE TABLE stars (message INTEGER UNIQUE REFERENCES agent_messages(id))")
    change(path, "INSERT INTO stars VALUES (2), (3), (77)")
    new, _ = mended(path)
    assert rows(new, "SELECT message FROM stars ORDER BY 1") == [(2,), (4,), (78,)]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ('{"role": "us', "the row is torn or not JSON"),
        ('["role"]', "the row is JSON, but not an item"),
        (b'{"role": "\xff"}', "the row is not UTF-8"),
        ("[" * 100_000, "the row is nested too deeply"),
    ],
)
def test_a_row_that_cannot_be_decoded_is_removed_and_kept_in_the_report(path, data, problem):
    store(path, WHOLE)
    raw = data if isinstance(data, bytes) else data.encode()
    change(path, "UPDATE agent_messages SET message_data = CAST(? AS TEXT) WHERE id = 4", raw)
    (found,) = scanned(path).findings()
    assert (found.finding.code, found.finding.place.at) == ("LS101", 4)
    assert found.message == problem
    new, (done,) = mended(path)
    assert done.what == f"{problem}: removed it"
    assert done.before == [raw]
    assert load(new) == WHOLE[:3]


def test_a_row_that_only_the_sdk_can_decode_is_an_item(path):
    store(path, [user(), call(), output(text="\ud800", score=float("nan"))])
    assert codes(scanned(path)) == {"session thread-42": []}


def test_a_policy_that_keeps_everything_changes_nothing(path, tmp_path):
    store(path, [user(), call(), output("call_x")])
    policy = Policy(settle=False, drop_orphans=False)
    assert write_once(path, tmp_path / "none.db", policy) == []
    assert (tmp_path / "none.db").read_bytes() == b""


def test_the_last_output_can_be_kept(path):
    store(path, [user(), call(), output(text="one"), user(), output(text="two")])
    new, _ = mended(path, Policy(keep="last"))
    assert [item.get("output") for item in load(new)] == [None, None, "two", None]


def test_a_mended_database_is_one_file_and_passes_the_check_of_sqlite(path):
    store(path, [user(), call(), user()])
    new, _ = mended(path)
    assert new.read_bytes()[18:20] == b"\x01\x01"
    assert rows(new, "PRAGMA integrity_check") == [("ok",)]
    assert rows(new, "PRAGMA foreign_key_check") == []


def test_a_compressed_database_is_mended_into_a_compressed_one(path, tmp_path):
    store(path, [user(), call(), user()])
    packed = tmp_path / "sessions.db.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert codes(scanned(packed)) == {"session thread-42": ["LS001"]}
    new, _ = mended(packed)
    unpacked = tmp_path / "unpacked.db"
    unpacked.write_bytes(gzip.decompress(new.read_bytes()))
    assert lockstitch.check(load(unpacked)) == []


# --- mending: AdvancedSQLiteSession ------------------------------------------------------------


def branched(path, shared, main, branch, **options):
    """A session whose branch `b2` shares a part with `main`; both go on by themselves."""

    async def fill(session):
        await session.add_items(shared)
        await session.add_items([user("main goes on"), *main])
        turns = sum(item.get("role") == "user" for item in shared)
        await session.create_branch_from_turn(turns + 1, "b2")
        await session.add_items([user("b2 goes on"), *branch])
        await session.switch_to_branch("main")
        await session.add_items([said("main ends")])

    with advanced(path, **options) as session:
        asyncio.run(fill(session))


def test_branch_main_is_named_only_where_there_are_others(path):
    with advanced(path, "alone") as session:
        asyncio.run(session.add_items(WHOLE))
    branched(path, WHOLE, [], [])
    store(path, WHOLE, session="plain")
    assert list(codes(scanned(path))) == [
        "session alone",
        "session thread-42 branch main",
        "session thread-42 branch b2",
        "session plain",
    ]


def test_a_shared_part_is_reported_for_each_branch_and_edited_once(path):
    branched(path, [user(), call("call_s"), user("well?")], [], [])
    assert codes(scanned(path)) == {
        "session thread-42 branch main": ["LS001"],
        "session thread-42 branch b2": ["LS001"],
    }
    (count,) = rows(path, "SELECT COUNT(*) FROM agent_messages")[0]
    new, changes = mended(path)
    assert [(one.at, one.label) for one in changes] == [
        (2, "session thread-42 branch main"),
        (2, "session thread-42 branch b2"),
    ]
    assert rows(new, "SELECT COUNT(*) FROM agent_messages") == [(count + 1,)]
    for branch in ("main", "b2"):
        items = load_branch(new, branch)
        assert items[2]["type"] == "function_call_output"
        assert lockstitch.check(items) == []


def test_shared_and_own_parts_of_branches_are_mended_together(path):
    shared = [user(), output("call_x"), call("call_s"), output("call_s"), output("call_s", "again")]
    branched(path, shared, [call("call_m"), said()], [call("call_b"), user("well?")])
    assert codes(scanned(path)) == {
        "session thread-42 branch main": ["LS002", "LS004", "LS001"],
        "session thread-42 branch b2": ["LS002", "LS004", "LS001"],
    }
    new, _ = mended(path)
    main, b2 = load_branch(new, "main"), load_branch(new, "b2")
    assert lockstitch.check(main) == []
    assert lockstitch.check(b2) == []
    assert [item.get("call_id") for item in main] == [
        *[None, "call_s", "call_s", None],
        *["call_m", "call_m", None, None],
    ]
    assert [item.get("call_id") for item in b2] == [
        *[None, "call_s", "call_s", None],
        *["call_b", "call_b", None],
    ]
    assert mended(new) == (new, [])
    assert rows(new, "PRAGMA foreign_key_check") == []
    left = "SELECT id FROM agent_messages EXCEPT SELECT message_id FROM message_structure"
    assert rows(new, left) == []


def test_a_call_that_one_branch_answers_later_is_settled_in_the_other_alone(path):
    branched(path, [user(), call("call_s")], [output("call_s", "21 °C")], [said()])
    assert codes(scanned(path)) == {
        "session thread-42 branch main": [],
        "session thread-42 branch b2": ["LS001"],
    }
    before = load_branch(path, "main")
    new, _ = mended(path)
    assert load_branch(new, "main") == before
    assert lockstitch.check(load_branch(new, "b2")) == []


def test_a_shared_message_is_parted_where_branches_disagree(path):
    wrong = {"type": "custom_tool_call_output", "call_id": "call_s", "output": "odd"}
    branched(path, [user(), call("call_s"), wrong], [output("call_s")], [said()])
    # In main the right output follows, so the wrong one goes; in b2 it is all there is.
    new, _ = mended(path)
    main, b2 = load_branch(new, "main"), load_branch(new, "b2")
    assert [item.get("output") for item in main if "output" in item] == ["21 °C"]
    assert [item.get("output") for item in b2 if "output" in item] == ["odd"]
    assert lockstitch.check(main) == []
    assert lockstitch.check(b2) == []
    with advanced(new) as session:
        turns = asyncio.run(session.get_conversation_by_turns(branch_id="b2"))
    assert [one["type"] for one in turns[1]] == ["user", "function_call", "function_call_output"]


def test_one_branch_can_change_a_message_that_another_keeps(path):
    branched(path, [user(), said() | {"id": "msg_1"}, call("call_s")], [output("call_s")], [])
    with advanced(path) as session:
        asyncio.run(session.switch_to_branch("b2"))
        asyncio.run(session.add_items([call("call_s"), output("call_s"), output("call_s")]))
    before = load_branch(path, "main")
    new, _ = mended(path)
    assert load_branch(new, "main") == before
    assert lockstitch.check(load_branch(new, "b2")) == []


def test_a_new_row_stands_in_the_turn_of_its_call(path):
    branched(path, [user(), call("call_s"), user("well?")], [call("call_m")], [])
    search = {"type": "tool_search_call", "call_id": "call_t", "execution": "client"}
    with advanced(path) as session:
        asyncio.run(session.add_items([search, said()]))
    new, _ = mended(path)
    found = rows(
        new,
        "SELECT s.branch_id, s.message_type, s.tool_name, s.user_turn_number, s.branch_turn_number"
        " FROM message_structure s JOIN agent_messages m ON m.id = s.message_id"
        " WHERE m.message_data LIKE '%lockstitch%' OR s.message_type = 'tool_search_output'"
        " ORDER BY s.branch_id, s.sequence_number",
    )
    assert found == [
        ("b2", "function_call_output", None, 1, 1),
        ("main", "function_call_output", None, 1, 1),
        ("main", "function_call_output", None, 3, 3),
        ("main", "tool_search_output", "tool_search", 3, 3),
    ]
    numbers = rows(new, "SELECT sequence_number FROM message_structure ORDER BY 1")
    assert [n for (n,) in numbers] == list(range(1, len(numbers) + 1))


def test_a_branch_goes_on_after_mending(path):
    branched(path, [user(), call("call_s")], [call("call_m")], [call("call_b")])
    new, _ = mended(path)
    with advanced(new) as session:
        asyncio.run(session.add_items([user("more"), call("call_n"), output("call_n")]))
        asyncio.run(session.create_branch_from_turn(2, "b3"))
        items = asyncio.run(session.get_items())
    assert [item.get("type") for item in items] == [None, "function_call", "function_call_output"]
    assert codes(scanned(new)) == {
        "session thread-42 branch main": [],
        "session thread-42 branch b2": [],
        "session thread-42 branch b3": [],
    }


def test_usage_of_a_turn_that_is_gone_is_gone(path):
    with advanced(path) as session:
        asyncio.run(session.add_items([output("call_x"), user(), said()]))
    for turn in (0, 1):
        change(
            path,
            "INSERT INTO turn_usage (session_id, branch_id, user_turn_number) VALUES (?, ?, ?)",
            *("thread-42", "main", turn),
        )
    new, _ = mended(path)
    assert rows(new, "SELECT user_turn_number FROM turn_usage") == [(1,)]


def test_a_message_that_two_writers_put_twice_into_a_branch_is_told_apart(path):
    # Older versions wrote messages and structure in two steps: of two writers at a time both
    # could take the newest messages for theirs.
    with advanced(path) as session:
        asyncio.run(session.add_items([user(), call(), output(), said()]))
    change(
        path,
        "INSERT INTO message_structure (session_id, message_id, branch_id, message_type,"
        " sequence_number, user_turn_number, branch_turn_number) SELECT session_id, message_id,"
        " branch_id, message_type, 3, 1, 1 FROM message_structure WHERE message_id = 3",
    )
    (found,) = scanned(path).findings()
    assert found.message == "second output for call_a (get_weather); the first is at row 3"
    new, (done,) = mended(path)
    assert (done.code, done.at) == ("LS004", 3)
    assert load_branch(new, "main") == WHOLE


def test_new_rows_stand_before_a_twin_with_the_same_sequence_number(path):
    with advanced(path) as session:
        asyncio.run(session.add_items([user(), call(), user("well?")]))
    change(path, "UPDATE message_structure SET sequence_number = 2 WHERE message_id = 3")
    new, _ = mended(path)
    assert [item.get("type") for item in load_branch(new, "main")] == [
        *[None, "function_call", "function_call_output", None]
    ]


def test_structure_may_belong_to_tables_of_any_name(path):
    names = {"sessions_table": "chats", "messages_table": "lines"}
    store(path, WHOLE)
    branched(path, [user(), call("call_s")], [], [], **names)
    new, changes = mended(path)
    assert {one.label for one in changes} == {
        "session thread-42 branch main of lines",
        "session thread-42 branch b2 of lines",
    }
    for branch in ("main", "b2"):
        assert lockstitch.check(load_branch(new, branch, **names)) == []


# --- any history -------------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(st.lists(HISTORIES["responses"], min_size=3, max_size=3))
def test_any_database_is_mended_to_one_that_checks_clean(tmp_path_factory, histories):
    path = tmp_path_factory.mktemp("any") / "sessions.db"
    shared, main, branch = ([user(), *history] for history in histories)
    branched(path, shared, main, branch)
    store(path, shared, session="plain")
    new, _ = mended(path)
    assert codes(scanned(new)) == {label: [] for label in codes(scanned(path))}
    for name in ("main", "b2"):
        assert lockstitch.check(load_branch(new, name), dialect="responses") == []
    assert lockstitch.check(load(new, session="plain"), dialect="responses") == []
    ids = "SELECT message_id FROM message_structure WHERE branch_id = ? ORDER BY sequence_number"
    for name in ("main", "b2"):
        found = rows(new, ids, name)
        assert found == sorted(found)


@settings(max_examples=examples(60))
@given(HISTORIES["responses"])
def test_a_database_is_mended_as_a_list_is(tmp_path_factory, history):
    path = tmp_path_factory.mktemp("list") / "sessions.db"
    store(path, [user(), *history])
    expected = lockstitch.mend([user(), *history], dialect="responses")
    if any(isinstance(edit, mending.Rekey) for edit in expected.edits):
        return  # new call ids are made from positions, which differ
    new, _ = mended(path)
    assert load(new) == list(expected)


# --- what goes wrong ---------------------------------------------------------------------------


LOCKER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = DELETE")
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_locked_database_is_said_to_be_locked(path, monkeypatch):
    monkeypatch.setattr(agents_sqlite_opening, "BUSY_SECONDS", 0.05)
    store(path, WHOLE)
    locker = subprocess.Popen(
        [sys.executable, "-c", LOCKER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert locker.stdout.readline() == b"locked\n"
        with pytest.raises(CannotRead, match=r"locked by another process\. Stop the process"):
            scanned(path)
    finally:
        locker.communicate()


def test_another_database_is_not_a_session(path):
    change(path, "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, text TEXT)")
    with pytest.raises(NotASession, match="no table with the columns id, session_id, message_data"):
        scanned(path)
    change(path, "DROP TABLE agent_messages")
    change(path, "CREATE TABLE m (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT)")
    with pytest.raises(NotASession, match="session_id, created_at, updated_at"):
        scanned(path)


def test_a_truncated_database_is_said_to_be_damaged(path):
    store(path, [said("x" * 3000) for _ in range(50)])
    path.write_bytes(path.read_bytes()[: 3 * 4096])
    with pytest.raises(CannotRead, match=r"is damaged .* Recover it first"):
        scanned(path)


def test_a_file_that_only_begins_like_a_database_is_not_one(path):
    path.write_bytes(b"SQLite format 3\0" + b"nonsense" * 1000)
    with pytest.raises(CannotRead, match="is not a SQLite database"):
        scanned(path)


def test_damage_that_reading_does_not_meet_is_met_before_a_copy_is_given_out(path, tmp_path):
    store(path, [user(), call(), *[said("x" * 3000) for _ in range(50)]])
    change(path, "CREATE TABLE other (x)")
    change(path, "INSERT INTO other VALUES (1)")
    (page,) = rows(path, "SELECT rootpage FROM sqlite_master WHERE name = 'other'")[0]
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(data)
    target = tmp_path / "mended.db"
    with pytest.raises(CannotWrite, match="integrity check"):
        write_once(path, target)
    assert target.read_bytes() == b""


def test_a_database_that_grows_between_reading_and_writing_is_not_written(path, tmp_path):
    store(path, [user(), call()])
    source = Source(path)
    scan = AgentsDatabase().scan(source)
    store(path, [output()])
    with (tmp_path / "out.db").open("wb") as out, pytest.raises(CannotWrite, match="it changed"):
        AgentsDatabase().write(source, out, scan, Policy())


def test_a_database_that_grows_while_it_is_read_is_said_to_change(path):
    store(path, WHOLE)
    with (
        pytest.raises(CannotRead, match="changed while it was being read"),
        agents_sqlite_opening.opened(Source(path)),
    ):
        store(path, WHOLE)


def test_a_crashed_transaction_is_rolled_back_in_a_copy(path, tmp_path):
    store(path, [user(), call()])
    change(path, "PRAGMA journal_mode = DELETE")
    busy = sqlite3.connect(path, isolation_level=None)
    busy.execute("PRAGMA cache_size = 1")
    busy.execute("BEGIN")
    busy.execute("DELETE FROM agent_messages WHERE id = 2")
    for _ in range(50):
        busy.execute(
            "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", ("x", "y" * 9000)
        )
    folder = tmp_path / "crashed"
    folder.mkdir()
    for suffix in ("", "-journal"):
        shutil.copy(f"{path}{suffix}", folder)
    busy.close()
    crashed = folder / path.name
    before = crashed.read_bytes()
    assert codes(scanned(crashed)) == {"session thread-42": ["LS001"]}
    assert crashed.read_bytes() == before
