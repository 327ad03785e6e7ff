"""How a case is played: each loop on a stage of its own, with the same script, and then judged.

What the loops do is in a file for each case; how it is shown is the command line's affair."""

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
from lockstitch.runner import CallEnded, Event, ItemSaid, Retrying

MODEL: Final = "gpt-5.5"

KEY: Final = "any"
"""The emulator takes every key."""


_LOOKED_FOR: Final = frozenset({"not-found", "anchor-not-found"})


class Refused(Exception):
    """What the provider refused a loop with, in its own words, where no client raises it."""


def _nothing() -> None:
    return None


async def _nobody(text: str) -> None:
    return None


class Line(Struct, frozen=True):
    """One thing that happened."""

    who: str
    """``user``, ``model``, ``call``, ``output``, ``loop``, ``proxy``, ``fault``, ``process`` or
    ``provider``."""
    text: str


class Stage:
    """Where one loop runs: a provider of its own, a folder of its own, and what happened there."""

    def __init__(
        self, base_url: str, folder: Path, told: Callable[[Line], None] | None = None
    ) -> None:
        # A loop decides for itself what to do about a failure.
        self.client = AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0)
        self.base_url = base_url
        self.folder = folder
        self.forget: Callable[[], None] = _nothing
        """Makes the provider lose everything."""
        self.speak: Callable[[str], Awaitable[None]] = _nobody
        """The user says this, in a voice session."""
        self.lines: list[Line] = []
        self._told = told

    def tell(self, who: str, text: str) -> None:
        line = Line(who, text)
        self.lines.append(line)
        if self._told is not None:
            self._told(line)

    def tell_item(self, item: Mapping[str, Any]) -> None:
        """A wire item, as one line."""
        match item.get("type", "message"):
            case "function_call":
                self.tell("call", f"{item['call_id']}: {item['name']}({item['arguments']})")
            case "function_call_output":
                self.tell("output", f"{item['call_id']}: {item['output']}")
            case "message":
                self.tell("user" if item["role"] == "user" else "model", text_of(item))

    def tell_event(self, event: Event) -> None:
        """What a runner says of its turn, in the same words."""
        match event:
            case ItemSaid(item):
                self.tell_item(item)
            case CallEnded():
                self.tell("output", f"{event.call_id}: {event.output}")
            case Retrying():
                self.tell("fault", event.reason)


class Side(Struct, frozen=True, kw_only=True):
    """What became of one loop."""

    lines: Sequence[Line]
    error: str | None
    """What the provider refused it with, in the provider's own words."""
    violations: Mapping[str, int]
    """The provider's rules that it broke."""
    effects: int
    """How often its tool did something to the world."""
    history: Sequence[Mapping[str, Any]]
    """The conversation that it came to; nothing, if it was refused."""

    @property
    def was_struck(self) -> bool:
        """Did the fault happen to it?"""
        return any(line.who == "fault" for line in self.lines)

    @property
    def is_whole(self) -> bool:
        """Nothing was refused, and every call of the conversation has its output."""
        return self.error is None and not self.violations and not check(list(self.history))


Loop = Callable[[Stage], Awaitable[Sequence[Mapping[str, Any]]]]
"""Plays its part, and gives the conversation that it came to. What the provider refuses is
raised."""


class Case(Struct, frozen=True, kw_only=True):
    """One founding case."""

    letter: str
    title: str
    story: str
    script: Sequence[Reply | Draft | str]
    """What the model says, to either loop."""
    naive: Loop
    lockstitch: Loop
    names: tuple[str, str] = ("A naive loop", "The Runner")
    """What the two are."""
    lost: str = "the output of a call never reached the provider."
    """What that came to."""
    refusal: str
    """What the provider says to the naive loop, if this case is one."""
    effects: Callable[[Path], int]
    """How often the tool did something, from what it left in the folder."""
    wanted_effects: int


class Played(Struct, frozen=True, kw_only=True):
    """A case, and how both loops fared."""

    case: Case
    naive: Side
    lockstitch: Side

    @property
    def naive_failed(self) -> bool:
        """As it had to: otherwise the case shows nothing."""
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
    """Both loops, one after the other: what one does cannot help or hurt the other."""
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
    """The rules that were broken. To ask for a response that turns out not to be kept, or to go on
    from it, is no breach of any."""
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
