"""What becomes of each frame of a realtime connection, without a socket."""

from __future__ import annotations

import gc
import json
import random
import sys
from collections import Counter, deque
from pathlib import Path
from types import FunctionType, MethodType

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from lockstitch.emulator import reply
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.model.replies import call as call_draft
from lockstitch.emulator.realtime.session import RealtimeSession
from lockstitch.gateway.deciding import realtime, realtime_calls
from lockstitch.gateway.deciding.realtime import (
    MOST_HELD,
    MOST_HELD_BYTES,
    PASSING,
    CarryOut,
    DeleteOutput,
    Drop,
    Hold,
    LeaveOut,
    Pass,
    RealtimeConversation,
    Redirect,
    Refuse,
    Rewrite,
)
from lockstitch.gateway.deciding.realtime_frames import LONGEST_ID_CHARACTERS, WATCHED
from tests.generated import examples

HELD_SECONDS = 10.0


def conversation(*, carries_out=False):
    return RealtimeConversation(carries_out=carries_out, held_seconds=HELD_SECONDS)


@pytest.fixture
def dropping():
    return conversation()


@pytest.fixture
def carrying():
    return conversation(carries_out=True)


def encoded(event, *, spaced=False):
    return json.dumps(event, separators=(", ", ": ") if spaced else (",", ":")).encode()


# --- what a provider says ------------------------------------------------------------------------


def message(id):
    return {"id": id, "type": "message", "status": "completed", "role": "user", "content": []}


def call(id="f", call_id="c", status="completed"):
    return {"id": id, "type": "function_call", "status": status, "call_id": call_id, "name": "n"}


def output(id="o", call_id="c"):
    return {"id": id, "type": "function_call_output", "call_id": call_id, "output": "x"}


def added(item, previous=None):
    return encoded({"type": "conversation.item.added", "previous_item_id": previous, "item": item})


def deleted(item_id):
    return encoded({"type": "conversation.item.deleted", "item_id": item_id})


def refusal(event_id):
    return encoded({"type": "error", "error": {"code": "x", "event_id": event_id}})


def hears(conversation, *events):
    """Everything that follows, besides that the events pass."""
    steps = [step for event in events for step in conversation.from_upstream(event)]
    return [step for step in steps if not isinstance(step, Pass)]


# --- what a client says --------------------------------------------------------------------------


def delete(item_id="f", event_id="d"):
    return encoded({"type": "conversation.item.delete", "event_id": event_id, "item_id": item_id})


def create(item, event_id="k", **where):
    return encoded(
        {"type": "conversation.item.create", "event_id": event_id, **where, "item": item}
    )


def error_in(step):
    event = json.loads(step.answer)
    assert event["type"] == "error"
    return event["error"]


# --- deletes of calls in flight ------------------------------------------------------------------


@pytest.mark.parametrize("status", ["in_progress", "completed"])
def test_a_delete_of_a_call_in_flight_is_dropped_and_the_client_is_told_at_once(dropping, status):
    hears(dropping, added(call(status=status)))
    (step,) = dropping.from_client(delete(), 0.0)
    assert isinstance(step, Drop)
    error = error_in(step)
    assert (error["event_id"], error["code"]) == ("d", "item_delete_call_in_flight")
    assert "'f'" in error["message"]
    assert dropping.deadline is None


def test_it_is_held_until_the_output_is_acknowledged_and_goes_as_it_came(carrying):
    hears(carrying, added(call()))
    assert carrying.from_client(delete(), 5.0) == (Hold(),)
    assert carrying.deadline == 5.0 + HELD_SECONDS
    assert carrying.from_client(create(output()), 6.0) is PASSING
    assert hears(carrying, added(output(), "f")) == [CarryOut(delete())]
    assert carrying.deadline is None
    assert hears(carrying, added(message("m"), "o")) == []


def test_what_comes_behind_it_passes_by(carrying):
    hears(carrying, added(call()), added(message("m"), "f"))
    carrying.from_client(delete(), 0.0)
    assert carrying.from_client(delete("m"), 0.0) is PASSING
    assert carrying.from_client(create(message("n")), 0.0) is PASSING


def test_the_output_of_a_call_that_was_deleted_so_is_deleted_when_the_call_is_gone(carrying):
    hears(carrying, added(call()))
    carrying.from_client(delete(), 0.0)
    hears(carrying, added(output(), "f"))
    (step,) = hears(carrying, deleted("f"))
    assert isinstance(step, DeleteOutput)
    sent = json.loads(step.frame)
    assert (sent["type"], sent["item_id"]) == ("conversation.item.delete", "o")
    assert hears(carrying, deleted("o")) == []


