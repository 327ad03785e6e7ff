"""What the journal has seen elsewhere, and what counts of it."""

from __future__ import annotations

import pytest

import lockstitch
from lockstitch.core.outcomes import Outcome
from lockstitch.gateway.deciding.evidence import NOTHING, seen, wanted
from lockstitch.gateway.deciding.guard import Guarding, guarded
from tests.turns import DIALECTS, Words, call, output, user


def test_evidence_is_wanted_of_open_calls_and_of_those_said_not_to_have_run():
    history = [call("a"), output("a"), call("b"), output("b", "aborted"), call("c"), user()]
    assert wanted(history) == ["c", "b"]


def test_evidence_is_wanted_of_calls_that_wait_behind_an_anchor():
    from lockstitch.dialects import by_name

    waiting = [by_name("responses").read(call(key))[0] for key in ("a", "b")]
    assert wanted([output("a")], open_calls=waiting) == ["b"]


def test_an_id_that_names_two_calls_is_not_asked_about():
    assert wanted([call("a"), output("a"), user(), call("a"), user()]) == []


def test_nothing_is_wanted_of_a_whole_history():
    for dialect in DIALECTS:
        words = Words(dialect)
        history = [words.user(), *words.calls("a", "b"), words.output("a"), words.output("b")]
        if dialect != "messages":
            assert wanted(history, dialect=dialect) == []


def test_a_stand_in_is_no_evidence():
    found = [output("a", "aborted"), output("a", "[lockstitch] Outcome unknown."), output("b", "x")]
    known = seen(found, keys=["a", "b"])
    assert set(known.outputs) == {"b"}
    assert known.evidence["b"].outcome is Outcome.FINISHED
    assert seen([], keys=["a"]) == NOTHING


def test_the_first_output_that_says_something_counts():
    known = seen([output("a", "aborted"), output("a", "one"), output("a", "two")], keys=["a"])
    assert known.outputs["a"][1]["output"] == "one"


def test_a_call_gets_the_very_output_that_was_sent_elsewhere():
    found = output("a", "21 °C", id="fco_7", status="completed")
    known = seen([found], keys=["a"])
    for dialect in DIALECTS:
        words = Words(dialect)
        known = seen([words.output("a", "21 °C")], keys=["a"], dialect=dialect)
        history = [words.user(), *words.calls("a"), words.user("and?")]
        made = guarded(history, mode=Guarding.MEND, dialect=dialect, evidence=known)
        assert made.items is not None
        assert lockstitch.check(made.items, dialect=dialect) == []
        assert "21 °C" in str(made.items)
        assert "lockstitch" not in str(made.items)


def test_an_id_of_another_branch_does_not_come_along():
    known = seen([output("a", "x", id="fco_7")], keys=["a"])
    made = guarded([call("a"), user()], mode=Guarding.MEND, evidence=known)
    assert made.items == [call("a"), output("a", "x"), user()]


def test_content_and_failure_are_kept():
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:"}]
    known = seen([output("a", parts)], keys=["a"])
    made = guarded([call("a"), user()], mode=Guarding.MEND, evidence=known)
    assert made.items is not None
    assert made.items[1]["output"] == parts
    result = {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": "no such file",
        "is_error": True,
    }
    known = seen([{"role": "user", "content": [result]}], keys=["a"], dialect="messages")
    assert known.evidence["a"].failed
    words = Words("messages")
    history = [words.user(), *words.calls("a"), words.user()]
    made = guarded(history, mode=Guarding.MEND, dialect="messages", evidence=known)
    assert made.items is not None
    assert made.items[2]["content"][0] == result


def test_an_output_that_denies_what_happened_is_corrected_where_the_history_is_repaired():
    known = seen([output("a", "booked")], keys=["a"])
    history = [call("a"), output("a", "aborted", id="fco_1"), user(), output("gone", "x")]
    made = guarded(history, mode=Guarding.MEND, evidence=known)
    assert made.items == [call("a"), output("a", "booked", id="fco_1"), user()]


@pytest.mark.parametrize("dialect", ["responses", "messages"])
def test_a_history_that_the_provider_accepts_is_not_changed_whatever_is_known(dialect):
    words = Words(dialect)
    known = seen([words.output("a", "booked")], keys=["a"], dialect=dialect)
    history = [words.user(), *words.calls("a"), words.output("a", "aborted")]
    made = guarded(history, mode=Guarding.MEND, dialect=dialect, evidence=known)
    assert [finding.code for finding in made.findings] == ["LS012"]
    assert made.items is None


def test_an_output_of_another_family_is_not_put_behind_a_call():
    wrong = {"type": "shell_call_output", "call_id": "a", "output": []}
    known = seen([wrong], keys=["a"])
    made = guarded([call("a"), user()], mode=Guarding.MEND, evidence=known)
    assert made.items is not None
    assert made.items[1]["type"] == "function_call_output"
    assert lockstitch.check(made.items) == []
