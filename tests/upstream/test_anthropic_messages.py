"""Anthropic's Messages: one message, everything sent every time, results joined."""

from typing import Any

import msgspec
import pytest

from lockstitch.core.facts import Ending
from lockstitch.emulator import call, reasoning, refusal
from lockstitch.upstream import anthropic_messages
from lockstitch.upstream.contract import Fate, Opened
from tests.upstream.hearing import (
    USER,
    asked,
    deltas_of,
    ending_of,
    fate_of,
    hear_whole,
    items_of,
    once,
    opened,
    within,
)
from tests.upstream.saying import events, saying

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


# --- a turn that the provider pauses -----------------------------------------------------------

SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def leg(reason: str, *blocks: dict[str, Any], container: str | None = None) -> list[bytes]:
    """One answer with these blocks, whole from their start."""
    head: dict[str, Any] = {"id": "msg_1", "usage": {"input_tokens": 5}}
    if container is not None:
        head["container"] = {"id": container, "expires_at": "later"}
    said: list[Any] = [{"type": "message_start", "message": head}]
    for index, block in enumerate(blocks):
        said.append({"type": "content_block_start", "index": index, "content_block": block})
        if block is SEARCH:
            delta = {"type": "input_json_delta", "partial_json": '{"query":"x"}'}
            said.append({"type": "content_block_delta", "index": index, "delta": delta})
        said.append({"type": "content_block_stop", "index": index})
    usage = {"output_tokens": 7}
    said.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage})
    return events(*said, {"type": "message_stop"})


def test_a_turn_that_is_paused_goes_on_and_is_one_message():
    answer = {"type": "text", "text": "It is so."}

    async def run() -> None:
        paused = leg("pause_turn", SEARCH, container="container_1")
        then = [leg("pause_turn", FOUND), leg("end_turn", answer)]
        async with saying(paused, then=then) as server, opened(KIND, server.url) as upstream:
            heard = await hear_whole(upstream, asked(KIND))
        (message,) = items_of(heard)
        searched = {**SEARCH, "input": {"query": "x"}}
        assert message == {"role": "assistant", "content": [searched, FOUND, answer]}
        assert [type(one) for one in heard].count(Opened) == 1
        assert heard[-1].usage == {"input_tokens": 15, "output_tokens": 21}
        sent = [msgspec.json.decode(body) for body in server.bodies]
        assert [body["messages"] for body in sent] == [
            [USER],
            [USER, {"role": "assistant", "content": [searched]}],
            [USER, {"role": "assistant", "content": [searched, FOUND]}],
        ]
        assert [body.get("container") for body in sent] == [None, "container_1", "container_1"]

    within(run)


def test_a_turn_that_is_paused_and_then_lost_is_lost():
    async def run() -> None:
        cut = leg("end_turn", FOUND)[:2]
        paused = leg("pause_turn", SEARCH)
        async with saying(paused, then=[cut]) as server, opened(KIND, server.url) as upstream:
            assert await fate_of(upstream, asked(KIND)) is Fate.LOST

    within(run)


def test_a_turn_that_is_paused_for_ever_is_given_up(monkeypatch):
    monkeypatch.setattr(anthropic_messages, "MOST_PAUSES", 3)

    async def run() -> None:
        async with saying(leg("pause_turn", SEARCH)) as server:
            async with opened(KIND, server.url) as upstream:
                assert await fate_of(upstream, asked(KIND)) is Fate.REFUSED
            assert server.requests == 4

    within(run)
