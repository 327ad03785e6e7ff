"""The faults of one Realtime connection, in layers: each counts events from when it was added.

A session outlives many responses, and a fault may be armed in the middle of it. The faults known
at the upgrade are the first layer, those found at a response's start are another, and a reply's
own last as long as its response."""

from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault
from lockstitch.emulator.striking import Send, Step, Strikes


class Layers:
    """What strikes an event is the first layer that does not simply let it pass."""

    def __init__(self) -> None:
        self._known: list[Fault] = []
        self._layers: list[Strikes] = []

    def add(self, faults: list[Fault]) -> list[Step]:
        """A layer of those that are new, for good; what they do before anything is sent."""
        new = [fault for fault in faults if not any(fault is known for known in self._known)]
        if not new:
            return []
        self._known += new
        layer = Strikes(new)
        self._layers.append(layer)
        return layer.opening()

    def passing(self, event: Event, own: Strikes | None) -> list[Step] | None:
        """What happens instead of sending this event; None if it is simply sent."""
        for layer in (own, *self._layers) if own else self._layers:
            steps = layer.passing(event)
            if steps != [Send(event)]:
                return steps
        return None

    def resume(self) -> None:
        for layer in self._layers:
            layer.resume()

    def __bool__(self) -> bool:
        return any(self._layers)

    def __repr__(self) -> str:
        return f"<Layers {len(self._layers)}, {len(self._known)} faults>"
