"""Turns: when each fits, and what is told of one that cannot be said."""

import pytest

from lockstitch.emulator.errors import BadScript
from lockstitch.emulator.model.replies import Asked, Offered, Reply, reply, text
from lockstitch.emulator.model.turns import Turn, When

ASKED = Asked(
    model="gpt-5.5",
    user="What is the weather in Oslo?",
    tools=(Offered(type="function", name="get_weather"), Offered(type="shell", name="shell")),
    length=3,
)
ANSWERED = Asked(
    model="gpt-5.5", user="weather?", output="it is sunny", tool="get_weather", length=5
)


@pytest.mark.parametrize(
    "when",
    [
        When(),
        When(user="weather"),
        When(user="(?i)WEATHER", model="gpt-5.5", dialect="responses"),
        When(offers="get_weather"),
        When(offers="shell"),
        When(longer_than=2, shorter_than=4),
    ],
    ids=str,
)
def test_conditions_that_all_hold_fit(when):
    assert when.holds(ASKED)


@pytest.mark.parametrize(
    "when",
    [
        When(user="rain"),
        When(user="weather", model="gpt-4"),
        When(dialect="chat"),
        When(offers="send_mail"),
        When(longer_than=3),
        When(shorter_than=3),
        When(output=""),
        When(tool="get_weather"),
    ],
    ids=str,
)
def test_one_condition_that_does_not_hold_is_enough_not_to_fit(when):
    assert not when.holds(ASKED)


def test_a_rule_can_pick_by_the_last_output_and_its_tool():
    assert When(output="sunny").holds(ANSWERED)
    assert When(output="", tool="get_weather").holds(ANSWERED)
    assert not When(output="rain").holds(ANSWERED)
    assert not When(output="sunny", tool="other").holds(ANSWERED)


def test_what_the_user_said_alone_does_not_fit_once_a_tool_has_answered():
    assert not When(user="weather").holds(ANSWERED)
    assert When(user="weather", output="sunny").holds(ANSWERED)
    assert not When(user="rain", output="sunny").holds(ANSWERED)


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999}", "(?au)", "(" * 200, "*"])
def test_a_bad_regular_expression_is_told(pattern):
    with pytest.raises(BadScript, match="user: it is not a regular expression"):
        When(user=pattern)


def test_a_dialect_that_does_not_exist_is_told():
    with pytest.raises(BadScript, match="responses, chat, messages, realtime"):
        When(dialect="smtp")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (Reply(drafts=(text("a"),), faults=("nonsense",)), "faults\\[0\\]: There is no fault"),
        (Reply(drafts=(text("a"),), faults=("status",)), "put it under `faults` beside `turns`"),
        (Reply(drafts=(text("a"),), faults=("cut times=" + "9" * 5000,)), "faults\\[0\\]"),
        (Reply(drafts=(text("a"),), ends="badly"), "completed, incomplete, failed"),
        (Reply(drafts=(text("a"),), pace=float("nan")), "pace: it must be from 0"),
        (Reply(drafts=(text("a"),), delay=-1), "delay: it must be from 0"),
        (Reply(drafts=({"name": "no type"},)), "drafts\\[0\\]: it must be an item"),
        (Reply(drafts=({"type": "x", "at": object()},)), "drafts\\[0\\].at: a object cannot"),
        ("text", "it must be a Reply"),
    ],
)
def test_a_reply_that_cannot_be_spoken_is_told_when_it_is_given(said, told):
    with pytest.raises(BadScript, match=told):
        Turn(said)


def test_a_draft_that_contains_itself_is_told():
    draft = {"type": "x"}
    draft["more"] = [draft, draft]
    with pytest.raises(BadScript, match=r"more than|deeper"):
        Turn(reply(draft))


@pytest.mark.parametrize("times", [0, -2, 1.5, "often", True])
def test_a_turn_is_used_a_whole_number_of_times(times):
    with pytest.raises(BadScript, match="times: "):
        Turn(reply("a"), times=times)


def test_a_turn_has_a_reply_or_a_function_and_not_both():
    with pytest.raises(BadScript, match="give one of them"):
        Turn()
    with pytest.raises(BadScript, match="give one of them"):
        Turn(reply("a"), decide=lambda asked: None)
