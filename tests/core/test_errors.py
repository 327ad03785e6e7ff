"""Errors: whose fault is a type, and the message says what to do next."""

from __future__ import annotations

import pytest

import lockstitch
from lockstitch.core import errors, mending

CALL = {"type": "function_call", "call_id": "call_a", "name": "t", "arguments": "{}"}


def test_every_error_is_a_lockstitch_error():
    raised = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, Exception)
    ]
    assert len(raised) >= 5
    assert all(issubclass(error, lockstitch.LockstitchError) for error in raised)


@pytest.mark.parametrize("name", ["NotAHistory", "UnknownDialect", "CannotMend", "CannotTrim"])
def test_an_error_is_importable_from_the_package(name):
    assert getattr(lockstitch, name) is getattr(errors, name)
    assert name in lockstitch.__all__


def test_something_that_is_no_list_is_refused_with_what_was_expected():
    with pytest.raises(
        lockstitch.NotAHistory, match=r"Expected a list .*got str.*lockstitch check"
    ):
        lockstitch.check("rollout.jsonl")


def test_an_item_that_is_no_dictionary_is_named_by_its_position():
    with pytest.raises(lockstitch.NotAHistory, match=r"Item 1 is a int.*model_dump"):
        lockstitch.check([CALL, 7])


def test_an_unknown_dialect_is_answered_with_those_there_are():
    with pytest.raises(lockstitch.UnknownDialect, match=r"'gemini'.*responses, chat, messages"):
        lockstitch.check([CALL], dialect="gemini")


def test_leading_items_that_do_not_fit_are_answered_with_a_way_out():
    system = {"role": "system", "content": "be brief"}
    with pytest.raises(lockstitch.CannotTrim, match=r"take 2.*limit is 1.*keep_leading=False"):
        lockstitch.trim([system, system], max_items=1, keep_leading=True)


def test_mending_that_gives_up_names_what_is_left_and_changes_nothing(monkeypatch):
    monkeypatch.setattr(mending, "MOST_ROUNDS", 1)
    history = [CALL, CALL]  # the first round gives the second call an id of its own
    with pytest.raises(lockstitch.CannotMend, match=r"LS001 call_a.*Nothing was changed"):
        lockstitch.mend(history)
    assert history == [CALL, CALL]
