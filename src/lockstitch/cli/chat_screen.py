"""What a chat shows: what the model says as it comes, calls, retries, and what it asks.

With colours on a terminal, and plain text anywhere else. Nothing that a model or a tool says can
move the cursor or hide what is asked."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from lockstitch.core.outcomes import Outcome
from lockstitch.core.terminal import printable, printable_lines
from lockstitch.runner import (
    CallBegan,
    CallEnded,
    Event,
    ItemSaid,
    PendingCall,
    Retrying,
    TextDelta,
    TurnEnded,
)

LONGEST_SHOWN: Final = 300
"""Characters of a call's arguments and of its output that are shown. What somebody is asked about
is shown whole."""


class Screen:
    """Where a chat is shown."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout.isatty()
        self._console = Console(highlight=False) if self.is_terminal else None
        self._is_open = False
        """Does the line still go on?"""
        self._said = ""
        """What was shown of the message that the model is saying."""

    def show(self, event: Event) -> None:
        """What happened in a turn."""
        match event:
            case TextDelta(text, "text" | "refusal"):
                if not self._said:
                    self.break_line()
                self._said += text
                self._print(printable_lines(text), end="")
            case TextDelta(text, "reasoning") if self.is_terminal:
                self._print(printable_lines(text), "dim", end="")
            case ItemSaid(item) if item.get("type") == "message":
                self._message(item)
            case CallBegan():
                again = " again" if event.attempt > 1 else ""
                self.note(f"-> {printable(event.name)}{again} {_short(event.arguments)}", "cyan")
            case CallEnded():
                how = _how_it_ended(event)
                style = "red" if how else "green"
                self.note(f"<- {printable(event.name)}{how}: {_short(event.output)}", style)
            case Retrying():
                self._said = ""
                self.note(f"Retrying, attempt {event.attempt}: {printable(event.reason)}", "yellow")
            case TurnEnded(incomplete=True):
                self.note("A limit ended the answer early.", "yellow")

    def note(self, text: str, style: str = "dim") -> None:
        """A line that is no part of the conversation."""
        self.break_line()
        self._print(printable_lines(text), style)

    def ask(self, call: PendingCall) -> None:
        """Show a call that waits for an answer, whole."""
        self.note(f"?  {printable(call.name)} {printable(call.arguments)}", "bold yellow")

    def prompt(self, text: str) -> None:
        """Say that it is somebody's turn to type, if somebody is there."""
        if self.is_terminal:
            self._print(text, "bold", end="")

    def typed(self) -> None:
        """Somebody ended the line."""
        self._is_open = False

    def break_line(self) -> None:
        """Begin a new line, unless this one is empty."""
        if self._is_open:
            self._print("")

    def _message(self, item: Mapping[str, Any]) -> None:
        parts = item.get("content") or ()
        text = "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)
        if text != self._said:  # the stream broke, and the rest was fetched
            self.break_line()
            self._print(printable_lines(text), end="")
        self._said = ""
        self.break_line()

    def _print(self, text: str, style: str = "", end: str = "\n") -> None:
        self._is_open = not (text + end).endswith("\n")
        if self._console is not None:
            self._console.print(Text(text, style=style), end=end, soft_wrap=True)
        else:
            print(text, end=end, flush=True)


def _how_it_ended(event: CallEnded) -> str:
    """Nothing, if it ended well."""
    if event.outcome is not Outcome.FINISHED:
        return f" ({event.outcome.value})"
    return " (failed)" if event.failed else ""


def _short(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST_SHOWN else f"{line[:LONGEST_SHOWN]}…"
