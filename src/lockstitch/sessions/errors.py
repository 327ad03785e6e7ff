"""What can go wrong with a file. Each message says what happened, to what, and what to do next."""

from __future__ import annotations

from lockstitch.core.errors import LockstitchError


class CannotRead(LockstitchError):
    """A file could not be read as a session."""

    def __init__(self, name: str, problem: str, advice: str = "") -> None:
        self.name = name
        self.problem = problem
        self.advice = advice
        super().__init__(f"{name}: {problem}" + (f" {advice}" if advice else ""))

    def __reduce__(self) -> tuple[type[CannotRead], tuple[str, str, str]]:
        return type(self), (self.name, self.problem, self.advice)


class NotASession(CannotRead):
    """A file can be read, and is something else. In a folder such files are passed over."""


class EmptyFile(NotASession):
    """There is nothing in a file: a session that was never begun, or one that was lost."""


class CannotWrite(LockstitchError):
    """A mended copy could not be written; nothing was changed."""
