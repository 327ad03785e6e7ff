"""Writes in step, and how those that are not are refused."""

from __future__ import annotations

import pytest

from lockstitch.core.records import Record
from lockstitch.store.errors import OutOfStep
from lockstitch.store.stepping import check_numbers, claim_lost, out_of_step


def numbered(*seqs):
    return [Record(seq=seq, payload=b"x") for seq in seqs]


@pytest.mark.parametrize(("after", "seqs"), [(0, ()), (0, (1,)), (0, (1, 2, 3)), (7, (8, 9))])
def test_records_that_follow_are_in_step(after, seqs):
    check_numbers("memory:", "a", numbered(*seqs), after=after)


@pytest.mark.parametrize(("after", "seqs"), [(0, (0,)), (0, (1, 3)), (0, (1, 1)), (7, (7, 8))])
def test_records_that_do_not_are_named(after, seqs):
    with pytest.raises(OutOfStep, match=r"of conversation 'a' in memory: is numbered"):
        check_numbers("memory:", "a", numbered(*seqs), after=after)


def test_a_refusal_says_what_is_there_and_what_to_do():
    said = str(out_of_step("memory:", "a", length=3, after=2, count=1))
    assert "'a' in memory: has 3 records" in said
    assert "append after that" in said


@pytest.mark.parametrize(
    ("there", "owner", "what"),
    [
        (False, None, "was deleted"),
        (True, None, "was released"),
        (True, "anna", "was taken over by anna"),
    ],
)
def test_a_claim_that_is_lost_says_how(there, owner, what):
    said = str(claim_lost("memory:", "a", there=there, owner=owner))
    assert f"'a' in memory: {what}; nothing was written" in said
