"""Records as columns of an array each, for a statement that takes many at once; and back again.

One statement with arrays costs one round trip and one plan, however many records there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockstitch.core.records import Name, Naming, Record
from lockstitch.store.bodies import LARGE_BODY_BYTES, digest
from lockstitch.store.postgres.text import kept, original

_NAMINGS = {naming.value: naming for naming in Naming}


class Columns:
    """Records, their names and their large bodies, as the columns of three tables.

    ``place`` says which conversation of a group, from 1, a row belongs to."""

    __slots__ = ("bodies", "names", "records")

    def __init__(self) -> None:
        self.records: tuple[list[Any], ...] = ([], [], [], [], [], [])
        """place, seq, at, payload, body, digest"""
        self.names: tuple[list[Any], ...] = ([], [], [], [], [])
        """place, seq, place in the record, naming, id"""
        self.bodies: tuple[list[Any], ...] = ([], [], [])
        """place, digest, body"""

    @property
    def have_more_than_records(self) -> bool:
        return bool(self.names[0] or self.bodies[0])

    def of_records(self) -> list[list[Any]]:
        """The columns of records. The driver looks at every element: what has none is left out."""
        return [column if column.count(None) < len(column) else [] for column in self.records]

    def add(self, place: int, records: Sequence[Record]) -> None:
        places, seqs, moments, payloads, bodies, digests = self.records
        for record in records:
            places.append(place)
            seqs.append(record.seq)
            moments.append(record.at)
            payloads.append(record.payload)
            body = record.body
            if body is not None and len(body) >= LARGE_BODY_BYTES:
                found_by = digest(body)
                bodies.append(None)
                digests.append(found_by)
                for column, value in zip(self.bodies, (place, found_by, body), strict=True):
                    column.append(value)
            else:
                bodies.append(body)
                digests.append(None)
            if record.names:
                self._add_names(place, record)

    def _add_names(self, place: int, record: Record) -> None:
        places, seqs, positions, namings, ids = self.names
        for position, name in enumerate(record.names):
            places.append(place)
            seqs.append(record.seq)
            positions.append(position)
            namings.append(name.naming.value)
            ids.append(kept(name.id))


def record_of(row: Mapping[str, Any]) -> Record:
    """The record in a row of `records_page`."""
    return Record(
        row["seq"], row["payload"], row["body"], tuple(map(_name, row["names"])), row["at"]
    )


def _name(written: str) -> Name:
    naming, _, known_as = written.partition(":")
    return Name(_NAMINGS[naming], original(known_as))
