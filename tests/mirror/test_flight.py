"""What becomes of edits: acknowledged, refused, or in doubt until somebody asks."""

from __future__ import annotations

import pytest

from lockstitch.mirror import Retrieve, Standing, summarised
from lockstitch.mirror import flight as flights
from tests.mirror.building import session_with
from tests.mirror.provider import Ids, call, message, output


def doubtful(lost=True):
    """A create that reached the provider or did not, and no answer."""
    session = session_with("a")
    target = [message("a", "a"), message("n", "n"), message("m", "m")]
    plan = session.mirror.plan(target[:2], base=session.mirror.snapshot(), new_id=session.new_id)
    session.mirror.commit(plan)
    if lost:
        list(session.mirror.due(at=0))
    else:
        session.send()
    session.provider.outbox.clear()
    assert [edit.item_id for edit in session.mirror.expire(sent_before=5)] == ["n"]
    return session, target


@pytest.mark.parametrize("lost", [True, False])
def test_a_create_in_doubt_is_asked_about_and_not_repeated(lost):
    session, target = doubtful(lost)
    plan = session.sync(target)
    assert [type(edit) for edit in plan.edits] == [Retrieve]
    assert plan.waiting == ("n", "m")
    session.sync(target)
    assert session.ids() == ["a", "n", "m"]
    assert session.provider.created.count("n") == 1


def test_an_answer_that_comes_late_resolves_the_doubt():
    session = session_with("a")
    plan = session.mirror.plan([], base=session.mirror.snapshot(), new_id=Ids())
    session.mirror.commit(plan)
    session.send()
    session.mirror.expire(sent_before=5)
    assert session.mirror.standing(plan.edits[0].event_id) is Standing.IN_DOUBT
    session.drain()
    assert session.mirror.standing(plan.edits[0].event_id) is Standing.ACKNOWLEDGED
    assert session.mirror.idle


def test_a_delete_of_what_is_gone_is_done():
    session = session_with("a")
    session.mirror.commit(session.mirror.plan([], base=session.mirror.snapshot(), new_id=Ids()))
    session.provider.places.clear()
    session.drain()
    assert session.ids() == []
    assert session.mirror.idle


def test_what_is_on_its_way_is_not_created_again():
    session = session_with("a")
    target = [message("a", "a"), message("n", "n")]
    base = session.mirror.snapshot()
    session.mirror.commit(session.mirror.plan(target, base=base, new_id=session.new_id))
    more = [*target, message("m", "m")]
    plan = session.mirror.plan(more, base=base, new_id=session.new_id)
    assert [edit.item_id for edit in plan.edits] == ["m"]
    assert plan.edits[0].previous_item_id == "n"
    session.mirror.commit(plan)
    session.drain()
    assert session.ids() == ["a", "n", "m"]


def test_an_edit_that_ended_long_ago_is_forgotten(monkeypatch):
    monkeypatch.setattr(flights, "MOST_ENDED_EDITS_REMEMBERED", 3)
    session = session_with("a")
    events = []
    for number in range(5):
        plan = session.sync([*session.mirror.items, message(f"n{number}", "n")])
        events += [edit.event_id for edit in plan.edits]
    standings = [session.mirror.standing(event) for event in events]
    assert standings == [None, None, *[Standing.ACKNOWLEDGED] * 3]
    flight = session.mirror._context.flight
    assert len(flight._by_event) == 3


def test_nothing_is_left_of_a_plan_that_was_carried_out_but_how_it_ended():
    session = session_with("a", "b", "c", "d")
    summary = summarised(session.mirror.items, message("s", "in short"), fraction=0.5)
    session.sync([*summary, call("f", "c1"), output("o", "c1")])
    flight = session.mirror._context.flight
    for kept in (
        flight._creates,
        flight._deletes,
        flight._retrieves,
        flight._calls,
        flight._outputs,
        flight._ready,
        flight._waiting,
        flight._groups,
        flight._sent,
        flight._doubtful,
    ):
        assert not kept


def test_a_call_that_is_in_doubt_keeps_its_output_waiting():
    session = session_with()
    mirror = session.mirror
    pair = [call("f", "c1"), output("o", "c1")]
    mirror.commit(mirror.plan(pair[:1], base=mirror.snapshot(), new_id=session.new_id))
    list(mirror.due(at=0))
    # Sent: the output may follow once the call is acknowledged. In doubt: it waits.
    plan = mirror.plan(pair, base=mirror.snapshot(), new_id=session.new_id)
    assert [edit.item_id for edit in plan.edits] == ["o"]
    assert plan.edits[0].needs == mirror._context.flight.calling("c1").edit.event_id
    mirror.expire(sent_before=1)
    plan = mirror.plan(pair, base=mirror.snapshot(), new_id=session.new_id)
    assert [type(edit) for edit in plan.edits] == [Retrieve]
    assert set(plan.waiting) == {"f", "o"}


def test_an_answer_to_a_question_that_was_asked_before_tells_nothing():
    session = session_with("a", links=False)
    mirror = session.mirror

    def commit(target):
        mirror.commit(mirror.plan(target, base=mirror.snapshot(), new_id=session.new_id))

    target = [message("a", "a"), message("n", "n")]
    commit(target)
    session.send()
    mirror.expire(sent_before=1)
    commit(target)  # asks whether `n` is there
    session.hear(2)
    commit(target[:1])  # it is; now it shall go
    assert len(session.send()) == 2
    mirror.expire(sent_before=1)
    assert session.hear()[0]["type"] == "conversation.item.retrieved"  # from before its deletion
    assert not mirror.idle
    session.drain()
    assert session.ids() == ["a"]
    assert mirror.idle


def test_an_answer_that_comes_late_is_to_the_question_that_was_asked_first():
    session = session_with("a", links=False)
    mirror = session.mirror

    def commit(target):
        mirror.commit(mirror.plan(target, base=mirror.snapshot(), new_id=session.new_id))

    target = [message("a", "a"), message("n", "n")]
    commit(target)
    session.send()
    mirror.expire(sent_before=1)
    commit(target)  # asks whether `n` is there
    session.hear(2)
    commit(target[:1])  # it is; now it shall go
    session.send()
    mirror.expire(sent_before=1)
    commit(target[:1])  # asks again
    (again,) = session.send()
    assert isinstance(again, Retrieve)
    session.hear()  # the answer to the first question
    assert mirror.standing(again.event_id) is Standing.SENT
    session.drain()
    assert session.ids() == ["a"]
    assert mirror.idle
    assert not mirror._context.flight._asked
