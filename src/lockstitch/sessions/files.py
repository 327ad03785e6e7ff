"""Checking and mending files: the door to this layer.

Mending writes beside the target and renames at the end, so a file is either as it was or whole.
Nothing is renamed if the file changed while it was read."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO

from lockstitch.core import mending
from lockstitch.core.errors import CannotMend
from lockstitch.core.mending import Policy
from lockstitch.dialects.examination import NOTHING_RECOGNISED
from lockstitch.sessions.errors import CannotRead, CannotWrite, EmptyFile, NotASession
from lockstitch.sessions.formats import KNOWN_FORMATS, detect_format, sign_of_calls
from lockstitch.sessions.model import Change, Format, Scan
from lockstitch.sessions.source import Source, companions, stamp


def check_file(source: Source, *, dialect: str | None = None, anchored: bool = False) -> Scan:
    """What is wrong with a file. Raises `CannotRead` if it is not a session, or if something in it
    looks like a call or an output and could not be read as one."""
    with _refusing_unknown_formats(source):
        return _scan(detect_format(source, dialect), source, anchored)


@contextlib.contextmanager
def _refusing_unknown_formats(source: Source) -> Iterator[None]:
    """What is not a session is passed over in a folder. What looks like one of an unknown format is
    not: it could be broken."""
    try:
        yield
    except EmptyFile:
        raise
    except NotASession as error:
        sign = sign_of_calls(source)
        if sign is None:
            raise
        problem = f"looks like a history with tool calls ({sign}), but its format is not known."
        raise CannotRead(source.name, problem, f"Known formats: {KNOWN_FORMATS}.") from error


def _scan(kind: Format, source: Source, anchored: bool) -> Scan:
    scan = kind.scan(source, anchored=anchored)
    for conversation in scan.conversations:
        if conversation.unread is not None:
            line = conversation.line
            where = scan.where(conversation.unread.place) + (f" of line {line}" if line else "")
            raise CannotRead(
                source.name, conversation.unread.say(where), f"Known formats: {KNOWN_FORMATS}."
            )
    if scan.records and not any(conversation.recognised for conversation in scan.conversations):
        raise NotASession(source.name, NOTHING_RECOGNISED, f"Known formats: {KNOWN_FORMATS}.")
    return scan


@dataclass(slots=True, kw_only=True)
class Mending:
    """A mended file that is ready, and what was done to it. Nothing is in its place yet."""

    source: Source
    path: Path | None = None
    """The mended copy; None if there was nothing to mend."""
    changes: list[Change] = field(default_factory=list)
    left: Scan | None = None
    """The last reading: what the policy left unmended."""
    folder: Path
    """Where work in progress is kept, on the file system of the target."""
    stamp: list[tuple[str, int, int]] = field(default_factory=list)
    """What the source looked like when it was read."""


@contextlib.contextmanager
def mended(
    source: Source,
    *,
    beside: Path,
    policy: Policy | None = None,
    dialect: str | None = None,
    anchored: bool = False,
) -> Iterator[Mending]:
    """Mend a file into a temporary one in the folder ``beside``, which must be writable.

    Raises, and leaves nothing behind, if it cannot be read, written or made whole."""
    policy = policy if policy is not None else Policy()
    with _refusing_unknown_formats(source):
        kind = detect_format(source, dialect)
    with _scratch(beside) as folder:
        result = Mending(source=source, folder=folder, stamp=stamp(source.path))
        try:
            with _refusing_unknown_formats(source):
                _rounds(result, kind, policy, anchored)
        except OSError as error:
            raise CannotWrite(
                f"{beside}: cannot be written: {error.strerror}. Nothing was changed."
            ) from error
        yield result


def _rounds(result: Mending, kind: Format, policy: Policy, anchored: bool) -> None:
    turns = count()

    def step(current: Source) -> Source | None:
        if current is not result.source and result.left is None:
            return None  # the last round is known to have settled everything
        scan = result.left = _scan(kind, current, anchored)
        if not any(conversation.findings for conversation in scan.conversations):
            return None
        path = result.folder / f"{next(turns)}-{result.source.path.name}"
        with path.open("wb") as raw:
            changes = _write(kind, current, raw, scan, policy)
        if not changes:
            path.unlink()
            return None
        if not Source(path).head(1):
            raise CannotMend(
                "nothing of it would be left: it holds outputs without calls. Nothing was changed. "
                "If it continues a previous_response_id or a conversation, pass --anchored."
            )
        result.changes += changes
        result.path = path
        if _all_settled(scan, policy):
            result.left = None
        return Source(path, name=result.source.name)

    def findings(current: Source) -> list[str]:
        return [
            f"{found.where}: {found.finding.code} {found.message}"
            for found in _scan(kind, current, anchored).findings()
        ]

    try:
        mending.in_rounds(result.source, step, findings)
    except CannotMend as error:
        raise CannotMend(f"{result.source.name}: {error}") from None


def _all_settled(scan: Scan, policy: Policy) -> bool:
    """Is the result known to be whole without reading it again?"""
    if policy != Policy() or scan.linked:
        return False
    codes = {f.code for conversation in scan.conversations for f in conversation.findings}
    return codes <= mending.SETTLED_AT_ONCE


def _write(
    kind: Format, source: Source, raw: IO[bytes], scan: Scan, policy: Policy
) -> list[Change]:
    out = source.compressing(raw)
    changes = kind.write(source, _Blamed(out), scan, policy)
    if out is not raw:
        out.close()
    return changes


class _Blamed:
    """A stream whose failures are known to be about writing: they happen while the source is
    being read, and would be taken for its own."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def write(self, data: bytes) -> int:
        try:
            return self._out.write(data)
        except OSError as error:
            raise CannotWrite(
                f"The mended copy cannot be written: {error.strerror}. Nothing was changed."
            ) from error


