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
from lockstitch.cli.reporting import printable, styled
from lockstitch.core.mending import Policy
from lockstitch.sessions.errors import CannotWrite
from lockstitch.sessions.files import Mending, mended, put_in_place
from lockstitch.sessions.model import Change
from lockstitch.sessions.source import Source, standard_input

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


def run(given: str, options: Options) -> int:
    """Mend and report; the exit code."""
    piped = given == "-"
    to_stdout = str(options.out) == "-" if options.out is not None else piped
    said = sys.stderr if to_stdout else sys.stdout
    with ExitStack() as stack:
        source = stack.enter_context(standard_input()) if piped else Source(Path(given), name=given)
        target = _target(source, options, piped)
        scratch = target is None or options.diff or options.dry_run
        beside = Path(tempfile.gettempdir()) if scratch or target is None else target.parent
        ready = stack.enter_context(
            mended(
                source,
                beside=beside,
                policy=options.policy,
                dialect=options.dialect,
                anchored=options.anchored,
            )
        )
        if options.diff:
            _print_diff(source.name, str(target or "<stdout>"), ready.changes)
        else:
            _print_changes(source.name, ready, said)
        if options.report is not None:
            _write_report(options.report, source.name, ready)
        if not (options.diff or options.dry_run):
            _deliver(ready, target, options, said)
    return FINDINGS if ready.left is not None and ready.left.findings() else CLEAN


def _target(source: Source, options: Options, piped: bool) -> Path | None:
    """Where the copy goes; None for standard output."""
    if options.in_place:
        if piped:
            raise CannotWrite("Standard input cannot be mended in place. Name a file, or use -o.")
        return source.path.resolve()
    if options.out is not None:
        target = None if str(options.out) == "-" else options.out
    elif piped:
        target = None
    else:
        target = _beside(source.path)
    wanted = not (options.diff or options.dry_run)
    if wanted and target is not None and target.exists():
        if target.resolve() == source.path.resolve():
            raise CannotWrite(f"{target}: is the file itself. Use --in-place: it keeps a backup.")
        if not options.force:
            raise CannotWrite(f"{target}: exists already. Use --force to overwrite it, or -o.")
    return target


def _beside(path: Path) -> Path:
    """`s.jsonl` becomes `s.jsonl.mended`. Not `s.mended.jsonl`: clients take whatever ends like a
    session for one, and Codex then resumes neither."""
    return path.with_name(path.name + ".mended")


def _deliver(ready: Mending, target: Path | None, options: Options, said: TextIO) -> None:
    if target is None:
        made = ready.path if ready.path is not None else ready.source.path
        with made.open("rb") as mended_copy:
            shutil.copyfileobj(mended_copy, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    if ready.path is None:
        if options.out is not None:
            put_in_place(ready, target, backup=False)
            print(f"Wrote {printable(str(target))}, unchanged.", file=said)
        return
    backup = put_in_place(ready, target, backup=options.in_place)
    wrote = printable(ready.source.name if options.in_place else str(target))
    kept = f"; the original is {printable(backup.name)} beside it" if backup else ""
    print(f"Wrote {wrote}{kept}.", file=said)


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


def _write_report(path: Path, name: str, ready: Mending) -> None:
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
    try:
        path.write_text(json.dumps({"file": name, "changes": changes}, indent=2) + "\n")
    except OSError as error:
        raise CannotWrite(f"{path}: cannot be written: {error.strerror}.") from error
