"""opencode's messages, databases, exports and stored files. The databases and files are recorded:
opencode 1.18.33 and 1.1.65 wrote them and were killed. What the real opencode does with them is in
`test_opencode_client`."""

from __future__ import annotations

import copy
import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch import Evidence, Outcome
from lockstitch.core.errors import CannotMend
from lockstitch.core.outcomes import UNKNOWN_TEXT
from lockstitch.dialects.detection import DIALECTS, detect
from lockstitch.dialects.opencode import PARTIAL_OUTPUT
from lockstitch.sessions.errors import CannotRead
from lockstitch.sessions.files import check_file, mended, put_in_place
from lockstitch.sessions.source import Source
from tests.formats.opencode import (
    CUT_OFF,
    KILLED,
    RECORDED,
    WITHOUT_ID,
    as_database,
    assistant,
    database,
    rows,
    text,
    tool,
    user,
)
from tests.generated import anything, examples


def codes(history):
    return [finding.code for finding in lockstitch.check(history)]


def states(history):
    return {
        part.get("callID"): part["state"]["status"]
        for message in history
        for part in message["parts"]
        if part["type"] == "tool"
    }


# --- the dialect -------------------------------------------------------------------------------


def test_a_valid_session_is_clean_and_stays_as_it_is():
    history = [user(), assistant(tool("a", "completed"), tool("b", "error")), user("Thanks.")]
    assert detect(history).name == "opencode"
    assert codes(history) == []
    mended_history = lockstitch.mend(history)
    assert all(one is other for one, other in zip(mended_history, history, strict=True))


def test_a_running_call_has_no_output():
    assert codes([user(), assistant(tool("a", "running"))]) == ["LS001"]


def test_of_calls_made_at_once_the_open_one_is_found():
    found = lockstitch.check(KILLED)
    assert [(one.code, one.key, one.name) for one in found] == [("LS010", "call_2", "bash")]


def test_a_repair_ends_the_call_with_what_is_known_and_touches_nothing_else():
    before = copy.deepcopy(KILLED)
    history = lockstitch.mend(KILLED)
    assert before == KILLED
    assert history[0] is KILLED[0]
    changed = history[1]["parts"][4]
    assert all(history[1]["parts"][n] is KILLED[1]["parts"][n] for n in range(6) if n != 4)
    assert changed == {
        **KILLED[1]["parts"][4],
        "state": {
            "status": "error",
            "input": {"command": "make", "description": "build"},
            "error": UNKNOWN_TEXT + PARTIAL_OUTPUT + "cc -c a.c\n",
            "title": "build",
            "metadata": {"output": "cc -c a.c\n"},
            "time": {"start": 1795033400871, "end": 1795033400871},
        },
    }
    assert lockstitch.check(history) == []
    assert list(lockstitch.mend(history)) == list(history)


def test_evidence_completes_the_call():
    known = {"call_2": Evidence(Outcome.FINISHED, "finished with exit code 0", "built")}
    history = lockstitch.mend(KILLED, evidence=known)
    state = history[1]["parts"][4]["state"]
    assert state["status"] == "completed"
    assert state["output"].endswith("built")
    assert state["time"]["end"]
    assert state["title"] == "build"
    assert "error" not in state
    assert lockstitch.check(history) == []


def test_a_call_that_was_cut_off_is_removed_and_its_message_stays():
    assert codes(CUT_OFF) == ["LS014"]
    history = lockstitch.mend(CUT_OFF)
    assert [part["type"] for part in history[1]["parts"]] == ["step-start", "text"]
    assert history.removed[0]["callID"] == "call_1"
    alone = [user(), {**assistant(), "parts": [tool("a", "pending")]}]
    assert lockstitch.mend(alone)[1]["parts"] == []


def test_a_pending_call_with_all_of_its_input_gets_a_result():
    history = [user(), assistant(tool("a", "pending", raw='{"command": "make"}'))]
    assert codes(history) == ["LS001"]
    state = lockstitch.mend(history)[1]["parts"][1]["state"]
    assert state["input"] == {"command": "make"}
    assert state["status"] == "error"
    assert "raw" not in state
    unfinished = [user(), assistant(tool("a", "pending", raw='{"command": "ma'))]
    assert codes(unfinished) == ["LS014"]


@pytest.mark.parametrize("call", ["", None])
@pytest.mark.parametrize("status", ["completed", "error"])
def test_a_result_without_a_call_id_is_an_orphan(call, status):
    history = [user(), assistant(text("hm"), tool(call, status))]
    assert codes(history) == ["LS002"]
    assert [part["type"] for part in lockstitch.mend(history)[1]["parts"]] == ["step-start", "text"]


