"""The n-th call and the n-th output of one key are each other's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lockstitch.mirror.chain import Record
from lockstitch.mirror.pairs import Pairs
from lockstitch.mirror.saying import read
from tests.mirror.provider import call, message, output


def record(wire):
    return Record(wire["id"], read(wire), wire, 0)


def test_a_call_and_its_output_know_each_other():
    pairs, one, other = Pairs(), record(call("f", "c1")), record(output("o", "c1"))
    pairs.enter(one)
    assert one.partner is None
    pairs.enter(other)
    assert one.partner is other
    assert other.partner is one
    pairs.leave(other)
    assert one.partner is other.partner is None


def test_messages_have_no_partner():
    pairs, one = Pairs(), record(message("a", "a"))
    pairs.enter(one)
    pairs.leave(one)
    assert one.partner is None


def test_an_output_answers_the_first_call_that_waits():
    pairs = Pairs()
    calls = [record(call(name, "c1")) for name in "fg"]
    for one in calls:
        pairs.enter(one)
    assert pairs.call_for("c1") is calls[0]
    pairs.enter(record(output("o", "c1")))
    assert pairs.call_for("c1") is calls[1]
    assert pairs.call_for("c2") is None


@given(st.lists(st.tuples(st.sampled_from("co"), st.integers(0, 5)), max_size=30))
def test_partners_are_each_others_in_order_whatever_comes_and_goes(steps):
    pairs, there = Pairs(), {}
    for kind, number in steps:
        name = f"{kind}{number}"
        if name in there:
            pairs.leave(there.pop(name))
        else:
            there[name] = record(call(name, "k") if kind == "c" else output(name, "k"))
            pairs.enter(there[name])
    calls = [one for name, one in there.items() if name[0] == "c"]
    outputs = [one for name, one in there.items() if name[0] == "o"]
    joined = list(zip(calls, outputs, strict=False))
    for one, other in joined:
        assert one.partner is other
        assert other.partner is one
    for alone in (*calls[len(joined) :], *outputs[len(joined) :]):
        assert alone.partner is None
