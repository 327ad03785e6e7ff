"""What faults do to a stream of events: events in, steps out.

Pure: the steps are data, and `wire.delivery` carries them out. A stream that no fault concerns
never comes here."""

from dataclasses import dataclass

from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import END, ENDS, FIRST, Fault


@dataclass(frozen=True, slots=True)
class Send:
    """An event, whole; with `drip` a few bytes at a time."""

    event: Event
    drip: Fault | None = None


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault struck here: to be recorded."""

    fault: Fault


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """End the connection; before that, part of an event if the cut is inside one."""

    how: str
    event: Event | None
    commit: bool
    fault: Fault


@dataclass(frozen=True, slots=True)
class Close:
    """Close a WebSocket with this code."""

    code: int
    commit: bool
    fault: Fault


@dataclass(frozen=True, slots=True)
class Finish:
    """End the response early: `fail`, `incomplete` or `error`, with the fault's settings."""

    fault: Fault


Step = Send | Struck | Wait | Cut | Close | Finish

# These cuts are inside an event.
_HALVES = frozenset({"half-frame", "half-character"})


class Strikes:
    """The faults of one stream, and how far it has come."""

    __slots__ = ("_cut", "_drip", "_ended", "_faults", "_finishing", "_held", "_seen")

    def __init__(self, faults: list[Fault]) -> None:
        self._faults = [fault for fault in faults if fault.point is not None]
        self._seen: dict[str, int] = {}
        self._drip: Fault | None = None
        # Late events, with how many events still have to overtake each.
        self._held: list[tuple[int, Event]] = []
        # A cut inside the next event.
        self._cut: Fault | None = None
        self._finishing = False
        self._ended = False

    def __bool__(self) -> bool:
        return bool(self._faults)

    def opening(self) -> list[Step]:
        """What happens before the first byte of the answer."""
        return self._acts([f for f in self._faults if f.left and _is_first(f)], None)

    def passing(self, event: Event) -> list[Step]:
        """What happens instead of simply sending this event."""
        if self._cut is not None:
            return [_cut(self._cut, event)]
        count = self._seen[event.name] = self._seen.get(event.name, 0) + 1
        due = [f for f in self._faults if f.left and _is_due(f, event, count)]
        steps = self._acts([f for f in due if f.point and not f.point.after], event)
        if steps and isinstance(steps[-1], Cut | Close | Finish):
            return steps
        sent = self._sent(event, due)
        overtaken = self._overtaken() if any(isinstance(step, Send) for step in sent) else []
        if event.name in ENDS:
            self._ended = True
            overtaken += self._flushed()
        after = self._acts([f for f in due if f.point and f.point.after], None)
        return steps + sent + overtaken + after

    def resume(self) -> None:
        """A response is over; another one comes on the same connection."""
        self._finishing = False
        self._ended = False

    def closing(self) -> list[Step]:
        """Late events that nothing overtook any more; a cut that found no event to be inside."""
        if self._cut is not None:
            return [_cut(self._cut, None)]
        return self._flushed()

    def _sent(self, event: Event, due: list[Fault]) -> list[Step]:
        for fault in due:
            if fault.name == "late" and fault.left:
                fault.spend()
                self._held.append((max(1, int(fault.number("by"))), event))
                return [Struck(fault)]
        sent: list[Step] = [Send(event, self._drip)]
        for fault in due:
            if fault.name == "duplicate" and fault.left:
                fault.spend()
                sent += (Struck(fault), Send(event, self._drip))
        return sent

    def _overtaken(self) -> list[Step]:
        steps: list[Step] = []
        waiting = []
        for left, event in self._held:
            if left == 1:
                steps.append(Send(event, self._drip))
            else:
                waiting.append((left - 1, event))
        self._held = waiting
        return steps

    def _flushed(self) -> list[Step]:
        held, self._held = self._held, []
        return [Send(event, self._drip) for _, event in held]

    def _acts(self, due: list[Fault], event: Event | None) -> list[Step]:
        """The steps of the faults that act on the stream itself, up to the one that ends it."""
        steps: list[Step] = []
        for fault in due:
            match fault.name:
                case "stall":
                    fault.spend()
                    steps += (Struck(fault), Wait(fault.number("seconds")))
                case "drip":
                    fault.spend()
                    self._drip = fault
                    steps.append(Struck(fault))
                case "cut":
                    fault.spend()
                    if event is None and fault.word("how") in _HALVES and not _is_first(fault):
                        self._cut = fault
                        return steps
                    return [*steps, _cut(fault, event)]
                case "close":
                    fault.spend()
                    return [*steps, Close(int(fault.number("code")), _commits(fault), fault)]
                case "fail" | "incomplete" | "error" if not (self._finishing or self._ended):
                    # A response that has said its end cannot end in another way.
                    fault.spend()
                    self._finishing = True
                    return [*steps, Finish(fault)]
                case _:
                    pass  # `duplicate` and `late` act on the event, in `_sent`
        return steps


def _cut(fault: Fault, event: Event | None) -> Cut:
    return Cut(fault.word("how"), event, _commits(fault), fault)


def _commits(fault: Fault) -> bool:
    return fault.word("commit") == "yes"


def _is_first(fault: Fault) -> bool:
    return fault.point is not None and fault.point.event == FIRST


def _is_due(fault: Fault, event: Event, count: int) -> bool:
    point = fault.point
    if point is None or point.event == FIRST:
        return False
    if point.event == END:
        return event.name in ENDS
    if point.event.isdecimal():
        return int(point.event) == event.number
    return point.event == event.name and point.nth == count