def test_a_refusal_of_the_gateways_own_delete_is_left_out(carrying):
    hears(carrying, added(call()))
    carrying.from_client(delete(), 0.0)
    hears(carrying, added(output(), "f"))
    (step,) = hears(carrying, deleted("f"))
    own = json.loads(step.frame)["event_id"]
    assert carrying.from_upstream(refusal(own)) == (LeaveOut(),)
    assert carrying.from_upstream(refusal(own)) is PASSING


def test_an_output_stays_whose_call_could_not_be_deleted(carrying):
    hears(carrying, added(call()))
    carrying.from_client(delete(), 0.0)
    hears(carrying, added(output(), "f"))
    assert carrying.from_upstream(refusal("d")) is PASSING
    assert carrying.from_client(delete(), 0.0) is PASSING  # it asks again, for the call alone
    assert hears(carrying, deleted("f")) == []


def test_an_output_that_the_client_deleted_itself_is_not_deleted_again(carrying):
    hears(carrying, added(call()))
    carrying.from_client(delete(), 0.0)
    hears(carrying, added(output(), "f"))
    assert hears(carrying, deleted("o"), deleted("f")) == []


def test_a_call_that_is_cut_short_lets_its_delete_go(carrying):
    hears(carrying, added(call(status="in_progress")))
    carrying.from_client(delete(), 0.0)
    done = {"id": "r", "output": [call(status="incomplete")]}
    assert hears(carrying, encoded({"type": "response.done", "response": done})) == [
        CarryOut(delete())
    ]


def test_a_call_that_is_gone_lets_its_delete_go_so_that_the_provider_says_how_it_is(carrying):
    hears(carrying, added(call()))
    carrying.from_client(delete(), 0.0)
    assert hears(carrying, deleted("f")) == [CarryOut(delete())]


def test_a_delete_that_was_held_for_too_long_is_dropped(carrying):
    hears(carrying, added(call()), added(call("g", "c2"), "f"))
    carrying.from_client(delete("f", "d1"), 0.0)
    carrying.from_client(delete("g", "d2"), 1.0)
    assert carrying.expire(HELD_SECONDS - 0.1) == ()
    (step,) = carrying.expire(HELD_SECONDS)
    assert error_in(step)["event_id"] == "d1"
    assert carrying.deadline == HELD_SECONDS + 1.0
    assert hears(carrying, added(output(), "f")) == []
    assert hears(carrying, added(output("o2", "c2"), "g")) == [CarryOut(delete("g", "d2"))]


def test_only_so_many_deletes_are_held(carrying):
    hears(carrying, added(call()))
    for _ in range(MOST_HELD):
        assert carrying.from_client(delete(), 0.0) == (Hold(),)
    (step,) = carrying.from_client(delete(), 0.0)
    assert isinstance(step, Drop)
    assert hears(carrying, added(output(), "f")) == [CarryOut(delete())] * MOST_HELD


