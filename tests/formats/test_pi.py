"""Messages and sessions of pi: what is found, and what a repair writes.

The sessions under `tests/data/pi` are pi's own. What pi does with the repaired files is in
`test_pi_client`."""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core.outcomes import MARK, UNKNOWN_TEXT
from lockstitch.core.pairing import Order
from lockstitch.dialects.detection import DIALECTS, detect
from lockstitch.sessions.errors import CannotRead
from lockstitch.sessions.files import check_file, mended
from lockstitch.sessions.formats import detect_format
from lockstitch.sessions.source import Source
from tests.formats.pi import (
    DATA,
    HEADER,
    OLD_HEADER,
    OPEN,
    assistant,
    call,
    chain,
    compaction,
    entry,
    linear,
    other,
    recorded,
    result,
    text,
    thinking,
    user,
)
from tests.formats.sample import json_lines
from tests.generated import HISTORIES, anything, examples

REPAIRED_ELSEWHERE = (
    "No result provided",
    "[openclaw] missing tool result in session history; inserted synthetic error result for "
    "transcript repair.",
)


def codes(items: list[Any]) -> list[str]:
    return [finding.code for finding in lockstitch.check(items)]


def check(path: Path) -> list[tuple[str, int]]:
    """The rules that a session breaks, and at which lines."""
    scan = check_file(Source(path))
    assert scan.format == "pi"
    return [(one.finding.code, one.finding.place.at) for one in scan.findings()]


def mend(path: Path) -> list[str]:
    """Repair a session in place; what was done."""
    with mended(Source(path), beside=path.parent) as done:
        if done.path is not None:
            path.write_bytes(done.path.read_bytes())
        return [change.what for change in done.changes]


