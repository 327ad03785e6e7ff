"""`lockstitch check --explain CODE`: the docs page of a rule, in the terminal."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

from lockstitch.cli.reporting import styled
from lockstitch.core.errors import LockstitchError
from lockstitch.core.rules import RULES


def explain(code: str) -> int:
    """Print the page of a rule."""
    code = code.strip().upper()
    if code not in RULES:
        raise LockstitchError(f"There is no rule {code}. The rules are {', '.join(RULES)}.")
    style = styled(sys.stdout)
    for line in _page(code).rstrip().splitlines():
        print(style.bold(line) if line.startswith("#") else line)
    return 0


def _page(code: str) -> str:
    """From the installed package, or from the repository that it runs in."""
    packaged = files("lockstitch.cli").joinpath("rules", f"{code}.md")
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    here = Path(__file__).parents[3] / "docs" / "rules" / f"{code}.md"
    return here.read_text(encoding="utf-8")
