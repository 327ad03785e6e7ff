"""Cuts: which half of a pair is told to have been cut away."""

from __future__ import annotations

from lockstitch.core.families import FUNCTION
from lockstitch.core.items import Item, Part, Place
from lockstitch.core.pairing import Pairing
from lockstitch.sessions.cutting import DeadRange, DeadRanges, bury, replaced_at, take_back

CALL = Item(Part.CALL, FUNCTION, "call_a")
OUTPUT = Item(Part.OUTPUT, FUNCTION, "call_a")
ROLLBACK = DeadRange(Place(3), 8)


def test_lines_of_a_range_are_dead_and_its_end_is_not():
    ranges = DeadRanges([ROLLBACK, DeadRange(Place(9, 2), 12)])
    dead = [line for line in range(1, 14) if ranges.at(line) is not None]
    assert dead == [3, 4, 5, 6, 7, 9, 10, 11]
    assert ranges.hold(Place(9, 2))
    assert not ranges.hold(Place(9, 1))


def test_a_larger_cut_swallows_the_ones_it_covers():
    ranges = bury(ROLLBACK, bury(DeadRange(Place(5), 6), []))
    assert ranges == [ROLLBACK]


def test_calls_that_a_compaction_cuts_off_are_remembered():
    pairing = Pairing()
    pairing.add(CALL, 1)
    assert replaced_at(pairing, 4)["call_a"].at == 4


def test_an_output_that_was_taken_back_leaves_its_call_half():
    pairing = Pairing()
    pairing.add(CALL, 1)
    take_back(pairing, OUTPUT, ROLLBACK, b"line", 5)
    (finding,) = pairing.finish()
    assert (finding.code, finding.place.at, finding.other) == ("LS011", 1, Place(8))


def test_a_pair_that_was_taken_back_whole_leaves_nothing():
    pairing = Pairing()
    take_back(pairing, CALL, ROLLBACK, b"", 4)
    take_back(pairing, OUTPUT, ROLLBACK, b"", 5)
    assert pairing.finish() == []
    assert pairing.cut == {}
