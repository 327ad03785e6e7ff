"""What can go wrong with a file, and that it can be told across processes."""

from __future__ import annotations

import pickle

import pytest

import lockstitch
from lockstitch.sessions.errors import CannotRead, CannotWrite, NotASession


@pytest.mark.parametrize("kind", [CannotRead, NotASession])
def test_a_message_says_what_happened_to_what_and_what_to_do(kind):
    error = kind("s.jsonl", "is empty.", "There is nothing to check.")
    assert str(error) == "s.jsonl: is empty. There is nothing to check."
    assert str(kind("s.jsonl", "is empty.")) == "s.jsonl: is empty."


@pytest.mark.parametrize("kind", [CannotRead, NotASession])
def test_an_error_comes_whole_out_of_another_process(kind):
    error = pickle.loads(pickle.dumps(kind("s.jsonl", "is empty.", "Nothing.")))
    assert type(error) is kind
    assert (error.name, error.problem, error.advice) == ("s.jsonl", "is empty.", "Nothing.")


def test_every_error_about_files_is_one_of_ours():
    assert issubclass(CannotWrite, lockstitch.LockstitchError)
    assert issubclass(NotASession, CannotRead)
    assert issubclass(CannotRead, lockstitch.LockstitchError)
