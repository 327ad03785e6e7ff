"""Run a case: both loops with the same script, each with its own emulator and folder.

The loops are in one file for each case. `lockstitch.cli.demonstrating` prints the result."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from openai import APIStatusError, AsyncOpenAI

from lockstitch.emulator import Draft, Emulator, Script
from lockstitch.emulator.model.replies import Reply
from lockstitch.histories import check
from lockstitch.runner import CallEnded, Event, ItemSaid

MODEL: Final = "gpt-5.5"

KEY: Final = "any"
"""The emulator accepts any key."""


_LOOKED_FOR: Final = frozenset({"not-found", "anchor-not-found"})


class Refused(Exception):
    """The provider rejected a request of a loop, and no client library raised an error for it."""


def _nothing() -> None:
    return None


async def _nobody(text: str) -> None:
    return None


class Line(Struct, frozen=True):
    """One line of the output: who did what."""

    who: str
    """``user``, ``model``, ``call``, ``output``, ``loop``, ``proxy``, ``fault``, ``process`` or
    ``provider``."""
    text: str


class Stage:
    """Where one loop runs: its provider, its folder and its output lines."""

    def __init__(
        self, base_url: str, folder: Path, told: Callable[[Line], None] | None = None
    ) -> None:
        # The loops do their own retries.
        self.client = AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0)
        self.base_url = base_url
        self.folder = folder
        self.forget: Callable[[], None] = _nothing
        """Make the provider lose every response."""
        self.speak: Callable[[str], Awaitable[None]] = _nobody
        """Let the user say this, in a voice session."""
        self.lines: list[Line] = []
        self._told = told

    def tell(self, who: str, text: str) -> None:
        line = Line(who, text)
        self.lines.append(line)
        if self._told is not None:
            self._told(line)

    def tell_item(self, item: Mapping[str, Any]) -> None:
        """Add a line for an item."""
        match item.get("type", "message"):
            case "function_call":
                self.tell("call", f"{item['call_id']}: {item['name']}({item['arguments']})")
            case "function_call_output":
                self.tell("output", f"{item['call_id']}: {item['output']}")
            case "message":
                self.tell("user" if item["role"] == "user" else "model", text_of(item))

    def tell_event(self, event: Event) -> None:
        """Add a line for an event of the Runner."""
        match event:
            case ItemSaid(item):
                self.tell_item(item)
            case CallEnded():
                self.tell("output", f"{event.call_id}: {event.output}")


class Side(Struct, frozen=True, kw_only=True):
    """The result of one loop."""

    lines: Sequence[Line]
    error: str | None
    """The provider's error message, if it rejected a request."""
    violations: Mapping[str, int]
    """The provider's rules that the loop broke, and how often."""
    effects: int
    """How often its tool had an effect."""
    history: Sequence[Mapping[str, Any]]
    """The conversation at the end; empty if a request was rejected."""

    @property
    def was_struck(self) -> bool:
        """Whether the fault happened to this loop."""
        return any(line.who == "fault" for line in self.lines)

    @property
    def is_whole(self) -> bool:
        """Whether no request was rejected and every call has exactly one output."""
        return self.error is None and not self.violations and not check(list(self.history))


Loop = Callable[[Stage], Awaitable[Sequence[Mapping[str, Any]]]]
"""Runs to the end and returns the conversation. Raises if the provider rejects a request."""


class Case(Struct, frozen=True, kw_only=True):
    """One of the original bug reports."""

    letter: str
    title: str
    story: str
    script: Sequence[Reply | Draft | str]
    """The replies of the model, the same for both loops."""
    naive: Loop
    lockstitch: Loop
    names: tuple[str, str] = (
        "Without Lockstitch: a simple loop",
        "With Lockstitch: the Runner",
    )
    """The headings of the two loops."""
    lost: str
    """What went wrong without Lockstitch, in one sentence."""
    refusal: str
    """A part of the error message that the loop without Lockstitch must get."""
    effects: Callable[[Path], int]
    """Counts the tool's effects from the files in the folder."""
    wanted_effects: int


class Played(Struct, frozen=True, kw_only=True):
    """A case and the results of both loops."""

    case: Case
    naive: Side
    lockstitch: Side

    @property
    def naive_failed(self) -> bool:
        """Whether the loop without Lockstitch failed as it must. If not, the case shows nothing."""
        return self.naive.was_struck and self.case.refusal in (self.naive.error or "")

    @property
    def held(self) -> bool:
        said = self.lockstitch.history[-1:]
        return (
            self.lockstitch.was_struck
            and self.lockstitch.is_whole
            and self.lockstitch.effects == self.case.wanted_effects
            and bool(said)
            and text_of(said[0]) == self.case.script[-1]
        )

    @property
    def as_expected(self) -> bool:
        return self.naive_failed and self.held


async def play(case: Case) -> Played:
    """Run both loops, one after the other."""
    return Played(
        case=case,
        naive=await _played(case, case.naive),
        lockstitch=await _played(case, case.lockstitch),
    )


async def _played(case: Case, loop: Loop) -> Side:
    with tempfile.TemporaryDirectory(prefix="lockstitch-demo-") as name:
        folder = Path(name)
        async with Emulator(script=Script(case.script)) as emulator:
            stage = Stage(emulator.base_url, folder)
            stage.forget = emulator.responses.forget
            stage.speak = emulator.speak
            error, history = None, list[Mapping[str, Any]]()
            async with stage.client:
                try:
                    history = list(await loop(stage))
                except APIStatusError as refused:
                    error = provider_error(refused)
                    stage.tell("provider", error)
                except Refused as refused:
                    error = str(refused)
                    stage.tell("provider", error)
            return Side(
                lines=stage.lines,
                error=error,
                violations=_broken(emulator),
                effects=case.effects(folder),
                history=history,
            )


def _broken(emulator: Emulator) -> dict[str, int]:
    """The rules that were broken, without requests for a response that is not stored."""
    broken = emulator.record.broken
    return {rule: times for rule, times in broken.items() if rule not in _LOOKED_FOR}


def provider_error(error: APIStatusError) -> str:
    body = error.body
    said = body.get("message") if isinstance(body, Mapping) else None
    return f"{error.status_code} {said or error.message}"


def text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts)
