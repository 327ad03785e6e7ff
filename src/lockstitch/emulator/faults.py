"""The faults, by name: what each does, its settings, and when it strikes.

`FAULTS` is the whole list. A fault is written as words: its name, then settings, such as
`cut after=response.output_item.done nth=2 how=reset`. What a fault does to a stream of events is
in `striking`; what it does to a request is done by the door that received it."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from lockstitch.emulator.errors import UnknownFault
from lockstitch.emulator.limits import LONGEST_STALL_SECONDS, MOST_FAULTS

ALWAYS: Final = -1
# The points that are not the name or the number of an event.
FIRST = "first-byte"
END = "end"
# The events that say how a response ended, in any of the dialects: in Messages that is
# `message_delta`, in Chat Completions the chunk with the finish reason. What comes after them
# (`message_stop`, `[DONE]`) says nothing more.
ENDS = frozenset(
    {
        "response.completed",
        "response.incomplete",
        "response.failed",
        "response.done",
        "message_delta",
        "finish",
    }
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a fault: what it may be, what it is when not given, what it means."""

    default: str | int | float
    means: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault. `strikes` says on what: a request, an upgrade, or an event."""

    name: str
    strikes: str
    does: str
    settings: dict[str, Setting] = field(default_factory=dict)
    # Where in the stream it strikes when nothing is said: (side, event).
    point: tuple[str, str] | None = None


_HOW = Setting(
    "close",
    "how the connection ends: properly, with a reset, inside a frame, or inside a character",
    ("close", "reset", "half-frame", "half-character"),
)
_COMMIT = Setting("no", "whether the provider stores the response anyway", ("no", "yes"))
_SECONDS = Setting(LONGEST_STALL_SECONDS, "length of the pause")

FAULTS: Final = {
    kind.name: kind
    for kind in (
        Kind(
            "cut",
            "event",
            "drops the connection; the response is not stored unless commit=yes",
            {"how": _HOW, "commit": _COMMIT},
            ("before", FIRST),
        ),
        Kind(
            "close",
            "event",
            "closes a WebSocket with a close code (1006: without a close frame)",
            {
                "code": Setting(
                    "1011",
                    "close code",
                    ("1000", "1001", "1006", "1009", "1011", "1012"),
                ),
                "commit": _COMMIT,
            },
            ("before", FIRST),
        ),
        Kind(
            "stall",
            "event",
            "pauses the stream, then continues",
            {"seconds": _SECONDS},
            ("before", FIRST),
        ),
        Kind(
            "drip",
            "event",
            "sends the rest of the stream a few bytes at a time",
            {
                "bytes": Setting(8, "bytes to send at a time"),
                "seconds": Setting(0.01, "pause between two of them"),
            },
            ("before", FIRST),
        ),
        Kind("duplicate", "event", "sends the event twice", {}, ("at", "response.created")),
        Kind(
            "late",
            "event",
            "sends the event after later ones",
            {"by": Setting(1, "number of events that come before it")},
            ("at", "response.output_item.done"),
        ),
        Kind(
            "fail",
            "event",
            "ends the response with response.failed",
            {
                "code": Setting("server_error", "error code"),
                "message": Setting("The model failed to generate a response.", "error message"),
            },
            ("before", END),
        ),
        Kind(
            "incomplete",
            "event",
            "ends the response with response.incomplete",
            {
                "reason": Setting(
                    "max_output_tokens", "reason", ("max_output_tokens", "content_filter")
                )
            },
            ("before", END),
        ),
        Kind(
            "error",
            "event",
            "sends an `error` event and ends the stream",
            {
                "code": Setting("server_error", "error code"),
                "message": Setting(
                    "An error occurred while processing your request.", "error message"
                ),
            },
            ("before", END),
        ),
        Kind(
            "status",
            "request",
            "returns an HTTP error and does nothing else",
            {
                "code": Setting(
                    "500",
                    "HTTP status",
                    ("400", "401", "404", "409", "429", "500", "502", "503", "529"),
                ),
                "retry_after": Setting("", "value of the Retry-After header; default for 429: 1"),
            },
        ),
        Kind(
            "lose",
            "request",
            "handles the request, stores the result, then drops the connection without an answer",
            {"how": _HOW},
        ),
        Kind(
            "forget",
            "request",
            "forgets stored responses before it handles the request",
            {
                "what": Setting(
                    "anchor",
                    "what to forget: the previous response, the connection's cache, or everything",
                    ("anchor", "cache", "everything"),
                )
            },
        ),
        Kind("lock", "request", "returns the error that the conversation is locked"),
        Kind(
            "refuse-upgrade",
            "upgrade",
            "refuses the WebSocket handshake",
            {"code": Setting("426", "HTTP status", ("426", "500"))},
        ),
    )
}

# What a request can be struck by; a handshake; and a connection that is both, as in Realtime.
REQUESTS: Final = frozenset({"event", "request"})
HANDSHAKES: Final = frozenset({"upgrade"})
CONNECTIONS: Final = REQUESTS | HANDSHAKES

# These end the response, and not the connection.
FINISHING: Final = frozenset({"fail", "incomplete", "error"})

# Settings that every fault has: which requests it strikes, and how often.
COMMON: Final = {
    "path": Setting("", "only requests whose path starts with this"),
    "request": Setting(0, "only the nth such request from now"),
    "model": Setting("", "only requests for this model"),
    "times": Setting("1", "how often it is triggered, or `always`"),
}
# Settings of faults that strike on an event.
POINTS: Final = {
    "before": Setting("", "event name or sequence number, first-byte, or end"),
    "after": Setting("", "event name or sequence number"),
    "at": Setting("", "same as before="),
    "nth": Setting(1, "the nth event of that name in the stream"),
}


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a stream of events."""

    after: bool
    event: str
    nth: int

    def __str__(self) -> str:
        which = f" nth={self.nth}" if self.nth > 1 else ""
        return f"{'after' if self.after else 'before'}={self.event}{which}"


