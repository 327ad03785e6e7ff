"""Codex rollouts: what is found in them, in real ones and in made ones."""

from __future__ import annotations

import pytest

from lockstitch.core import seen
from lockstitch.core.outcomes import UNKNOWN_TEXT
from lockstitch.sessions.files import check_file
from lockstitch.sessions.source import Source
from tests.sessions.rollouts import (
    assistant,
    call,
    compacted,
    context,
    ended,
    event,
    header,
    legacy,
    output,
    paginated,
    record,
    rolled_back,
    user,
)
from tests.sessions.written import CAPTURES, findings, jsonl, messages, written

# What the names of the captured sessions say: the codes, and the lines they are on.
CAPTURED = {
    "A_cut_function_call_eof": {},
    "B_cut_custom_tool_call_rst": {},
    "C_cut_while_slow_tool_runs": {},
    "D_cut_partial_function_call": {},
    "E_cut_parallel_calls_slow_first": {},
    "G_sigkill_tool_done_stream_open": {"leg1": [("LS001", 10)], "leg2": [("LS001", 10)]},
    "I1_torn_last_line": {"leg2": [("LS001", 10), ("LS101", 13)]},
    "I2_corrupt_call_line_orphan_output": {"leg2": [("LS101", 10), ("LS002", 13)]},
    "I7_duplicate_output_line": {"leg2": [("LS004", 14), ("LS102", 14)]},
    "J2_retry_reissues_same_call_id": {},
    "N1_midturn_autocompact": {},
    "W0_ws_baseline": {},
    "W1_ws_cut_close_after_call": {},
    "W3_ws_previous_response_not_found": {},
    "Z1_cut_custom_call_0.118.0": {"leg1": [("LS001", 9)], "leg2": [("LS001", 9)]},
    "Z4_tool_done_then_cut_0.118.0": {"leg1": [("LS001", 9)], "leg2": [("LS001", 9)]},
    "Z4_tool_done_then_cut_0.166.0": {},
    "baseline": {},
}
LEGS = sorted(path for path in CAPTURES.glob("*/leg*/rollout.jsonl"))


def test_every_captured_session_is_here():
    assert {path.parent.parent.name for path in LEGS} == set(CAPTURED)


@pytest.mark.parametrize("path", LEGS, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_a_captured_session_gives_the_findings_that_its_name_says(path):
    expected = CAPTURED[path.parent.parent.name].get(path.parent.name, [])
    scan = check_file(Source(path))
    assert scan.format == "codex"
    assert [(one.finding.code, one.line) for one in scan.findings()] == expected


def test_a_call_that_finished_is_told_with_its_exit_code_and_line():
    killed = Source(CAPTURES / "G_sigkill_tool_done_stream_open" / "leg1" / "rollout.jsonl")
    assert messages(killed) == [
        "call_G1 (exec_command) has no output; it finished with exit code 0 (line 11)"
    ]


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        (ended(exit_code=3), "it finished with exit code 3"),
        (ended(exit_code=None, status="failed"), "it failed"),
        (ended(status="declined"), "it was declined"),
        (ended(type="FileChange", exit_code=None, stdout="Success."), "it finished"),
        (event({"type": "exec_command_end", "call_id": "call_a", "exit_code": 1}), "exit code 1"),
        (event({"type": "patch_apply_end", "call_id": "call_a", "success": False}), "it failed"),
        (ended(status="in_progress", exit_code=None), "has no output"),
        (ended("another_call"), "has no output"),
    ],
)
def test_every_kind_of_completion_event_is_evidence(tmp_path, evidence, said):
    source = written(tmp_path / "r.jsonl", jsonl(legacy([user(), call(), evidence])))
    (message,) = messages(source)
    assert message.startswith("call_a (exec_command) has no output")
    assert said in message


@pytest.mark.parametrize("evidence_first", [True, False])
def test_an_output_that_denies_what_the_events_say_is_contradicted(tmp_path, evidence_first):
    pair = [ended(), output(text="aborted")]
    lines = legacy([user(), call(), *(pair if evidence_first else reversed(pair))])
    source = written(tmp_path / "r.jsonl", jsonl(lines))
    assert [code for code, _ in findings(source)] == ["LS012"]


def test_an_output_that_denies_nothing_that_is_known_is_believed(tmp_path):
    source = written(tmp_path / "r.jsonl", jsonl(legacy([call(), output(text="aborted")])))
    assert findings(source) == []


