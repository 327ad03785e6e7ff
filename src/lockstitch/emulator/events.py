"""An event, ready for any transport."""

from typing import NamedTuple


class Event(NamedTuple):
    """Its name, its number in the stream, its JSON."""

    name: str
    number: int
    data: bytes
