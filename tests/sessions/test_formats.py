"""Telling formats apart, and refusing what is none, whatever a file holds."""

from __future__ import annotations

import errno
import json
import os
import random
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.sessions import lines
from lockstitch.sessions.errors import CannotRead, NotASession
from lockstitch.sessions.files import check_file
from lockstitch.sessions.formats import detect_format
from lockstitch.sessions.source import Source
from tests.generated import examples
from tests.sessions.test_codex import LEGS
from tests.sessions.written import COMPRESSIONS, DATA, jsonl, written

ITEM = {"type": "message", "role": "user", "content": "hi"}
ROLLOUT = LEGS[0].read_bytes()
CLAUDE = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "message": ITEM}


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (ROLLOUT, "codex"),
        (b'{"timestamp":"20' + b"\n" + ROLLOUT, "codex"),
        (jsonl([CLAUDE, CLAUDE]), "claude-code"),
        (jsonl([{"type": "summary", "summary": "x", "leafUuid": "y"}, CLAUDE]), "claude-code"),
        (jsonl([ITEM, ITEM]), "jsonl"),
        (jsonl([ITEM]), "jsonl"),
        (jsonl([{"input": [ITEM]}, {"input": "x"}]), "requests"),
        (jsonl([{"input": [ITEM]}]), "json"),
        (json.dumps({"messages": [ITEM]}, indent=2).encode(), "json"),
        (json.dumps([ITEM], indent=2).encode(), "json"),
        (json.dumps([ITEM]).encode(), "json"),
    ],
)
@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_a_format_is_told_from_the_content(tmp_path, content, name, suffix):
    pack, _ = COMPRESSIONS[suffix]
    assert detect_format(written(tmp_path / "anything", pack(content))).name == name


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n\n ", "is empty"),
        (b"\x7fELF\x00\x00", "is a binary file"),
        ('{"role": "user"}'.encode("utf-16"), "is UTF-16"),
        ("hällo".encode("latin-1"), "is not a session"),
        (b"just some text\nand more\n", "is not a session"),
        (b'"a string"', "is not a session"),
        (b"7", "is not a session"),
        (b"SQLite format 3\x00", "SQLite"),
    ],
)
def test_what_is_no_session_is_told_so(tmp_path, content, said):
    with pytest.raises(CannotRead, match=said):
        check_file(written(tmp_path / "x", content))


def test_a_line_without_end_is_refused_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE_BYTES", 1 << 20)
    with pytest.raises(CannotRead, match="has a line longer than 1 MiB"):
        check_file(written(tmp_path / "x.jsonl", b'{"type":"message","x":"' + b"x" * (3 << 20)))


def test_a_database_of_another_kind_is_told_so(tmp_path):
    with sqlite3.connect(tmp_path / "x.db") as other:
        other.execute("CREATE TABLE a (b)")
    other.close()
    with pytest.raises(NotASession, match="not one of the Agents SDK"):
        check_file(Source(tmp_path / "x.db"))


def test_a_file_that_may_not_be_read_is_told_so(tmp_path, monkeypatch):
    source = written(tmp_path / "x.jsonl", b"{}")

    def forbidden(*args, **kwargs):
        # As the system says it to anybody but root.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(type(source.path), "open", forbidden)
    with pytest.raises(CannotRead, match=r"Permission denied.*Run as a user who may read it"):
        Source(tmp_path / "x.jsonl")
    with pytest.raises(CannotRead, match="Permission denied"):
        check_file(source)


def test_a_loop_of_links_is_told_so(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(CannotRead, match="Too many levels"):
        Source(tmp_path / "a")


# --- no input makes `check` raise anything else -------------------------------------------------

SEEDS = [path.read_bytes() for path in LEGS[::4]] + [
    jsonl([CLAUDE, CLAUDE]),
    json.dumps({"input": [ITEM, {"type": "function_call", "call_id": "a"}]}, indent=1).encode(),
    *(path.read_bytes() for path in sorted((DATA.parents[1] / "examples").glob("*.json*"))),
]


def _checked(source: Source) -> None:
    try:
        scan = check_file(source)
    except CannotRead:
        return
    for located in scan.findings():
        assert located.message


@settings(max_examples=examples(300))
@given(content=st.binary(max_size=300))
def test_no_bytes_make_check_raise(tmp_path_factory, content):
    _checked(written(tmp_path_factory.mktemp("bytes") / "x", content))


@settings(max_examples=examples(300))
@given(
    seed=st.sampled_from(SEEDS),
    cuts=st.lists(
        st.tuples(st.integers(0, 10**6), st.binary(max_size=6), st.integers(0, 40)), max_size=4
    ),
    suffix=st.sampled_from(sorted(COMPRESSIONS)),
)
def test_no_damage_to_a_real_file_makes_check_raise(tmp_path_factory, seed, cuts, suffix):
    content = bytearray(seed)
    for at, new, gone in cuts:
        start = at % (len(content) + 1)
        content[start : start + gone] = new
    pack, _ = COMPRESSIONS[suffix]
    _checked(written(tmp_path_factory.mktemp("damage") / "x", pack(bytes(content))))


def test_no_damage_to_a_compressed_file_makes_check_raise(tmp_path):
    rng = random.Random(1)
    for suffix in (".gz", ".zst"):
        pack, _ = COMPRESSIONS[suffix]
        whole = pack(ROLLOUT)
        for _ in range(60):
            damaged = bytearray(whole)
            damaged[rng.randrange(4, len(whole))] ^= 1 << rng.randrange(8)
            _checked(
                written(tmp_path / f"x{suffix}", bytes(damaged[: rng.randrange(5, len(whole) + 1)]))
            )
