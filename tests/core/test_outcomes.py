"""Three outcomes, told apart; and what clients write when they claim a call did not run."""

from __future__ import annotations

import pytest

from lockstitch.core.outcomes import (
    MARK,
    NEVER_STARTED_TEXT,
    UNKNOWN_TEXT,
    Evidence,
    Outcome,
    denies_running,
    settlement,
)

FINISHED = Evidence(Outcome.FINISHED, "finished with exit code 0", "21 degrees")
FAILED = Evidence(Outcome.FINISHED, "finished with exit code 2", "boom", failed=True, exit_code=2)
NEVER = Evidence(Outcome.NEVER_STARTED, "was never approved", "Nobody approved it.")
UNKNOWN = Evidence(Outcome.UNKNOWN, "was started")


def test_there_are_three_outcomes_and_no_more():
    assert {outcome.value for outcome in Outcome} == {
        "never started",
        "finished",
        "outcome unknown",
    }


@pytest.mark.parametrize(
    ("evidence", "outcome", "well"),
    [
        (None, Outcome.UNKNOWN, False),
        (UNKNOWN, Outcome.UNKNOWN, False),
        (NEVER, Outcome.NEVER_STARTED, False),
        (FINISHED, Outcome.FINISHED, True),
        (FAILED, Outcome.FINISHED, False),
    ],
)
def test_a_settlement_reports_what_the_evidence_says_and_that_it_is_synthetic(
    evidence, outcome, well
):
    said = settlement(evidence)
    assert (said.outcome, said.well) == (outcome, well)
    assert said.text.startswith(MARK)


def test_without_evidence_a_call_is_never_said_not_to_have_run():
    text = settlement(None).text
    assert "may have taken effect" in text
    assert not denies_running(text)


def test_an_unknown_outcome_keeps_what_little_the_evidence_holds():
    said = settlement(Evidence(Outcome.UNKNOWN, "was started", "Started at line 9."))
    assert said.text == f"{UNKNOWN_TEXT}\nStarted at line 9."


def test_a_call_that_never_started_is_said_to_have_had_no_effect():
    text = settlement(NEVER).text
    assert text == f"{NEVER_STARTED_TEXT} Nobody approved it."
    assert "had no effect" in text


def test_a_recovered_output_is_given_whole():
    text = settlement(FINISHED).text
    assert "finished with exit code 0" in text
    assert text.endswith("21 degrees")


def test_a_recovered_call_without_a_text_is_not_said_to_have_given_an_empty_one():
    text = settlement(Evidence(Outcome.FINISHED, "finished with exit code 0")).text
    assert text.endswith("the call finished with exit code 0. No text of its output is on record.")


def test_a_call_that_failed_is_said_to_have_failed():
    said = settlement(FAILED)
    assert (said.failed, said.exit_code) == (True, 2)
    assert "finished with exit code 2" in said.text


def test_the_same_evidence_always_gives_the_same_bytes():
    for evidence in (None, UNKNOWN, NEVER, FINISHED, FAILED):
        assert settlement(evidence) == settlement(evidence)


def test_the_three_texts_cannot_be_taken_for_one_another():
    texts = [settlement(evidence).text for evidence in (None, NEVER, FINISHED)]
    assert len({text[:30] for text in texts}) == 3


@pytest.mark.parametrize(
    "text",
    [
        "aborted",
        "aborted by user after 3.2s",
        "Aborted.",
        "  cancelled",
        "canceled",
        "Tool call was cancelled by the user",
        "The tool call was not executed",
        "this command has been interrupted",
        "Execution was interrupted",
        "did not run",
        "call never started",
        "No output available",
        "no result provided",
        NEVER_STARTED_TEXT,
    ],
)
def test_a_clients_claim_that_a_call_did_not_run_is_recognised(text):
    assert denies_running(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "21 degrees",
        "The build was aborted by the linter",
        "abortedness is not a word",
        "error: 3 jobs cancelled",
        "all tests passed, 2 skipped",
        UNKNOWN_TEXT,
    ],
)
def test_an_output_that_only_mentions_such_words_is_somebodys_real_output(text):
    assert not denies_running(text)


@pytest.mark.parametrize(
    "text",
    [
        "Cancelled 3 subscriptions.",
        "Canceled order 17: refund of 20.00 EUR issued",
        "Skipped 2 tests, 10 passed",
        "Interrupted jobs: 4 resumed",
    ],
)
def test_a_tool_that_cancels_or_skips_things_is_not_taken_for_one_that_did_not_run(text):
    assert not denies_running(text)
