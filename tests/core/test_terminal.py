"""Text from outside, made safe to print."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.core.terminal import printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é", "plain é"),
        ("a\x1bb", "a\\x1bb"),
        ("\r\n", "\\x0d\\x0a"),
        ("\x9b2J", "\\x9b2J"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u2066\u200f\ufeff", "\\u2066\\u200f\\ufeff"),
        ("\U000e0041", "\\U000e0041"),
        ("\udc80", "\\udc80"),
    ],
)
def test_what_could_control_a_terminal_is_shown_as_an_escape(text, shown):
    assert printable(text) == shown


@given(st.text())
def test_any_text_becomes_one_line_that_prints_as_it_is(text):
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)


@given(st.text())
def test_lines_stay_lines(text):
    shown = printable_lines(text)
    assert shown.count("\n") == text.count("\n")
    assert "".join(shown.split("\n")).replace("\t", "").isprintable()
