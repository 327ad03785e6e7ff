"""Anthropic's Messages: one message, everything sent every time, results joined."""

from typing import Any

import pytest

from lockstitch.core.facts import Ending
from lockstitch.emulator import call, reasoning, refusal
from lockstitch.upstream.contract import Fate
from tests.upstream.hearing import (
    USER,
    asked,
    deltas_of,
    ending_of,
    hear_whole,
    items_of,
    once,
    opened,
    within,
)

KIND = "messages"
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096}


def result(name: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": name, "content": "done"}
    return {"role": "user", "content": [block]}


def test_a_round_of_calls_and_results_is_taken_one_message_for_each_result(emulator):
    async def run() -> None:
        async with opened(KIND, emulator.url) as upstream:
            emulator.say(
                reasoning("Hm."),
                "Let me see.",
                call("f", {"a": 1}, call_id="toolu_1"),
                call("f", {"a": 2}, call_id="toolu_2"),
            )
            (message,) = items_of(await hear_whole(upstream, asked(KIND, settings=THINKING)))
            kinds = [block["type"] for block in message["content"]]
            assert kinds == ["thinking", "text", "tool_use", "tool_use"]
            results = [result("toolu_1"), result("toolu_2")]
            whole = asked(KIND, USER, message, *results, USER, settings=THINKING)
            (last,) = items_of(await hear_whole(upstream, whole))
            again = asked(KIND, USER, message, *results, USER, last, USER, settings=THINKING)
            assert ending_of(await hear_whole(upstream, again)) is Ending.COMPLETED

    within(run)
    assert emulator.violations() == {}


def test_settings_go_into_the_body(emulator):
    once(KIND, emulator, asked(KIND, settings={"system": "Be brief.", "temperature": 0.5}))
    (sent,) = emulator.requests("POST /v1/messages")
    assert (sent["system"], sent["temperature"], sent["stream"]) == ("Be brief.", 0.5, True)
    assert sent["messages"] == [USER]


def test_a_call_that_a_limit_cut_is_not_told(emulator):
    emulator.say("Hi", call("f", {"a": "a long text of many words"}, call_id="toolu_1"))
    heard, failure = once(KIND, emulator, asked(KIND, settings={"max_tokens": 3}))
    assert failure is None
    assert ending_of(heard) is Ending.INCOMPLETE
    (message,) = items_of(heard)
    assert [block["type"] for block in message["content"]] == ["text"]


def test_a_refusal_is_heard_and_cannot_go_on(emulator):
    emulator.say(refusal("I will not."))
    heard, failure = once(KIND, emulator)
    assert failure is None
    assert deltas_of(heard) == "I will not."
    assert ending_of(heard) is Ending.FAILED
    assert items_of(heard) == []


@pytest.mark.parametrize(("status", "code"), [(529, "overloaded_error"), (429, "rate_limit_error")])
def test_an_overload_is_busy_and_says_how_long(status, code, emulator):
    emulator.fault(f"status code={status} retry_after=7")
    _, failure = once(KIND, emulator)
    assert (failure.fate, failure.retry_after, failure.code) == (Fate.BUSY, 7.0, code)


def test_an_overload_in_the_middle_of_an_answer_is_lost(emulator):
    emulator.fault("error code=overloaded_error after=message_start")
    _, failure = once(KIND, emulator)
    assert (failure.fate, failure.code) == (Fate.LOST, "overloaded_error")
