"""`lockstitch check`: which files, in how many processes, and what comes out."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from lockstitch.cli import reporting
from lockstitch.cli.app import CLEAN, FINDINGS, TROUBLE, own_fault
from lockstitch.cli.reporting import FileReport, Row
from lockstitch.core.errors import LockstitchError
from lockstitch.core.rules import RULES
from lockstitch.sessions.errors import CannotRead, EmptyFile, NotASession
from lockstitch.sessions.files import check_file
from lockstitch.sessions.source import Source, standard_input

SESSION_SUFFIXES: Final = frozenset({".jsonl", ".json", ".db", ".sqlite", ".sqlite3"})
"""What is looked at in a folder, compressed or not. A file that is named is always read."""
COMPRESSED_SUFFIXES: Final = frozenset({".gz", ".zst"})

PARALLEL_BYTES = 8 * 1024 * 1024
"""Below this one process is done before a second has started."""

SHOW_PROGRESS_FILES = 20
SHOW_PROGRESS_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    output: str = "text"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    statistics: bool = False
    dialect: str | None = None
    anchored: bool = False
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class _Target:
    """A file to check."""

    path: Path
    name: str
    named: bool
    """The user named it; so if it is no session, that is an error."""


def run(paths: list[str], options: Options) -> int:
    """Check and report; the exit code."""
    _know_codes((*options.select, *options.ignore))
    stores = [path for path in paths if path.startswith("store:")]
    with ExitStack() as stack:
        targets, reports = _targets([path for path in paths if path not in stores], stack)
        reports += _check_all(targets, options)
    for store in stores:
        reports += _check_store(store, options)
    for report in reports:
        if report.empty:
            path = reporting.printable(report.path)
            print(f"lockstitch: {path}: is empty, and was passed over.", file=sys.stderr)
    shown = [report for report in reports if not report.skipped]
    reporting.PRINTERS[options.output](shown, options.statistics)
    if not shown and stores:
        return CLEAN  # a store without conversations
    if any(report.error for report in shown) or not shown:
        if not shown:
            print(f"lockstitch: {_nothing_in(paths)}", file=sys.stderr)
        return TROUBLE
    return FINDINGS if any(report.rows for report in shown) else CLEAN


def _nothing_in(folders: Iterable[str]) -> str:
    where = ", ".join(map(reporting.printable, folders))
    names = ", ".join(f"*{suffix}" for suffix in sorted(SESSION_SUFFIXES))
    packed = " or ".join(sorted(COMPRESSED_SUFFIXES))
    return (
        f"{where}: no session files found. In a folder, {names} are looked at, also with {packed}"
        " behind it. Name a file to have it read, whatever its name is."
    )


def _know_codes(codes: Iterable[str]) -> None:
    for code in codes:
        if not any(known.startswith(code) for known in RULES):
            raise LockstitchError(
                f"There is no rule {code}. The rules are {', '.join(RULES)}; "
                "see lockstitch check --explain CODE."
            )


def _targets(paths: list[str], stack: ExitStack) -> tuple[list[_Target], list[FileReport]]:
    targets: list[_Target] = []
    failed: list[FileReport] = []
    for given in paths:
        if given == "-":
            source = stack.enter_context(standard_input())
            targets.append(_Target(source.path, source.name, named=True))
            continue
        path = Path(given)
        if os.path.isdir(path):  # unlike `Path.is_dir`, it never raises: reading the file does
            targets += _walk(path, failed)
        else:
            targets.append(_Target(path, given, named=True))
    return targets, failed


def _walk(folder: Path, failed: list[FileReport]) -> Iterator[_Target]:
    """Session files below a folder. Links to folders are not followed, so nothing loops."""

    def trouble(error: OSError) -> None:
        reason = f"cannot be read: {error.strerror}."
        failed.append(FileReport(path=str(error.filename), error=f"{error.filename}: {reason}"))

    for root, folders, names in os.walk(folder, onerror=trouble):
        folders[:] = sorted(name for name in folders if not name.startswith(".lockstitch-"))
        for name in sorted(names):
            path = Path(root, name)
            suffixes = path.suffixes[-2:]
            if suffixes and suffixes[-1] in COMPRESSED_SUFFIXES:
                suffixes.pop()
            if suffixes and suffixes[-1] in SESSION_SUFFIXES and _is_file(path):
                yield _Target(path, str(path), named=False)


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):  # a link that leads nowhere, or it just went
        return False
    except OSError:
        return True  # reading it will tell why it cannot be read


def _check_all(targets: list[_Target], options: Options) -> list[FileReport]:
    size = sum(_size(target.path) for target in targets)
    work = partial(_check_one, options=options)
    jobs = min(options.jobs or os.cpu_count() or 1, len(targets))
    with ExitStack() as stack:
        results: Iterable[FileReport] = map(work, targets)
        if jobs > 1 and size >= PARALLEL_BYTES:
            # "spawn": a fork would copy the progress bar's thread in mid-step.
            pool = stack.enter_context(ProcessPoolExecutor(jobs, mp_context=get_context("spawn")))
            results = pool.map(work, targets, chunksize=max(1, min(16, len(targets) // jobs // 4)))
        if sys.stderr.isatty() and (
            len(targets) >= SHOW_PROGRESS_FILES or size >= SHOW_PROGRESS_BYTES
        ):
            from rich.console import Console
            from rich.progress import track

            results = track(
                results,
                "Checking",
                total=len(targets),
                console=Console(stderr=True),
                transient=True,
            )
        return list(results)


def _check_store(named: str, options: Options) -> list[FileReport]:
    from lockstitch.cli.checking_stores import check_store

    reports = check_store(named, anchored=options.anchored)
    for report in reports:
        report.rows = [row for row in report.rows if _wanted(row.code, options)]
    return reports


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _check_one(target: _Target, options: Options) -> FileReport:
    """Check one file. Never raises for what a file holds: trouble is a report too."""
    try:
        source = Source(target.path, name=target.name)
        scan = check_file(source, dialect=options.dialect, anchored=options.anchored)
    except NotASession as error:
        if target.named:
            return FileReport(path=target.name, error=str(error))
        return FileReport(path=target.name, skipped=True, empty=isinstance(error, EmptyFile))
    except (CannotRead, LockstitchError) as error:
        return FileReport(path=target.name, error=str(error))
    except RecursionError:
        problem = f"{target.name}: is nested too deeply to be read. Is it a session?"
        return FileReport(path=target.name, error=problem)
    except Exception as error:
        if os.environ.get("LOCKSTITCH_DEBUG"):
            raise
        # What we did not see coming in one file must not hide what is wrong with all others.
        return FileReport(path=target.name, error=f"{target.name}: {own_fault(error)}")
    rows = [
        Row(
            code=located.finding.code,
            line=located.line,
            where=located.where,
            message=located.message,
            label=located.label,
            call_id=located.finding.key,
        )
        for located in scan.findings()
        if _wanted(located.finding.code, options)
    ]
    return FileReport(path=target.name, format=scan.format, records=scan.records, rows=rows)


def _wanted(code: str, options: Options) -> bool:
    if options.select and not code.startswith(options.select):
        return False
    return not (options.ignore and code.startswith(options.ignore))