def session(tmp_path: Path, records: list[dict[str, Any]]) -> Path:
    path = tmp_path / "session.jsonl"
    json_lines(records, path)
    return path


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def repaired(tmp_path: Path, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries of a session after its repair, which leaves nothing to find and changes no more
    when it is made again."""
    path = session(tmp_path, records)
    mend(path)
    assert check(path) == []
    once = path.read_bytes()
    assert mend(path) == []
    assert path.read_bytes() == once
    return entries(path)


def sent(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages on the path from the last entry to the first, found without the code under
    test."""
    by_id = {record["id"]: record for record in records[1:]}
    path = []
    current: dict[str, Any] | None = records[-1]
    while current is not None:
        path.append(current)
        current = by_id.get(current["parentId"] or "")
    return [record["message"] for record in reversed(path) if record["type"] == "message"]


# --- messages ----------------------------------------------------------------------------------


def test_a_history_of_pi_is_known_by_its_calls_or_results_or_stop_reason():
    for history in (
        OPEN,
        [user(), assistant(thinking(), text("hm"))],
        [user(), result("call_1")],
        [{"role": "custom", "customType": "x", "content": "hm", "timestamp": 1}, user()],
    ):
        assert detect(history).name == "pi"
    assert DIALECTS["pi"].order is Order.NEXT


def test_an_open_call_is_found_and_gets_a_result():
    history = [user(), assistant(text("I look."), call("a")), user("and?")]
    assert codes(history) == ["LS001"]
    done = lockstitch.mend(history)
    assert done[2] == {
        "role": "toolResult",
        "toolCallId": "a",
        "toolName": "bash",
        "content": [{"type": "text", "text": UNKNOWN_TEXT}],
        "isError": True,
        "timestamp": history[1]["timestamp"],
    }
    assert [one is other for one, other in zip([*done[:2], done[3]], history, strict=True)] == [
        True,
        True,
        True,
    ]


def test_of_calls_made_at_once_only_the_open_ones_get_a_result():
    history = [user(), assistant(call("a"), call("b"), call("c")), result("b"), user()]
    assert codes(history) == ["LS010", "LS010"]
    done = lockstitch.mend(history)
    assert [one.get("toolCallId") for one in done] == [None, None, "a", "c", "b", None]


@pytest.mark.parametrize("key", ["call_1", "", None, 7])
def test_a_result_without_its_call_or_without_a_call_id_is_an_orphan(key):
    history = [user(), result(key), user()]
    assert codes(history) == ["LS002"]
    assert list(lockstitch.mend(history)) == [user(), user()]


def test_a_second_result_goes_unless_the_first_only_stood_in_for_it():
    one = [user(), assistant(call("a")), result("a", "real"), result("a", "real too")]
    assert codes(one) == ["LS004"]
    assert list(lockstitch.mend(one)) == one[:3]
    for made_up in REPAIRED_ELSEWHERE:
        two = [user(), assistant(call("a")), result("a", made_up), result("a", "real")]
        assert codes(two) == ["LS004"]
        assert list(lockstitch.mend(two)) == [*two[:2], two[3]]


@pytest.mark.parametrize(
    "between",
    [
        user(),
        assistant(text("hm")),
        assistant(text("hm"), stop="aborted"),
        {"role": "custom", "customType": "x", "content": "hm", "display": True, "timestamp": 1},
        {"role": "branchSummary", "summary": "hm", "fromId": "x", "timestamp": 1},
    ],
    ids=lambda message: message["role"],
)
def test_a_result_that_comes_too_late_or_too_early_is_moved_to_its_call(between):
    late = [user(), assistant(call("a")), between, result("a")]
    assert codes(late) == ["LS009"]
    assert list(lockstitch.mend(late)) == [*late[:2], result("a"), between]
    early = [user(), result("a"), assistant(call("a"))]
    assert codes(early) == ["LS003"]
    assert list(lockstitch.mend(early)) == [user(), assistant(call("a")), result("a")]


def test_an_id_that_is_used_while_its_call_is_open_is_replaced():
    history = [user(), assistant(call("a"), call("a")), result("a", "1"), result("a", "2")]
    assert codes(history) == ["LS005"]
    done = lockstitch.mend(history)
    assert [part["id"] for part in done[1]["content"]] == ["a", "a_ls2"]
    assert [one["toolCallId"] for one in done[2:]] == ["a", "a_ls2"]
    assert codes(done) == []


def test_ids_may_be_used_again_in_later_turns():
    turn = [user(), assistant(call("call_0")), result("call_0"), assistant(text("done"))]
    assert codes([*turn, *turn]) == []


@pytest.mark.parametrize("stop", ["error", "aborted"])
def test_pi_skips_turns_that_failed_so_their_calls_need_no_result_and_a_result_is_an_orphan(stop):
    failed = assistant(text("I look."), call("a"), stop=stop)
    assert codes([user(), failed, user()]) == []
    assert codes([user(), failed, result("a"), user()]) == ["LS002"]
    assert list(lockstitch.mend([user(), failed, result("a"), user()])) == [user(), failed, user()]


CUT_OFF = [
    {"partialJson": '{"command": "rm -r'},
    {"partialArgs": '{"command": "rm -r'},
    {"partialJson": ""},
    {"partialJson": True},
]


UNFINISHED = {"arguments": '{"command": "rm -r'}


@pytest.mark.parametrize(
    ("stop", "rest"),
    [
        *((stop, rest) for stop in ("toolUse", "length", "error", "aborted") for rest in CUT_OFF),
        *((stop, UNFINISHED) for stop in ("toolUse", "length")),
    ],
    ids=str,
)
def test_a_call_that_was_cut_off_goes_and_never_gets_a_result(stop, rest):
    history = [user(), assistant(text("I look."), call("a", **rest), stop=stop), user("and?")]
    assert codes(history) == ["LS014"]
    done = lockstitch.mend(history)
    assert [one["role"] for one in done] == ["user", "assistant", "user"]
    assert done[1]["content"] == [text("I look.")]
    assert done.removed == [call("a", **rest)]


@pytest.mark.parametrize("stop", ["toolUse", "aborted"])
@pytest.mark.parametrize("made_up", REPAIRED_ELSEWHERE)
def test_what_a_repair_made_up_for_a_call_that_was_cut_off_goes_with_it(stop, made_up):
    half = call("a", partialJson='{"comm')
    history = [user(), assistant(thinking(), half, stop=stop), result("a", made_up), user("and?")]
    assert codes(history) == ["LS014"]
    done = lockstitch.mend(history)
    assert list(done) == [user(), user("and?")]  # thinking alone leads to nothing
    assert result("a", made_up) in done.removed


def test_a_real_result_shows_that_a_call_was_complete_unless_its_turn_was_aborted():
    half = call("a", partialJson='{"comm')
    assert codes([user(), assistant(half), result("a", "21 degrees"), user()]) == []
    aborted = [user(), assistant(half, stop="aborted"), result("a", "21 degrees" * 90), user()]
    assert codes(aborted) == ["LS014"]
    assert list(lockstitch.mend(aborted)) == [user(), user()]


def test_a_later_call_with_the_id_of_one_that_was_cut_off_keeps_its_result():
    half = call("call_0", partialJson='{"comm')
    later = [user("again"), assistant(call("call_0")), result("call_0"), assistant(text("ok"))]
    for stop in ("aborted", "toolUse"):
        history = [user(), assistant(text("hm"), half, stop=stop), *later]
        assert codes(history) == ["LS014"]
        done = lockstitch.mend(history)
        assert list(done[2:]) == later


def test_complete_arguments_that_an_older_pi_left_are_no_sign_of_a_cut():
    left = call("a", partialJson='{"command": "ls"}')
    assert codes([user(), assistant(left), result("a"), user()]) == []
    assert codes([user(), assistant(left), user()]) == ["LS001"]


@pytest.mark.parametrize(
    "strange",
    [
        {
            "role": "assistant",
            "content": [{"type": "toolUse", "id": "a", "name": "t", "input": {}}],
        },
        {"role": "assistant", "content": [{"type": "toolCall", "name": "t", "arguments": {}}]},
        {"role": "toolResult", "toolUseId": "a", "content": []},
        {"role": "toolResults", "toolCallId": "a", "content": []},
        {"role": "user", "content": [call("a")]},
    ],
    ids=str,
)
def test_what_looks_like_a_call_and_cannot_be_read_is_refused(strange):
    with pytest.raises(lockstitch.NotAHistory, match="looks like a tool call or result"):
        lockstitch.check([*OPEN[:1], result("b"), strange])


def test_what_tools_and_extensions_keep_beside_a_message_may_be_anything():
    nested = {"messages": [assistant(call("inner"))], "toolCallId": "x"}
    history = [
        user(),
        assistant(call("a"), diagnostics=[nested]),
        result("a", details=nested),
        {"role": "custom", "customType": "x", "content": "hm", "details": nested},
    ]
    assert codes(history) == []


@settings(max_examples=examples(200))
@given(HISTORIES["pi"], st.integers(0, 9), st.sampled_from(["content", "stopReason"]), anything)
def test_hostile_values_in_a_message_never_raise(history, at, field, value):
    history = copy.deepcopy(history)
    if history:
        history[at % len(history)][field] = value
    with contextlib.suppress(lockstitch.NotAHistory):
        assert lockstitch.check(lockstitch.mend(history, dialect="pi"), dialect="pi") == []


# --- sessions that pi wrote --------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["openai-completions", "openai-responses", "anthropic-messages", "cut-stream", "compacted"],
)
def test_a_session_that_pi_wrote_and_would_resume_is_clean(name):
    assert check(DATA / f"{name}.jsonl") == []


