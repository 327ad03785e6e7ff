"""Every case there is, by its letter. A new case is a file of its own and a line here."""

from __future__ import annotations

from typing import Final

from lockstitch.demo import address_reused, cut_stream, deleted_in_flight, unsafe_retry
from lockstitch.demo.playing import Case

CASES: Final[dict[str, Case]] = {
    case.letter: case
    for case in (
        address_reused.CASE,
        deleted_in_flight.CASE,
        unsafe_retry.CASE,
        cut_stream.CASE,
    )
}
