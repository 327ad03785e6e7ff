"""Faults are read from words, strike the requests they name, and are spent."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.emulator import UnknownFault
from lockstitch.emulator.faults import FAULTS, Faults, parse, struck
from lockstitch.emulator.limits import MOST_FAULTS


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_can_be_asked_for_by_its_name_alone(name):
    fault = parse(name)
    assert fault.name == name
    assert fault.left == 1
    assert (fault.point is None) == (FAULTS[name].strikes != "event")


def test_a_fault_says_where_it_strikes():
    point = parse("cut after=response.output_item.done nth=2 how=reset").point
    assert point is not None
    assert (point.after, point.event, point.nth) == (True, "response.output_item.done", 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cutt", "There is no fault 'cutt'"),
        ("", "is not a fault"),
        ("cut 'open", "is not a fault"),
        ("cut how=slowly", "must be one of close, reset"),
        ("cut colour=red", "has no setting 'colour=red'"),
        ("cut how", "has no setting 'how'"),
        ("status after=x", "has no setting 'after=x'"),
        ("stall seconds=long", "must be a number"),
        ("stall seconds=-1", "between 0 and"),
        ("stall seconds=nan", "between 0 and"),
        ("cut times=0", "a positive number, or `always`"),
        ("cut before=a after=b", "before and after an event"),
        ("cut after=first-byte", "write after=0"),
        ("cut before=", "must be the name of an event"),
        ("cut before=-1", "must be the name of an event"),
        ("fail after=response.completed", "before its last"),
        ("incomplete after=end", "before its last"),
        ("error before=first-byte", "after its first event"),
        ("status 'retry_after=1\r\nX: y'", "must be printable"),
    ],
)
def test_a_mistake_is_told_with_what_can_be_written_instead(text, said):
    with pytest.raises(UnknownFault, match=said):
        parse(text)


@given(st.text(max_size=60))
def test_any_text_is_a_fault_or_a_mistake_and_never_a_crash(text):
    with contextlib.suppress(UnknownFault):
        parse(text)


def test_a_fault_is_spent_after_its_times():
    faults = Faults(["status times=2"])
    for _ in range(2):
        assert struck(faults.concerning("/v1/responses", ""), "status")
    assert not faults.concerning("/v1/responses", "")
    assert not faults.unstruck()


def test_a_fault_that_is_always_there_is_never_spent():
    faults = Faults(["status times=always"])
    for _ in range(50):
        assert struck(faults.concerning("/v1/responses", ""), "status")


def test_a_fault_strikes_the_request_it_names_and_no_other():
    faults = Faults(["status request=2 path=/v1/resp model=a"])
    assert not faults.concerning("/v1/responses", "a")
    assert not faults.concerning("/v1/responses", "b")
    assert not faults.concerning("/v1/models", "a")
    assert faults.concerning("/v1/responses", "a")
    assert not faults.concerning("/v1/responses", "a")


def test_faults_are_armed_all_or_none():
    faults = Faults()
    with pytest.raises(UnknownFault):
        faults.arm_all(["cut", "nothing"])
    assert not faults.all()
    with pytest.raises(UnknownFault, match="Clear them first"):
        faults.arm_all(["cut"] * (MOST_FAULTS + 1))
    assert not faults.all()