def test_a_session_whose_tools_were_killed_gets_their_results(tmp_path):
    path = tmp_path / "session.jsonl"
    before = (DATA / "killed.jsonl").read_bytes()
    path.write_bytes(before)
    assert check(path) == [("LS001", 9), ("LS001", 9)]

    mend(path)

    assert check(path) == []
    assert path.read_bytes().startswith(before)
    called, first, second = entries(path)[-3:]
    assert first["parentId"] == called["id"]
    assert second["parentId"] == first["id"]
    assert [one["message"]["toolCallId"] for one in (first, second)] == ["call_2", "call_3"]
    assert first["timestamp"] == called["timestamp"]
    assert first["message"]["timestamp"] == called["message"]["timestamp"]
    assert all(len(one["id"]) == 8 for one in (first, second))


@pytest.mark.parametrize("name", ["openai-responses", "compacted"])
def test_a_result_that_is_lost_is_replaced_and_what_hung_on_it_hangs_on_the_new_one(tmp_path, name):
    records = recorded(name)
    at = max(
        n for n, one in enumerate(records) if one.get("message", {}).get("role") == "toolResult"
    )
    if name == "compacted":
        # Make the compaction keep the call whose result is lost.
        (cut,) = (one for one in records if one["type"] == "compaction")
        cut["firstKeptEntryId"] = records[at - 1]["id"]
    lost = records.pop(at)
    records[at]["parentId"] = lost["parentId"]
    done = repaired(tmp_path, records)
    assert done[at]["message"]["toolCallId"] == lost["message"]["toolCallId"]
    assert done[at]["parentId"] == lost["parentId"]
    assert done[at + 1] == {**records[at], "parentId": done[at]["id"]}
    assert done[:at] + done[at + 2 :] == records[:at] + records[at + 1 :]


