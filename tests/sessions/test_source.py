"""Sources: files that can be read again and again, compressed or not."""

from __future__ import annotations

import io
import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from lockstitch.sessions import source as module
from lockstitch.sessions.errors import CannotRead
from lockstitch.sessions.plain_lines import read_objects
from lockstitch.sessions.source import Source, companions, stamp, standard_input
from tests.sessions.written import COMPRESSIONS, written


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_a_source_is_read_decompressed_and_more_than_once(tmp_path, suffix):
    pack, _ = COMPRESSIONS[suffix]
    source = written(tmp_path / "name-does-not-matter", pack(b"hello\n" * 1000))
    for _ in range(2):
        with source.open() as stream:
            assert stream.read() == b"hello\n" * 1000
    assert source.head(5) == b"hello"


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_what_is_written_has_the_compression_of_the_source_and_is_deterministic(tmp_path, suffix):
    pack, unpack = COMPRESSIONS[suffix]
    source = written(tmp_path / "x", pack(b"old"))
    made = []
    for _ in range(2):
        raw = io.BytesIO()
        out = source.compressing(raw)
        out.write(b"new" * 100)
        if out is not raw:
            out.close()
        made.append(raw.getvalue())
    assert made[0] == made[1]
    assert unpack(made[0]) == b"new" * 100


def test_a_folder_and_a_missing_file_are_told_apart(tmp_path):
    with pytest.raises(CannotRead, match="is a directory"):
        Source(tmp_path)
    with pytest.raises(CannotRead, match="No such file"):
        Source(tmp_path / "x")


def test_standard_input_is_a_source_too(monkeypatch):
    class Piped:
        buffer = io.BytesIO(b'{"role": "user"}\n')

    monkeypatch.setattr(sys, "stdin", Piped())
    with standard_input() as source:
        assert source.name == "<stdin>"
        assert source.head(100) == b'{"role": "user"}\n'
        path = source.path
    assert not path.exists()


def test_a_stamp_changes_with_the_file_and_with_what_belongs_to_it(tmp_path):
    path = tmp_path / "agent.db"
    path.write_bytes(b"x")
    before = stamp(path)
    assert stamp(path) == before
    wal = tmp_path / "agent.db-wal"
    wal.write_bytes(b"y")
    assert companions(path) == [wal]
    assert stamp(path) != before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize("name", ["/proc/self/status", "/proc/self/maps", "/proc/kmsg"])
def test_a_file_that_the_kernel_makes_is_not_read(name):
    if not os.access(name, os.R_OK):
        pytest.skip(f"{name} cannot be read here")
    with pytest.raises(CannotRead, match=r"is not a regular file|cannot be read: Operation not"):
        Source(Path(name))


def test_an_empty_file_is_a_regular_file(tmp_path):
    (tmp_path / "x").touch()
    assert Source(tmp_path / "x").head(1) == b""


@pytest.mark.parametrize("suffix", [one for one in COMPRESSIONS if one])
def test_what_decompresses_to_more_than_the_limit_is_refused_in_flat_memory(
    tmp_path, suffix, monkeypatch
):
    monkeypatch.setattr(module, "LARGEST_DECOMPRESSED_BYTES", 64 * 1024**2)
    pack, _ = COMPRESSIONS[suffix]
    source = written(tmp_path / "x", pack(b"\n" * (65 * 1024**2)))
    assert source.path.stat().st_size < 128 * 1024
    tracemalloc.start()
    try:
        with pytest.raises(CannotRead, match=r"is more than 0\.0625 GiB when it is decompressed"):
            list(read_objects(source))
        assert tracemalloc.get_traced_memory()[1] < 8 * 1024**2
    finally:
        tracemalloc.stop()
