"""What can be wrong with a configuration: every problem of it at once, each with its line."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from lockstitch.core.errors import LockstitchError
from lockstitch.gateway.config.line_numbers import Path
from lockstitch.gateway.config.secrets import redacted


class Problem(Struct, frozen=True, kw_only=True):
    """One thing that is wrong, and what would be right."""

    path: Path
    """Which key; nothing for the whole."""
    says: str
    line: int | None = None


class ConfigError(LockstitchError):
    """The gateway cannot run as it was told to; nothing was started."""

    def __init__(self, problems: Sequence[Problem], *, file: str | None = None) -> None:
        self.problems = tuple(problems)
        self.file = file
        super().__init__("\n".join(self.lines))

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(_line(problem, self.file) for problem in self.problems)


def _line(problem: Problem, file: str | None) -> str:
    where = [file] if file else []
    if file and problem.line is not None:
        where.append(str(problem.line))
    parts = [":".join(where), named(problem.path)]
    return redacted(": ".join([*(part for part in parts if part), problem.says]))


def named(path: Path) -> str:
    """`upstreams[1].url`, as people would write it."""
    said = ""
    for step in path:
        said += f"[{step}]" if isinstance(step, int) else f".{step}" if said else step
    return said
