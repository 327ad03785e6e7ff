"""Halves of characters are replaced, and nothing else is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.dialects.characters import whole_characters

anything = st.text(
    st.sampled_from(["\ud83d", "\ude00", "\\", "u", "d", "é", "a"]) | st.characters()
)


@given(anything)
def test_halves_of_characters_are_replaced_and_nothing_else(text):
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert json.loads(whole_characters(json.dumps(text).encode())) == whole
    as_it_is = json.dumps(whole, ensure_ascii=False).encode()
    assert whole_characters(as_it_is) == as_it_is


@pytest.mark.parametrize(
    ("sent", "whole"),
    [
        (rb'"\ud83d"', rb'"\ufffd"'),
        (rb'"\uDE00 \uD83D"', rb'"\ufffd \ufffd"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"\\ud83d"', rb'"\\ud83d"'),
        (rb'"\\\ud83d"', rb'"\\\ufffd"'),
        (rb'"\u00e9\n"', rb'"\u00e9\n"'),
    ],
)
def test_what_half_a_character_is(sent, whole):
    assert whole_characters(sent) == whole
