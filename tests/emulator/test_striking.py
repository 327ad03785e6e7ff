"""What faults do to a stream, without any stream: events in, steps out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import parse
from lockstitch.emulator.striking import Close, Cut, Finish, Send, Strikes, Struck, Wait
from lockstitch.emulator.wire.delivery import part_of

NAMES = ("response.created", "response.output_text.delta", "response.output_item.done")


def event(name, number=0, data=None):
    return Event(name, number, name.encode() if data is None else data)


def steps_of(*faults, names=("a", "b", "c", "response.completed")):
    """The steps of a stream of these events, up to the one that ends it."""
    strikes = Strikes([parse(fault) for fault in faults])
    steps = strikes.opening()
    for number, name in enumerate(names):
        if steps and isinstance(steps[-1], Cut | Close | Finish):
            return steps
        steps += strikes.passing(event(name, number))
    return steps + strikes.closing()


def sent(steps):
    return [step.event.data for step in steps if isinstance(step, Send)]


def test_a_cut_before_an_event_keeps_that_event_from_the_client():
    steps = steps_of("cut before=b")
    assert sent(steps) == [b"a"]
    assert isinstance(steps[-1], Cut)


def test_a_cut_after_an_event_comes_when_the_event_is_out():
    steps = steps_of("cut after=b how=reset commit=yes")
    assert sent(steps) == [b"a", b"b"]
    assert isinstance(steps[-1], Cut)
    assert (steps[-1].how, steps[-1].commit) == ("reset", True)


def test_an_event_can_be_named_by_its_number():
    assert sent(steps_of("cut before=2")) == [b"a", b"b"]


def test_the_nth_event_of_a_name_is_counted_in_the_stream():
    steps = steps_of("cut before=a nth=3", names=("a", "b", "a", "a"))
    assert sent(steps) == [b"a", b"b", b"a"]


def test_before_the_end_is_before_whatever_ends_the_response():
    assert sent(steps_of("cut before=end")) == [b"a", b"b", b"c"]
    assert sent(steps_of("cut before=end", names=("a", "response.failed"))) == [b"a"]


def test_half_a_frame_is_the_first_half_of_the_event_it_strikes():
    steps = steps_of("cut before=response.completed how=half-frame")
    assert sent(steps) == [b"a", b"b", b"c"]
    assert steps[-1].event.name == "response.completed"
    assert part_of("half-frame", b"\x81\x04abcd", b"abcd") == b"\x81\x04a"


def test_half_of_what_comes_after_an_event_is_half_of_the_next_one():
    steps = steps_of("cut after=a how=half-frame")
    assert sent(steps) == [b"a"]
    assert steps[-1].event.name == "b"
    last = steps_of("cut after=response.completed how=half-frame")
    assert isinstance(last[-1], Cut)
    assert last[-1].event is None


def test_half_a_character_breaks_off_inside_a_character():
    payload = "x é y".encode()
    assert part_of("half-character", b"\x81\xc5" + payload, payload) == b"\x81\xc5x \xc3"
    ascii_only = part_of("half-character", b"data: only ascii", b"only ascii")
    with pytest.raises(UnicodeDecodeError) as broken:
        ascii_only.decode()
    assert broken.value.end == len(ascii_only)


def test_a_duplicate_is_sent_twice_and_a_late_event_is_overtaken():
    assert sent(steps_of("duplicate at=b")) == [b"a", b"b", b"b", b"c", b"response.completed"]
    assert sent(steps_of("late at=a by=2")) == [b"b", b"c", b"a", b"response.completed"]
    assert sent(steps_of("late at=c by=9"))[-1] == b"c"


def test_a_drip_is_for_every_event_from_its_point_on():
    steps = steps_of("drip bytes=2 seconds=0.5 before=c")
    dripping = {step.event.name: step.drip is not None for step in steps if isinstance(step, Send)}
    assert dripping == {"a": False, "b": False, "c": True, "response.completed": True}


def test_every_fault_that_strikes_says_so_once():
    faults = ("stall after=a", "drip before=b", "duplicate at=b", "late at=c")
    steps = steps_of(*faults)
    assert [step.fault.text for step in steps if isinstance(step, Struck)] == [
        "stall after=a",
        "drip before=b",
        "duplicate at=b",
        "late at=c",
    ]


def test_a_response_that_has_said_its_end_cannot_end_in_another_way():
    steps = steps_of("fail after=3")
    assert sent(steps)[-1] == b"response.completed"
    assert not any(isinstance(step, Finish) for step in steps)


def test_a_stall_waits_and_goes_on():
    steps = steps_of("stall seconds=7 after=a")
    assert [step for step in steps if isinstance(step, Wait)] == [Wait(7.0)]
    assert len(sent(steps)) == 4


def test_a_response_is_ended_early_once():
    steps = steps_of("fail before=b", "incomplete before=b")
    assert isinstance(steps[-1], Finish)
    assert steps[-1].fault.name == "fail"


def test_two_faults_of_one_stream_strike_one_after_the_other():
    steps = steps_of("stall seconds=1 before=first-byte", "duplicate at=a", "cut after=c")
    assert isinstance(steps[1], Wait)
    assert sent(steps) == [b"a", b"a", b"b", b"c"]
    assert isinstance(steps[-1], Cut)


@given(
    names=st.lists(st.sampled_from([*NAMES, "response.completed"]), max_size=12),
    faults=st.lists(
        st.sampled_from(
            [
                "duplicate at=response.created",
                "late at=response.output_item.done by=2",
                "drip bytes=3 seconds=0",
                "stall seconds=1 after=1",
            ]
        ),
        max_size=4,
    ),
)
def test_faults_that_cut_nothing_lose_nothing(names, faults):
    events = [event(name, number) for number, name in enumerate(names)]
    strikes = Strikes([parse(fault) for fault in faults])
    steps = strikes.opening()
    for each in events:
        steps += strikes.passing(each)
    told = [step.event for step in steps + strikes.closing() if isinstance(step, Send)]
    assert set(events) <= set(told)
