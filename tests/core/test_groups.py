"""Calls that wait, and the groups they were made in."""

from __future__ import annotations

import pytest

from lockstitch.core.families import CUSTOM, FUNCTION
from lockstitch.core.groups import Group, OpenCall, Queue
from lockstitch.core.items import Item, Part, Place
from lockstitch.core.outcomes import UNKNOWN_TEXT


def waiting(at: int = 3, slot: int = 0) -> OpenCall:
    return OpenCall(Item(Part.CALL, FUNCTION, "call_a", name="book", slot=slot), at, Group())


def test_a_call_knows_its_place_and_where_its_answer_stands():
    call = waiting(at=3, slot=2)
    assert call.place == Place(3, 2)
    assert call.answer is None
    call.answer_at, call.answer_slot = 5, 1
    assert call.answer == Place(5, 1)


@pytest.mark.parametrize(
    ("says", "is_one"),
    [(None, False), ("21 degrees", False), ("aborted", True), (UNKNOWN_TEXT, True)],
)
def test_a_call_knows_whether_its_output_only_stands_in_for_one(says, is_one):
    call = waiting()
    call.answer_note = says
    assert call.placeholder is is_one


def test_two_calls_are_never_the_same_however_alike_they_are():
    assert waiting() != waiting()


def test_its_repr_says_which_call_it_is():
    assert repr(waiting()) == "<OpenCall call_a (book) at 3>"


def test_a_queue_gives_its_calls_in_order_and_the_first_of_each_family_at_once():
    made = [
        OpenCall(Item(Part.CALL, family, key, alias="call_a"), at, Group())
        for at, (family, key) in enumerate(
            [(FUNCTION, "call_a"), (CUSTOM, "call_a"), (FUNCTION, "call_a"), (FUNCTION, "other")]
        )
    ]
    queue = Queue("call_a")
    for call in made:
        queue.add(call)
    assert [call.at for call in queue.heads()] == [0, 1, 3]
    queue.remove(made[0])
    queue.remove(made[0])
    assert [queue.take_first().at for _ in range(3)] == [1, 2, 3]
    assert not queue
