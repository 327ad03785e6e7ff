"""Which edits a plan has, and in which order: safe whichever of them is refused."""

from __future__ import annotations

import pytest

from lockstitch.mirror import Kept, Standing, Unplaceable, Why, WhyNot
from tests.mirror.building import in_flight, kinds, session_with
from tests.mirror.provider import Ids, call, message, output


@pytest.mark.parametrize("refused", [1, 2, 3])
def test_a_create_that_is_refused_does_not_break_the_rest(refused):
    session = session_with("a", "z")
    target = [message(name, name) for name in ("a", "n1", "n2", "n3", "z")]
    plan = session.mirror.plan(target, base=session.mirror.snapshot(), new_id=Ids())
    session.mirror.commit(plan)
    for number, edit in enumerate(session.mirror.due(at=0), 1):
        session.provider.refuse_next = int(number == refused)
        session.provider.receive(edit.client_event())
    session.drain()
    assert len(session.ids()) == 4
    session.new_id.prefix = "later"
    session.sync(target)
    assert session.ids() == ["a", "n1", "n2", "n3", "z"]


def test_a_changed_item_is_replaced_in_place_under_a_new_id():
    session = session_with("a", "b", "c")
    target = [message("a", "a"), message("b", "changed"), message("c", "c")]
    plan = session.sync(target)
    assert kinds(plan) == [("Create", "new_item_1"), ("Delete", "b")]
    assert session.ids() == ["a", "new_item_1", "c"]
    assert session.mirror.get("b")["content"][0]["text"] == "changed"
    # The caller may go on with the id that it knows.
    assert not session.sync(target).edits


def test_nothing_is_deleted_before_what_takes_its_place_is_there():
    session = session_with("a", "b")
    session.provider.refuse_next = 1
    session.sync([message("a", "a"), message("b", "changed")])
    assert session.ids() == ["a", "b"]
    session.sync([message("a", "a"), message("b", "changed")])
    assert session.ids()[0] == "a"
    assert session.mirror.items[1]["content"][0]["text"] == "changed"


def test_a_call_in_flight_is_kept():
    session = in_flight()
    plan = session.sync([message("b", "b")])
    assert plan.kept == (Kept("f", Why.IN_FLIGHT),)
    assert session.ids() == ["f", "b"]


def test_an_output_goes_right_behind_its_call():
    session = in_flight()
    session.sync([*session.mirror.items, output("o", "c1")])
    assert session.ids() == ["a", "f", "o", "b"]


def test_an_output_stays_behind_its_call_wherever_the_target_has_it():
    session = in_flight()
    target = [*session.mirror.items, output("o", "c1")]
    session.sync(target)
    assert not session.sync(target).edits
    assert session.ids() == ["a", "f", "o", "b"]
    first = [target[3], *target[:3]]
    assert not session.sync(first).edits
    # What follows it in the target follows what stood before it there.
    session.sync([*target, message("n", "n")])
    assert session.ids() == ["a", "f", "o", "b", "n"]


def test_what_is_new_behind_an_output_is_behind_it_and_before_what_follows():
    session = in_flight()
    session.sync([*session.mirror.items, output("o", "c1")])
    a, f, o, b = session.mirror.items
    session.sync([message("x", "x"), a, f, o, message("n", "n"), b])
    assert session.ids() == ["x", "a", "f", "o", "n", "b"]


def test_what_is_new_is_before_what_follows_though_the_output_before_it_is_further_on():
    session = in_flight()
    session.provider.insert(output("o", "c1"), "b")
    session.provider.tell_added(output("o", "c1"), "b")
    session.drain()
    assert session.ids() == ["a", "f", "b", "o"]
    a, f, b, o = session.mirror.items
    session.sync([message("x", "x"), a, f, o, message("n", "n"), b])
    assert session.ids() == ["x", "a", "f", "n", "b", "o"]


def test_a_call_that_moves_takes_its_output_along():
    session = in_flight()
    session.sync([*session.mirror.items, output("o", "c1"), message("z", "z")])
    a, f, o, b, z = session.mirror.items
    plan = session.sync([a, b, z, f, o])
    assert not plan.kept
    assert [one.get("call_id") for one in session.mirror.items] == [None, None, None, "c1", "c1"]
    assert session.mirror.items[-1]["output"] == o["output"]
    assert {"a", "b", "z"} <= set(session.ids())


def test_an_output_goes_where_its_call_goes():
    session = in_flight()
    session.sync([*session.mirror.items, output("o", "c1")])
    a, f, o, b = session.mirror.items
    session.sync([o, a, b, f])
    kinds = [one["type"] for one in session.mirror.items]
    assert kinds == ["message", "message", "function_call", "function_call_output"]
    assert session.mirror.items == session.provider.items


