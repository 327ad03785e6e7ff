"""`lockstitch mend`: where each repaired copy goes, and what is said about it."""

from __future__ import annotations

import filecmp
import io
import json
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

import click
from msgspec import Struct

from lockstitch.cli.app import CLEAN, FINDINGS, TROUBLE
from lockstitch.cli.places import STANDARD_OUTPUT, Kind, Place, place, prepared, writing_into
from lockstitch.cli.reporting import count_of, styled
from lockstitch.cli.settings import load_rules
from lockstitch.cli.streams import complain
from lockstitch.cli.targets import Target, find_targets, nothing_found
from lockstitch.core.errors import LockstitchError
from lockstitch.core.mending import Policy
from lockstitch.core.terminal import printable
from lockstitch.sessions.errors import CannotWrite, NotASession
from lockstitch.sessions.files import Mending, backup_path, mended, put_in_place
from lockstitch.sessions.model import Change
from lockstitch.sessions.source import Source, companions

SHOWN_CHARACTERS = 120
"""How much of a removed record is shown; --diff and --report have all of it."""


class Options(Struct, frozen=True, kw_only=True):
    out: Path | None = None
    in_place: bool = False
    diff: bool = False
    dry_run: bool = False
    force: bool = False
    report: Path | None = None
    quiet: bool = False
    color: str = "auto"
    exclude: tuple[str, ...] = ()
    config: Path | None = None
    stdin_filename: str | None = None
    policy: Policy = Policy()
    dialect: str | None = None
    anchored: bool = False

    @property
    def writes(self) -> bool:
        """Is anything written, or is it only said what would be?"""
        return not (self.diff or self.dry_run)


def run(paths: list[str], options: Options) -> int:
    """Repair and report; the exit code."""
    if any(path.startswith("store:") for path in paths):  # its URL may hold a password
        raise LockstitchError(
            "A store cannot be repaired: it holds what happened. The next turn of a thread adds the"
            " missing outputs. Name a file."
        )
    piped = "-" in paths
    if piped and len(paths) > 1:
        raise click.UsageError("- (standard input) cannot be combined with other paths.")
    rules = load_rules(options.config, exclude=options.exclude)
    with ExitStack() as stack:
        found = find_targets(
            paths, stack, excludes=rules.excludes, stdin_name=options.stdin_filename
        )
        targets = found.targets
        for one in found.unreadable:
            complain(one.error)
        several = len(paths) > 1 or not all(target.named for target in targets)
        if options.out is not None and (several or len(targets) != 1):
            raise click.UsageError("-o takes a single file. For several, use --in-place.")
        if not targets:
            complain(nothing_found(paths, found))
            return TROUBLE
        batch = _Batch(options, piped=piped)
        batch.failed += len(found.unreadable)
        # A report is written before any file is, so with one all copies are made first.
        for group in [targets] if options.report is not None else [[one] for one in targets]:
            batch.mend(group)
        if several:
            if not batch.files and not batch.failed:
                complain(nothing_found(paths, found))
                return TROUBLE
            batch.print_summary()
    return batch.exit_code


def repair_in_place(path: Path, *, dialect: str | None, anchored: bool) -> None:
    """Replace a file by its repaired copy, with a backup next to it. Raises `LockstitchError`, and
    leaves the file as it was, if that cannot be done."""
    source = Source(path)
    target = path.resolve()
    with mended(source, beside=target.parent, dialect=dialect, anchored=anchored) as ready:
        if ready.path is not None:
            put_in_place(ready, target, backup=True)


class _Job(Struct, frozen=True):
    """One repaired copy that is ready, and where it goes."""

    ready: Mending
    target: Place
    up_to_date: bool
    """The same copy is there already."""


