"""Which calls and outputs of the provider's context belong together, kept as they come and go.

Models use a call id again in a later round: the first output answers the first call. The other
half of a record is `Record.partner`; nobody but this file sets it."""

from __future__ import annotations

from itertools import zip_longest
from typing import Final

from lockstitch.core.items import Part
from lockstitch.mirror.chain import Record

# Bound once: members of an enum are slow to look up, and these are for every item.
_CALL: Final = Part.CALL
_OUTPUT: Final = Part.OUTPUT


class Pairs:
    """The calls and outputs that live, by key."""

    def __init__(self) -> None:
        self._calls: dict[str, list[Record]] = {}
        self._outputs: dict[str, list[Record]] = {}

    def __repr__(self) -> str:
        return f"<Pairs {len(self._calls)} calls, {len(self._outputs)} outputs>"

    def enter(self, record: Record) -> None:
        side, key = self._side(record), record.item.key
        if side is not None and key is not None:
            side.setdefault(key, []).append(record)
            self._join(key)

    def leave(self, record: Record) -> None:
        side, key = self._side(record), record.item.key
        if side is None or key is None or record not in side.get(key, ()):
            return
        side[key].remove(record)
        if not side[key]:
            del side[key]
        record.partner = None
        self._join(key)

    def call_for(self, key: str, more: int = 0) -> Record | None:
        """The call that an output with this key answers, once there are so many ``more`` outputs:
        the first that waits, else the last."""
        calls = self._calls.get(key)
        if not calls:
            return None
        return calls[min(len(self._outputs.get(key, ())) + more, len(calls) - 1)]

    def _join(self, key: str) -> None:
        """The n-th call and the n-th output of this key are each other's."""
        for call, output in zip_longest(self._calls.get(key, ()), self._outputs.get(key, ())):
            if call is not None:
                call.partner = output
            if output is not None:
                output.partner = call

    def _side(self, record: Record) -> dict[str, list[Record]] | None:
        part = record.item.part
        if part is _CALL:
            return self._calls
        return self._outputs if part is _OUTPUT else None
