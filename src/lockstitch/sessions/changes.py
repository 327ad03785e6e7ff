"""The report of a mending: one change for each edit, with what stood there and what stands now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lockstitch.core import mending
from lockstitch.core.findings import Finding
from lockstitch.core.mending import Edit
from lockstitch.sessions.model import Change, Scan


class ChangeLog:
    """Collects changes while a file is written."""

    def __init__(self, scan: Scan, *, line: int | None = None) -> None:
        self._scan = scan
        self._on_line = line
        """The line that everything is on, where it is all on one."""
        self._changes: list[Change] = []
        self._at: defaultdict[int, list[Change]] = defaultdict(list)

    def expect(self, edits: Iterable[Edit], label: str = "") -> None:
        """Edits that will be carried out; `touched` says what came of them."""
        for edit in edits:
            change = Change(
                code=edit.reason.code,
                at=self._line(edit.reason),
                what=f"{edit.reason.say(self._scan.where)}: {mending.describe(edit)}",
                label=label,
                removed=isinstance(edit, mending.Drop),
            )
            self._changes.append(change)
            for position in mending.shown_at(edit):
                self._at[position].append(change)

    def touched(self, position: int, before: list[bytes], after: list[bytes]) -> None:
        """What was done at a position. Several edits of one position are shown with the first."""
        for change in self._at.get(position, ())[:1]:
            change.before += before
            change.after += after

    def removed(self, finding: Finding, record: bytes, label: str = "") -> None:
        """A record that could not be decoded was left out."""
        what = f"{finding.say(self._scan.where)}: removed it"
        self._changes.append(
            Change(
                code=finding.code,
                at=self._line(finding),
                what=what,
                before=[record],
                label=label,
                removed=True,
            )
        )

    def add(self, change: Change) -> None:
        self._changes.append(change)

    def all(self) -> list[Change]:
        return sorted(self._changes, key=lambda change: (change.at, change.code))

    def _line(self, finding: Finding) -> int:
        """The line to look at in the file as it was, or the row, or the item."""
        if self._on_line is not None:
            return self._on_line
        return self._scan.lines.get(finding.place.at, finding.place.at)
