"""Notes of the gateway are read as they were written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from lockstitch.gateway.keeping.notes import (
    AnsweredNote,
    AskedNote,
    UnreadableNote,
    answered_note,
    asked_note,
    written,
)
from tests.generated import examples


@settings(max_examples=examples(40))
@given(st.text(), st.booleans(), st.none() | st.text(), st.booleans(), st.floats(0, 1e10))
def test_what_was_asked_is_read_as_it_was_written(upstream, local, base, stored, created):
    note = AskedNote(upstream=upstream, local=local, base=base, stored=stored, created=created)
    assert asked_note(written(note)) == note


@settings(max_examples=examples(40))
@given(st.lists(st.none() | st.integers(0, 9)), st.none() | st.integers(), st.text())
def test_what_was_answered_is_read_as_it_was_written(numbers, last, ended_by):
    response = Raw(b'{"id": "resp_1",  "x":1.50}')
    note = AnsweredNote(numbers=numbers, last=last, ended_by=ended_by, response=response)
    found = answered_note(written(note))
    assert (found.numbers, found.last, found.ended_by) == (numbers, last, ended_by)
    assert json.loads(bytes(found.response)) == json.loads(bytes(response))


def test_fields_of_a_newer_version_are_passed_over():
    assert asked_note(b'{"upstream":"up","new":[1]}') == AskedNote(upstream="up")


@pytest.mark.parametrize("note", [b"", b"{}", b"[]", b"{", b'{"upstream":5}', b"\xff", b"[" * 9000])
def test_a_note_that_cannot_be_read_says_what_to_do(note):
    with pytest.raises(UnreadableNote, match="Upgrade"):
        asked_note(note)


def test_a_response_says_of_its_request_what_the_client_asked():
    asked = AskedNote(upstream="up")
    assert asked.asked_for() == {}
    found = AskedNote(upstream="up", base="resp_1")
    assert found.asked_for() == {}  # the client did not name it
    named = AskedNote(upstream="up", base="resp_1", anchored=True, conversation="conv_1")
    assert named.asked_for() == {
        "previous_response_id": "resp_1",
        "conversation": {"id": "conv_1"},
    }


@pytest.mark.parametrize(
    ("store", "stored", "says"),
    [
        (True, True, {}),
        (False, False, {}),
        (True, False, {"store": True}),
        (None, False, {}),  # written by an older version, which noted only the other
    ],
)
def test_a_response_says_that_it_is_kept_where_the_gateway_keeps_it(store, stored, says):
    assert AskedNote(upstream="up", store=store, stored=stored).asked_for() == says
