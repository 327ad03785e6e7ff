"""Lines: bounded, and joined they are the stream again."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lockstitch.sessions import lines as module
from lockstitch.sessions.errors import CannotRead
from lockstitch.sessions.lines import decoded, encoded, lines, numbered_lines, problem_of


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 64))
@example([b"\xef\xbb\xbf"], 1)
@example([b"\xef\xbb\xbf{}", b"\xef\xbb\xbf"], 2)
@example([b"\xef\xbb"], 1)
def test_lines_joined_are_the_stream_again(parts, block):
    content = b"\n".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_BYTES", block)
        found = list(lines(io.BytesIO(content), "x"))
    assert b"".join(found) == content.removeprefix(b"\xef\xbb\xbf")
    assert all(line.count(b"\n") == line.endswith(b"\n") for line in found)


BLANK_LINES = st.sampled_from([b"\n", b"\r\n", b" \n", b"\t \x0b\x0c\n", b"\n" * 50])


@given(
    st.lists(BLANK_LINES | st.sampled_from([b"x\n", b" x \n", b"\xc2\xa0\n"])), st.integers(1, 64)
)
def test_blank_lines_are_skipped_and_counted(parts, block):
    content = b"".join(parts) + b"end"
    blank: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_BYTES", block)
        patch.setattr(module, "SKIPPED_LINES", 3)
        found = list(numbered_lines(io.BytesIO(content), "x", blank=blank.append))
    every = io.BytesIO(content).readlines()
    assert found == [(n, line) for n, line in enumerate(every, 1) if line.strip()]
    assert b"".join(blank) == b"".join(line for line in every if not line.strip())


def test_a_line_that_is_too_long_is_refused_before_it_is_read_whole(monkeypatch):
    monkeypatch.setattr(module, "LONGEST_LINE_BYTES", 1000)
    monkeypatch.setattr(module, "BLOCK_BYTES", 100)
    endless = io.BytesIO(b"ok\n" + b"x" * 100_000)
    reader = lines(endless, "x.jsonl")
    assert next(reader) == b"ok\n"
    with pytest.raises(CannotRead, match=r"x\.jsonl: has a line longer"):
        next(reader)
    assert endless.tell() < 2000


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"a": 1}', None),
        (b'{"a": ', "is torn or not JSON"),
        (b'"\xff"', "is not UTF-8"),
        (b"[" * 100_000, "is nested too deeply"),
    ],
)
def test_a_problem_is_told_apart(line, problem):
    assert problem_of(line) == problem


@pytest.mark.parametrize("text", ['{"a":1e999,"b":2}', '{"a":123456789012345678901234567890}'])
def test_numbers_beyond_64_bits_are_json_all_the_same(text):
    assert problem_of(text.encode()) is None
    assert json.loads(encoded(decoded(text))).keys() == json.loads(text).keys()


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": Infinity}', "{'a': 1}"])
def test_what_other_parsers_refuse_is_not_json(text):
    assert problem_of(text.encode()) == "is torn or not JSON"