def test_an_event_tells_of_the_last_call_with_its_id_and_of_none_before(tmp_path):
    """Ids are used again in later rounds; the one that was aborted stays aborted."""
    rounds = [call(), output(text="aborted"), user("again"), call(), output(text="42"), ended()]
    assert findings(written(tmp_path / "r.jsonl", jsonl(legacy(rounds)))) == []


# --- what counts -------------------------------------------------------------------------------


def test_what_a_compaction_replaced_is_not_looked_at(tmp_path):
    summary = user("summary")["payload"]
    lines = legacy([user(), call("call_lost"), compacted([summary]), assistant()])
    assert findings(written(tmp_path / "r.jsonl", jsonl(lines))) == []


def test_an_output_behind_a_compaction_that_took_its_call_is_half_a_pair(tmp_path):
    summary = user("summary")["payload"]
    lines = legacy([user(), call(), compacted([summary]), output()])
    source = written(tmp_path / "r.jsonl", jsonl(lines))
    assert findings(source) == [("LS011", 5)]
    assert messages(source) == [
        "output for call_a has no call: it was cut away by the compaction (line 4)"
    ]


def test_a_call_that_a_compaction_kept_without_its_output_is_half_a_pair(tmp_path):
    kept = call()["payload"]
    lines = legacy([user(), call(), output(), compacted([kept]), assistant()])
    assert findings(written(tmp_path / "r.jsonl", jsonl(lines))) == [("LS011", 5)]


def test_a_pair_across_a_compaction_that_kept_its_call_is_whole(tmp_path):
    kept = call()["payload"]
    lines = legacy([user(), call(), compacted([kept]), output()])
    assert findings(written(tmp_path / "r.jsonl", jsonl(lines))) == []


def test_turns_that_were_rolled_back_are_not_looked_at(tmp_path):
    lines = legacy([context(), user(), assistant(), user(), call(), rolled_back(), user()])
    assert findings(written(tmp_path / "r.jsonl", jsonl(lines))) == []


def test_only_turns_of_the_user_count_for_a_rollback(tmp_path):
    # One turn back: the context message between does not count, so the open call stays dead.
    lines = legacy([user(), call(), context(), assistant(), rolled_back(1), user()])
    assert findings(written(tmp_path / "r.jsonl", jsonl(lines))) == []


def test_a_rollback_that_took_an_output_leaves_half_a_pair(tmp_path):
    lines = legacy([user(), call(), user("stop"), output(), rolled_back(1), user()])
    source = written(tmp_path / "r.jsonl", jsonl(lines))
    assert findings(source) == [("LS011", 3)]
    assert "cut away by the rollback (line 6)" in messages(source)[0]


def test_an_output_that_was_taken_back_tells_how_its_call_ended(tmp_path):
    lines = legacy([user(), call(), user("stop"), output(text="42"), rolled_back(1), user()])
    (message,) = messages(written(tmp_path / "r.jsonl", jsonl(lines)))
    assert message.endswith("; it finished (line 5)")


def test_an_output_that_a_compaction_left_behind_tells_how_its_call_ended(tmp_path):
    lines = legacy([user(), call(), output(text="42"), compacted([call()["payload"]]), user()])
    (message,) = messages(written(tmp_path / "r.jsonl", jsonl(lines)))
    assert message.endswith("; it finished (line 4)")


def test_the_output_of_an_earlier_call_with_the_same_id_proves_nothing(tmp_path):
    rounds = [call(), output(text="42"), user("again"), call(), compacted([call()["payload"]])]
    (message,) = messages(written(tmp_path / "r.jsonl", jsonl(legacy([*rounds, user()]))))
    assert "finished" not in message


@pytest.mark.parametrize("text", ["aborted", UNKNOWN_TEXT])
def test_what_only_stands_in_for_an_output_proves_nothing(tmp_path, text):
    lines = legacy([user(), call(), user("stop"), output(text=text), rolled_back(1), user()])
    (message,) = messages(written(tmp_path / "r.jsonl", jsonl(lines)))
    assert "finished" not in message


def test_a_rollback_that_took_a_call_leaves_half_a_pair(tmp_path):
    lines = legacy([user(), call("call_b"), output("call_b"), user(), call(), rolled_back(1)])
    source = written(tmp_path / "r.jsonl", jsonl([*lines, output()]))
    assert findings(source) == [("LS011", 8)]


def test_a_rollback_of_more_turns_than_there_are_takes_all_of_them(tmp_path):
    lines = legacy([user(), call(), user(), call("call_b"), rolled_back(9), user(), assistant()])
    assert findings(written(tmp_path / "r.jsonl", jsonl(lines))) == []


# --- the file ----------------------------------------------------------------------------------


