"""Session files for tests: written, read and mended in one line each."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from lockstitch.dialects import by_name, detect
from lockstitch.sessions.files import check_file, mended, put_in_place
from lockstitch.sessions.source import Source

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DATA = Path(__file__).parents[1] / "data"
CAPTURES = DATA / "codex"


def jsonl(records) -> bytes:
    """One record a line; bytes are a line as it is."""
    return b"".join(
        record + b"\n"
        if isinstance(record, bytes)
        else json.dumps(record, ensure_ascii=False).encode() + b"\n"
        for record in records
    )


def written(path: Path, content: bytes) -> Source:
    path.write_bytes(content)
    return Source(path)


def findings(source: Source, **options) -> list[tuple[str, int | None]]:
    """Code and line of every finding."""
    return [(one.finding.code, one.line) for one in check_file(source, **options).findings()]


def messages(source: Source, **options) -> list[str]:
    return [one.message for one in check_file(source, **options).findings()]


def mend(source: Source, **options) -> bytes:
    """The file's content after mending in place; the original is kept as it was beside it."""
    with mended(source, beside=source.path.parent, **options) as ready:
        if ready.path is not None:
            put_in_place(ready, source.path, backup=False)
    return source.path.read_bytes()


def told_in(history, dialect: str) -> str:
    """The dialect that a file of these items is read in, if this one is given."""
    return detect(history, by_name(dialect)).name


def records(content: bytes) -> list[dict]:
    return [json.loads(line) for line in content.splitlines() if line.strip()]


COMPRESSIONS = {
    "": (lambda content: content, lambda content: content),
    ".gz": (gzip.compress, gzip.decompress),
    ".zst": (zstd.compress, zstd.decompress),
}