def test_only_so_many_bytes_of_deletes_are_held(carrying):
    hears(carrying, added(call()))
    large = delete() + b" " * MOST_HELD_BYTES
    (step,) = carrying.from_client(large, 0.0)
    assert isinstance(step, Drop)
    half = delete() + b" " * (MOST_HELD_BYTES // 2)
    assert carrying.from_client(half, 0.0) == (Hold(),)
    assert isinstance(carrying.from_client(half, 0.0)[0], Drop)
    carrying.expire(HELD_SECONDS)
    assert carrying.from_client(half, 0.0) == (Hold(),)


def test_a_call_that_was_answered_may_go_in_any_order_with_its_output(dropping):
    hears(dropping, added(call()), added(output(), "f"))
    assert dropping.from_client(delete("o"), 0.0) is PASSING
    hears(dropping, deleted("o"))
    assert dropping.from_client(delete("f"), 0.0) is PASSING


def test_what_was_never_seen_may_be_deleted(dropping):
    assert dropping.from_client(delete("elsewhere"), 0.0) is PASSING
    assert dropping.from_client(encoded({"type": "conversation.item.delete"}), 0.0) is PASSING
    retrieved = encoded({"type": "conversation.item.retrieved", "item": call("old")})
    assert dropping.from_upstream(retrieved) is PASSING
    assert dropping.from_client(delete("old"), 0.0) is PASSING


# --- outputs of calls that are gone --------------------------------------------------------------


def test_an_output_whose_call_was_deleted_is_refused_at_once(dropping):
    hears(dropping, added(call()), added(output(), "f"), deleted("f"), deleted("o"))
    (step,) = dropping.from_client(create(output("o2")), 0.0)
    assert isinstance(step, Refuse)
    error = error_in(step)
    assert (error["event_id"], error["code"]) == ("k", "invalid_tool_call_id")
    assert "'c'" in error["message"]


def test_an_output_whose_call_nobody_has_seen_passes(dropping):
    assert dropping.from_client(create(output()), 0.0) is PASSING
    assert dropping.from_client(create({"type": "function_call_output"}), 0.0) is PASSING


def test_an_output_behind_a_call_that_is_created_again_passes(dropping):
    hears(dropping, added(call()), added(output(), "f"), deleted("f"), deleted("o"))
    assert dropping.from_client(create(call("g")), 0.0) is PASSING
    assert dropping.from_client(create(output("o2")), 0.0) is PASSING


def test_an_output_behind_a_call_that_is_being_created_again_passes(dropping):
    hears(dropping, added(call()), added(output(), "f"), deleted("o"))
    assert dropping.from_client(delete("f"), 0.0) is PASSING
    assert dropping.from_client(create(call("g")), 0.0) is PASSING
    hears(dropping, deleted("f"))  # the call before it, heard only now
    assert dropping.from_client(create(output("o2")), 0.0) is PASSING
    hears(dropping, added(call("g")), added(output("o2"), "g"), deleted("o2"), deleted("g"))
    assert isinstance(dropping.from_client(create(output("o3")), 0.0)[0], Refuse)


# --- providers and clients that are not quite right ----------------------------------------------


@pytest.mark.parametrize("answered", [False, True])
def test_a_provider_may_give_one_event_id_to_all_events(dropping, answered):
    told = [added(call()), added(output(), "f")][: 1 + answered]
    hears(dropping, *(encoded({**json.loads(one), "event_id": "event_TODO"}) for one in told))
    (step,) = dropping.from_client(delete(), 0.0)
    assert isinstance(step, Pass if answered else Drop)


def test_half_a_character_in_an_output_leaves_no_call_in_flight(dropping):
    hears(dropping, added(call()), added({**output(), "output": "cut in two: \ud83d"}, "f"))
    assert dropping.from_client(delete(), 0.0) is PASSING


@pytest.mark.parametrize("odd", [{"item": 5}, {"event_id": 5}, {"x": "\ud83d"}])
def test_a_delete_with_something_odd_in_it_is_a_delete(dropping, odd):
    hears(dropping, added(call()))
    frame = {"type": "conversation.item.delete", "item_id": "f", **odd}
    assert isinstance(dropping.from_client(encoded(frame), 0.0)[0], Drop)


@pytest.mark.parametrize("odd", [b'"\xff":1', b'"\\ud800":1', b'"x":"\xff"', b'"x":"\\ud800"'])
def test_what_cannot_be_rewritten_passes_as_it_came(dropping, odd):
    hears(dropping, added(message("a")), added(message("b"), "a"), deleted("b"))
    event = added(message("n"), "b")[:-1] + b"," + odd + b"}"
    rest = [step for step in dropping.from_upstream(event) if not isinstance(step, Pass)]
    for step in rest:
        assert step == Rewrite(event.replace(b'"previous_item_id":"b"', b'"previous_item_id":"a"'))
    frame = create(message("n2"), previous_item_id="b")[:-1] + b"," + odd + b"}"
    for step in dropping.from_client(frame, 0.0):
        instead = frame.replace(b'"previous_item_id":"b"', b'"previous_item_id":"a"')
        assert step in (Pass(), Redirect(instead))


def test_a_second_output_takes_the_place_of_one_that_was_deleted_and_answers_no_other_call(
    dropping,
):
    hears(dropping, added(call("a")), added(output("o"), "a"), added(call("b"), "o"))
    hears(dropping, deleted("o"), added(output("o2"), "a"))
    assert isinstance(dropping.from_client(delete("b"), 0.0)[0], Drop)
    hears(dropping, added(output("o3"), "b"))
    assert dropping.from_client(delete("b"), 0.0) is PASSING


def test_a_call_whose_id_was_used_before_is_answered_also_where_the_older_output_is_gone(dropping):
    hears(dropping, added(call("a")), added(output("o"), "a"), added(call("b"), "o"))
    hears(dropping, deleted("o"), added(output("o2"), "b"))
    assert dropping.from_client(delete("b"), 0.0) is PASSING


# --- predecessors that are gone ------------------------------------------------------------------


def told_behind(conversation, previous):
    (step,) = conversation.from_upstream(added(message("new"), previous))
    return json.loads(step.event)["previous_item_id"] if isinstance(step, Rewrite) else step


def test_a_deleted_predecessor_is_told_as_the_nearest_that_is_there(dropping):
    hears(dropping, added(message("a")), added(message("b"), "a"), added(message("c"), "b"))
    hears(dropping, deleted("c"), deleted("b"))
    assert told_behind(dropping, "c") == "a"


def test_at_the_head_it_is_null(dropping):
    hears(dropping, added(message("a")), deleted("a"))
    assert told_behind(dropping, "a") is None


def test_a_predecessor_that_is_there_or_was_never_seen_is_told_as_it_came(dropping):
    hears(dropping, added(message("a")))
    assert isinstance(told_behind(dropping, "a"), Pass)
    assert isinstance(told_behind(dropping, "elsewhere"), Pass)
    hears(dropping, deleted("elsewhere"))
    assert isinstance(told_behind(dropping, "elsewhere"), Pass)


def test_a_place_that_hangs_on_what_was_never_seen_is_told_as_it_came(dropping):
    hears(dropping, added(message("z")), added(message("a"), "elsewhere"), deleted("a"))
    assert isinstance(told_behind(dropping, "a"), Pass)
    behind_it = create(message("n"), previous_item_id="a")
    assert dropping.from_client(behind_it, 0.0) is PASSING
    hears(dropping, added(message("elsewhere")))
    hears(dropping, deleted("new"))
    assert told_behind(dropping, "a") == "elsewhere"


def placed(conversation, previous):
    """Where a client's create behind this item goes."""
    frame = create(message("n"), previous_item_id=previous)
    (step,) = conversation.from_client(frame, 0.0)
    if isinstance(step, Pass):
        return previous
    assert isinstance(step, Redirect)
    instead = json.loads(step.frame)
    assert instead | {"previous_item_id": previous} == json.loads(frame)
    return instead["previous_item_id"]


def test_a_create_behind_a_deleted_item_goes_behind_the_nearest_that_is_there(dropping):
    hears(dropping, added(message("a")), added(message("b"), "a"), added(message("c"), "b"))
    assert placed(dropping, "c") == "c"
    hears(dropping, deleted("c"), deleted("b"))
    assert placed(dropping, "c") == "a"
    hears(dropping, deleted("a"))
    assert placed(dropping, "b") == "root"
    assert placed(dropping, "elsewhere") == "elsewhere"
    assert dropping.from_client(create(message("n"), previous_item_id=None), 0.0) is PASSING


def test_a_create_behind_an_output_that_the_gateway_is_deleting_goes_before_it(carrying):
    hears(carrying, added(message("a")), added(call(), "a"))
    carrying.from_client(delete(), 0.0)
    hears(carrying, added(output(), "f"))
    assert placed(carrying, "o") == "o"
    (step,) = hears(carrying, deleted("f"))
    assert isinstance(step, DeleteOutput)
    assert placed(carrying, "o") == placed(carrying, "f") == "a"
    carrying.from_upstream(refusal(json.loads(step.frame)["event_id"]))
    assert placed(carrying, "o") == "o"
    hears(carrying, deleted("o"))
    assert placed(carrying, "o") == "a"


def test_an_id_that_is_used_again_is_there_again(dropping):
    hears(dropping, added(message("a")), added(message("b"), "a"), deleted("b"))
    hears(dropping, added(message("b"), "a"))
    assert isinstance(told_behind(dropping, "b"), Pass)


def test_only_the_predecessor_is_rewritten(dropping):
    hears(dropping, added(message("a")), added(message("b"), "a"), deleted("b"))
    event = (
        b'{"event_id":"e","previous_item_id":"b","type":"conversation.item.done",'
        b'"item":{ "id" : "n", "type":"message","x":1.0e2,"text":"\\u00e9\\/" },"z":[1, 2]}'
    )
    assert dropping.from_upstream(event) == (
        Rewrite(event.replace(b'"previous_item_id":"b"', b'"previous_item_id":"a"')),
    )


def test_speech_that_is_committed_behind_a_deleted_item_is_rewritten_too(dropping):
    hears(dropping, added(message("a")), deleted("a"))
    event = encoded({"type": "input_audio_buffer.committed", "previous_item_id": "a"})
    assert dropping.from_upstream(event) == (
        Rewrite(encoded({"type": "input_audio_buffer.committed", "previous_item_id": None})),
    )


def test_an_item_is_never_told_to_follow_itself(dropping):
    hears(dropping, added(message("a")), added(message("b"), "a"), deleted("b"))
    assert dropping.from_upstream(added(message("a"), "b")) is PASSING


# --- bounds --------------------------------------------------------------------------------------


def test_what_comes_behind_the_last_item_that_is_taken_in_passes(dropping, monkeypatch):
    monkeypatch.setattr(realtime, "MOST_ITEMS", 2)
    hears(dropping, added(message("a")), added(call("f"), "a"), added(call("g", "c2"), "f"))
    assert dropping.from_client(delete("g"), 0.0) is PASSING
    assert isinstance(dropping.from_client(delete("f"), 0.0)[0], Drop)
    assert len(dropping._mirror) == 2


def test_the_gateways_own_deletes_are_not_kept_for_ever(carrying, monkeypatch):
    monkeypatch.setattr(realtime, "MOST_OWN", 2)
    for n in range(5):
        hears(carrying, added(call(f"f{n}", f"c{n}")))
        carrying.from_client(delete(f"f{n}"), 0.0)
        hears(carrying, added(output(f"o{n}", f"c{n}"), f"f{n}"), deleted(f"f{n}"))
        assert carrying._leaving == {f"o{n}"}
        hears(carrying, deleted(f"o{n}"))
    assert len(carrying._own) == 2
    assert carrying._leaving == set()


def test_an_own_delete_whose_answer_never_comes_is_forgotten_whole(carrying, monkeypatch):
    monkeypatch.setattr(realtime, "MOST_OWN", 2)
    for n in range(5):
        hears(carrying, added(call(f"f{n}", f"c{n}")))
        carrying.from_client(delete(f"f{n}"), 0.0)
        hears(carrying, added(output(f"o{n}", f"c{n}"), f"f{n}"), deleted(f"f{n}"))
    assert carrying._leaving == {"o3", "o4"}


def test_carried_out_deletes_that_are_never_answered_are_not_kept_for_ever(carrying, monkeypatch):
    monkeypatch.setattr(realtime, "MOST_CARRIED_OUT", 2)
    for n in range(5):
        hears(carrying, added(call(f"f{n}", f"c{n}")))
        carrying.from_client(delete(f"f{n}"), 0.0)
        hears(carrying, added(output(f"o{n}", f"c{n}"), f"f{n}"))
    assert [*carrying._carried_out] == ["f3", "f4"]
    assert hears(carrying, deleted("f2")) == []
    (step,) = hears(carrying, deleted("f3"))
    assert isinstance(step, DeleteOutput)


LONG = "x" * (LONGEST_ID_CHARACTERS + 1)


def test_what_has_a_long_id_is_not_known_and_passes(dropping):
    hears(dropping, added(call(LONG)), added(call("f", LONG)))
    assert dropping.from_client(delete(LONG), 0.0) is PASSING
    assert dropping.from_client(delete("f"), 0.0) is PASSING
    hears(dropping, deleted("f"))
    assert dropping.from_client(create(output("o", LONG)), 0.0) is PASSING


def test_what_stands_behind_a_long_id_has_no_place_that_is_known(dropping):
    hears(dropping, added(message("a")), added(message("b"), LONG), deleted("b"))
    assert isinstance(told_behind(dropping, "b"), Pass)
    # Nor is it taken for what it begins with.
    hears(dropping, added(message(LONG[:-1]), "a"), added(message("c"), LONG), deleted("c"))
    assert isinstance(told_behind(dropping, "c"), Pass)


def test_a_delete_with_a_long_event_id_is_dropped_and_not_held(carrying):
    hears(carrying, added(call()))
    (step,) = carrying.from_client(delete("f", LONG), 0.0)
    assert isinstance(step, Drop)
    assert error_in(step)["event_id"] == LONG


# --- a connection that wants to be remembered for ever -------------------------------------------

ITEMS = 400
"""In place of the limit, so that it is reached soon."""

BYTES_OF_AN_ITEM = 700 + 4 * (LONGEST_ID_CHARACTERS + 50)
"""With every word that it has as long as it may be."""


class Hostile:
    """Both sides of a connection, with nothing in mind but that more of it is remembered."""

    def __init__(self, seed, conversation):
        self.chance = random.Random(seed)
        self.conversation = conversation
        self.names = deque(maxlen=100)
        self.made = 0

    def name(self):
        """A new one, long or short, or one that was used lately."""
        if self.names and self.chance.random() < 0.5:
            return self.chance.choice(self.names)
        self.made += 1
        self.names.append(f"{self.made}" + "x" * self.chance.choice([0, 200, 5000]))
        return self.names[-1]

    def item(self):
        kind = self.chance.choice(["function_call", "function_call_output", "message", self.name()])
        status = self.chance.choice(["in_progress", "completed", "incomplete", self.name()])
        return {"id": self.name(), "type": kind, "call_id": self.name(), "status": status}

    def from_upstream(self):
        kind = self.chance.choice(sorted(WATCHED))
        previous = self.chance.choice([None, self.name()])
        return {
            "type": kind,
            "item_id": self.name(),
            "previous_item_id": previous,
            "item": self.item(),
            "response_id": self.name(),
            "response": {"id": self.name(), "output": [self.item()]},
            "error": {"event_id": self.name()} if kind == "error" else None,
        }

    def pair(self):
        """A call whose delete is held, and carried out with its output on the way."""
        call_id, first, second = f"c{self.made}", f"f{self.made}", f"o{self.made}"
        self.made += 1
        self.says(added(call(first, call_id)))
        self.asks(delete(first, self.name()))
        self.says(added(output(second, call_id), first))
        if self.chance.random() < 0.5:
            self.says(deleted(first))

    def says(self, frame):
        self.conversation.from_upstream(frame)

    def asks(self, frame):
        self.conversation.from_client(frame, float(self.made))

    def goes_on(self, steps):
        for _ in range(steps):
            match self.chance.randrange(5):
                case 0:
                    self.pair()
                case 1:
                    self.asks(delete(self.name(), self.name()))
                case 2:
                    self.asks(create(self.item(), self.name(), previous_item_id=self.name()))
                case _:
                    self.says(encoded(self.from_upstream()))


def kept_bytes(whole):
    """What hangs on this object alone."""
    seen, ahead, size = {id(realtime): realtime}, [whole], 0
    while ahead:
        one = ahead.pop()
        if id(one) in seen or isinstance(one, type | FunctionType | MethodType):
            continue
        seen[id(one)] = one
        size += sys.getsizeof(one)
        ahead += gc.get_referents(one)
    return size


@pytest.mark.parametrize("seed", range(4))
def test_what_a_connection_leaves_behind_is_bounded_whatever_is_said(seed, monkeypatch):
    monkeypatch.setattr(realtime, "MOST_ITEMS", ITEMS)
    monkeypatch.setattr(realtime, "MOST_HELD_BYTES", 10_000)
    monkeypatch.setattr(realtime_calls, "MOST_BEING_SAID", 10)
    hostile = Hostile(seed, conversation(carries_out=True))
    for _ in range(5):
        hostile.goes_on(1_000)
        assert kept_bytes(hostile.conversation) < ITEMS * BYTES_OF_AN_ITEM
    assert hostile.conversation._entered == ITEMS


def test_the_limits_are_those_of_the_page():
    page = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text()
    assert f"More than {MOST_HELD} deletes at once, or {MOST_HELD_BYTES // 1024} KiB" in page
    assert f"after the {realtime.MOST_ITEMS:,}th item" in page
    assert f"the last {realtime.MOST_TOMBSTONES:,} items" in page
    assert f"ids of more than {LONGEST_ID_CHARACTERS} characters" in page


def test_the_place_of_what_was_deleted_long_ago_is_not_known(dropping, monkeypatch):
    monkeypatch.setattr(realtime, "MOST_TOMBSTONES", 2)
    hears(dropping, added(message("a")), added(message("b"), "a"), added(message("c"), "b"))
    hears(dropping, deleted("b"))
    for _ in range(2):
        assert told_behind(dropping, "b") == "a"
        hears(dropping, deleted("c"), added(message("c")))
    assert isinstance(told_behind(dropping, "b"), Pass)
    hears(dropping, deleted("c"))
    assert told_behind(dropping, "c") is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
types = st.sampled_from(
    [
        "session.update",
        "input_audio_buffer.append",
        "response.cancel",
        "response.created",
        "conversation.item.truncate",
        "conversation.item.retrieve",
        "conversation.created",
        "é",
        "",
    ]
)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(types, json_values, st.booleans()), max_size=20), st.booleans())
def test_frames_that_concern_no_item_pass_in_both_directions(frames, carries_out):
    beside = conversation(carries_out=carries_out)
    hears(beside, added(call()), added(message("m"), "f"), deleted("m"))
    for kind, value, spaced in frames:
        payload = encoded({"x": value, "type": kind, "y": value}, spaced=spaced)
        assert beside.from_client(payload, 0.0) is PASSING
        assert beside.from_upstream(payload) is PASSING


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.binary(max_size=30) | json_values.map(encoded), max_size=20))
def test_frames_that_are_nothing_pass_in_both_directions(frames):
    beside = conversation()
    for payload in frames:
        assert beside.from_client(payload, 0.0) is PASSING
        assert beside.from_upstream(payload) is PASSING