def test_a_rollout_without_its_header_is_told_so(tmp_path):
    source = written(tmp_path / "r.jsonl", jsonl([user(), assistant()]))
    assert findings(source) == [("LS103", 1)]


def test_a_torn_header_is_torn_and_missing(tmp_path):
    lines = [b'{"timestamp":"2026-11-15T19:21:20.951Z","type":"session_me', user(), assistant()]
    source = written(tmp_path / "r.jsonl", jsonl(lines))
    assert findings(source) == [("LS101", 1), ("LS103", 1)]


@pytest.mark.parametrize(
    ("ordinals", "expected"),
    [
        ([0, 1, 2, 3], []),
        ([5, 6, 7, 8], []),
        ([0, 1, 1, 2], [("LS102", 3)]),
        ([0, 1, 3, 4], [("LS102", 3)]),
        ([0, 1, None, 2], [("LS102", 3)]),
        ([0, 1, 0, 2], [("LS102", 3)]),
        ([0, 1, "2", 2], [("LS102", 3)]),
    ],
)
def test_ordinals_must_rise_by_one(tmp_path, ordinals, expected):
    lines = [header(history_mode="paginated"), user(), assistant(), user()]
    numbered = []
    for line, ordinal in zip(lines, ordinals, strict=True):
        numbered.append(line if ordinal is None else {**line, "ordinal": ordinal})
    assert findings(written(tmp_path / "r.jsonl", jsonl(numbered))) == expected


def test_an_ordinal_that_a_torn_line_used_up_is_not_missed(tmp_path):
    lines = paginated([user(), assistant(), user(), assistant()])
    torn = [*lines[:2], b'{"timestamp":"2026', *lines[3:]]
    assert findings(written(tmp_path / "r.jsonl", jsonl(torn))) == [("LS101", 3)]


def test_a_gap_elsewhere_is_not_excused_by_a_torn_line(tmp_path):
    lines = paginated([user(), assistant(), user(), assistant(), user()])
    torn = [*lines[:2], b'{"timestamp":"2026', *lines[3:4], lines[5]]
    assert findings(written(tmp_path / "r.jsonl", jsonl(torn))) == [("LS101", 3), ("LS102", 5)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"[1, 2]", "is not a rollout record"),
        (b'{"a": 1}', "is not a rollout record"),
        (b'{"type":"response_item","payload":7}', "is not a rollout record"),
        (b'{"type":"response_item","payload":{"type":"\xff"}}', "is not UTF-8"),
        (b"[" * 50_000, "is nested too deeply"),
        (b'{"type":', "is torn or not JSON"),
    ],
)
def test_a_line_that_is_no_record_is_told_why(tmp_path, line, said):
    source = written(tmp_path / "r.jsonl", jsonl([header(), user(), line, assistant()]))
    assert messages(source) == [f"the line {said}"]


def test_blank_lines_are_nothing(tmp_path):
    source = written(tmp_path / "r.jsonl", jsonl([header(), b"", user(), b"   ", assistant()]))
    assert findings(source) == []


def test_records_of_a_type_that_is_not_known_pass(tmp_path):
    odd = [record("something_new", {"call_id": "call_x"}), record("response_item", {"type": 7})]
    source = written(tmp_path / "r.jsonl", jsonl(legacy([user(), *odd, assistant()])))
    assert findings(source) == []


def test_fields_of_odd_types_pass(tmp_path):
    odd = [
        event({"type": "item_completed", "item": "gone"}),
        event({"type": "item_completed", "item": {"id": {"a": 1}}}),
        event({"type": "thread_rolled_back", "num_turns": "two"}),
        record("compacted", {"replacement_history": "none"}),
    ]
    assert findings(written(tmp_path / "r.jsonl", jsonl(legacy([user(), *odd])))) == []


# --- large files -------------------------------------------------------------------------------


def test_a_second_output_is_told_from_an_orphan_in_a_history_of_any_length(tmp_path, monkeypatch):
    monkeypatch.setattr(seen, "EXACT_IDS", 8)
    lines = [user()]
    for n in range(40):
        lines += [call(f"call_{n}", id=f"fc_{n}"), output(f"call_{n}", id=f"fco_{n}")]
    lines += [output("call_3"), output("call_nobody"), assistant()]
    lines += [call("call_z", id="fc_7"), output("call_z")]
    source = written(tmp_path / "r.jsonl", jsonl(legacy(lines)))
    assert [code for code, _ in findings(source)] == ["LS004", "LS002", "LS008"]
    assert "the first is at line 10" in messages(source)[0]
