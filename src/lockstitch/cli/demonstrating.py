"""`lockstitch demo`: plays the founding cases, and shows both loops side by side.

What happens in a case is in `lockstitch.demo`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from lockstitch.cli.app import CLEAN, FINDINGS
from lockstitch.cli.missing_parts import needs
from lockstitch.cli.reporting import printable

if TYPE_CHECKING:
    from lockstitch.demo.playing import Line, Played, Side

WHO_WIDTH = 9
"""The longest of the words for who did something, and a space."""

_STYLES = {"fault": "yellow", "process": "yellow", "provider": "bold red", "output": "green"}


def run(letters: Sequence[str], output: str) -> int:
    """Play these cases, or all; the exit code says whether each went as it must."""
    with needs("demo", "emulator", "gateway", "openai", "sqlite"):
        import lockstitch.store.sqlite  # noqa: F401  where the Runner keeps its threads
        from lockstitch.demo.cases import CASES
        from lockstitch.demo.playing import play

    wanted = [letter.upper() for letter in letters] or list(CASES)
    for letter in wanted:
        if letter not in CASES:
            raise typer.BadParameter(f"there is no case {letter!r}. Choose of: {', '.join(CASES)}.")
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
    """What is to be said of each side."""
    naive = "It came through: this shows nothing."
    if played.naive_failed:
        naive = f"Failed: {played.case.lost}"
    held = "Failed: this must not happen. Please report it."
    if played.held:
        effects = played.lockstitch.effects
        once = "" if effects == 0 else f" The tool ran {_times(effects)}."
        held = f"Held: every call has its output; no rule of the provider was broken.{once}"
    return naive, held


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _show(played: Played) -> None:
    if sys.stdout.isatty():
        _show_columns(played)
    else:
        _show_lines(played)


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


def _show_columns(played: Played) -> None:
    from rich.columns import Columns
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    console = Console()
    case = played.case
    # Panels of one width, so that columns are made of them where there is room for two.
    width = max(40, (console.width - 1) // 2)
    naive, held = _verdicts(played)
    panels = [
        Panel(_column(played.naive.lines, naive, "red"), title=case.names[0], width=width),
        Panel(_column(played.lockstitch.lines, held, "green"), title=case.names[1], width=width),
    ]
    console.print(Text(f"Case {case.letter}: {case.title}", style="bold"))
    console.print(Text(case.story))
    console.print(Columns(panels, padding=(0, 0)))
    console.print()


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