# --- any client, at a strict provider ------------------------------------------------------------


def type_of(step):
    return type(step).__name__


class Playing:
    """A client, a conversation and a strict provider, with frames on their way between them.

    What is in flight is found here by reading everything that was heard again, from the start."""

    def __init__(self, *, carries_out):
        self.beside = conversation(carries_out=carries_out)
        self.session = RealtimeSession(Ids(1), "gpt-realtime", expires_at=0.0)
        self.speaking = None
        self.now = 0.0
        self.made = 0
        self.upwards = deque()
        self.downwards = deque()
        self.heard = []  # events that the provider said, as far as they came here
        self.held = {}  # deletes that are held, by event id
        self.own = {}  # the gateway's own deletes, and of which items
        self.carried_out = set()
        self.seen = Counter()

    # what is true, as far as was heard

    def items(self):
        """The items that live, by id, and every id that lived."""
        living, seen, answered, cut, said = {}, set(), set(), set(), set()
        outputs = set()
        for told in self.heard:
            item = told.get("item", {})
            match told["type"]:
                case "conversation.item.added" | "conversation.item.done":
                    if told["type"].endswith("added") or item["id"] in living:
                        living[item["id"]] = item
                        seen.add(item["id"])
                    if item["type"] == "function_call_output" and item["id"] not in outputs:
                        outputs.add(item["id"])
                        answered.add(item["call_id"])
                    if item.get("status") == "completed":
                        said.add(item["id"])
                case "response.output_item.done":
                    (said if item["status"] == "completed" else cut).add(item["id"])
                case "conversation.item.deleted":
                    living.pop(told["item_id"], None)
        flying = {
            item_id
            for item_id, item in living.items()
            if item["type"] == "function_call"
            and item_id not in cut
            and not (item_id in said and item["call_id"] in answered)
        }
        return living, seen, flying

    @property
    def leaving(self):
        return set(self.own.values())

    # what happens

    def client(self, type, **fields):
        self.made += 1
        frame = {"type": type, "event_id": f"client_{self.made}", **fields}
        payload = encoded(frame, spaced=bool(self.made % 2))
        living, _, flying = self.items()
        (step,) = self.beside.from_client(payload, self.now)
        self.seen[type_of(step)] += 1
        if type == "conversation.item.delete" and fields["item_id"] in flying:
            assert isinstance(step, Hold | Drop)
        match step:
            case Pass():
                self.up(payload)
            case Hold():
                self.held[frame["event_id"]] = payload
            case Drop():
                assert error_in(step)["event_id"] == frame["event_id"]
                assert fields["item_id"] in flying
            case Refuse():
                assert error_in(step)["event_id"] == frame["event_id"]
                calls = [item for item in living.values() if item["type"] == "function_call"]
                assert fields["item"]["call_id"] not in {item["call_id"] for item in calls}
            case Redirect():
                instead = json.loads(step.frame)
                behind = instead["previous_item_id"]
                assert behind == "root" or behind in living
                assert behind not in self.leaving
                previous = fields["previous_item_id"]
                assert previous not in living or previous in self.leaving
                assert instead | {"previous_item_id": previous} == frame
                self.up(step.frame)
            case _:
                raise AssertionError(step)

    def up(self, payload):
        frame = json.loads(payload)
        if frame["type"] == "conversation.item.delete":
            assert frame["item_id"] not in self.items()[2], "a call in flight is deleted"
        self.upwards.append(frame)

    def expire(self):
        for step in self.beside.expire(self.now):
            del self.held[error_in(step)["event_id"]]

    def hear(self):
        told = self.downwards.popleft()
        payload = encoded(told, spaced=bool(self.made % 2))
        first, *rest = steps = self.beside.from_upstream(payload)
        self.seen.update(type_of(step) for step in steps)
        if isinstance(first, LeaveOut):
            self.own.pop(told["error"]["event_id"])
            return
        self.heard.append(told)
        living, seen, _ = self.items()
        previous = told.get("previous_item_id")
        if isinstance(first, Rewrite):
            instead = json.loads(first.event)
            now = instead["previous_item_id"]
            assert previous in seen
            assert previous not in living
            assert now is None or now in living
            assert instead | {"previous_item_id": previous} == told
            assert list(instead) == list(told)
        else:
            assert isinstance(first, Pass)
            assert previous is None or previous in living or previous not in seen
        for step in rest:
            if isinstance(step, CarryOut):
                event_id = json.loads(step.frame)["event_id"]
                assert self.held.pop(event_id) == step.frame
                self.carried_out.add(json.loads(step.frame)["item_id"])
                self.up(step.frame)
            else:
                assert isinstance(step, DeleteOutput)
                sent = json.loads(step.frame)
                self.own[sent["event_id"]] = sent["item_id"]
                self.up(step.frame)

    def carry(self):
        outcome = self.session.receive(self.upwards.popleft())
        self.downwards.extend(json.loads(json.dumps(outcome.events)))
        for speaking in outcome.started:
            draft = [call_draft("look"), "Hello there.", call_draft("look")]
            speaking.answer(reply(*draft[: 1 + self.made % 3]))
            self.speaking = speaking

    def speak(self):
        told = self.speaking.upcoming() if self.speaking is not None else None
        if told is not None:
            self.session.told(self.speaking, told)
            self.downwards.append(json.loads(json.dumps(told)))

    def play(self, what, n):
        _, seen, flying = self.items()
        ids = sorted(flying) if flying and n % 3 else [*sorted(seen), "elsewhere"]
        item_id = ids[n % len(ids)]
        match what:
            case "delete":
                self.client("conversation.item.delete", item_id=item_id)
            case "answer":
                items = [told.get("item", {}) for told in self.heard]
                calls = {i["id"]: i["call_id"] for i in items if i.get("type") == "function_call"}
                key = calls.get(item_id) or [*calls.values(), "elsewhere"][n % (len(calls) + 1)]
                item = {"type": "function_call_output", "output": "x", "call_id": key}
                self.client("conversation.item.create", item=item)
            case "write":
                item = {"type": "message", "role": "user"}
                item["content"] = [{"type": "input_text", "text": "hm"}]
                where = {"previous_item_id": item_id} if n % 2 else {}
                self.client("conversation.item.create", item=item, **where)
            case "respond":
                self.client("response.create", response={"output_modalities": ["text"]})
            case "cancel":
                self.client("response.cancel")
            case "wait":
                self.now += n
                self.expire()
            case "carry" if self.upwards:
                self.carry()
            case "speak":
                for _ in range(n):
                    self.speak()
            case "hear":
                for _ in range(min(n, len(self.downwards))):
                    self.hear()

    def drain(self):
        while self.upwards or self.downwards:
            while self.upwards:
                self.carry()
            while self.downwards:
                self.hear()


