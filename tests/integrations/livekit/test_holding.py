"""What is known of the agent's own context, look by look and push by push."""

from __future__ import annotations

from livekit.agents import llm

from lockstitch.integrations.livekit.holding import Holdings
from lockstitch.integrations.livekit.inferring import Stay, seen
from tests.integrations.livekit.scenes import talk


def placeholder(name):
    return llm.ChatMessage(id=name, role="assistant", content=[])


def test_items_that_are_new_at_one_look_came_after_the_look_before():
    holdings = Holdings()
    items = talk("Hi.", "Hi!", "So?").items
    holdings.look(items[:1])
    holdings.look(items)
    assert holdings.stays == {"t0": Stay(1, 2), "t1": Stay(3, 4), "t2": Stay(3, 4)}


def test_a_look_at_the_same_context_changes_nothing():
    holdings = Holdings()
    items = talk("Hi.").items
    holdings.look(items)
    holdings.look(list(items))
    holdings.look([*items, *talk("So?", prefix="u").items])
    assert holdings.stays["u0"] == Stay(3, 4)


def test_what_a_push_makes_came_with_it_and_what_the_provider_has_came_before():
    holdings = Holdings()
    config = llm.AgentConfigUpdate(instructions="Be brief.")
    holdings.take(holdings.read([config, *talk("Hi.", "Hi!").items]), there={"t0"}, waited=False)
    assert holdings.stays == {config.id: Stay(1, 2), "t0": Stay(1, 2), "t1": Stay(2, 2)}


def test_of_a_push_that_has_waited_nobody_knows_what_came_when():
    holdings = Holdings()
    holdings.take(holdings.read(talk("Hi.", "Hi!").items), there=(), waited=True)
    assert holdings.stays == {"t0": Stay(1, 2), "t1": Stay(1, 2)}


def test_what_livekit_wrote_into_a_context_that_waited_was_not_in_its_copies():
    holdings = Holdings()
    summary = llm.ChatMessage(id="summary", role="assistant", content=["They greeted."])
    mine = talk("So?").items[0]
    holdings.take(holdings.read([summary]), there=(), waited=False)
    # A context without the summary is pushed, and waits; then the provider tells of the summary.
    holdings.take(holdings.read([mine, summary.model_copy()]), there={"summary"}, waited=True)
    assert "summary" not in seen(holdings.stays, ["t0"], holdings.stays)


def test_what_a_context_had_before_it_waited_was_in_its_copies():
    holdings = Holdings()
    user, mine = talk("Hi.", "So?").items
    holdings.look([user])
    holdings.take(holdings.read([user, mine]), there={"t0"}, waited=True)
    assert "t0" in seen(holdings.stays, ["t1"], holdings.stays)


def test_a_place_that_is_kept_for_words_is_not_held():
    holdings = Holdings()
    holdings.look([placeholder("m"), llm.ChatMessage(id="n", role="user", content=[""])])
    assert holdings.stays == {}


def test_a_place_that_gets_its_words_may_be_in_copies_as_old_as_the_place():
    holdings = Holdings()
    place, user = placeholder("m"), talk("Hi.").items[0]
    holdings.look([place])
    holdings.look([place, user])
    place.content.append("Well.")
    holdings.look([place, user, llm.AgentConfigUpdate(instructions="Be brief.")])
    assert "m" in holdings.stays
    assert "t0" not in seen(holdings.stays, ["m"], holdings.stays)


def test_what_is_not_in_a_context_that_is_pushed_is_held_no_longer():
    holdings = Holdings()
    items = talk("Hi.", "Hi!").items
    holdings.take(holdings.read(items), there=(), waited=False)
    holdings.take(holdings.read(items[1:]), there={"t0", "t1"}, waited=False)
    assert set(holdings.stays) == {"t1"}


def test_an_item_that_comes_again_tells_nothing_newer_of_the_copies_it_is_in():
    holdings = Holdings()
    user = talk("Hi.").items[0]
    summary = llm.ChatMessage(id="summary", role="assistant", content=["They greeted."])
    holdings.look([user])
    holdings.take(holdings.read([summary]), there={"t0"}, waited=False)
    holdings.look([summary, user.model_copy()])
    assert "summary" not in seen(holdings.stays, ["t0"], holdings.stays)
    assert holdings.stays["t0"].by > holdings.stays["summary"].by


def test_what_an_item_said_is_remembered_as_it_was_when_it_came():
    holdings = Holdings()
    items = talk("My number is 1234.").items
    holdings.look(items)
    items[0].content[:] = ["My number is ****."]
    holdings.take(holdings.read(items), there={"t0"}, waited=False)
    assert holdings.said["t0"].said == ("message", "user", "My number is 1234.")
    assert holdings.has(items[0])
    assert not holdings.has(items[0].model_copy())
