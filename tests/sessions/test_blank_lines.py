"""Files of blank lines: they are read as fast as others, whatever the format."""

from __future__ import annotations

import shutil

import pytest

from lockstitch.sessions.errors import NotASession
from lockstitch.sessions.files import check_file, mended
from lockstitch.sessions.source import Source
from tests.sessions.written import COMPRESSIONS, written
from tests.timing import least_seconds

SAID = b'"message":{"role":"user","content":"x"}}\n'
CALL = b'{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}'
SAID_IN_JSONL = b'{"type":"message","role":"user","content":"x"}\n'
SAID_IN_CODEX = (
    b'{"type":"response_item","payload":{"type":"message","role":"user","content":[]}}\n'
)
FORMATS = {
    "codex": (b'{"type":"response_item","payload":%b}\n' % CALL, b""),
    "jsonl": (CALL + b"\n", b""),
    "requests": (b'{"input":[%b]}\n{"input":[%b]}\n' % (CALL, CALL), b""),
    "claude-code": (b'{"type":"user","sessionId":"s","uuid":"u","parentUuid":null,' + SAID, b""),
    "pi": (
        b'{"type":"session","id":"a","version":3,"cwd":"/"}\n'
        b'{"type":"message","id":"b","parentId":null,' + SAID,
        b"",
    ),
    "json": (b"[" + CALL, b"]"),
}
BLANK_BYTES = 1_000_000


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \n"])
@pytest.mark.parametrize("format", FORMATS)
def test_blank_lines_are_read_as_fast_as_others(tmp_path, format, blank):
    begin, end = FORMATS[format]
    content = begin + blank * (BLANK_BYTES // len(blank)) + end
    empty = written(tmp_path / "blank", content)
    real = written(tmp_path / "real", SAID_IN_JSONL * (BLANK_BYTES // len(SAID_IN_JSONL)))
    assert check_file(empty).format == format
    assert least_seconds(lambda: check_file(empty)) < least_seconds(lambda: check_file(real))


@pytest.mark.parametrize("format", ["codex", "jsonl", "requests"])
def test_a_repair_writes_blank_lines_as_fast_as_others(tmp_path, format):
    begin, _ = FORMATS[format]
    filler = {"codex": SAID_IN_CODEX, "jsonl": SAID_IN_JSONL, "requests": b'{"input":[]}\n'}[format]
    blank = written(tmp_path / "blank", begin + b"\n" * BLANK_BYTES)
    real = written(tmp_path / "real", begin + filler * (BLANK_BYTES // len(filler)))

    def repair(source):
        with mended(source, beside=tmp_path) as ready:
            assert ready.changes

    assert least_seconds(lambda: repair(blank)) < least_seconds(lambda: repair(real))


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_a_file_of_nothing_but_blank_lines_is_no_session(tmp_path, suffix):
    pack, _ = COMPRESSIONS[suffix]
    source = written(tmp_path / "x", pack(b"\n" * BLANK_BYTES))
    real = written(tmp_path / "real", b'{"role":"user","content":"x"}\n' * (BLANK_BYTES // 30))

    def check():
        with pytest.raises(NotASession, match="no line of it is a JSON record"):
            check_file(source)

    assert least_seconds(check) < least_seconds(lambda: check_file(real))


@pytest.mark.parametrize("format", ["codex", "jsonl", "requests"])
def test_a_repair_leaves_blank_lines_and_numbers_count_them(tmp_path, format):
    begin, _ = FORMATS[format]
    blank = b"\n" * 1000 + b" \r\n" * 1000
    path = tmp_path / "x"
    path.write_bytes(blank + begin)
    lines = {one.line for one in check_file(Source(path)).findings()}
    assert 2001 in lines
    with mended(Source(path), beside=tmp_path) as ready:
        shutil.copyfile(ready.path, tmp_path / "mended")
    assert blank in (tmp_path / "mended").read_bytes()
    assert not check_file(Source(tmp_path / "mended")).findings()