def put_in_place(ready: Mending, target: Path, *, backup: bool) -> Path | None:
    """Move the mended copy to ``target``, at once and whole; the path of the backup, if any. What
    needed no mending is copied as it is.

    Raises `CannotWrite`, and leaves the target as it was, if the source changed meanwhile."""
    source = ready.source.path
    _expect_unchanged(ready)
    if not backup and companions(target):
        names = ", ".join(one.name for one in companions(target))
        raise CannotWrite(
            f"{target}: a database was there, and {names} is still beside it. Close the program "
            "that has it open, or name another place."
        )
    try:
        made = ready.path
        if made is None:
            made = ready.folder / "copy"
            shutil.copyfile(source, made)
        if backup:
            _give_to_owner_of(source, made)
        # The times too: a client that finds its last session by them must not find another one.
        shutil.copystat(source, made)
        _sync(made)
        original = None
        if backup:
            original = ready.folder / "original"
            shutil.copy2(source, original)
            _give_to_owner_of(source, original)
            _sync(original)
        _expect_unchanged(ready)  # last: what was written during all of that would be lost
        kept = _replace(made, target, original)
        with contextlib.suppress(OSError):  # not every system can sync a folder
            _sync(target.parent)
    except OSError as error:
        raise CannotWrite(f"{target}: cannot be written: {error.strerror}.") from error
    return kept


def _give_to_owner_of(source: Path, made: Path) -> None:
    """If root mends a session in place, its client must still be able to write it. Others may not
    give files away, and need not."""
    if sys.platform != "win32":
        there = source.stat()
        with contextlib.suppress(PermissionError):
            os.chown(made, there.st_uid, there.st_gid)


def _replace(made: Path, target: Path, original: Path | None) -> Path | None:
    """Rename at once; where the original is kept now, if it is. What SQLite keeps beside a database
    goes with the backup, and first: a `-wal` beside the new file would be written into it. If a
    rename fails, or is interrupted, it comes back."""
    kept: Path | None = None
    moved: list[tuple[Path, Path]] = []
    try:
        if original is not None:
            kept = backup_path(target)
            os.replace(original, kept)
            for companion in companions(target):
                suffix = companion.name.removeprefix(target.name)
                beside_backup = kept.with_name(kept.name + suffix)
                os.replace(companion, beside_backup)
                moved.append((beside_backup, companion))
        os.replace(made, target)
    except BaseException:
        if made.exists():  # else it was the last rename, and an interrupt came behind it
            for beside_backup, companion in moved:
                os.replace(beside_backup, companion)
            if kept is not None:
                kept.unlink(missing_ok=True)
        raise
    return kept


def _expect_unchanged(ready: Mending) -> None:
    """Raises `CannotWrite` if somebody wrote to the source since it was read."""
    with contextlib.suppress(OSError):
        if stamp(ready.source.path) == ready.stamp:
            return
    raise CannotWrite(
        f"{ready.source.name}: it changed while it was being mended. Nothing was changed. "
        "Stop the program that writes it, then try again."
    )


def backup_path(target: Path) -> Path:
    """A name that is free: an earlier backup is never overwritten."""
    path = target.with_name(target.name + ".bak")
    number = 1
    while path.exists():
        number += 1
        path = target.with_name(f"{target.name}.bak{number}")
    return path


@contextlib.contextmanager
def _scratch(beside: Path) -> Iterator[Path]:
    """A folder for work in progress, on the file system of the target, gone at the end."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=".lockstitch-", dir=beside))
    except OSError as error:
        raise CannotWrite(
            f"{beside}: cannot be written: {error.strerror}. Name another place with -o."
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sync(path: Path) -> None:
    """Make a file, or a rename in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