@dataclass(slots=True)
class Fault:
    """A fault that is armed: it strikes `left` more times."""

    kind: Kind
    text: str
    settings: dict[str, str | int | float]
    point: Point | None
    left: int
    struck: int = 0
    matched: int = 0

    @property
    def name(self) -> str:
        return self.kind.name

    def word(self, setting: str) -> str:
        return str(self.settings[setting])

    def number(self, setting: str) -> float:
        return float(self.settings[setting])

    def spend(self) -> None:
        """It struck once."""
        self.struck += 1
        if self.left > 0:
            self.left -= 1

    def concerns(self, path: str, model: str) -> bool:
        """Whether this request is one it may strike; counts those that are."""
        if not self.left:
            return False
        if not path.startswith(self.word("path")):
            return False
        wanted = self.word("model")
        if wanted and wanted != model:
            return False
        self.matched += 1
        which = int(self.number("request"))
        return not which or which == self.matched

    def __repr__(self) -> str:
        return f"<Fault {self.text!r} {'spent' if not self.left else f'struck {self.struck}'}>"


def parse(text: str) -> Fault:
    """The fault that `text` asks for: `NAME [setting=value …]`."""
    try:
        name, *words = shlex.split(text)
    except ValueError:
        raise UnknownFault(f"{text!r} is not a fault: write NAME setting=value ….") from None
    kind = FAULTS.get(name)
    if kind is None:
        raise UnknownFault(
            f"There is no fault {name!r}. There are: {', '.join(FAULTS)}. "
            "`lockstitch emulate --faults` describes them."
        )
    known = kind.settings | COMMON | (POINTS if kind.strikes == "event" else {})
    given: dict[str, str | int | float] = {}
    for word in words:
        key, equals, value = word.partition("=")
        key = key.replace("-", "_")
        if not equals or key not in known:
            raise UnknownFault(
                f"{name} has no setting {word!r}. It has: {', '.join(known)} (setting=value)."
            )
        given[key] = _value(name, key, value, known[key])
    point = _point(kind, given) if kind.strikes == "event" else None
    settings = {key: given.get(key, known[key].default) for key in (*kind.settings, *COMMON)}
    return Fault(kind, text, settings, point, _times(name, str(settings["times"])))