# --- the tree ----------------------------------------------------------------------------------


def test_only_the_branch_of_the_last_entry_counts(tmp_path):
    records = [
        *chain(user("go"), assistant(call("a")), result("a"), assistant(text("done"))),
        entry("b1", "e001", assistant(call("b"))),
        entry("b2", "b1", user("no")),
        other("b3", "e004", "label", targetId="e001", label="start"),
    ]
    assert check(session(tmp_path, records)) == []
    records.append(entry("b4", "b2", user("go on")))
    assert check(session(tmp_path, records)) == [("LS001", 7)]


def test_a_new_result_goes_into_the_branch_to_resume_and_no_other(tmp_path):
    records = [
        *chain(user("go"), assistant(call("a")), result("a", "it was 21 degrees")),
        entry("b1", "e002", user("another way")),
        entry("b2", "b1", assistant(text("done"))),
    ]
    path = session(tmp_path, records)
    assert check(path) == [("LS011", 4)]
    done = repaired(tmp_path, records)
    new = next(one for one in done if one.get("id") not in {r["id"] for r in records})
    assert new["parentId"] == "e002"
    by_id = {one["id"]: one for one in done[1:]}
    assert by_id["b1"]["parentId"] == new["id"]
    assert by_id["e003"]["parentId"] == "e002"  # the other branch has its own
    said = new["message"]["content"][0]["text"]
    assert said.startswith(MARK)
    assert "it was 21 degrees" in said  # evidence from the other branch
    assert new["message"]["isError"] is False


def test_what_hung_on_an_entry_that_goes_hangs_on_its_parent(tmp_path):
    records = [
        *chain(user("go"), result("a"), result("b"), assistant(text("done"))),
        entry("b1", "e002", user("aside")),
        entry("b2", "e004", user("go on")),
        other("b3", "b2", "label", targetId="e003", label="here"),
        other("b4", "b3", "branch_summary", fromId="e002", summary="We tried."),
        other("b5", "b4", "session_info", name="test"),
    ]
    done = repaired(tmp_path, records)
    by_id = {one["id"]: one for one in done[1:]}
    assert not by_id.keys() & {"e002", "e003"}
    assert by_id["e004"]["parentId"] == by_id["b1"]["parentId"] == "e001"
    assert by_id["b3"]["targetId"] == by_id["b4"]["fromId"] == "e001"
    assert by_id["b5"] == records[-1]


def test_if_the_last_entry_goes_the_branch_to_resume_stays_the_same(tmp_path):
    records = [
        *chain(user("go"), assistant(text("one"))),
        entry("b1", "e001", assistant(text("two"))),
        entry("b2", "e002", result("a")),
    ]
    done = repaired(tmp_path, records)
    assert done[-1]["type"] == "custom"
    assert done[-1]["id"] == "b2"
    assert [part["content"][0]["text"] for part in sent(done)] == ["go", "one"]


def test_a_result_that_moves_keeps_the_tree_whole(tmp_path):
    records = chain(user("go"), assistant(call("a")), user("and?"), result("a"), user("well?"))
    done = repaired(tmp_path, records)
    assert [one.get("toolCallId", one["role"]) for one in sent(done)] == [
        "user",
        "assistant",
        "a",
        "user",
        "user",
    ]


def test_the_id_of_a_new_entry_is_never_one_that_is_taken(tmp_path):
    records = chain(user("go"), assistant(call("a")), user("and?"))
    first = repaired(tmp_path, records)[4]["id"]
    records.append(entry(first, "e003", assistant(text("done"))))
    done = repaired(tmp_path, records)
    ids = [one["id"] for one in done]
    assert len(ids) == len(set(ids))
    assert len(sent(done)) == 5


def test_untouched_lines_keep_their_bytes(tmp_path):
    path = session(tmp_path, chain(user("go"), assistant(call("a")), user("and?"), user("hm")))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'": ', b'" :  ')
    path.write_bytes(b"".join(lines) + b"\n")
    mend(path)
    after = path.read_bytes().splitlines(keepends=True)
    assert after[:4] == lines[:4]
    assert after[6:] == [*lines[5:], b"\n"]


