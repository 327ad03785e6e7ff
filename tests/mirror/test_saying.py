"""Speech is read as its words, and a client can create no more than those."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core.items import Part
from lockstitch.dialects.likeness import likeness
from lockstitch.mirror.saying import (
    awaits_words,
    creatable,
    half,
    has_speech,
    read,
    same,
    with_words,
    without_audio,
)
from tests.generated import examples, responses_items
from tests.mirror.provider import call, message, speech

TEXTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["input_text", "output_text", "text", "refusal"])},
    optional={"text": st.sampled_from(["hi", "", None]), "annotations": st.just([])},
)
MESSAGES = st.fixed_dictionaries(
    {"id": st.sampled_from("ab"), "type": st.just("message")},
    optional={
        "role": st.sampled_from(["user", "assistant", None]),
        "status": st.just("completed"),
        "name": st.just("Ann"),
        "content": st.one_of(st.lists(TEXTS, max_size=2), st.sampled_from(["hi", None])),
    },
)


@given(MESSAGES, MESSAGES)
@settings(max_examples=examples(300), deadline=None)
def test_messages_are_the_same_if_they_are_alike(one, other):
    assert same(one, other) is (likeness(one) == likeness(other))


@given(st.one_of(responses_items(), MESSAGES))
@settings(max_examples=examples(300), deadline=None)
def test_a_half_of_a_pair_is_what_its_core_item_is(wire):
    item = read(wire)
    joined = item.part in {Part.CALL, Part.OUTPUT} and item.key is not None
    assert half(wire) == ((item.part, item.key) if joined else None)


def test_items_are_the_same_if_they_say_the_same():
    told = {"id": "x", "role": "user", "content": "hello"}
    assert same(told, message("a", "hello"))
    assert not same(told, message("a", "goodbye"))
    assert same(speech("a", "hello"), message("b", "hello"))
    assert not same(speech("a", "hello"), message("b", "goodbye"))
    assert same(call("f", "c1"), call("g", "c1"))
    assert not same(call("f", "c1"), call("f", "c1", '{"a": 1}'))


def test_speech_without_words_may_say_anything():
    assert same(speech("a"), message("a", "hello"))
    assert awaits_words(speech("a"))
    assert not awaits_words(speech("a", "hello"))
    assert not awaits_words(speech("a", None, "assistant"))


@pytest.mark.parametrize(
    ("role", "kind"), [("user", "input_text"), ("assistant", "output_text")], ids=str
)
def test_a_client_creates_the_words_of_what_was_said(role, kind):
    made = creatable(speech("a", "hello", role))
    assert made["content"] == [{"type": kind, "text": "hello"}]
    assert creatable(speech("a", None, role)) is None


def test_what_is_no_speech_is_created_as_it_is():
    for wire in (message("a", "a"), call("f", "c1")):
        assert creatable(wire) is wire
        assert not has_speech(wire)
    spoken = {"role": "user", "content": [{"type": "input_audio", "audio": "AAAA"}]}
    assert has_speech(spoken)
    assert creatable(spoken) is spoken  # its bytes are there


def test_words_come_and_go_and_the_item_is_another_one():
    item = speech("a")
    heard = with_words(item, 0, "hello")
    assert item == speech("a")
    assert heard == speech("a", "hello")
    assert with_words(heard, 0, None)["content"] == [{"type": "input_audio"}]
    assert with_words(item, 3, "hello") is item
    assert without_audio(item) is item
