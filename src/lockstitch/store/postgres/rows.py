"""Records as columns of an array each, for a statement that takes many at once; and back again.

One statement with arrays costs one round trip and one plan, however many records there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockstitch.core.records import Name, Naming, Record
from lockstitch.store.bodies import LARGE_BODY_BYTES, digest
from lockstitch.store.postgres.text import KEY_CHARACTERS, SEPARATOR, kept, key, original

_NAMINGS = {naming.value: naming for naming in Naming}


class Columns:
    """Records with their names, and their large bodies, as columns of two tables.

    ``places`` says which conversation of a group, from 1, each of the records belongs to."""

    def __init__(self, places: list[int], records: Sequence[Record]) -> None:
        self.places = places
        self.seqs = [record.seq for record in records]
        self.moments = [record.at for record in records]
        self.payloads = [record.payload for record in records]
        self.bodies = [record.body for record in records]
        self.digests: list[bytes | None] = [None] * len(records)
        self.large_bodies: tuple[list[int], list[bytes], list[bytes]] = ([], [], [])
        """place, digest, body"""
        self._names = [record.names for record in records]
        self._set_large_bodies_apart()

    def _set_large_bodies_apart(self) -> None:
        places, digests, bodies = self.large_bodies
        for number, body in enumerate(self.bodies):
            if body is not None and len(body) >= LARGE_BODY_BYTES:
                found_by = digest(body)
                self.bodies[number] = None
                self.digests[number] = found_by
                places.append(self.places[number])
                digests.append(found_by)
                bodies.append(body)

    def of_records(self) -> list[Any]:
        """As `write_records` takes them: place, seq, at, payload, body, digest, names."""
        return [
            numbers(self.places),
            numbers(self.seqs),
            _unless_empty(self.moments),
            self.payloads,
            _unless_empty(self.bodies),
            _unless_empty(self.digests),
            *_name_columns(self._names),
        ]


def _name_columns(all_names: Sequence[Sequence[Name]]) -> tuple[str, str, list[Any], list[Any]]:
    """First, second, others, and all in full where one is too long for an index."""
    first = [name_key(names[0]) if names else "" for names in all_names]
    second = [name_key(names[1]) if len(names) > 1 else "" for names in all_names]
    others: list[str | None] = []
    if max(map(len, all_names), default=0) > 2:
        others = [SEPARATOR.join(map(name_key, names[2:])) or None for names in all_names]
    in_full: list[str | None] = []
    if others or max(map(len, first + second), default=0) > KEY_CHARACTERS:
        in_full = [_in_full(names) for names in all_names]
    return _texts(first), _texts(second), others, in_full


def _in_full(names: Sequence[Name]) -> str | None:
    written = [kept(_written(name)) for name in names]
    return SEPARATOR.join(written) if max(map(len, written), default=0) > KEY_CHARACTERS else None


def numbers(column: list[int]) -> str:
    """An array of them, written out: the driver is slow with every element of an array."""
    return f"{{{str(column)[1:-1]}}}"


def truths(column: Sequence[bool]) -> str:
    """The same for what is so, or not."""
    return f"{{{','.join('t' if one else 'f' for one in column)}}}"


def _texts(column: Sequence[str]) -> str:
    """The same for texts; an empty one stands for none."""
    return SEPARATOR.join(column) if any(column) else ""


def _unless_empty(column: Sequence[Any]) -> Sequence[Any]:
    """What no record has is left out."""
    return column if column.count(None) < len(column) else []


def name_key(name: Name) -> str:
    """What a name is found by."""
    return key(_written(name))


def record_of(row: Mapping[str, Any]) -> Record:
    """The record in a row of `records_page`."""
    return Record(
        row["seq"], row["payload"], row["body"], tuple(map(_name, row["names"])), row["at"]
    )


def _written(name: Name) -> str:
    return f"{name.naming._value_}:{name.id}"  # `value` is a property, and a slow one


def _name(written: str) -> Name:
    naming, _, known_as = written.partition(":")
    return Name(_NAMINGS[naming], original(known_as))
