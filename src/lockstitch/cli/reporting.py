"""How findings are printed: for people, as JSON, as SARIF, as GitHub annotations."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from lockstitch import __version__
from lockstitch.cli.streams import complain
from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.core.rules import RULES
from lockstitch.core.terminal import printable, printable_lines


@dataclass(slots=True, kw_only=True)
class Row:
    """One finding, ready to be printed."""

    code: str
    line: int | None
    where: str
    message: str
    label: str = ""
    call_id: str | None = None

    @property
    def sentence(self) -> str:
        """The message, with the place and the conversation if there is no line number."""
        place = self.where if self.line is None else ""
        more = ", ".join(part for part in (self.label, place) if part)
        return f"{self.message} [{more}]" if more else self.message


def row_of(finding: Finding, where: Callable[[Place], str]) -> Row:
    """A finding in a store; ``where`` names its places."""
    return Row(
        code=finding.code,
        line=None,
        where=where(finding.place),
        message=finding.say(where),
        call_id=finding.key,
    )


STORE: Final = "store"
"""The format of a conversation in a store."""


@dataclass(slots=True, kw_only=True)
class FileReport:
    """One file, or one conversation of a store: its findings, or why it could not be read."""

    path: str
    format: str = ""
    records: int = 0
    rows: list[Row] = field(default_factory=list)
    known: int = 0
    """Problems that are not in ``rows`` because the baseline lists them."""
    error: str = ""
    skipped: bool = False
    """It is not a session file, and was found in a folder."""
    empty: bool = False
    """The file is empty. Not an error in a folder, but worth saying: a session may be lost."""


class Look(Struct, frozen=True, kw_only=True):
    """How a report is printed."""

    statistics: bool = False
    quiet: bool = False
    """Findings and errors only."""
    color: str = "auto"
    notes: tuple[str, ...] = ()
    """Sentences for the summary."""


def print_text(reports: list[FileReport], look: Look) -> None:
    style = styled(sys.stdout, look.color)
    for report in reports:
        for row in report.rows:
            line = f":{row.line}" if row.line is not None else ""
            where = style.bold(printable(f"{report.path}{line}:"))
            print(f"{where} {style.red(row.code)} {printable(row.sentence)}")
    sys.stdout.flush()
    for report in reports:
        if report.error:
            complain(report.error)
    if look.statistics:
        for code, count in sorted(_counts(reports).items()):
            print(f"{count:>6}  {style.red(code)}  {RULES[code].summary}")
    if not look.quiet:
        print(_summary(reports, look.notes))


def _counts(reports: list[FileReport]) -> Counter[str]:
    return Counter(row.code for report in reports for row in report.rows)


def _summary(reports: list[FileReport], notes: tuple[str, ...] = ()) -> str:
    found = sum(len(report.rows) for report in reports)
    broken = sum(bool(report.rows) for report in reports)
    unread = sum(bool(report.error) for report in reports)
    read = len(reports) - unread
    records = sum(report.records for report in reports)
    noun = "conversation" if all(report.format == STORE for report in reports) else "file"
    if found:
        said = [f"Found {count_of(found, 'problem')} in {broken} of {count_of(read, noun)}"]
        said[0] += f" ({count_of(records, 'record')})."
    elif read:
        said = [f"All clean: {count_of(read, noun)}, {count_of(records, 'record')}."]
    else:
        said = ["Nothing was checked."]
    if unread:
        said.append(f"{count_of(unread, noun)} could not be read.")
    said += notes
    if any(report.rows and report.format != STORE for report in reports):
        said.append("Repair with: lockstitch mend PATH")  # last: no full stop after a command
    return " ".join(said)


def count_of(count: int, noun: str) -> str:
    """A number with its noun: `1 file`, `2 files`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def print_json(reports: list[FileReport], look: Look) -> None:
    files = []
    for report in reports:
        shown = asdict(report)
        del shown["skipped"], shown["empty"]
        shown["findings"] = shown.pop("rows")
        shown["error"] = report.error or None
        files.append(shown)
    result: dict[str, Any] = {"version": __version__, "files": files}
    if look.statistics:
        result["statistics"] = dict(sorted(_counts(reports).items()))
    print(json.dumps(result, indent=2))


def print_github(reports: list[FileReport], look: Look) -> None:
    """Workflow commands: GitHub shows them at the line they are about."""
    for report in reports:
        for row in report.rows:
            line = f",line={row.line}" if row.line is not None else ""
            title = f"{row.code} {RULES[row.code].name}"
            where = f"file={_property(report.path)}{line},title={_property(title)}"
            print(f"::error {where}::{_data(row.sentence)}")
        if report.error:
            print(f"::error file={_property(report.path)}::{_data(report.error)}")
    if not look.quiet:
        print(_summary(reports, look.notes))


def _data(text: str) -> str:
    # A log viewer shows the command itself, too, so only newlines stay, as GitHub encodes them.
    return printable_lines(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def print_sarif(reports: list[FileReport], _: Look) -> None:
    """SARIF 2.1.0, as code scanning services read it."""
    rules = [
        {
            "id": rule.code,
            "name": "".join(word.title() for word in rule.name.split("-")),
            "shortDescription": {"text": rule.summary},
            "help": {"text": f"lockstitch check --explain {rule.code}"},
        }
        for rule in RULES.values()
    ]
    results = [
        {
            "ruleId": row.code,
            "ruleIndex": list(RULES).index(row.code),
            "level": "error",
            "message": {"text": row.sentence},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": _uri(report.path)},
                        "region": {"startLine": row.line or 1},
                    }
                }
            ],
        }
        for report in reports
        for row in report.rows
    ]
    trouble = [
        {"level": "error", "message": {"text": report.error}} for report in reports if report.error
    ]
    run = {
        "tool": {
            "driver": {
                "name": "lockstitch",
                "version": __version__,
                "rules": rules,
            }
        },
        "invocations": [
            {"executionSuccessful": not trouble, "toolExecutionNotifications": trouble}
        ],
        "results": results,
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    print(json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2))


def _uri(path: str) -> str:
    """A path as a relative reference (RFC 3986), which may hold no spaces."""
    return quote(os.fsencode(PurePath(path).as_posix()), safe="/!$&'()*+,;=@")


PRINTERS: Final[dict[str, Callable[[list[FileReport], Look], None]]] = {
    "text": print_text,
    "json": print_json,
    "github": print_github,
    "sarif": print_sarif,
}


class _Style:
    """Text in colors, if they are on."""

    def __init__(self, on: bool) -> None:
        self._on = on

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self._on else text

    def red(self, text: str) -> str:
        return f"\x1b[31m{text}\x1b[0m" if self._on else text

    def green(self, text: str) -> str:
        return f"\x1b[32m{text}\x1b[0m" if self._on else text


def styled(stream: Any, color: str = "auto") -> _Style:
    """Colors for a stream: as `--color` says, else as NO_COLOR (https://no-color.org) or
    FORCE_COLOR says, else on a terminal that can show them."""
    if color != "auto":
        return _Style(color == "always")
    if os.environ.get("NO_COLOR"):
        return _Style(False)
    if os.environ.get("FORCE_COLOR"):
        return _Style(True)
    return _Style(stream.isatty() and os.environ.get("TERM") != "dumb")
