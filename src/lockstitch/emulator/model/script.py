"""A script: the turns the emulated model says, in order, and how far it has come.

One queue: the first turn that is not used up and whose conditions hold is used. When nothing
fits, the caller asks the `brain`. The YAML form is read by `turn_reading`."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from lockstitch.emulator.errors import BadScript, EmulatorError
from lockstitch.emulator.limits import MOST_TURNS
from lockstitch.emulator.model import python_files, replies, turn_reading
from lockstitch.emulator.model.document_files import read_bytes, read_json, read_yaml
from lockstitch.emulator.model.plain_values import bad, kind
from lockstitch.emulator.model.replies import Asked, Draft, Reply
from lockstitch.emulator.model.turns import (
    ALWAYS,
    Decide,
    SpeechStep,
    Turn,
    When,
    check_fault,
    check_reply,
)

__all__ = ["ALWAYS", "Script", "SpeechStep", "Turn", "When", "from_data", "from_document", "load"]

# What may stand for a turn in Python: an item alone, or a text alone, is a reply of one message.
Told = Turn | Reply | Draft | str

_READERS = {".yaml": read_yaml, ".yml": read_yaml, ".json": read_json}


class Script:
    """The turns, what the simulated user of Realtime says, and the faults armed from the start."""

    def __init__(
        self,
        turns: Iterable[Told] = (),
        speech: Iterable[SpeechStep] = (),
        faults: Iterable[str] = (),
    ) -> None:
        told = [as_turn(turn, f"turns[{at}]") for at, turn in enumerate(turns)]
        if len(told) > MOST_TURNS:
            raise BadScript(f"There are {len(told)} turns; a script has at most {MOST_TURNS}.")
        self.loaded = tuple(told)
        self.speech = tuple(speech)
        self.faults = tuple(
            check_fault(text, f"faults[{at}]", of_reply=False) for at, text in enumerate(faults)
        )
        # Each turn with how often it is still used.
        self._queue: list[tuple[Turn, int]] = []
        self.reset()

    def choose(self, asked: Asked) -> Reply | None:
        """The reply to what was asked, which is used by this; None if no turn fits."""
        for at, (turn, times) in enumerate(self._queue):
            if turn.when is not None and not turn.when.holds(asked):
                continue
            reply = turn.reply or _decided(turn.decide, asked)
            if reply is None:
                continue
            if times == 1:
                del self._queue[at]
            elif times != ALWAYS:
                self._queue[at] = (turn, times - 1)
            return reply
        return None

    def add(self, turn: Told) -> None:
        """One more turn, behind all others."""
        added = as_turn(turn, "turn")
        if len(self._queue) >= MOST_TURNS:
            raise BadScript(f"There are already {MOST_TURNS} turns. Reset the script first.")
        self._queue.append((added, added.times))

    def reset(self) -> None:
        """As it was when it was loaded: all turns unused, added ones gone."""
        self._queue = [(turn, turn.times) for turn in self.loaded]

    def left(self) -> tuple[Turn, ...]:
        """The turns that wait to be used. Rules (`always`) are used or not, and never wait."""
        return tuple(replace(turn, times=times) for turn, times in self._queue if times != ALWAYS)

    def __repr__(self) -> str:
        return f"<Script {len(self.left())} of {len(self.loaded)} turns left>"


def as_turn(told: Told, place: str) -> Turn:
    if isinstance(told, Turn):
        return told
    try:
        if isinstance(told, Reply):
            return Turn(told)
        if isinstance(told, str | dict):
            return Turn(replies.reply(told))
    except BadScript as error:
        raise bad(place, str(error)) from None
    raise bad(place, f"it must be a Turn, a Reply, an item or a text, not {kind(told)}")


def from_data(data: Any) -> list[Turn]:
    """Turns from JSON data: a list of them, or a mapping with `turns`."""
    return turn_reading.turns(data)


def from_document(data: Any) -> Script:
    """A whole script from data as YAML or JSON has it."""
    document = turn_reading.document(data)
    return Script(document.turns, document.speech, document.faults)


def load(path: str | os.PathLike[str]) -> Script:
    """The script in a file: YAML, JSON or Python, by its suffix."""
    name = os.fspath(path)
    suffix = PurePath(name).suffix.lower()
    if suffix not in (*_READERS, ".py"):
        raise BadScript(f"{name}: a script's name ends in .yaml, .yml, .json or .py.")
    source = read_bytes(name)
    if suffix == ".py":
        return _of_python(name)
    try:
        return from_document(_READERS[suffix](source))
    except BadScript as error:
        raise BadScript(f"{name}: {error}") from None


def _of_python(name: str) -> Script:
    """A `.py` file has `script`, or a function `reply`, or both: the function is asked last."""
    defined = python_files.run(name)
    told, rule = defined.get("script"), defined.get("reply")
    if told is None and not _is_rule(rule):
        raise BadScript(f"{name}: define `script` (a Script or a list) or `def reply(asked)`.")
    turns: list[Told] = [Turn(decide=rule, times=ALWAYS)] if _is_rule(rule) else []
    if isinstance(told, Script):
        return Script([*told.loaded, *turns], told.speech, told.faults) if turns else told
    if told is not None and not isinstance(told, list | tuple):
        raise BadScript(f"{name}: `script` must be a Script or a list, not {kind(told)}.")
    try:
        return Script([*(told or ()), *turns])
    except EmulatorError as error:
        raise BadScript(f"{name}: script: {error}") from None


def _is_rule(value: Any) -> bool:
    # `from lockstitch.emulator.replies import reply` brings a function of that name, not a rule.
    return callable(value) and value is not replies.reply


def _decided(decide: Decide | None, asked: Asked) -> Reply | None:
    if decide is None:
        return None
    try:
        said = decide(asked)
    except Exception as error:
        raise BadScript(python_files.blamed(error, python_files.file_of(decide))) from error
    if said is None:
        return None
    name = getattr(decide, "__name__", "a function")
    if not isinstance(said, str | Reply):
        raise BadScript(f"{name}() must return a Reply, a text or None, not {kind(said)}.")
    reply = replies.reply(said) if isinstance(said, str) else said
    try:
        check_reply(reply)
    except BadScript as error:
        raise BadScript(f"{name}() returned a reply that cannot be spoken: {error}") from None
    return reply
