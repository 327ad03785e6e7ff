"""Examining a conversation: its wire items go through a dialect into the pairing pass.

The library, the session files and the gateway's guard all examine histories here. An examination
also knows whether everything was understood: what looks like a call or an output and was not read
as one, and whether any item was recognised at all. What to do about that is up to the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self, TypeAlias, cast

from msgspec import Struct

from lockstitch.core.findings import Finding
from lockstitch.core.items import Item, Part, Place
from lockstitch.core.outcomes import Evidence
from lockstitch.core.pairing import Pairing, read_through
from lockstitch.dialects import signs
from lockstitch.dialects.base import Dialect, Wire
from lockstitch.dialects.rewriting import output_at

Reader: TypeAlias = Callable[[Wire], Sequence[Item]]

_CALL, _OTHER = Part.CALL, Part.OTHER


class Unread(Struct, frozen=True):
    """An item that looks like a call or an output, and could not be read as one."""

    place: Place
    sign: str
    """What makes it look like one."""

    def say(self, where: str) -> str:
        """The problem in one sentence; ``where`` names the item."""
        return (
            f"{where} looks like a tool call or result ({self.sign}) but could not be read as one."
        )


NOTHING_RECOGNISED: Final = "no item is a message, a tool call or a tool result of a known format."


class Examination:
    """One pass over the wire items of one conversation. Feed it with `add`, in order."""

    def __init__(
        self,
        dialect: Dialect,
        *,
        pairing: Pairing | None = None,
        evidence: Mapping[str, Evidence] | None = None,
        read: Reader | None = None,
    ) -> None:
        """``evidence`` is what is known of calls, by call id; ``read`` is used in place of the
        dialect's own reading."""
        self.dialect = dialect
        self.pairing = pairing if pairing is not None else Pairing(dialect.order, read=_as_it_is)
        self._evidence = evidence
        self._read: Reader = read if read is not None else dialect.read
        self.captured: dict[Place, Wire] = {}
        """Outputs that may have to move back, as they are."""
        self.records = 0
        self.recognised = False
        """Is any item one that the dialect knows?"""
        self.unread: Unread | None = None
        """The first item that looks like a call or an output and is not known."""

    def again(self) -> Self | None:
        """A fresh examination for a second reading; None if all is certain."""
        pairing = self.pairing.again()
        if pairing is None:
            return None
        return type(self)(self.dialect, pairing=pairing, evidence=self._evidence, read=self._read)

    def wait_for(self, calls: Iterable[Item]) -> None:
        """Take calls that come before everything that is added, and want their outputs. They have
        the positions from 0 on."""
        for at, call in enumerate(calls):
            self.pairing.wait_for(call, at)
            self._testify(call, at)

    def add(self, wire: Wire, at: int) -> None:
        """Take the next wire item."""
        self.records += 1
        add = self.pairing.add
        for item in self._read(wire):
            if item.part is not _OTHER:
                self.recognised = True
            if item.unread is not None and self.unread is None:
                self.unread = Unread(Place(at, item.slot), item.unread)
            if add(item, at) is not None:
                self.captured[Place(at, item.slot)] = output_at(self.dialect, wire, item.slot)
            if item.part is _CALL:
                self._testify(item, at)

    def expect_no_calls(self, value: object, what: str, at: int = 0) -> None:
        """Take something that is not an item of the history: no call may be in it."""
        if self.unread is None and signs.sign_within(value) is not None:
            self.unread = Unread(Place(at), what)

    def _testify(self, call: Item, at: int) -> None:
        if self._evidence and call.key is not None:
            known = self._evidence.get(call.key)
            if known is not None:
                self.pairing.witness(call.key, known, at)

    def finish(self, *, anchored: bool = False) -> list[Finding]:
        """Everything that is wrong, in order of place. ``anchored``: the items continue what the
        provider has, so an output may come without its call."""
        return self.pairing.finish(anchored=anchored)


def examine(
    dialect: Dialect,
    history: Sequence[Any],
    *,
    behind: Sequence[Item] = (),
    evidence: Mapping[str, Evidence] | None = None,
    read: Reader | None = None,
) -> Examination:
    """Examine wire items in memory; what is not a dictionary cannot hold a call. ``behind`` are
    calls that wait for their outputs before the first item; positions count them."""

    def feed(one: Examination) -> None:
        one.wait_for(behind)
        for at, wire in enumerate(history, len(behind)):
            if isinstance(wire, dict):
                one.add(wire, at)
            else:
                one.expect_no_calls(wire, "not an object", at)

    examination, _ = read_through(Examination(dialect, evidence=evidence, read=read), feed)
    return examination


def _as_it_is(known: object, at: int) -> Evidence:
    """Evidence that a caller passed needs no reading."""
    return cast("Evidence", known)