def test_a_pair_is_deleted_whole_or_not_at_all():
    session = in_flight()
    session.sync([*session.mirror.items, output("o", "c1")])
    keeping_half = [item for item in session.mirror.items if item["id"] != "f"]
    assert session.sync(keeping_half).kept == (Kept("f", Why.HALF),)
    assert session.ids() == ["a", "f", "o", "b"]
    plan = session.sync([message("b", "b")])
    assert [edit.item_id for edit in plan.edits] == ["a", "f", "o"]
    assert session.ids() == ["b"]


def test_a_pair_of_which_the_call_cannot_be_deleted_stays_whole():
    session = in_flight()
    session.sync([*session.mirror.items, output("o", "c1")])
    target = [item for item in session.mirror.items if item["id"] not in {"f", "o"}]
    session.provider.refuse_next = 1
    session.sync(target)
    assert session.ids() == ["a", "f", "o", "b"]


def test_an_output_for_a_call_that_is_gone_is_reported_and_not_sent():
    session = session_with("a")
    plan = session.sync([message("a", "a"), output("o", "c1")])
    assert not plan.edits
    assert plan.unplaceable == (Unplaceable("o", "c1", WhyNot.NO_CALL),)


def test_a_second_output_is_reported_and_not_sent():
    session = in_flight()
    session.sync([*session.mirror.items, output("o", "c1")])
    plan = session.sync([*session.mirror.items, output("o2", "c1")])
    assert plan.unplaceable == (Unplaceable("o2", "c1", WhyNot.ANSWERED),)


def test_of_two_outputs_for_a_call_that_is_there_the_second_is_reported_and_not_sent():
    session = in_flight()
    plan = session.sync([*session.mirror.items, output("o", "c1"), output("o2", "c1")])
    assert plan.unplaceable == (Unplaceable("o2", "c1", WhyNot.ANSWERED),)
    assert session.ids() == ["a", "f", "o", "b"]


def test_of_two_outputs_for_a_call_on_its_way_the_second_is_reported_and_not_sent():
    session = session_with()
    base = session.mirror.snapshot()
    session.mirror.commit(session.mirror.plan([call("f", "c1")], base=base, new_id=session.new_id))
    plan = session.sync([call("f", "c1"), output("o", "c1"), output("o2", "c1")])
    assert plan.unplaceable == (Unplaceable("o2", "c1", WhyNot.ANSWERED),)
    assert session.ids() == ["f", "o"]


def test_two_outputs_for_two_calls_of_one_key_each_go_behind_their_own():
    session = session_with("a")
    for item in (call("f", "c1"), call("g", "c1")):
        session.provider.hears(item)
    session.drain()
    plan = session.sync([*session.mirror.items, output("o", "c1"), output("p", "c1")])
    assert not plan.unplaceable
    assert session.ids() == ["a", "f", "o", "g", "p"]


def test_an_output_takes_the_place_of_one_that_the_caller_gave_up():
    session = in_flight()
    session.sync([*session.mirror.items, output("o", "c1")])
    target = [item for item in session.mirror.items if item["id"] != "o"]
    session.sync([*target, output("o2", "c1", "other")])
    assert session.ids() == ["a", "f", "o2", "b"]


def test_a_copy_that_was_left_over_and_is_an_output_given_up_goes_once():
    session = session_with()
    session.provider.hears(call("f", "c1"))
    session.drain()
    session.sync([call("f", "c1"), output("o", "c1")])
    mirror = session.mirror
    changed = [call("f", "c1"), output("o", "c1", "changed")]
    mirror.commit(mirror.plan(changed, base=mirror.snapshot(), new_id=session.new_id))
    (create,) = session.send()
    session.hear()
    session.provider.refuse_next = 1  # the output that the copy takes the place of cannot go
    session.drain()
    session.provider.hears(call("g", "c1"))
    session.drain()
    assert session.ids() == ["f", "o", create.item_id, "g"]
    plan = session.sync(
        [
            call("f", "c1"),
            output("o", "c1"),
            message("n", "n"),
            call("g", "c1"),
            output("p", "c1", "other"),
        ]
    )
    assert kinds(plan).count(("Delete", create.item_id)) == 1
    assert mirror.idle


def test_an_output_is_sent_once_its_call_is_acknowledged():
    session = session_with()
    plan = session.mirror.plan(
        [call("f", "c1"), output("o", "c1")], base=session.mirror.snapshot(), new_id=Ids()
    )
    session.mirror.commit(plan)
    assert [edit.item_id for edit in session.send()] == ["f"]
    session.hear(2)
    assert [edit.item_id for edit in session.send()] == ["o"]


def test_an_output_whose_call_is_refused_is_dropped():
    session = session_with()
    session.provider.refuse_next = 1
    plan = session.sync([call("f", "c1"), output("o", "c1")])
    assert [session.mirror.standing(edit.event_id) for edit in plan.edits] == [
        Standing.REJECTED,
        Standing.DROPPED,
    ]
    assert session.ids() == []
