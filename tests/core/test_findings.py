"""Findings as sentences: what people read, for every rule."""

from __future__ import annotations

import pytest

from lockstitch.core import families, rules
from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.core.outcomes import Evidence, Outcome

FINISHED = Evidence(Outcome.FINISHED, "finished with exit code 0", "ok", at=9)
NEVER = Evidence(Outcome.NEVER_STARTED, "was never approved")
UNKNOWN = Evidence(Outcome.UNKNOWN, "was started", at=9)


def finding(rule, **fields):
    return Finding(rule=rule, place=fields.pop("place", Place(3)), **fields)


SENTENCES = [
    (
        finding(rules.NO_OUTPUT, key="call_a", name="get_weather"),
        "call_a (get_weather) has no output",
    ),
    (finding(rules.NO_OUTPUT, key="call_a"), "call_a has no output"),
    (finding(rules.NO_OUTPUT), "a call without an id has no output"),
    (
        finding(rules.NO_OUTPUT, key="call_a", evidence=FINISHED),
        "call_a has no output; it finished with exit code 0 (item 9)",
    ),
    (
        finding(rules.NO_OUTPUT, key="mcpr_1", evidence=NEVER),
        "mcpr_1 has no output; it was never approved",
    ),
    (finding(rules.ORPHAN_OUTPUT, key="call_a"), "output for call_a has no call"),
    (
        finding(rules.OUTPUT_BEFORE_CALL, key="call_a", other=Place(7)),
        "output for call_a comes before its call (item 7)",
    ),
    (
        finding(rules.SECOND_OUTPUT, key="call_a", other=Place(1)),
        "second output for call_a; the first is at item 1",
    ),
    (
        finding(rules.ID_REUSED_WHILE_OPEN, key="call_a", other=Place(1)),
        "call_a is used again before its first call (item 1) has an output",
    ),
    (
        finding(
            rules.WRONG_FAMILY,
            key="call_a",
            family=families.CUSTOM,
            other=Place(1),
            detail="function_call_output",
        ),
        "function_call_output answers call_a, which is a custom_tool_call (item 1)",
    ),
    (
        finding(rules.REASONING_PARTED, key="rs_1", detail="nothing"),
        "reasoning rs_1 is followed by nothing, not by what it led to",
    ),
    (
        finding(rules.DUPLICATE_ITEM_ID, key="msg_1", other=Place(1)),
        "item id msg_1 is already used (item 1)",
    ),
    (
        finding(rules.NOT_ADJACENT, key="call_a", other=Place(2)),
        "output for call_a does not follow its call at once; item 2 comes between",
    ),
    (
        finding(
            rules.GROUP_INCOMPLETE,
            key="call_b",
            detail="while 1 of the 2 calls made at once has one",
        ),
        "call_b has no output, while 1 of the 2 calls made at once has one",
    ),
    (
        finding(
            rules.HALF_PAIR_LEFT,
            key="call_a",
            family=families.FUNCTION,
            other=Place(5),
            detail="compaction",
        ),
        "call_a has no output: it was cut away by the compaction (item 5)",
    ),
    (
        finding(rules.HALF_PAIR_LEFT, key="call_a", other=Place(5), detail="rollback"),
        "output for call_a has no call: it was cut away by the rollback (item 5)",
    ),
    (
        finding(rules.CONTRADICTED, key="call_a", detail='"aborted"', evidence=FINISHED),
        'output for call_a says that it did not run ("aborted"); '
        "it finished with exit code 0 (item 9)",
    ),
    (finding(rules.ORPHAN_OUTPUT), "output without a call id"),
    (
        finding(rules.UNANSWERED_APPROVAL, key="mcpr_1", name="pay", evidence=NEVER),
        "mcpr_1 (pay) asks for approval, and nobody answered",
    ),
    (
        finding(rules.INCOMPLETE_CALL, key="call_a", name="book"),
        "call_a (book) was cut off before its arguments were complete",
    ),
    (finding(rules.UNDECODABLE, detail="the line is torn"), "the line is torn"),
    (finding(rules.ORDINAL, detail="ordinal 4 is repeated"), "ordinal 4 is repeated"),
    (finding(rules.NO_HEADER, detail="no session_meta"), "no session_meta"),
]


@pytest.mark.parametrize(("found", "sentence"), SENTENCES, ids=lambda value: str(value)[:60])
def test_a_finding_is_one_sentence_that_names_the_call_and_the_place(found, sentence):
    assert found.message == sentence


def test_every_rule_has_its_sentence():
    assert {found.code for found, _ in SENTENCES} == set(rules.RULES)


def test_a_finding_prints_with_its_code_first():
    assert str(finding(rules.NO_OUTPUT, key="call_a")) == "LS001 call_a has no output"


def test_the_readers_side_names_the_places():
    found = finding(rules.NO_OUTPUT, key="call_a", evidence=FINISHED)
    assert found.say(lambda place: f"line {place.at}").endswith("(line 9)")
    found = finding(rules.SECOND_OUTPUT, key="call_a", other=Place(4, 2))
    assert found.say(lambda place: f"block {place}").endswith("at block 4.2")


@pytest.mark.parametrize("evidence", [None, UNKNOWN])
def test_evidence_that_tells_nothing_is_not_told(evidence):
    found = finding(rules.NO_OUTPUT, key="call_a", evidence=evidence)
    assert found.message == "call_a has no output"


def test_a_finding_is_data_that_cannot_be_changed():
    found = finding(rules.NO_OUTPUT, key="call_a")
    assert found == finding(rules.NO_OUTPUT, key="call_a")
    with pytest.raises(AttributeError):
        found.key = "call_b"
