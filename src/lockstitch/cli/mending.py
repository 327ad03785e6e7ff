"""`lockstitch mend`: where the mended copy goes, and what is said about it."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from lockstitch.cli.app import CLEAN, FINDINGS
from lockstitch.cli.places import STANDARD_OUTPUT, Kind, Place, place, prepared, writing_into
from lockstitch.cli.reporting import printable, styled
from lockstitch.core.errors import LockstitchError
from lockstitch.core.mending import Policy
from lockstitch.sessions.errors import CannotWrite
from lockstitch.sessions.files import Mending, backup_path, mended, put_in_place
from lockstitch.sessions.model import Change
from lockstitch.sessions.source import Source, companions, standard_input

SHOWN_CHARACTERS = 120
"""How much of a removed record is shown; --diff and --report have all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    out: Path | None = None
    in_place: bool = False
    diff: bool = False
    dry_run: bool = False
    force: bool = False
    report: Path | None = None
    policy: Policy
    dialect: str | None = None
    anchored: bool = False

    @property
    def writes(self) -> bool:
        """Is a session written, and not only told what it would be?"""
        return not (self.diff or self.dry_run)


def run(given: str, options: Options) -> int:
    """Mend and report; the exit code."""
    if given.startswith("store:"):  # its URL may hold a password
        raise LockstitchError(
            "A store is not mended: it holds what happened. The next turn of a thread settles the"
            " calls that are open in it. Name a file."
        )
    piped = given == "-"
    with ExitStack() as stack:
        source = stack.enter_context(standard_input()) if piped else Source(Path(given), name=given)
        target = _target(source, options, piped)
        report = _report_place(source, target, options)
        to_stdout = target.is_stdout and options.writes
        said = sys.stderr if to_stdout or (report and report.is_stdout) else sys.stdout
        scratch = target.is_stdout or target.is_node or not options.writes
        ready = stack.enter_context(
            mended(
                source,
                beside=Path(tempfile.gettempdir()) if scratch else target.path.parent,
                policy=options.policy,
                dialect=options.dialect,
                anchored=options.anchored,
            )
        )
        if options.diff:
            _print_diff(source.name, _shown(target), ready.changes)
        else:
            if options.dry_run and ready.changes:
                print(f"Mending {printable(source.name)} would do this:", file=said)
            _print_changes(source.name, ready, said)
            if options.dry_run:
                print("Nothing was written: this was a dry run.", file=said)
        put_report = None
        if report is not None:
            # Before the session is: nothing is mended without the report that was asked for.
            put_report = stack.enter_context(prepared(report, _told(source.name, ready)))
        said.flush()  # nothing is mended either if nobody can be told what was done
        if options.writes:
            _deliver(ready, target, options, said)
        if put_report is not None:
            put_report()
    return FINDINGS if ready.left is not None and ready.left.findings() else CLEAN


def _target(source: Source, options: Options, piped: bool) -> Place:
    """Where the copy goes."""
    if options.in_place:
        if piped:
            raise CannotWrite("Standard input cannot be mended in place. Name a file, or use -o.")
        return Place(source.name, source.path.resolve(), Kind.FILE)
    if options.out is not None:
        target = place(str(options.out))
    else:
        target = place(STANDARD_OUTPUT if piped else str(_beside(source.path)))
    if options.writes:
        itself = [source.path, *companions(source.path)]
        target.refuse(itself, "the file itself", "Use --in-place: it keeps a backup.")
        if not options.force:
            target.refuse_taken()
    return target


def _beside(path: Path) -> Path:
    """`s.jsonl` becomes `s.jsonl.mended`. Not `s.mended.jsonl`: clients take whatever ends like a
    session for one, and Codex then resumes neither."""
    return path.with_name(path.name + ".mended")


def _report_place(source: Source, target: Place, options: Options) -> Place | None:
    """Where the report goes. It is written over nothing that this mending reads or writes."""
    if options.report is None:
        return None
    report = place(str(options.report))
    if report.is_stdout:
        if options.diff:
            raise CannotWrite("Standard output gets the diff. For the report, use --dry-run.")
        if options.writes and target.is_stdout:
            raise CannotWrite(
                "Standard output gets the mended session. Name a file for the report."
            )
        return report
    if not options.writes:
        raise CannotWrite(
            f"{report.name}: --diff and --dry-run write nothing, and no report either. Use "
            "--dry-run --report - for a report on standard output."
        )
    itself = [source.path, *companions(source.path)]
    report.refuse(itself, "the session itself", "Name another place for the report.")
    written = [target.path, *([backup_path(target.path)] if options.in_place else ())]
    report.refuse(written, "where the session goes", "Name another place for the report.")
    if not options.force:
        report.refuse_taken()
    return report


def _shown(target: Place) -> str:
    return "<stdout>" if target.is_stdout else target.name


def _deliver(ready: Mending, target: Place, options: Options, said: TextIO) -> None:
    if target.is_stdout or target.is_node:
        made = ready.path if ready.path is not None else ready.source.path
        with made.open("rb") as mended_copy, writing_into(target) as out:
            shutil.copyfileobj(mended_copy, out)
        if target.is_node:
            print(f"Wrote into {printable(target.name)}.", file=said)
        return
    if ready.path is None:
        if options.out is not None:
            put_in_place(ready, target.path, backup=False)
            print(f"Wrote {printable(target.name)}, unchanged.", file=said)
        return
    backup = put_in_place(ready, target.path, backup=options.in_place)
    kept = f"; the original is {printable(backup.name)} beside it" if backup else ""
    print(f"Wrote {printable(target.name)}{kept}.", file=said)


def _print_changes(name: str, ready: Mending, out: TextIO) -> None:
    style = styled(out)
    shown = printable(name)
    if not ready.changes:
        print(f"{shown}: nothing to mend.", file=out)
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
            f"{shown}: left as it is: {located.finding.code} {printable(located.message)}", file=out
        )


def _print_diff(name: str, target: str, changes: list[Change]) -> None:
    style = styled(sys.stdout)
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


def _told(name: str, ready: Mending) -> bytes:
    """Everything that was done, and everything that was removed, in full."""
    changes = [
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
    ]
    return json.dumps({"file": name, "changes": changes}, indent=2).encode() + b"\n"