# --- compactions -------------------------------------------------------------------------------


def test_what_a_compaction_replaced_is_not_judged(tmp_path):
    records = chain(user("go"), assistant(call("a")), user("well?"), assistant(text("done")))
    records += [compaction("c1", "e004", "e003"), entry("c2", "c1", user("go on"))]
    assert check(session(tmp_path, records)) == []
    records[-2]["firstKeptEntryId"] = "e002"
    assert check(session(tmp_path, records)) == [("LS001", 4)]
    records[-2]["firstKeptEntryId"] = "not there"
    assert check(session(tmp_path, records)) == []


def test_a_compaction_between_a_call_and_its_result_leaves_half_a_pair(tmp_path):
    records = chain(user("go"), assistant(call("a")), result("a"), assistant(text("done")))
    records += [compaction("c1", "e004", "e003"), entry("c2", "c1", user("go on"))]
    path = session(tmp_path, records)
    assert check(path) == [("LS011", 5)]
    assert "compaction" in check_file(Source(path)).findings()[0].message
    done = repaired(tmp_path, records)
    by_id = {one["id"]: one for one in done[1:]}
    assert "e003" not in by_id
    assert by_id["c1"]["firstKeptEntryId"] == "e004"  # what came next, not what came before
    assert by_id["e004"]["parentId"] == "e002"


def test_if_a_compaction_kept_nothing_but_what_goes_it_keeps_nothing(tmp_path):
    records = chain(user("go"), assistant(call("a")), result("a"))
    records += [compaction("c1", "e003", "e003"), entry("c2", "c1", user("go on"))]
    done = repaired(tmp_path, records)
    assert [one["firstKeptEntryId"] for one in done if one["type"] == "compaction"] == ["c1"]


def test_a_call_and_its_result_on_both_sides_of_a_compaction_that_kept_the_call_are_a_pair(
    tmp_path,
):
    records = chain(user("go"), assistant(call("a")))
    records += [compaction("c1", "e002", "e002"), entry("c2", "c1", result("a"))]
    assert check(session(tmp_path, records)) == []


# --- versions 1 and 2 --------------------------------------------------------------------------


def test_a_session_of_version_1_is_linear_and_stays_so(tmp_path):
    records = linear(user("go"), assistant(call("a")), user("and?"), assistant(text("hm")))
    kept = {"type": "compaction", "timestamp": "x", "summary": "s", "firstKeptEntryIndex": 4}
    records += [kept, *linear(user("go on"))[1:]]
    assert check(session(tmp_path, records)) == []  # the compaction cut the open call
    kept["firstKeptEntryIndex"] = 2
    assert check(session(tmp_path, records)) == [("LS001", 3)]
    done = repaired(tmp_path, records)
    assert done[3]["message"]["toolCallId"] == "a"
    assert "id" not in done[3]
    assert done[6]["firstKeptEntryIndex"] == 2
    kept["firstKeptEntryIndex"] = 3
    records.insert(2, {"type": "message", "message": result("b")})
    kept["firstKeptEntryIndex"] = 2
    done = repaired(tmp_path, records)
    assert done[6]["firstKeptEntryIndex"] == 2
    assert done[2] == records[3]


def test_numbers_in_a_session_of_version_1_follow_what_they_mean(tmp_path):
    records = linear(user("go"), assistant(call("a")), user("and?"), assistant(text("hm")))
    early = {"type": "compaction", "summary": "s", "firstKeptEntryIndex": 3}
    late = {"type": "compaction", "summary": "s", "firstKeptEntryIndex": 2}
    done = repaired(tmp_path, [*records, early, late, *linear(user("go on"))[1:]])
    assert [one["firstKeptEntryIndex"] for one in done if one["type"] == "compaction"] == [4, 2]


def test_version_2_has_messages_of_hooks(tmp_path):
    hook = {"role": "hookMessage", "customType": "x", "content": "hm", "timestamp": 1}
    records = chain(user("go"), assistant(call("a")), hook, result("a"))
    records[0] = {**HEADER, "version": 2}
    assert check(session(tmp_path, records)) == [("LS009", 6)]
    done = repaired(tmp_path, records)
    assert done[0] == records[0]
    assert [one.get("role") for one in sent(done)] == [
        "user",
        "assistant",
        "toolResult",
        "hookMessage",
    ]


