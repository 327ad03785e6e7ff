"""Plain data into turns: the script format, as tables. Unknown keys and wrong types are told.

The short forms of items are in `draft_reading`; files are read by `document_files`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lockstitch.emulator.errors import BadScript
from lockstitch.emulator.limits import MOST_TURNS
from lockstitch.emulator.model.draft_reading import FORMS, head_of, made, read_calls, read_drafts
from lockstitch.emulator.model.plain_values import bad, check_plain, kind, shown
from lockstitch.emulator.model.replies import Draft, Reply
from lockstitch.emulator.model.replies import text as message
from lockstitch.emulator.model.script_fields import (
    Read,
    check_keys,
    fields,
    flag,
    list_of,
    one_of,
    text,
    under,
    whole,
)
from lockstitch.emulator.model.turns import (
    ALWAYS,
    DIALECTS,
    ENDINGS,
    SpeechStep,
    Turn,
    When,
    check_fault,
    check_seconds,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """All that a script file says."""

    turns: tuple[Turn, ...] = ()
    speech: tuple[SpeechStep, ...] = ()
    faults: tuple[str, ...] = ()


WHEN: Final[Mapping[str, Read]] = {
    "user": text,
    "output": text,
    "tool": text,
    "model": text,
    "dialect": one_of(*DIALECTS),
    "offers": text,
    "longer_than": whole(0),
    "shorter_than": whole(0),
}


def _when(value: Any, place: str) -> When:
    given = fields(value, place, WHEN)
    try:
        return When(**given)
    except BadScript as error:
        raise BadScript(f"{place}.{error}") from None


def _times(value: Any, place: str) -> int:
    if value == "always":
        return ALWAYS
    if type(value) is not int or value < 1:
        raise bad(place, f"it must be a whole number from 1, or `always`, not {shown(value)}")
    return value


def _fault_of_reply(value: Any, place: str) -> str:
    return check_fault(value, place, of_reply=True)


def _fault(value: Any, place: str) -> str:
    return check_fault(value, place, of_reply=False)


# The keys of a turn beside what it says: those that are about its choice, and the reply's own.
CHOICE: Final[Mapping[str, Read]] = {"when": _when, "times": _times}
REPLY: Final[Mapping[str, Read]] = {
    "delay": check_seconds,
    "pace": check_seconds,
    "faults": list_of(_fault_of_reply),
    "ends": one_of(*ENDINGS),
    "input_tokens": whole(0),
    "output_tokens": whole(0),
}
SEVERAL: Final[Mapping[str, Read]] = {"calls": read_calls, "items": read_drafts}
SPEECH: Final[Mapping[str, Read]] = {
    "after": text,
    "nth": whole(1),
    "delay": check_seconds,
    "says": text,
    "responds": flag,
}


def _turn(data: Any, place: str) -> Turn:
    if isinstance(data, str):
        return Turn(Reply(drafts=(message(data),)))
    if not isinstance(data, dict):
        raise bad(place, f"a turn must be a mapping or a text, not {kind(data)}")
    settings = {**CHOICE, **REPLY}
    spoken = {name: value for name, value in data.items() if name not in settings}
    drafts = _drafts(spoken, place)
    rest = {name: value for name, value in data.items() if name in settings}
    given = fields(rest, place, settings)
    choice = {name: given.pop(name) for name in CHOICE if name in given}
    given["faults"] = tuple(given.get("faults", ()))
    return Turn(Reply(drafts=tuple(drafts), **given), **choice)


def _drafts(data: dict[str, Any], place: str) -> list[Draft]:
    head = head_of(data, place, {**FORMS, **SEVERAL})
    also = () if head in SEVERAL else FORMS[head].also
    check_keys(data, place, (head, *also, *CHOICE, *REPLY))
    if head not in SEVERAL:
        return [made(head, data, place)]
    drafts: list[Draft] = SEVERAL[head](data[head], under(place, head))
    return drafts


def _speech(data: Any, place: str) -> SpeechStep:
    return SpeechStep(**fields(data, place, SPEECH, needs=("after", "says")))


_TURNS = list_of(_turn)
DOCUMENT: Final[Mapping[str, Read]] = {
    "turns": _TURNS,
    "speech": list_of(_speech),
    "faults": list_of(_fault),
}


def document(data: Any) -> Document:
    """A whole script."""
    if data is None:
        raise BadScript("the script is empty. Begin with `turns:` and a list of turns")
    if isinstance(data, list):
        raise BadScript("the script is a list. Put it under `turns:`")
    return _read(data, DOCUMENT)


def turns(data: Any) -> list[Turn]:
    """A list of turns, or a mapping with `turns` and nothing else."""
    whole = {"turns": data} if isinstance(data, list) else data
    return list(_read(whole, {"turns": _TURNS}).turns)


def _read(data: Any, known: Mapping[str, Read]) -> Document:
    check_plain(data, "")
    if isinstance(data, dict) and isinstance(data.get("turns"), list):
        count = len(data["turns"])
        if count > MOST_TURNS:
            raise BadScript(f"there are {count} turns; a script has at most {MOST_TURNS}")
    given = fields(data, "", known)
    return Document(**{name: tuple(value) for name, value in given.items()})
