"""Mended rollouts: what is written, and that nothing else changes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core.mending import Policy
from lockstitch.core.outcomes import UNKNOWN_TEXT
from lockstitch.sessions.files import mended
from lockstitch.sessions.source import Source
from tests.generated import examples, responses_items
from tests.sessions import rollouts
from tests.sessions.rollouts import (
    assistant,
    call,
    compacted,
    ended,
    item,
    legacy,
    output,
    paginated,
    rolled_back,
    user,
)
from tests.sessions.test_codex import LEGS
from tests.sessions.written import CAPTURES, findings, jsonl, mend, records, written


def leg(name: str, leg: str = "leg1") -> bytes:
    return (CAPTURES / name / leg / "rollout.jsonl").read_bytes()


@pytest.mark.parametrize("path", LEGS, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_a_mended_capture_checks_clean_and_mending_it_again_changes_nothing(path, tmp_path):
    source = written(tmp_path / "rollout.jsonl", path.read_bytes())
    once = mend(source)
    assert findings(source) == []
    assert mend(Source(source.path)) == once


@pytest.mark.parametrize("path", LEGS, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_ordinals_of_a_mended_capture_rise_by_one(path, tmp_path):
    content = mend(written(tmp_path / "rollout.jsonl", path.read_bytes()))
    ordinals = [one["ordinal"] for one in records(content) if "ordinal" in one]
    assert ordinals == list(range(len(ordinals)))


def test_the_real_result_is_recovered_from_the_completion_event(tmp_path):
    source = written(tmp_path / "r.jsonl", leg("I1_torn_last_line", "leg2"))
    lines = records(mend(source))
    call_at = next(n for n, one in enumerate(lines) if one["payload"].get("call_id") == "call_1")
    recovered = lines[call_at + 1]
    assert recovered["type"] == "response_item"
    assert recovered["payload"]["type"] == "function_call_output"
    assert recovered["payload"]["call_id"] == "call_1"
    assert "finished with exit code 0" in recovered["payload"]["output"]
    assert recovered["payload"]["output"].endswith("Output:\nhi\n")


def test_without_evidence_the_outcome_is_unknown(tmp_path):
    source = written(tmp_path / "r.jsonl", leg("Z1_cut_custom_call_0.118.0"))
    made = [one for one in records(mend(source)) if one["payload"].get("output") == UNKNOWN_TEXT]
    assert [one["payload"]["type"] for one in made] == ["custom_tool_call_output"]
    assert "ordinal" not in made[0]


def test_lines_that_are_not_mended_keep_their_bytes(tmp_path):
    before = leg("Z1_cut_custom_call_0.118.0").splitlines()
    after = mend(written(tmp_path / "r.jsonl", b"\n".join(before) + b"\n")).splitlines()
    assert [line for line in after if line in before] == before
    assert len(after) == len(before) + 1


def test_lines_behind_an_insertion_change_in_their_ordinal_alone(tmp_path):
    before = records(leg("G_sigkill_tool_done_stream_open", "leg2"))
    source = written(tmp_path / "r.jsonl", leg("G_sigkill_tool_done_stream_open", "leg2"))
    after = records(mend(source))
    del after[10]
    assert [{**one, "ordinal": None} for one in after] == [
        {**one, "ordinal": None} for one in before
    ]


def test_an_output_for_the_last_turn_goes_to_the_end_and_moves_nothing(tmp_path):
    odd = b'{"timestamp": "2026", "ordinal": 3, "type": "world_state", "payload": {"t": 1.50}}'
    lines = [*paginated([user(), call()]), odd]
    content = mend(written(tmp_path / "r.jsonl", jsonl(lines)))
    assert odd in content
    assert records(content)[-1]["payload"]["type"] == "function_call_output"
    assert [one["ordinal"] for one in records(content)] == [0, 1, 2, 3, 4]


def test_odd_spacing_and_floats_survive_renumbering(tmp_path):
    odd = b'{"timestamp": "2026", "ordinal": 3, "type": "world_state", "payload": {"t": 1.50}}'
    lines = [*paginated([user(), call()]), odd, {**assistant(), "ordinal": 4}]
    content = mend(written(tmp_path / "r.jsonl", jsonl(lines)))
    assert records(content)[4]["payload"] == {"t": 1.5}
    assert [one["ordinal"] for one in records(content)] == [0, 1, 2, 3, 4, 5]


def test_a_removed_line_leaves_one_of_its_length_so_that_nothing_behind_it_moves(tmp_path):
    lines = paginated([user(), output("call_nobody", "x" * 500), user(), assistant()])
    content = jsonl(lines)
    after = mend(written(tmp_path / "r.jsonl", content))
    assert len(after) == len(content)
    assert after.splitlines()[3:] == content.splitlines()[3:]
    note = records(after)[2]
    assert (note["type"], note["ordinal"]) == ("event_msg", 2)
    assert note["payload"]["type"] == "warning"


def test_a_declined_call_is_settled_as_never_started(tmp_path):
    source = written(tmp_path / "r.jsonl", jsonl(legacy([call(), ended(status="declined")])))
    assert "Never started" in records(mend(source))[2]["payload"]["output"]


def test_a_contradicted_output_says_what_happened(tmp_path):
    lines = legacy([user(), call(), ended(), output(text="aborted")])
    source = written(tmp_path / "r.jsonl", jsonl(lines))
    assert records(mend(source))[4]["payload"]["output"].endswith("Output:\nhi\n")
    assert findings(source) == []


def test_an_open_call_in_a_replacement_history_is_settled_inside_it(tmp_path):
    summary, kept = user("summary")["payload"], call()["payload"]
    lines = legacy([user(), compacted([summary, kept]), assistant()])
    lines[2]["payload"]["replacement_history_metadata"] = [{"a": 1}, {"b": 2}]
    source = written(tmp_path / "r.jsonl", jsonl(lines))
    payload = records(mend(source))[2]["payload"]
    assert [one["type"] for one in payload["replacement_history"]] == [
        "message",
        "function_call",
        "function_call_output",
    ]
    assert len(payload["replacement_history_metadata"]) == 3
    assert payload["replacement_history_metadata"][:2] == [{"a": 1}, {"b": 2}]
    assert findings(source) == []


def test_an_orphan_in_a_replacement_history_is_taken_out_of_it(tmp_path):
    kept = output()["payload"]
    source = written(tmp_path / "r.jsonl", jsonl(legacy([user(), compacted([kept])])))
    assert records(mend(source))[2]["payload"]["replacement_history"] == []


def test_a_lost_header_is_written_anew_from_the_name_and_the_records(tmp_path):
    name = "rollout-2026-11-15T19-20-44-01a1e0a8-2ecb-7ab0-830c-0dcd9983479e.jsonl"
    context = rollouts.record("turn_context", {"cwd": "/project"})
    source = written(tmp_path / name, jsonl([context, user(), assistant()]))
    first = records(mend(source))[0]
    assert first["type"] == "session_meta"
    assert first["payload"]["id"] == "01a1e0a8-2ecb-7ab0-830c-0dcd9983479e"
    assert first["payload"]["cwd"] == "/project"
    assert findings(source) == []


def test_a_last_line_without_newline_is_not_glued_to_a_new_one(tmp_path):
    content = jsonl(legacy([user(), call()])).rstrip(b"\n")
    source = written(tmp_path / "r.jsonl", content)
    assert mend(source).endswith(b"}\n")
    assert findings(source) == []


def test_the_last_of_two_outputs_stays_if_asked_for(tmp_path):
    lines = legacy([call(), output(text="first"), output(text="last"), assistant()])
    source = written(tmp_path / "r.jsonl", jsonl(lines))
    texts = [
        one["payload"].get("output") for one in records(mend(source, policy=Policy(keep="last")))
    ]
    assert [text for text in texts if text] == ["last"]


def test_what_the_policy_forbids_is_left_and_told(tmp_path):
    content = jsonl(legacy([call(), output("call_b")]))
    source = written(tmp_path / "r.jsonl", content)
    policy = Policy(settle=False, drop_orphans=False)
    with mended(source, beside=tmp_path, policy=policy) as ready:
        assert ready.path is None
        assert [one.finding.code for one in ready.left.findings()] == ["LS001", "LS002"]


# --- properties --------------------------------------------------------------------------------

torn_lines = st.sampled_from([b'{"timestamp":"2026', b"", b"[]", b'{"type":"x"', b"\xff\xfe"])
other_records = st.one_of(
    st.builds(ended, st.sampled_from(["call_a", "call_b"]), exit_code=st.integers(0, 2)),
    st.builds(rolled_back, st.integers(0, 3)),
    st.builds(compacted, st.lists(responses_items(), max_size=4)),
    st.builds(user, st.sampled_from(["go", "<environment_context> x"])),
)
rollout_lines = st.lists(
    st.one_of(st.builds(item, responses_items()), other_records, torn_lines), max_size=14
)


@settings(max_examples=examples(250))
@given(
    lines=rollout_lines,
    numbered=st.booleans(),
    spoil=st.integers(0, 20),
    keep=st.sampled_from(["first", "last"]),
)
def test_any_mended_rollout_checks_clean_and_is_a_fixed_point(
    tmp_path_factory, lines, numbered, spoil, keep
):
    whole = paginated(lines) if numbered else legacy(lines)
    if spoil < len(whole) and isinstance(whole[spoil], dict):
        whole[spoil] = {**whole[spoil], "ordinal": 1}
    path = tmp_path_factory.mktemp("rollout") / "r.jsonl"
    source = written(path, jsonl(whole))
    once = mend(source, policy=Policy(keep=keep))
    assert findings(source) == []
    assert mend(Source(path), policy=Policy(keep=keep)) == once
    for line in once.splitlines():
        assert not line.strip() or json.loads(line)
