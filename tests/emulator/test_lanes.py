"""Lanes without a connection: names, limits, and what a connection remembers."""

import pytest

from lockstitch.emulator.limits import MOST_IN_FLIGHT_RESPONSES, MOST_LANES
from lockstitch.emulator.refusals import Refused
from lockstitch.emulator.responses.context import Context
from lockstitch.emulator.responses.lanes import UNNAMED, Lanes


class Ended:
    """As much of a run as a lane looks at."""

    def __init__(self, id, after):
        self.id = id
        self.after = after


def refused(lanes, name):
    with pytest.raises(Refused) as problem:
        lanes.enter(name)
    return problem.value.rule


@pytest.mark.parametrize("name", ["", "a b", "x" * 257, 3, "a\n", ["a"]])
def test_a_wrong_name_is_refused_and_takes_no_place(name):
    lanes = Lanes()
    assert refused(lanes, name) == "wrong-lane-name"
    for number in range(MOST_IN_FLIGHT_RESPONSES):
        lanes.enter(f"lane-{number}")


@pytest.mark.parametrize("name", ["a", "A_b.c-9", "x" * 256])
def test_a_right_name_is_a_lane_and_no_name_is_the_unnamed_one(name):
    lanes = Lanes()
    assert lanes.enter(name) == name
    assert lanes.enter(None) == UNNAMED


def test_so_many_are_in_flight_until_one_leaves():
    lanes = Lanes()
    for _ in range(MOST_IN_FLIGHT_RESPONSES):
        lanes.enter("a")
    assert refused(lanes, "a") == "too-many-in-flight"
    lanes.leave()
    assert lanes.enter("a") == "a"


def test_so_many_names_are_used_by_one_connection_and_old_ones_can_be_used_again():
    lanes = Lanes()
    for number in range(MOST_LANES):
        lanes.enter(f"lane-{number}")
        lanes.leave()
    assert refused(lanes, "one-more") == "too-many-lanes"
    assert lanes.enter("lane-0") == "lane-0"
    assert lanes.enter(None) == UNNAMED


def test_the_newest_response_of_each_lane_is_remembered():
    lanes, first, second, other = Lanes(), Context(), Context(), Context()
    lanes.keep("a", Ended("resp_1", first))
    lanes.keep("b", Ended("resp_9", other))
    lanes.keep("a", Ended("resp_2", second))
    assert lanes.context("resp_1") is None
    assert lanes.context("resp_2") is second
    assert lanes.context("resp_9") is other
    lanes.keep("a", Ended("resp_3", None))
    assert lanes.context("resp_2") is second


def test_a_failed_request_drops_its_parent_on_its_own_lane_alone():
    lanes = Lanes()
    lanes.keep("a", Ended("resp_1", Context()))
    lanes.evict("b", "resp_1")
    lanes.evict("a", "resp_0")
    assert lanes.context("resp_1") is not None
    lanes.evict("a", "resp_1")
    assert lanes.context("resp_1") is None
