"""The turns of a script: what is said, when, and how often. No files, no state.

`script` chooses among turns; `turn_reading` makes them from YAML or JSON."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lockstitch.emulator import faults
from lockstitch.emulator.errors import BadScript, UnknownFault
from lockstitch.emulator.limits import LONGEST_STALL_SECONDS
from lockstitch.emulator.model.plain_values import bad, check_plain, kind
from lockstitch.emulator.model.replies import Asked, Reply

ALWAYS = faults.ALWAYS
DIALECTS = ("responses", "chat", "messages", "realtime")
ENDINGS = ("completed", "incomplete", "failed")

Decide = Callable[[Asked], Reply | str | None]
_Pattern = re.Pattern[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Conditions on what was asked. All that are given must hold.

    `user` alone is about a user who has just spoken. Were it to hold after a tool's output too, a
    rule that answers a question with a call would call for ever."""

    # Regular expressions, searched in the last user message and in the last tool output.
    user: str | None = None
    output: str | None = None
    # The tool that gave the last output.
    tool: str | None = None
    model: str | None = None
    dialect: str | None = None
    # A tool of this name, or of this type, is offered.
    offers: str | None = None
    # Compared with the number of items in the context.
    longer_than: int | None = None
    shorter_than: int | None = None
    _user: _Pattern = field(init=False, repr=False, compare=False)
    _output: _Pattern = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_user", _compiled(self.user, "user"))
        object.__setattr__(self, "_output", _compiled(self.output, "output"))
        if self.dialect is not None and self.dialect not in DIALECTS:
            raise bad("dialect", f"it must be one of {', '.join(DIALECTS)}")

    def holds(self, asked: Asked) -> bool:
        return (
            self._of_texts(asked)
            and self.model in (None, asked.model)
            and self.dialect in (None, asked.dialect)
            and (self.longer_than is None or asked.length > self.longer_than)
            and (self.shorter_than is None or asked.length < self.shorter_than)
            and (
                self.offers is None
                or any(self.offers in (tool.name, tool.type) for tool in asked.tools)
            )
        )

    def _of_texts(self, asked: Asked) -> bool:
        if self._output is None and self.tool is None:
            if self._user is None:
                return True
            return asked.output is None and self._user.search(asked.user) is not None
        if asked.output is None or self.tool not in (None, asked.tool):
            return False
        if self._output is not None and not self._output.search(asked.output):
            return False
        return self._user is None or self._user.search(asked.user) is not None


def _compiled(pattern: str | None, name: str) -> _Pattern:
    if pattern is None:
        return None
    try:
        return re.compile(pattern)
    # Beside its own error the compiler has these, for repetitions, flags and nesting.
    except (re.error, OverflowError, ValueError, RecursionError, TypeError) as error:
        raise bad(name, f"it is not a regular expression: {error}") from None


@dataclass(frozen=True, slots=True)
class Turn:
    """A reply, or a function that decides on one, and when it is used."""

    reply: Reply | None = None
    when: When | None = None
    # How often it is used before it is used up; ALWAYS makes it a rule.
    times: int = 1
    # Asked each time; None means that the next turn is tried.
    decide: Decide | None = None

    def __post_init__(self) -> None:
        if (self.reply is None) == (self.decide is None):
            raise BadScript("A turn has a reply or a function that decides: give one of them.")
        if self.times != ALWAYS and (type(self.times) is not int or self.times < 1):
            raise bad("times", "it must be a whole number from 1, or `always`")
        if self.reply is not None:
            check_reply(self.reply)


@dataclass(frozen=True, slots=True)
class SpeechStep:
    """The simulated user of a Realtime session speaks."""

    # The server event that it waits for, and which one of them.
    after: str
    nth: int = 1
    # Seconds between that event and the first word.
    delay: float = 0.0
    says: str = ""
    # Whether the server's turn detection answers it with a response.
    responds: bool = True


def check_reply(reply: Any) -> None:
    """Raise BadScript unless the reply can be spoken."""
    if not isinstance(reply, Reply):
        raise bad("reply", f"it must be a Reply (see replies.reply), not {kind(reply)}")
    if reply.ends not in ENDINGS:
        raise bad("ends", f"it must be one of {', '.join(ENDINGS)}")
    for name in ("delay", "pace"):
        check_seconds(getattr(reply, name), name)
    for at, text in enumerate(reply.faults):
        check_fault(text, f"faults[{at}]", of_reply=True)
    for at, draft in enumerate(reply.drafts):
        place = f"drafts[{at}]"
        if not isinstance(draft, dict) or not isinstance(draft.get("type"), str):
            raise bad(place, "it must be an item with a `type`")
        check_plain(draft, place)


def check_seconds(value: Any, place: str) -> float:
    # `not (0 <= …)` also catches a NaN.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad(place, f"it must be a number of seconds, not {kind(value)}")
    if not 0 <= value <= LONGEST_STALL_SECONDS:
        raise bad(place, f"it must be from 0 to {LONGEST_STALL_SECONDS:g} seconds")
    return float(value)


def check_fault(text: Any, place: str, *, of_reply: bool) -> str:
    """Raise BadScript unless `text` asks for a fault, and one that can strike there."""
    if not isinstance(text, str):
        raise bad(place, f"it must be text such as `cut after=response.created`, not {kind(text)}")
    try:
        fault = faults.parse(text)
    except (UnknownFault, ValueError) as error:
        raise bad(place, str(error)) from None
    if of_reply and fault.point is None:
        raise bad(
            place,
            f"{fault.name} strikes before a reply is chosen: put it under `faults` beside `turns`",
        )
    return text