PLAYS = ["delete", "answer", "write", "respond", "cancel", "wait", "carry", "speak", "hear"]
LIKELY = ["delete", "answer", "respond", "carry", "carry", "speak", "hear", "hear"]
MENU = [*PLAYS, *LIKELY * 3]
plays = st.binary(min_size=40, max_size=240).map(
    lambda drawn: [
        (MENU[one % len(MENU)], two % 21) for one, two in zip(drawn[::2], drawn[1::2], strict=False)
    ]
)
"""Two bytes are one thing that happens: much cheaper to draw than a list of pairs."""


@settings(max_examples=examples(100), deadline=None)
@given(plays, st.booleans())
def test_no_call_in_flight_is_deleted_and_nothing_else_is_touched(played, carries_out):
    playing = Playing(carries_out=carries_out)
    for what, n in [("respond", 0), ("carry", 0), ("speak", 4), ("hear", 4), *played]:
        playing.play(what, n)
    playing.drain()
    # Every delete ends.
    playing.now += HELD_SECONDS
    playing.expire()
    assert playing.held == {}
    assert playing.beside.deadline is None
    playing.drain()
    for step in playing.seen:
        event(step)
    # What the mirror has is what the provider has, and no output was left without its call.
    assert [item["id"] for item in playing.beside._mirror.items] == [
        item["id"] for item in playing.session.items()
    ]
    living = {item["id"] for item in playing.session.items()}
    answers = {
        item["call_id"]: item["id"]
        for item in playing.session.items()
        if item["type"] == "function_call_output"
    }
    for told in playing.heard:
        item = told.get("item", {})
        if item.get("id") in playing.carried_out and item["id"] not in living:
            assert item["call_id"] not in answers