def test_two_calls_of_one_step_with_one_id_get_ids_of_their_own():
    history = [user(), assistant(tool("a", "completed"), tool("a", "error"))]
    assert codes(history) == ["LS005"]
    assert states(lockstitch.mend(history)) == {"a": "completed", "a_ls2": "error"}


def test_an_id_may_be_used_again_in_a_later_message():
    again = assistant(tool("a", "completed"), number=3)
    assert codes([user(), assistant(tool("a", "completed")), again]) == []
    # opencode never writes a result into another message, so only the first call is open.
    history = [user(), assistant(tool("a", "running")), again]
    found = lockstitch.check(history)
    assert [(one.code, one.place.at) for one in found] == [("LS001", 1)]
    repaired = lockstitch.mend(history)
    assert repaired[2] is again
    assert repaired[1]["parts"][1]["callID"] == "a"


@pytest.mark.parametrize(
    "part",
    [
        tool("", "running"),
        tool(None, "pending"),
        {**tool("a", "running"), "state": None},
        tool("a", "a-new-status"),
        {"type": "a-new-tool", "callID": "a", "state": {"status": "running"}},
        {"type": "text", "text": "", "callID": "a"},
        {"type": "a-new-part", "tool_calls": [{"id": "a"}]},
        tool("a", "completed", output=None),
        tool("a", "completed", time=None),
    ],
)
def test_what_looks_like_a_call_and_is_not_understood_is_refused(part):
    with pytest.raises(lockstitch.NotAHistory, match="looks like a tool call or result"):
        lockstitch.check([user(), assistant(part)])


def test_unknown_parts_without_a_sign_of_a_call_pass():
    history = [user(), assistant({"type": "a-new-part", "mood": "fine"}, tool("a", "completed"))]
    assert codes(history) == []


def test_a_message_that_opencode_leaves_out_does_not_count():
    error = {"name": "APIError", "data": {"message": "…"}}
    assert codes([user(), assistant(tool("a", "running"), error=error)]) == []
    aborted = {"name": "MessageAbortedError", "data": {"message": "…"}}
    assert codes([user(), assistant(tool("a", "running"), error=aborted)]) == ["LS001"]


def test_trim_never_splits_a_message_from_its_results():
    history = [user(number=1), assistant(tool("a", "completed"), number=2), user(number=3)]
    assert lockstitch.trim(history, max_items=1) == [history[2]]


@settings(max_examples=examples(300))
@given(
    st.lists(
        st.fixed_dictionaries(
            {"info": anything},
            optional={
                "parts": st.one_of(
                    anything,
                    st.lists(
                        st.dictionaries(
                            st.sampled_from(["type", "callID", "state", "tool", "metadata"]),
                            st.one_of(
                                anything,
                                st.sampled_from(["tool", "text"]),
                                st.dictionaries(
                                    st.sampled_from(["status", "input", "raw", "metadata", "time"]),
                                    st.one_of(
                                        anything,
                                        st.sampled_from(["pending", "running", "completed", "{"]),
                                    ),
                                ),
                            ),
                        ),
                        max_size=4,
                    ),
                )
            },
        ),
        max_size=4,
    )
)
def test_hostile_values_are_read_or_refused_and_never_crash(history):
    for wire in history:
        DIALECTS["opencode"].read(wire)
    try:
        repaired = lockstitch.mend(history, dialect="opencode")
    except (lockstitch.NotAHistory, CannotMend):
        return
    assert lockstitch.check(repaired, dialect="opencode") == []


# --- databases ---------------------------------------------------------------------------------


def scan(path):
    return check_file(Source(path))


def found(path):
    return [
        (one.finding.code, one.finding.key, one.where, one.label) for one in scan(path).findings()
    ]


def repair(path):
    """Repair a file in place; the changes."""
    with mended(Source(path), beside=path.parent) as ready:
        put_in_place(ready, path, backup=False)
        return ready.changes


def parts(path):
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT id, data FROM part ORDER BY id").fetchall()
    return {row: json.loads(data) for row, data in rows}


def change_part(path, kind, change):
    """Change the first tool part of this tool in a database."""
    with closing(sqlite3.connect(path)) as connection:
        for row, data in connection.execute("SELECT id, data FROM part ORDER BY id").fetchall():
            part = json.loads(data)
            if part.get("tool") == kind:
                change(part)
                connection.execute("UPDATE part SET data = ? WHERE id = ?", (json.dumps(part), row))
                connection.commit()
                return
    raise AssertionError("there is no such part")


