"""`lockstitch check --watch`: checks files again when they change, until Ctrl-C."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count, repeat
from typing import Final

from lockstitch.cli import reporting
from lockstitch.cli.app import CLEAN, TROUBLE
from lockstitch.cli.checking import Options, check_targets, load_baseline
from lockstitch.cli.reporting import FileReport, Look, count_of
from lockstitch.cli.settings import load_rules
from lockstitch.cli.streams import complain
from lockstitch.cli.targets import Target, find_targets
from lockstitch.core.terminal import printable
from lockstitch.sessions.source import stamp

WATCH_SECONDS: Final = 1.0
"""Time between two looks at the files. A file is checked once it has not changed for this long, so
that a line in the middle of being written is not reported as torn."""


def watch(
    paths: list[str],
    options: Options,
    *,
    wait: Callable[[float], None] = time.sleep,
    rounds: int | None = None,
) -> int:
    """Check, then check again what changes; ``rounds`` times, or until it is interrupted."""
    wrong = [why for path in paths if (why := _why_unreadable(path))]
    for why in wrong:
        complain(why)
    if wrong:
        return TROUBLE
    watcher = Watcher(paths, options)
    watcher.look(everything=True)
    if not options.quiet:
        print(f"Watching {count_of(watcher.files, 'file')}. Stop with Ctrl-C.", flush=True)
    for _ in count() if rounds is None else repeat(None, rounds):
        wait(WATCH_SECONDS)
        watcher.look()
    return CLEAN


class Watcher:
    """Files, and what was last known of each."""

    def __init__(self, paths: list[str], options: Options) -> None:
        self._paths = paths
        self._options = options
        self._rules = load_rules(
            options.config, select=options.select, ignore=options.ignore, exclude=options.exclude
        )
        self._baseline = load_baseline(options, self._rules)
        self._seen: dict[str, list[tuple[str, int, int]]] = {}
        """How each file looked when it was last seen."""
        self._checked: dict[str, list[tuple[str, int, int]]] = {}
        """How each file looked when it was last checked."""
        self._broken: set[str] = set()
        """Files in which something was found."""

    @property
    def files(self) -> int:
        return len(self._seen)

    def look(self, *, everything: bool = False) -> None:
        """Check the files that changed and have come to rest, and print what is found."""
        with ExitStack() as stack:
            targets = find_targets(self._paths, stack, excludes=self._rules.excludes).targets
        now = {target.name: _stamp(target) for target in targets}
        due = [
            target
            for target in targets
            if now[target.name] != self._checked.get(target.name)
            and (everything or now[target.name] == self._seen.get(target.name))
        ]
        self._seen = now
        self._checked = {name: one for name, one in self._checked.items() if name in now}
        if not due:
            return
        self._checked |= {target.name: now[target.name] for target in due}
        reports = check_targets(due, self._options, self._rules)
        if self._baseline is not None:
            for report in reports:
                self._baseline.hide_known(report)
        self._print([report for report in reports if not report.skipped])

    def _print(self, reports: list[FileReport]) -> None:
        look = Look(quiet=True, color=self._options.color)
        reporting.print_text([one for one in reports if one.rows or one.error], look)
        for report in reports:
            if report.rows or report.error:
                self._broken.add(report.path)
            elif report.path in self._broken:
                self._broken.discard(report.path)
                print(f"{printable(report.path)}: no problems any more.")
        sys.stdout.flush()


def _why_unreadable(path: str) -> str:
    """Why a path cannot be watched; empty if it can."""
    try:
        os.stat(path)
    except OSError as error:
        return f"{path}: cannot be read: {error.strerror}."
    return ""


def _stamp(target: Target) -> list[tuple[str, int, int]]:
    try:
        return stamp(target.path)
    except OSError:
        return []