def _value(fault: str, key: str, value: str, setting: Setting) -> str | int | float:
    if setting.choices and value not in setting.choices:
        raise UnknownFault(
            f"{fault} {key}={value}: it must be one of {', '.join(setting.choices)}."
        )
    if isinstance(setting.default, str):
        if not value.isprintable():
            raise UnknownFault(f"{fault} {key}={value!r}: it must be printable.")
        return value
    try:
        number = type(setting.default)(value)
    except ValueError:
        raise UnknownFault(f"{fault} {key}={value}: it must be a number.") from None
    if not 0 <= number <= 1e9:
        raise UnknownFault(f"{fault} {key}={value}: it must be between 0 and 1e9.")
    return number


def _times(fault: str, text: str) -> int:
    if text == "always":
        return ALWAYS
    if not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise UnknownFault(f"{fault} times={text}: it must be a positive number, or `always`.")
    return int(text)


def _point(kind: Kind, given: dict[str, str | int | float]) -> Point:
    sides = [side for side in ("before", "after", "at") if side in given]
    if len(sides) > 1:
        raise UnknownFault(
            f"{kind.name} is asked for {' and '.join(sides)} an event: take one of them."
        )
    default = kind.point or ("before", FIRST)
    side = sides[0] if sides else default[0]
    event = str(given[side]) if sides else default[1]
    if side == "after" and event == FIRST:
        raise UnknownFault(f"{kind.name} after={FIRST}: write after=0 for the first event.")
    if not re.fullmatch(r"[0-9]{1,9}|[A-Za-z\[][\w.\[\]-]*", event):
        raise UnknownFault(
            f"{kind.name} {side}={event}: it must be the name of an event, its number, "
            f"{FIRST} or {END}."
        )
    if kind.name in FINISHING and (event == FIRST or (side == "after" and event in ENDS | {END})):
        raise UnknownFault(
            f"{kind.name} {side}={event}: a response can be ended after its first event and "
            "before its last."
        )
    return Point(side == "after", event, int(given.get("nth", 1)))


class Faults:
    """The faults that are armed, in the order they were asked for."""

    def __init__(self, asked: Iterable[str] = ()) -> None:
        self._armed: list[Fault] = []
        self.arm_all(asked)

    def arm(self, text: str) -> None:
        self.arm_all([text])

    def arm_all(self, asked: Iterable[str]) -> None:
        """Arm all of these, or none if one of them is no fault."""
        faults = [parse(text) for text in asked]
        if len(self._armed) + len(faults) > MOST_FAULTS:
            raise UnknownFault(f"At most {MOST_FAULTS} faults can be armed. Clear them first.")
        self._armed += faults

    def clear(self) -> None:
        self._armed.clear()

    def concerning(self, path: str, model: str, strikes: frozenset[str] = REQUESTS) -> list[Fault]:
        """The faults that may strike this request, or the stream that answers it.

        Only those that strike such a thing are looked at; the others do not count it."""
        if not self._armed:
            return []
        return [
            fault
            for fault in self._armed
            if fault.kind.strikes in strikes and fault.concerns(path, model)
        ]

    def all(self) -> list[Fault]:
        return list(self._armed)

    def unstruck(self) -> list[Fault]:
        return [fault for fault in self._armed if not fault.struck]

    def __repr__(self) -> str:
        return f"<Faults {len(self._armed)} armed, {len(self.unstruck())} never struck>"


def struck(faults: Iterable[Fault], name: str) -> Fault | None:
    """The first of `faults` with this name that is not spent; it is spent by asking."""
    for fault in faults:
        if fault.kind.name == name and fault.left:
            fault.spend()
            return fault
    return None
