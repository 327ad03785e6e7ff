"""Known problems: a file of findings that `check --baseline` does not report again.

A finding is recognised by file, rule, call and conversation, not by its line, which moves."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from lockstitch.cli.reporting import FileReport, Row
from lockstitch.core.errors import LockstitchError


class BaselineError(LockstitchError):
    """A baseline file cannot be read or written."""


class _Known(Struct, frozen=True, omit_defaults=True):
    """Findings that are alike, in one file."""

    code: str
    call: str | None = None
    conversation: str = ""
    count: int = 1


class _Document(Struct, frozen=True, tag_field="kind", tag="lockstitch-baseline"):
    files: dict[str, list[_Known]]
    version: int = 1


def save(file: Path, reports: Iterable[FileReport]) -> int:
    """Write the findings of ``reports``; how many there are. Replaces the file in one step."""
    files: dict[str, list[_Known]] = {}
    total = 0
    for report in reports:
        counted = Counter(_key(row) for row in report.rows)
        if counted:
            files[_name(report.path, file)] = [
                _Known(*key, count=count) for key, count in sorted(counted.items(), key=repr)
            ]
            total += sum(counted.values())
    content = msgspec.json.format(msgspec.json.encode(_Document(dict(sorted(files.items())))))
    made = file.with_name(f".lockstitch-{secrets.token_hex(8)}")
    try:
        try:
            made.write_bytes(content + b"\n")
            os.replace(made, file)
        finally:
            made.unlink(missing_ok=True)
    except OSError as error:
        raise BaselineError(f"{file}: cannot be written: {error.strerror}.") from None
    return total


class Baseline:
    """The known problems in a baseline file. Raises `BaselineError` if it cannot be used."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._files = _load(file).files

    def hide_known(self, report: FileReport) -> None:
        """Take the known problems out of the rows of ``report``, and count them there."""
        known: Counter[tuple[str, str | None, str]] = Counter()
        for one in self._files.get(_name(report.path, self._file), ()):
            known[one.code, one.call, one.conversation] += one.count
        rows = []
        for row in report.rows:
            if known[_key(row)] > 0:
                known[_key(row)] -= 1
            else:
                rows.append(row)
        report.known += len(report.rows) - len(rows)
        report.rows = rows


def _load(file: Path) -> _Document:
    try:
        document = msgspec.json.decode(file.read_bytes(), type=_Document)
    except OSError as error:
        raise BaselineError(
            f"{file}: cannot be read: {error.strerror}. Make a baseline with: lockstitch check"
            " --write-baseline FILE PATH"
        ) from None
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BaselineError(f"{file}: is not a baseline: {error}.") from None
    if document.version != 1:
        raise BaselineError(
            f"{file}: has version {document.version}, which this release does not know. Update"
            " Lockstitch, or write the baseline again."
        )
    return document


def _key(row: Row) -> tuple[str, str | None, str]:
    return row.code, row.call_id, row.label


def _name(path: str, baseline: Path) -> str:
    """The path from the baseline's folder, so that it holds on another machine."""
    return Path(os.path.relpath(path, baseline.parent)).as_posix()
