"""What faults do to a stream of events: events in, steps out.

Pure: the steps are data, and `delivery` carries them out. A stream that no fault concerns never
comes here."""

from dataclasses import dataclass

from lockstitch.emulator.faults import END, ENDS, FIRST, Fault


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes of a framed event, whole or a piece of it."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """End the connection after these last bytes."""

    how: str
    rest: bytes
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


Step = Send | Wait | Cut | Close | Finish


class Strikes:
    """The faults of one stream, and how far it has come."""

    __slots__ = ("_drip", "_faults", "_finishing", "_held", "_seen")

    def __init__(self, faults: list[Fault]) -> None:
        self._faults = [fault for fault in faults if fault.point is not None]
        self._seen: dict[str, int] = {}
        self._drip: Fault | None = None
        # Late events, with how many events still have to overtake each.
        self._held: list[tuple[int, bytes]] = []
        self._finishing = False

    def __bool__(self) -> bool:
        return bool(self._faults)

    def opening(self) -> list[Step]:
        """What happens before the first byte of the answer."""
        return self._struck([f for f in self._faults if f.left and _is_first(f)], b"")

    def passing(self, name: str, number: int, framed: bytes) -> list[Step]:
        """What happens instead of simply sending this event."""
        count = self._seen[name] = self._seen.get(name, 0) + 1
        due = [f for f in self._faults if f.left and _is_due(f, name, number, count)]
        steps = self._struck([f for f in due if f.point and not f.point.after], framed)
        if steps and isinstance(steps[-1], Cut | Close | Finish):
            return steps
        sent = self._sent(framed, due)
        overtaken = self._overtaken() if sent else []
        if name in ENDS:
            overtaken += self._flushed()
        after = self._struck([f for f in due if f.point and f.point.after], b"")
        return steps + sent + overtaken + after

    def resume(self) -> None:
        """A response was ended early; the next one on the same connection may be too."""
        self._finishing = False

    def closing(self) -> list[Step]:
        """Late events that nothing overtook any more."""
        return self._flushed()

    def _sent(self, framed: bytes, due: list[Fault]) -> list[Step]:
        for fault in due:
            if fault.name == "late" and fault.left:
                fault.spend()
                self._held.append((max(1, int(fault.number("by"))), framed))
                return []
        sent = self._pieces(framed)
        for fault in due:
            if fault.name == "duplicate" and fault.left:
                fault.spend()
                sent += self._pieces(framed)
        return sent

    def _overtaken(self) -> list[Step]:
        steps: list[Step] = []
        waiting = []
        for left, framed in self._held:
            if left == 1:
                steps += self._pieces(framed)
            else:
                waiting.append((left - 1, framed))
        self._held = waiting
        return steps

    def _flushed(self) -> list[Step]:
        held, self._held = self._held, []
        return [step for _, framed in held for step in self._pieces(framed)]

    def _pieces(self, framed: bytes) -> list[Step]:
        if self._drip is None:
            return [Send(framed)]
        size = max(1, int(self._drip.number("bytes")))
        pause = Wait(self._drip.number("seconds"))
        pieces: list[Step] = []
        for start in range(0, len(framed), size):
            pieces += (Send(framed[start : start + size]), pause)
        return pieces

    def _struck(self, due: list[Fault], framed: bytes) -> list[Step]:
        """The steps of the faults that act on the stream itself, up to the one that ends it."""
        steps: list[Step] = []
        for fault in due:
            match fault.name:
                case "stall":
                    fault.spend()
                    steps.append(Wait(fault.number("seconds")))
                case "drip":
                    fault.spend()
                    self._drip = fault
                case "cut":
                    fault.spend()
                    how = fault.word("how")
                    return [*steps, Cut(how, _rest(how, framed), _commits(fault), fault)]
                case "close":
                    fault.spend()
                    return [*steps, Close(int(fault.number("code")), _commits(fault), fault)]
                case "fail" | "incomplete" | "error" if not self._finishing:
                    fault.spend()
                    self._finishing = True
                    return [*steps, Finish(fault)]
                case _:
                    pass  # `duplicate` and `late` act on the event, in `_sent`
        return steps


def _commits(fault: Fault) -> bool:
    return fault.word("commit") == "yes"


def _is_first(fault: Fault) -> bool:
    return fault.point is not None and fault.point.event == FIRST


def _is_due(fault: Fault, name: str, number: int, count: int) -> bool:
    point = fault.point
    if point is None or point.event == FIRST:
        return False
    if point.event == END:
        return name in ENDS
    if point.event.isdecimal():
        return point.event.lstrip("0") == str(number or "")
    return point.event == name and point.nth == count


def _rest(how: str, framed: bytes) -> bytes:
    """The last bytes before a cut in the middle of a frame, or of a character."""
    if how == "half-frame":
        return framed[: len(framed) // 2]
    if how == "half-character":
        for at, byte in enumerate(framed):
            if byte >= 0xC0:
                return framed[: at + 1]
        # All ASCII: the frame breaks off with the first byte of a two-byte character.
        return framed[: len(framed) // 2] + b"\xc3"
    return b""