# --- damage ------------------------------------------------------------------------------------


def test_a_torn_last_line_is_found_and_removed(tmp_path):
    path = session(tmp_path, chain(user("go"), assistant(call("a")), result("a")))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"message","id":"e004","parentId":"e003","mess')
    assert check(path) == [("LS101", 6)]
    mend(path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("torn", "parent"),
    [
        (b'{"type":"message","id":"e003","parentId":"e002","timestamp":"20', "e002"),
        (b"\xff\xfe", "e002"),
        (b'{"type":"message","id":"e003","parentId":null,"timesta', None),
    ],
)
def test_what_hung_on_a_torn_line_is_not_lost(tmp_path, torn, parent):
    path = session(
        tmp_path, chain(user("go"), assistant(text("1")), user("hm"), assistant(text("2")))
    )
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = torn + b"\n"
    path.write_bytes(b"".join(lines))
    assert check(path) == [("LS101", 5)]
    mend(path)
    assert check(path) == []
    assert entries(path)[-1]["parentId"] == parent


def test_without_its_header_pi_would_throw_the_session_away(tmp_path):
    records = chain(user("go"), assistant(call("a")), result("a"))[1:]
    path = tmp_path / f"2026-11-18T20-25-46-299Z_{HEADER['id']}.jsonl"
    json_lines(records, path)
    assert check(path) == [("LS103", 1)]
    mend(path)
    assert check(path) == []
    time = records[0]["timestamp"]
    header = {"type": "session", "version": 3, "id": HEADER["id"], "timestamp": time}
    assert entries(path) == [header, *records]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda one: one.update(parentId="e004"), "comes after it"),
        (lambda one: one.update(parentId="e002"), "comes after it"),
        (lambda one: one.pop("id"), "no id"),
        (lambda one: one.pop("parentId"), "no parentId"),
        (lambda one: one.update(type="leaf", targetId="e001"), "newer OpenClaw"),
        (lambda one: one.update(appendMode="side"), "newer OpenClaw"),
    ],
)
def test_a_tree_that_cannot_be_followed_as_pi_does_is_refused(tmp_path, change, problem):
    records = chain(user("go"), assistant(text("1")), user("hm"), assistant(text("2")))
    change(records[3])
    with pytest.raises(CannotRead, match=problem):
        check(session(tmp_path, records))


def test_a_header_without_a_version_and_entries_with_parents_are_refused(tmp_path):
    records = chain(user("go"), assistant(text("1")))
    with pytest.raises(CannotRead, match="the header no version"):
        check(session(tmp_path, [OLD_HEADER, *records[1:]]))


def test_calls_in_entries_of_unknown_types_are_refused(tmp_path):
    records = chain(user("go"), assistant(call("a")), result("a"))
    records.append(other("x1", "e003", "subagent", message=assistant(call("b"))))
    with pytest.raises(CannotRead, match="looks like a tool call"):
        check(session(tmp_path, records))
    records[-1] = other("x1", "e003", "custom", customType="x", data=assistant(call("b")))
    assert check(session(tmp_path, records)) == []  # an extension's own, which pi never sends


def test_a_session_of_pi_is_known_by_its_header_or_its_entries(tmp_path):
    for records in (chain(user()), chain(user())[1:], linear(user())):
        assert detect_format(Source(session(tmp_path, records))).name == "pi"


@settings(max_examples=examples(60))
@given(HISTORIES["pi"], st.lists(st.integers(0, 9), max_size=4), st.data())
def test_any_tree_of_any_messages_is_repaired_for_good(tmp_path_factory, history, cuts, data):
    records = chain(*history)
    ids = [record["id"] for record in records[1:]]
    for at, record in enumerate(records[2:], 1):
        if at in cuts:
            record["parentId"] = data.draw(st.sampled_from([None, *ids[:at]]))
    if data.draw(st.booleans()):
        kept = data.draw(st.sampled_from([*ids, "gone"]))
        records.append(compaction("c1", ids[-1], kept))
        records.append(entry("c2", "c1", user()))
    done = repaired(tmp_path_factory.mktemp("pi"), records)
    known = {one["id"] for one in done[1:]}
    assert all(one["parentId"] in known for one in done[1:] if one["parentId"] is not None)
    assert len(known) == len(done) - 1