class _Batch:
    """Several files, and what became of them."""

    def __init__(self, options: Options, *, piped: bool) -> None:
        self._options = options
        self._piped = piped
        self.files = 0
        self.repaired = 0
        self.current = 0
        """Copies that were there already."""
        self.left = 0
        self.failed = 0

    @property
    def exit_code(self) -> int:
        if self.failed:
            return TROUBLE
        return FINDINGS if self.left else CLEAN

    def mend(self, targets: list[Target]) -> None:
        """Make a repaired copy of each file, say what changed, and put the copies in place."""
        options = self._options
        with ExitStack() as stack:
            jobs = []
            for target in targets:
                try:
                    jobs.append((target, self._prepare(target, stack)))
                except NotASession as error:
                    if target.named:
                        self._fail(str(error))
                except LockstitchError as error:
                    self._fail(str(error))
                except RecursionError:
                    name = target.name
                    self._fail(f"{name}: is nested too deeply to be read. Is it a session file?")
            if not jobs:
                return
            self.files += len(jobs)
            try:
                report = _report_place([job for _, job in jobs], options)
            except LockstitchError as error:
                self._fail(str(error))
                return
            out = self._stream(jobs[0][1], report)
            for target, job in jobs:
                self._describe(target, job, out)
            put_report = None
            if report is not None:
                try:
                    content = _report_content([job.ready for _, job in jobs])
                    put_report = stack.enter_context(prepared(report, content))
                except LockstitchError as error:
                    self._fail(str(error))
                    return
            out.flush()  # nothing is repaired if nobody can be told what was done
            for _, job in jobs:
                try:
                    if options.writes:
                        _deliver(job, options, out)
                except LockstitchError as error:
                    self._fail(str(error))
                    continue
                self.current += job.up_to_date
                self.repaired += bool(job.ready.changes) and not job.up_to_date
                self.left += bool(job.ready.left is not None and job.ready.left.findings())
            if put_report is not None:
                put_report()

    def print_summary(self) -> None:
        """One line about all files."""
        if self._options.quiet or self._options.diff:
            return
        done = "Repaired" if self._options.writes else "Would repair"
        parts = [f"{done} {count_of(self.repaired, 'file')}"]
        if self.current:
            parts.append(f"{self.current:,} repaired before")
        valid = self.files - self.repaired - self.current - self.failed
        if valid > 0:
            parts.append(f"{valid:,} needed no repair")
        if self.left:
            parts.append(f"{self.left:,} still have problems")
        if self.failed:
            parts.append(f"{self.failed:,} could not be repaired")
        print("; ".join(parts) + ".")

    def _prepare(self, target: Target, stack: ExitStack) -> _Job:
        options = self._options
        source = Source(target.path, name=target.name)
        place = _copy_place(source, options, self._piped)
        scratch = place.is_stdout or place.is_node or not options.writes
        ready = stack.enter_context(
            mended(
                source,
                beside=Path(tempfile.gettempdir()) if scratch else place.path.parent,
                policy=options.policy,
                dialect=options.dialect,
                anchored=options.anchored,
            )
        )
        up_to_date = False
        if options.writes and not options.in_place and not options.force:
            copied = ready.path is not None or options.out is not None
            if copied and place.kind is Kind.FILE:
                up_to_date = _is_copy(place.path, ready)
                if not up_to_date:
                    place.refuse_taken()
        return _Job(ready, place, up_to_date)

    def _describe(self, target: Target, job: _Job, out: TextIO) -> None:
        options, ready = self._options, job.ready
        if options.diff:
            _print_diff(ready.source.name, _shown(job.target), ready.changes, options.color)
            return
        if options.dry_run and ready.changes:
            print(f"Repairing {printable(ready.source.name)} would do this:", file=out)
        if ready.changes or target.named:
            _print_changes(ready.source.name, ready, out, options.color)
        if options.dry_run and target.named:
            print("Nothing was written: this was a dry run.", file=out)

    def _stream(self, job: _Job, report: Place | None) -> TextIO:
        """Where to print: standard output, unless it gets the session or the report."""
        if self._options.quiet:
            return io.StringIO()
        taken = job.target.is_stdout and self._options.writes
        return sys.stderr if taken or (report is not None and report.is_stdout) else sys.stdout

    def _fail(self, message: str) -> None:
        self.failed += 1
        complain(message)


def _is_copy(path: Path, ready: Mending) -> bool:
    """Is the file exactly what would be written?"""
    made = ready.path if ready.path is not None else ready.source.path
    try:
        return filecmp.cmp(path, made, shallow=False)
    except OSError:
        return False


def _copy_place(source: Source, options: Options, piped: bool) -> Place:
    """Where the repaired copy goes."""
    if options.in_place:
        if piped:
            raise CannotWrite("Standard input cannot be repaired in place. Name a file, or use -o.")
        return Place(source.name, source.path.resolve(), Kind.FILE)
    if options.out is not None:
        target = place(str(options.out))
    else:
        target = place(STANDARD_OUTPUT if piped else str(_beside(source.path)))
    if options.writes:
        itself = [source.path, *companions(source.path)]
        target.refuse(itself, "the file itself", "Use --in-place: it keeps a backup.")
    return target