def run_again(part):
    part["state"]["status"] = "running"


def test_a_session_that_was_killed_while_a_tool_ran_is_found(tmp_path):
    path = database(tmp_path / "opencode.db", "killed_while_running")
    assert scan(path).format == "opencode"
    session = "session ses_e0fac036effeJ0h3mn9k7AB00L"
    assert found(path) == [("LS010", "call_slow", "message 2", session)]


def test_only_the_part_of_the_open_call_changes_in_a_repaired_database(tmp_path):
    path = database(tmp_path / "opencode.db", "killed_while_running")
    before = parts(path)
    (change,) = repair(path)
    after = parts(path)
    (row,) = [row for row, part in after.items() if part != before[row]]
    assert before.keys() == after.keys()
    state = after[row]["state"]
    assert state["status"] == "error"
    assert state["error"] == UNKNOWN_TEXT + PARTIAL_OUTPUT + "started\n"
    assert change.before == [json.dumps(before[row], separators=(",", ":")).encode()]
    assert found(path) == []
    assert repair(path) == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_call_that_the_model_did_not_finish_is_removed_from_the_database(tmp_path):
    path = database(tmp_path / "opencode.db", "killed_while_model_wrote")
    assert [code for code, *_ in found(path)] == ["LS014"]
    before = parts(path)
    repair(path)
    assert [before[row]["callID"] for row in before.keys() - parts(path).keys()] == ["call_half"]
    assert found(path) == []


def test_what_a_compaction_hides_does_not_count(tmp_path):
    path = database(tmp_path / "opencode.db", "compacted_and_reverted")
    change_part(path, "read", run_again)
    assert found(path) == []
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM part WHERE data LIKE '%\"compaction\"%'")
        connection.commit()
    assert [code for code, *_ in found(path)] == ["LS001"]


def test_what_a_revert_takes_away_does_not_count(tmp_path):
    path = tmp_path / "opencode.db"
    as_database(rows([user(), assistant(tool("a", "completed")), *KILLED]), path)
    assert [code for code, *_ in found(path)] == ["LS010"]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE session SET revert = ?", ('{"messageID": "msg_002"}',))
        connection.commit()
        assert found(path) == []
        whole = '{"messageID": "msg_003", "partID": "prt_0034"}'
        connection.execute("UPDATE session SET revert = ?", (whole,))
        connection.commit()
        assert found(path) == []
        later = '{"messageID": "msg_003", "partID": "prt_0035"}'
        connection.execute("UPDATE session SET revert = ?", (later,))
        connection.commit()
        assert [code for code, *_ in found(path)] == ["LS010"]


