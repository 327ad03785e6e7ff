"""Who is speaking, and from when on a caller can have decided about an item."""

from __future__ import annotations

import pytest

from lockstitch.mirror import context as contexts
from lockstitch.mirror.context import Context
from tests.mirror.provider import call, message, speech


@pytest.fixture
def context():
    return Context(links=True, transcribes=True)


def entered(context, wire):
    record = context.enter(wire)
    context.chain.append(record)
    return record


def test_a_finished_item_is_known_at_once(context):
    assert entered(context, message("a", "a")).known_at == context.version
    assert entered(context, call("f", "c1", "", "in_progress")).known_at is None


def test_speech_is_known_once_its_words_are_unless_nobody_writes_them(context):
    record = entered(context, speech("a"))
    assert record.unheard
    assert record.known_at is None
    context.rewrite(record, speech("a", "hello"))
    context.consider(record)
    assert record.known_at == context.version
    silent = Context(links=True, transcribes=False)
    assert entered(silent, speech("a")).known_at is not None


def test_an_item_of_a_response_is_known_once_that_has_ended(context):
    context.begins("r")
    context.speaks("r", "a")
    record = entered(context, message("a", "a", "assistant"))
    assert record.known_at is None
    (ended,) = context.ends("r")
    assert ended is record
    context.consider(record)
    assert record.known_at is not None
    context.speaks("r", "b")  # a late word about it
    assert not context.speaking


def test_ended_responses_are_remembered_for_a_while(monkeypatch):
    monkeypatch.setattr(contexts, "MOST_ENDED_RESPONSES_REMEMBERED", 3)
    context = Context(links=True, transcribes=True)
    for number in range(10):
        context.ends(f"r{number}")
    assert len(context.ended) == 3
    assert context.begins("r9") is None
    assert context.begins("r0") == []


def test_an_item_that_becomes_another_kind_changes_its_pair(context):
    one, other = entered(context, call("f", "c1")), entered(context, call("g", "c2"))
    answer = entered(
        context, {"id": "o", "type": "function_call_output", "call_id": "c1", "output": ""}
    )
    assert answer.partner is one
    context.rewrite(answer, answer.wire | {"call_id": "c2"})
    assert answer.partner is other
    assert one.partner is None
