"""A response, from the moment its request was accepted: what it is made of, and what it said.

One tells it, event by event; all others read its log. What becomes of it is decided in `store`."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault
from lockstitch.emulator.model.replies import Reply
from lockstitch.emulator.responses.context import Context, Item
from lockstitch.emulator.responses.conversations import Conversation
from lockstitch.emulator.responses.speaking import Performance

_number = attrgetter("number")

# What a body says while the response is being made.
_UNDER_WAY = {
    "status": "in_progress",
    "completed_at": None,
    "error": None,
    "incomplete_details": None,
    "usage": None,
}


@dataclass(slots=True, eq=False)
class Run:
    """One response."""

    id: str
    performance: Performance
    reply: Reply
    # What the model sees, and the part of it that this request brought.
    context: Context
    input: list[Item]
    kept: bool
    background: bool = False
    conversation: Conversation | None = None
    # The client asked for automatic compaction.
    compacts: bool = False
    # What it left behind, once it is committed.
    after: Context | None = None
    # Nothing more becomes of it. `stopped`: somebody ended it who does not tell it.
    over: bool = False
    stopped: bool = False
    # Its events, as far as they were made, and how many of them were told.
    log: list[Event] = field(default_factory=list)
    told: int = 0
    # Called when there is something new: events were told, or it is over.
    watchers: list[Callable[[], None]] = field(default_factory=list)
    _telling: Iterator[Event] | None = None

    @property
    def body(self) -> dict[str, Any]:
        """What a client that asks for it sees. Its end is made before it is told."""
        body = self.performance.response
        return body | _UNDER_WAY if self.performance.ended and not self.over else body

    def events(self) -> Iterator[Event]:
        """The events that were not made yet; those of a response that is kept are logged."""
        if self._telling is None:
            made = self.performance.events()
            self._telling = self._logged(made) if self.kept else made
        return self._telling

    def _logged(self, events: Iterator[Event]) -> Iterator[Event]:
        # Only what is kept can be stopped: then it says nothing more.
        while not self.over and (event := next(events, None)) is not None:
            self.log.append(event)
            yield event

    def tell(self) -> None:
        """All that was made was told."""
        self.told = len(self.log)
        self.notify()

    def news(self, seen: int) -> list[Event]:
        """The events after number `seen` that may be heard."""
        end = len(self.log) if self.over else self.told
        return self.log[bisect_right(self.log, seen, 0, end, key=_number) : end]

    def take_back(self) -> None:
        """What was made and not told is not told any more."""
        while len(self.log) > self.told:
            self.log.pop()
            self.performance.retract()

    def finish(self, fault: Fault) -> list[Event]:
        """The last events, when a fault ends the response."""
        if fault.point is not None and not fault.point.after:
            # The event it struck before was made, and is never sent.
            self.performance.retract()
            del self.log[-1:]
        match fault.name:
            case "fail":
                events = self.performance.end(
                    "failed", code=fault.word("code"), message=fault.word("message")
                )
            case "incomplete":
                events = self.performance.end("incomplete", reason=fault.word("reason"))
            case _:
                events = self.performance.broke(fault.word("code"), fault.word("message"))
        self.log += events if self.kept else []
        return events

    def stop(self, reason: str) -> list[Event]:
        """End it here, incomplete."""
        events = self.performance.end("incomplete", reason=reason)
        self.log += events if self.kept else []
        return events

    def fail(self) -> None:
        """Something went wrong while it was made: that is its end."""
        self.take_back()
        self.log += self.performance.end("failed")

    def notify(self) -> None:
        for watcher in self.watchers:
            watcher()
