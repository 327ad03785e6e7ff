"""Which calls and outputs of the provider's context belong together, kept as they come and go.

Models use a call id again in a later round: the first output answers the first call."""

from __future__ import annotations

from lockstitch.core.items import Part
from lockstitch.mirror.chain import Record


class Pairs:
    """The calls and outputs that live, by key."""

    def __init__(self) -> None:
        self._calls: dict[str, list[Record]] = {}
        self._outputs: dict[str, list[Record]] = {}

    def __repr__(self) -> str:
        return f"<Pairs {len(self._calls)} calls, {len(self._outputs)} outputs>"

    def enter(self, record: Record) -> None:
        side = self._side(record)
        if side is not None and record.item.key is not None:
            side.setdefault(record.item.key, []).append(record)

    def leave(self, record: Record) -> None:
        side, key = self._side(record), record.item.key
        if side is None or key is None or key not in side:
            return
        if record in side[key]:
            side[key].remove(record)
        if not side[key]:
            del side[key]

    def partner(self, record: Record) -> Record | None:
        """The other half of its pair."""
        side, key = self._side(record), record.item.key
        if side is None or key is None:
            return None
        other = self._outputs if side is self._calls else self._calls
        own, others = side.get(key, []), other.get(key, [])
        at = own.index(record) if record in own else len(own)
        return others[at] if at < len(others) else None

    def call_for(self, key: str) -> Record | None:
        """The call that an output with this key answers: the first that waits, else the last."""
        calls = self._calls.get(key)
        if not calls:
            return None
        return calls[min(len(self._outputs.get(key, ())), len(calls) - 1)]

    def _side(self, record: Record) -> dict[str, list[Record]] | None:
        part = record.item.part
        if part is Part.CALL:
            return self._calls
        return self._outputs if part is Part.OUTPUT else None
