"""`lockstitch check`: reads files, in several processes if there is much to read, and reports."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from lockstitch.cli import baseline, reporting
from lockstitch.cli.app import CLEAN, FINDINGS, TROUBLE, internal_error
from lockstitch.cli.baseline import Baseline
from lockstitch.cli.reporting import FileReport, Row, count_of
from lockstitch.cli.settings import Rules, load_rules
from lockstitch.cli.streams import complain
from lockstitch.cli.targets import Found, Target, find_targets, nothing_found
from lockstitch.core.errors import LockstitchError
from lockstitch.core.terminal import printable
from lockstitch.sessions.errors import EmptyFile, NotASession
from lockstitch.sessions.files import check_file
from lockstitch.sessions.source import Source

if TYPE_CHECKING:
    from ctypes import c_ulonglong
    from multiprocessing.sharedctypes import Synchronized

PARALLEL_BYTES = 8 * 1024 * 1024
"""Below this one process is done before a second has started."""

SHOW_PROGRESS_FILES = 20
SHOW_PROGRESS_BYTES = 64 * 1024 * 1024
PROGRESS_SECONDS: Final = 0.1
"""Time between two updates of the progress bar."""


class Options(Struct, frozen=True, kw_only=True):
    output: str = "text"
    select: tuple[str, ...] | None = None
    """None: as the settings file says."""
    ignore: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    config: Path | None = None
    fix: bool = False
    statistics: bool = False
    baseline: Path | None = None
    exit_zero: bool = False
    quiet: bool = False
    color: str = "auto"
    stdin_filename: str | None = None
    dialect: str | None = None
    anchored: bool = False
    jobs: int | None = None


def run(paths: list[str], options: Options) -> int:
    """Check and report; the exit code."""
    rules = _rules(options)
    known = load_baseline(options, rules)  # before any file is changed: it may be unusable
    found, reports = _check_paths(paths, options, rules)
    if known is not None:
        for report in reports:
            known.hide_known(report)
    fixed = _fix(reports, options, rules, known) if options.fix else ""
    hidden = sum(report.known for report in reports)
    for report in reports:
        if report.empty and not options.quiet:
            complain(f"{report.path}: skipped, the file is empty.")
    shown = [report for report in reports if not report.skipped]
    notes = [fixed] if fixed else []
    if hidden:
        notes.append(f"{count_of(hidden, 'known problem')} not shown (baseline).")
    reporting.PRINTERS[options.output](
        shown,
        reporting.Look(
            statistics=options.statistics,
            quiet=options.quiet,
            color=options.color,
            notes=tuple(notes),
        ),
    )
    return _exit_code(shown, paths, found, options)


def write_baseline(paths: list[str], options: Options, file: Path) -> int:
    """Save what is found as a baseline; the exit code."""
    found, checked = _check_paths(paths, options, _rules(options))
    reports = [one for one in checked if not one.skipped]
    code = _exit_code(reports, paths, found, options)
    if code == TROUBLE:
        for report in reports:
            if report.error:
                complain(report.error)
        complain("No baseline was written.")
        return TROUBLE
    total = baseline.save(file, reports)
    if not options.quiet:
        print(f"Wrote {printable(str(file))} with {count_of(total, 'known problem')}.")
    return CLEAN


def load_baseline(options: Options, rules: Rules) -> Baseline | None:
    """The baseline that the command line or the settings file names. Raises `BaselineError`."""
    file = options.baseline if options.baseline is not None else rules.baseline
    return None if file is None else Baseline(file)


def check_targets(targets: list[Target], options: Options, rules: Rules) -> list[FileReport]:
    """Read these files, with a progress bar on a terminal if there are many or large ones."""
    size = sum(target.size for target in targets)
    jobs = min(options.jobs or os.cpu_count() or 1, len(targets))
    # "spawn": a fork would copy the progress bar's thread in the middle of a step.
    context = multiprocessing.get_context("spawn")
    large = len(targets) >= SHOW_PROGRESS_FILES or size >= SHOW_PROGRESS_BYTES
    with ExitStack() as stack:
        counter = None
        if large and not options.quiet and sys.stderr.isatty():
            counter = context.Value("Q", 0)
            stack.enter_context(_progress(counter, size))
        if jobs > 1 and size >= PARALLEL_BYTES:
            pool = stack.enter_context(
                ProcessPoolExecutor(
                    jobs,
                    mp_context=context,
                    initializer=_Worker.start,
                    initargs=(counter, options, rules),
                )
            )
            chunk = max(1, min(16, len(targets) // jobs // 4))
            return list(pool.map(_Worker.check, targets, chunksize=chunk))
        return [_check_one(target, options, rules, counter) for target in targets]


def _rules(options: Options) -> Rules:
    return load_rules(
        options.config, select=options.select, ignore=options.ignore, exclude=options.exclude
    )


def _check_paths(
    paths: list[str], options: Options, rules: Rules
) -> tuple[Found, list[FileReport]]:
    stores = [path for path in paths if path.startswith("store:")]
    with ExitStack() as stack:
        found = find_targets(
            (path for path in paths if path not in stores),
            stack,
            excludes=rules.excludes,
            stdin_name=options.stdin_filename,
        )
        reports = [FileReport(path=one.path, error=one.error) for one in found.unreadable]
        reports += check_targets(found.targets, options, rules)
    for store in stores:
        reports += _check_store(store, options, rules)
    return found, reports


def _exit_code(shown: list[FileReport], paths: list[str], found: Found, options: Options) -> int:
    if not shown and any(path.startswith("store:") for path in paths):
        return CLEAN  # a store without conversations
    if not shown:
        complain(nothing_found(paths, found))
        return TROUBLE
    if any(report.error for report in shown):
        return TROUBLE
    if options.exit_zero:
        return CLEAN
    return FINDINGS if any(report.rows for report in shown) else CLEAN


def _fix(reports: list[FileReport], options: Options, rules: Rules, known: Baseline | None) -> str:
    """Repair in place every file with problems that are not known, and read it again; what to say
    of it."""
    from lockstitch.cli.mending import repair_in_place

    fixed = files = 0
    for index, report in enumerate(reports):
        if not report.rows or report.format == reporting.STORE:
            continue
        try:
            repair_in_place(Path(report.path), dialect=options.dialect, anchored=options.anchored)
        except LockstitchError as error:
            report.error = str(error)
            continue
        target = Target(Path(report.path), report.path, named=True)
        again = reports[index] = _check_one(target, options, rules, None)
        if known is not None:
            known.hide_known(again)
        fixed += len(report.rows) + report.known - len(again.rows) - again.known
        files += 1
    if not files:
        return ""
    return (
        f"Fixed {count_of(fixed, 'problem')} in {count_of(files, 'file')}; the originals are kept"
        " as *.bak."
    )


def _check_store(named: str, options: Options, rules: Rules) -> list[FileReport]:
    from lockstitch.cli.checking_stores import check_store

    reports = check_store(named, anchored=options.anchored)
    for report in reports:
        report.rows = [row for row in report.rows if rules.counts(row.code, Path(report.path))]
    return reports


def _check_one(
    target: Target, options: Options, rules: Rules, counter: Synchronized[c_ulonglong] | None
) -> FileReport:
    """Check one file. Never raises for what a file holds: an error becomes a report."""
    with _counting(counter, target.size if counter is not None else 0) as advance:
        try:
            source = Source(target.path, name=target.name, progress=advance)
            scan = check_file(source, dialect=options.dialect, anchored=options.anchored)
        except NotASession as error:
            if target.named:
                return FileReport(path=target.name, error=str(error))
            return FileReport(path=target.name, skipped=True, empty=isinstance(error, EmptyFile))
        except LockstitchError as error:
            return FileReport(path=target.name, error=str(error))
        except RecursionError:
            problem = f"{target.name}: is nested too deeply to be read. Is it a session file?"
            return FileReport(path=target.name, error=problem)
        except Exception as error:
            if os.environ.get("LOCKSTITCH_DEBUG"):
                raise
            # A bug that shows in one file must not hide what is wrong with all others.
            return FileReport(path=target.name, error=f"{target.name}: {internal_error(error)}")
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
        if rules.counts(located.finding.code, Path(target.name))
    ]
    return FileReport(path=target.name, format=scan.format, records=scan.records, rows=rows)


class _Worker:
    """What a process of the pool keeps between two files."""

    _work: Callable[[Target], FileReport]

    @classmethod
    def start(
        cls, counter: Synchronized[c_ulonglong] | None, options: Options, rules: Rules
    ) -> None:
        cls._work = staticmethod(lambda target: _check_one(target, options, rules, counter))

    @classmethod
    def check(cls, target: Target) -> FileReport:
        return cls._work(target)


@contextmanager
def _counting(
    counter: Synchronized[c_ulonglong] | None, size: int
) -> Iterator[Callable[[int], None] | None]:
    """Adds the bytes that are read of a file to ``counter``: its size in all, even if it is read
    twice or only in part."""
    if counter is None:
        yield None
        return
    left = size

    def advance(count: int) -> None:
        nonlocal left
        step = min(count, left)
        left -= step
        _add(counter, step)

    try:
        yield advance
    finally:
        _add(counter, left)


def _add(counter: Any, count: int) -> None:
    with counter.get_lock():
        counter.value += count


@contextmanager
def _progress(counter: Any, size: int) -> Iterator[None]:
    """A progress bar on standard error, drawn by a thread while the files are read."""
    ended = threading.Event()

    def draw() -> None:
        with click.progressbar(length=max(size, 1), label="Checking", file=sys.stderr) as bar:
            shown = 0
            while not ended.wait(PROGRESS_SECONDS):
                now = counter.value
                bar.update(now - shown)
                shown = now
        # The bar is gone when the findings are printed.
        sys.stderr.write("\x1b[1A\x1b[2K")
        sys.stderr.flush()

    thread = threading.Thread(target=draw, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
