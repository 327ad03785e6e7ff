"""Chat Completions: one message, everything sent every time."""

import pytest

from lockstitch.core.facts import Ending, Mode
from lockstitch.emulator import call, custom_call
from lockstitch.upstream import http_stream
from lockstitch.upstream.contract import Fate, UpstreamFailure
from tests.upstream.hearing import (
    USER,
    asked,
    end_of,
    ending_of,
    fate_of,
    hear_whole,
    items_of,
    once,
    opened,
    within,
)
from tests.upstream.saying import events, saying

KIND = "chat"
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def test_a_round_of_calls_and_outputs_is_taken(emulator):
    async def run() -> None:
        async with opened(KIND, emulator.url) as upstream:
            emulator.say(
                "Let me see.",
                call("f", {"a": 1}, call_id="call_1"),
                custom_call("g", "free text", call_id="call_2"),
            )
            (message,) = items_of(await hear_whole(upstream, asked(KIND)))
            assert [each["id"] for each in message["tool_calls"]] == ["call_1", "call_2"]
            outputs = [
                {"role": "tool", "tool_call_id": f"call_{number}", "content": "done"}
                for number in (1, 2)
            ]
            whole = asked(KIND, USER, message, *outputs)
            (last,) = items_of(await hear_whole(upstream, whole))
            again = asked(KIND, USER, message, *outputs, last, USER)
            assert ending_of(await hear_whole(upstream, again)) is Ending.COMPLETED

    within(run)
    assert emulator.violations() == {}


def test_what_was_used_is_told_unless_settings_say_otherwise(emulator):
    assert end_of(once(KIND, emulator)[0]).usage is not None
    quiet = asked(KIND, settings={"stream_options": None})
    assert end_of(once(KIND, emulator, quiet)[0]).usage is None


def test_a_call_that_a_limit_cut_is_not_told(emulator):
    emulator.say("Hi", call("f", {"a": "a long text of many words"}, call_id="call_1"))
    heard, failure = once(KIND, emulator, asked(KIND, settings={"max_completion_tokens": 3}))
    assert failure is None
    assert ending_of(heard) is Ending.INCOMPLETE
    assert items_of(heard) == [{"role": "assistant", "content": "Hi"}]


def test_settings_go_into_the_body(emulator):
    once(KIND, emulator, asked(KIND, settings={"tools": [TOOL], "temperature": 0.5}))
    (sent,) = emulator.requests("POST /v1/chat/completions")
    assert (sent["tools"], sent["temperature"], sent["stream"]) == ([TOOL], 0.5, True)


def test_a_cut_behind_the_last_word_is_none(monkeypatch, emulator):
    monkeypatch.setattr(http_stream, "LINGER_SECONDS", 0.1)
    for fault in ("cut after=finish how=reset", "stall after=finish seconds=60"):
        emulator.fault(fault)
        heard, failure = once(KIND, emulator)
        assert failure is None
        assert ending_of(heard) is Ending.COMPLETED
        assert end_of(heard).usage is None


def test_an_error_behind_the_last_word_is_none():
    finished = {"id": "c", "choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}

    async def run() -> None:
        async with (
            saying(events(finished, {"error": {"message": "Oops"}})) as server,
            opened(KIND, server.url) as upstream,
        ):
            assert ending_of(await hear_whole(upstream, asked(KIND))) is Ending.COMPLETED

    within(run)


@pytest.mark.parametrize("kind", ["chat", "messages"])
def test_nothing_is_kept_there(kind, emulator):
    async def run() -> None:
        async with opened(kind, emulator.url) as upstream:
            assert upstream.modes == {Mode.FULL}
            assert await upstream.retrieved("resp_1") is None
            for ask in (upstream.new_conversation, lambda: upstream.listed("conv_1", None)):
                with pytest.raises(UpstreamFailure, match="keeps no") as caught:
                    await ask()
                assert caught.value.fate is Fate.REFUSED
            request = asked(kind, mode=Mode.CHAIN, anchor="resp_1")
            assert await fate_of(upstream, request) is Fate.REFUSED

    within(run)
    assert emulator.entries() == []