def _beside(path: Path) -> Path:
    """`s.jsonl` becomes `s.jsonl.mended`. Not `s.mended.jsonl`: clients read every file that ends
    like a session, and Codex then resumes neither."""
    return path.with_name(path.name + ".mended")


def _report_place(jobs: list[_Job], options: Options) -> Place | None:
    """Where the report goes. It replaces nothing that is read or written here."""
    if options.report is None:
        return None
    report = place(str(options.report))
    if report.is_stdout:
        if options.diff:
            raise CannotWrite("Standard output gets the diff. For the report, use --dry-run.")
        if options.writes and any(job.target.is_stdout for job in jobs):
            raise CannotWrite(
                "Standard output gets the repaired session. Name a file for the report."
            )
        return report
    if not options.writes:
        raise CannotWrite(
            f"{report.name}: --diff and --dry-run write no files, and so no report. Use "
            "--dry-run --report - to print the report."
        )
    for job in jobs:
        source, target = job.ready.source, job.target
        itself = [source.path, *companions(source.path)]
        report.refuse(itself, "the session itself", "Name another place for the report.")
        written = [target.path, *([backup_path(target.path)] if options.in_place else ())]
        report.refuse(written, "where the session goes", "Name another place for the report.")
    if not options.force:
        report.refuse_taken()
    return report


def _shown(target: Place) -> str:
    return "<stdout>" if target.is_stdout else target.name


def _deliver(job: _Job, options: Options, out: TextIO) -> None:
    ready, target = job.ready, job.target
    if target.is_stdout or target.is_node:
        made = ready.path if ready.path is not None else ready.source.path
        with made.open("rb") as mended_copy, writing_into(target) as sink:
            shutil.copyfileobj(mended_copy, sink)
        if target.is_node:
            print(f"Wrote into {printable(target.name)}.", file=out)
        return
    if job.up_to_date:
        print(f"{printable(target.name)} is up to date.", file=out)
        return
    if ready.path is None:
        if options.out is not None:
            put_in_place(ready, target.path, backup=False)
            print(f"Wrote {printable(target.name)}, unchanged.", file=out)
        return
    backup = put_in_place(ready, target.path, backup=options.in_place)
    kept = f"; the original is kept as {printable(backup.name)}" if backup else ""
    print(f"Wrote {printable(target.name)}{kept}.", file=out)


def _print_changes(name: str, ready: Mending, out: TextIO, color: str) -> None:
    style = styled(out, color)
    shown = printable(name)
    if not ready.changes:
        print(f"{shown}: nothing to repair.", file=out)
    for change in ready.changes:
        label = f" [{change.label}]" if change.label else ""
        where = style.bold(f"{shown}:{change.at}:")
        print(f"{where} {style.red(change.code)} {printable(change.what + label)}", file=out)
        for removed in change.before if change.removed else ():
            text = printable(removed.decode(errors="replace").rstrip("\n"))
            cut = text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
            print(f"    removed: {cut}", file=out)
    left = ready.left.findings() if ready.left is not None else []
    for located in left:
        print(
            f"{shown}: not repaired: {located.finding.code} {printable(located.message)}", file=out
        )


def _print_diff(name: str, target: str, changes: list[Change], color: str) -> None:
    style = styled(sys.stdout, color)
    if not changes:
        return
    print(f"--- {printable(name)}")
    print(f"+++ {printable(target)}")
    for change in changes:
        print(f"@@ {change.at} @@ {change.code} {printable(change.what)}")
        for record in change.before:
            for line in record.decode(errors="replace").splitlines():
                print(style.red("-" + printable(line)))
        for record in change.after:
            for line in record.decode(errors="replace").splitlines():
                print(style.green("+" + printable(line)))


def _report_content(all_ready: list[Mending]) -> bytes:
    """Everything that was changed and everything that was removed, in full."""
    files = [
        {
            "file": ready.source.name,
            "changes": [
                {
                    "code": change.code,
                    "at": change.at,
                    "what": change.what,
                    "label": change.label,
                    "removed": change.removed,
                    "before": [record.decode(errors="replace") for record in change.before],
                    "after": [record.decode(errors="replace") for record in change.after],
                }
                for change in ready.changes
            ],
        }
        for ready in all_ready
    ]
    return json.dumps({"files": files}, indent=2).encode() + b"\n"