def test_every_session_is_a_conversation(tmp_path):
    path = tmp_path / "opencode.db"
    as_database(rows(KILLED), path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO session (id, parent_id, project_id, slug, directory, title, version,"
            " time_created, time_updated) VALUES ('ses_2', 'ses_1', 'p', 's', '/', 't', '1', 2, 2)"
        )
        connection.execute(
            "INSERT INTO message VALUES ('msg_9', 'ses_2', 9, 9, '{\"role\": \"assistant\"}')"
        )
        connection.execute(
            "INSERT INTO part VALUES ('prt_9', 'msg_9', 'ses_2', 9, 9, ?)",
            (json.dumps(tool("b", "running")),),
        )
        connection.commit()
    assert [(code, label) for code, _, _, label in found(path)] == [
        ("LS010", "session ses_1"),
        ("LS001", "session ses_2"),
    ]
    assert len(repair(path)) == 2
    assert found(path) == []


def test_messages_and_parts_are_read_in_the_order_of_opencode(tmp_path):
    path = tmp_path / "opencode.db"
    as_database(rows([user(), assistant(tool("a", "running")), user("And?")]), path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE message SET time_created = 9 WHERE id = 'msg_001'")
        connection.commit()
    assert [where for _, _, where, _ in found(path)] == ["message 3"]


def test_what_is_still_in_the_write_ahead_log_is_read_and_repaired(tmp_path):
    path = database(tmp_path / "opencode.db", "killed_while_running")
    writer = sqlite3.connect(path)
    with closing(writer):
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("UPDATE part SET data = replace(data, 'call_slow', 'call_in_log')")
        writer.commit()
        shutil.copytree(tmp_path, tmp_path / "copy")
    copied = tmp_path / "copy" / "opencode.db"
    beside = sorted(one.name for one in copied.parent.iterdir())
    assert beside == ["opencode.db", "opencode.db-shm", "opencode.db-wal"]
    assert [key for _, key, _, _ in found(copied)] == ["call_in_log"]
    with mended(Source(copied), beside=copied.parent) as ready:
        put_in_place(ready, copied, backup=True)
    assert found(copied) == []
    assert parts(copied)["prt_1f05406070014oYzgU3gnmK1x0"]["callID"] == "call_in_log"


@pytest.mark.parametrize("table", ["part", "message"])
def test_a_row_that_cannot_be_decoded_is_found_and_removed(tmp_path, table):
    path = database(tmp_path / "opencode.db", "killed_while_running")
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()
        torn = rows[-1][0]
        connection.execute(f"UPDATE {table} SET data = '{{\"type' WHERE id = ?", (torn,))
        connection.commit()
    assert "the row is torn or not JSON" in " ".join(one.message for one in scan(path).findings())
    repair(path)
    assert found(path) == []
    with closing(sqlite3.connect(path)) as connection:
        query = f"SELECT COUNT(*) FROM {table} WHERE id = ?"
        assert connection.execute(query, (torn,)).fetchone() == (0,)
        orphans = "SELECT COUNT(*) FROM part WHERE message_id NOT IN (SELECT id FROM message)"
        assert connection.execute(orphans).fetchone() == (0,)


def test_calls_in_a_table_that_is_not_read_are_refused(tmp_path):
    path = database(tmp_path / "opencode.db", "compacted_and_reverted")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO session_message VALUES ('m', 's', 'assistant', 1, 1, 1, ?)",
            ('{"content": [{"type": "tool", "id": "a", "state": {"status": "running"}}]}',),
        )
        connection.commit()
    with pytest.raises(CannotRead, match="session_message"):
        scan(path)


def test_a_call_that_is_not_understood_makes_a_database_unreadable(tmp_path):
    path = database(tmp_path / "opencode.db", "killed_while_running")
    change_part(path, "bash", lambda part: part["state"].update(status="streaming"))
    with pytest.raises(CannotRead, match="message 2 looks like a tool call"):
        scan(path)


def test_a_database_without_sessions_is_clean(tmp_path):
    path = tmp_path / "opencode.db"
    as_database([], path)
    assert scan(path).format == "opencode"
    assert found(path) == []


# --- exports and stored files ------------------------------------------------------------------


def export(path, change=lambda value: None):
    value = json.loads((RECORDED / "export.json").read_text())
    change(value)
    path.write_text(json.dumps(value, indent=2))
    return path


def test_an_export_is_read_as_opencode_would_send_it(tmp_path):
    path = export(tmp_path / "export.json")
    assert (scan(path).format, found(path)) == ("opencode", [])

    def hidden(value):  # before the compaction
        value["messages"][1]["parts"][2]["state"]["status"] = "running"

    def live(value):
        hidden(value)
        del value["messages"][3:]

    assert found(export(path, hidden)) == []
    assert [code for code, *_ in found(export(path, live))] == ["LS001"]
    repair(path)
    assert found(path) == []
    assert json.loads(path.read_text())["messages"][1]["parts"][2]["state"]["status"] == "error"


def test_a_file_with_the_list_of_messages_is_repaired_too(tmp_path):
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(WITHOUT_ID))
    assert [code for code, *_ in found(path)] == ["LS002"]
    repair(path)
    assert [len(message["parts"]) for message in json.loads(path.read_text())] == [1, 1]


def stored(tmp_path):
    folder = tmp_path / "storage"
    shutil.copytree(RECORDED / "storage", folder)
    return folder


def test_the_open_call_in_a_folder_of_stored_parts_is_found_and_left_to_an_export(tmp_path):
    folder = stored(tmp_path)
    broken = []
    for path in sorted(folder.glob("part/*/*.json")):
        assert scan(path).format == "opencode"
        broken += [path] if found(path) else []
    (path,) = broken
    assert path.name == "prt_1f0601f210012fn7hlOZD3V33C.json"
    assert [(code, where) for code, _, where, _ in found(path)] == [("LS001", "the part")]
    before = path.read_bytes()
    with pytest.raises(CannotMend, match="opencode export SESSION_ID > FILE"):
        repair(path)
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 4


def test_stored_messages_are_clean_and_other_stored_files_are_no_sessions(tmp_path):
    folder = stored(tmp_path)
    messages = sorted(folder.glob("message/*/*.json"))
    assert [found(path) for path in messages] == [[], []]
    for path in [*folder.glob("session/*/*.json"), *folder.glob("project/*.json")]:
        with pytest.raises(CannotRead):
            scan(path)
