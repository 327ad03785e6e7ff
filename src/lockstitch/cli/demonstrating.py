"""`lockstitch demo`: run the original bug reports without and with Lockstitch, and print both.

What happens in each case is in `lockstitch.demo`. On a terminal, rich prints the two sides next to
each other; without rich, or if the output is not a terminal, one follows the other as text."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lockstitch.cli.app import CLEAN, FINDINGS
from lockstitch.cli.missing_parts import needs
from lockstitch.core.errors import LockstitchError
from lockstitch.core.terminal import printable

if TYPE_CHECKING:
    from lockstitch.demo.playing import Line, Played, Side

WHO_WIDTH = 9
"""The longest of the words for who did something, and a space."""

_STYLES = {"fault": "yellow", "process": "yellow", "provider": "bold red", "output": "green"}


class UnknownCase(LockstitchError):
    """The command line names a case that does not exist."""


def run(letters: Sequence[str], output: str) -> int:
    """Run these cases, or all of them. Returns the exit code: 0 if each behaved as expected."""
    with needs("demo", "demo"):
        import lockstitch.store.sqlite  # noqa: F401  the Runner's store
        from lockstitch.demo.cases import CASES
        from lockstitch.demo.playing import play

    wanted = [letter.upper() for letter in letters] or list(CASES)
    for letter in wanted:
        if letter not in CASES:
            raise UnknownCase(f"There is no case {letter!r}. Choose from: {', '.join(CASES)}.")
    played = []
    for letter in wanted:
        played.append(asyncio.run(play(CASES[letter])))
        if output == "text":
            _show(played[-1])
    if output == "json":
        print(json.dumps([_plain(one) for one in played], indent=2))
    return CLEAN if all(one.as_expected for one in played) else FINDINGS


def _plain(played: Played) -> dict[str, Any]:
    return {
        "case": played.case.letter,
        "title": played.case.title,
        "naive": _plain_side(played.naive) | {"failed": played.naive_failed},
        "lockstitch": _plain_side(played.lockstitch) | {"held": played.held},
        "as_expected": played.as_expected,
    }


def _plain_side(side: Side) -> dict[str, Any]:
    return {
        "lines": [{"who": line.who, "text": line.text} for line in side.lines],
        "error": side.error,
        "violations": dict(side.violations),
        "effects": side.effects,
        "history": list(side.history),
    }


def _verdicts(played: Played) -> tuple[str, str]:
    """One sentence about each side."""
    naive = "Unexpected: this did not fail, so the case shows nothing."
    if played.naive_failed:
        naive = f"Failed: {played.case.lost}"
    held = "Unexpected: Lockstitch failed here. Please report this."
    if played.held:
        effects = played.lockstitch.effects
        once = "" if effects == 0 else f" The tool ran {_times(effects)}."
        held = f"OK: every call has exactly one output.{once}"
    return naive, held


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _show(played: Played) -> None:
    if not sys.stdout.isatty() or find_spec("rich") is None:
        _show_lines(played)
        return
    from rich.console import Console

    console = Console()
    console.print(side_by_side(played, console.width))
    console.print()


def _show_lines(played: Played) -> None:
    case = played.case
    print(f"Case {case.letter}: {case.title}\n{case.story}")
    sides = zip(case.names, (played.naive, played.lockstitch), _verdicts(played), strict=True)
    for name, side, verdict in sides:
        print(f"\n  {name}")
        for line in side.lines:
            print(f"    {line.who:<{WHO_WIDTH}}{printable(line.text)}")
        print(f"    {verdict}")
    print(flush=True)


def side_by_side(played: Played, width: int) -> Any:
    """Return a rich renderable with both sides in columns, or below each other if too narrow."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    case = played.case
    # Both panels have the same width, so that rich puts two next to each other if they fit.
    each = max(40, (width - 1) // 2)
    naive, held = _verdicts(played)
    panels = [
        Panel(_column(played.naive.lines, naive, "red"), title=case.names[0], width=each),
        Panel(_column(played.lockstitch.lines, held, "green"), title=case.names[1], width=each),
    ]
    return Group(
        Text(f"Case {case.letter}: {case.title}", style="bold"),
        Text(case.story),
        Columns(panels, padding=(0, 0)),
    )


def _column(lines: Sequence[Line], verdict: str, colour: str) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    table.add_column(min_width=WHO_WIDTH - 1)
    table.add_column(overflow="fold")
    for line in lines:
        style = _STYLES.get(line.who, "")
        table.add_row(Text(line.who, style="dim"), Text(printable(line.text), style=style))
    return Group(table, Text(f"\n{verdict}", style=f"bold {colour}"))
