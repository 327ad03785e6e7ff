"""Every fault that a request can meet, with every client: its fate, and what was heard."""

import pytest
from openai import AsyncOpenAI

from lockstitch.core.facts import Ending, Mode
from lockstitch.emulator import call, reasoning
from lockstitch.testing import EmulatorThread
from lockstitch.upstream.contract import Delta, Ended, Fate, ItemDone, Opened
from tests.upstream.hearing import (
    MODEL,
    OF_RESPONSES,
    SECONDS,
    UPSTREAMS,
    asked,
    deltas_of,
    end_of,
    ending_of,
    fate_of,
    going_on,
    hear,
    hear_whole,
    id_of,
    items_of,
    once,
    opened,
    within,
)

each_upstream = pytest.mark.parametrize("kind", UPSTREAMS)
each_of_responses = pytest.mark.parametrize("kind", OF_RESPONSES)
HOWS = ("close", "reset", "half-frame", "half-character")

FATE_OF_STATUS = {
    400: Fate.REFUSED,
    401: Fate.REFUSED,
    404: Fate.REFUSED,
    409: Fate.BUSY,
    429: Fate.BUSY,
    500: Fate.LOST,
    502: Fate.LOST,
    503: Fate.BUSY,
    529: Fate.BUSY,
}


@each_upstream
def test_a_status_is_a_fate(kind, emulator):
    async def run() -> None:
        async with opened(kind, emulator.url, max_retries=5) as upstream:
            for status, fate in FATE_OF_STATUS.items():
                emulator.fault(f"status code={status} retry_after=0.5")
                heard, failure = await hear(upstream, asked(kind))
                assert (heard, failure.fate, failure.status) == ([], fate, status)
                assert failure.retry_after == 0.5
            assert ending_of(await hear_whole(upstream, asked(kind))) is Ending.COMPLETED

    within(run)
    # Once each: it is not the client who tries again.
    assert len(emulator.requests("POST")) + len(emulator.requests("frame")) == 10


def said(emulator: EmulatorThread) -> None:
    emulator.reset()
    emulator.say(reasoning("Hm."), "Let me see.", call("f", {"a": 1}, call_id="call_1"))


@each_upstream
@pytest.mark.parametrize("how", HOWS)
def test_a_cut_anywhere_is_lost_and_what_was_heard_is_the_beginning(kind, how, emulator):
    async def run() -> None:
        said(emulator)
        async with opened(kind, emulator.url) as upstream:
            whole = await hear_whole(upstream, asked(kind))
            most = 0
            for number in range(100):
                said(emulator)
                emulator.fault(f"cut before={number} how={how}")
                heard, failure = await hear(upstream, asked(kind))
                if failure is None:
                    break
                assert failure.fate is Fate.LOST
                assert heard == whole[: len(heard)]
                assert len(heard) >= most
                most = len(heard)
            # What comes behind the last word is not needed.
            assert heard[:-1] == whole[:-1]
            assert ending_of(heard) is Ending.COMPLETED
            assert number >= len(whole)

    within(run)


@each_of_responses
def test_an_item_that_was_said_before_a_cut_is_heard(kind, emulator):
    async def run() -> None:
        async with opened(kind, emulator.url) as upstream:
            for count in (1, 2, 3):
                said(emulator)
                emulator.fault(f"cut after=response.output_item.done nth={count} how=reset")
                heard, failure = await hear(upstream, asked(kind))
                assert failure.fate is Fate.LOST
                assert len(items_of(heard)) == count

    within(run)


@each_upstream
@pytest.mark.parametrize("how", HOWS)
def test_an_answer_that_never_comes_is_lost(kind, how, emulator):
    for fault in (f"cut how={how}", f"lose how={how}"):
        emulator.fault(fault)
        heard, failure = once(kind, emulator)
        assert (heard, failure.fate) == ([], Fate.LOST)


@each_upstream
@pytest.mark.parametrize("point", ["before=first-byte", "after=1"])
def test_a_silence_longer_than_the_timeout_is_lost(kind, point, emulator):
    emulator.fault(f"stall {point} seconds=60")
    heard, failure = once(kind, emulator, timeout=1.0)
    assert failure.fate is Fate.LOST
    assert bool(heard) is (point == "after=1")
    assert not [each for each in heard if not isinstance(each, Opened | Delta)]


@each_upstream
def test_a_silence_shorter_than_the_timeout_is_waited_for(kind, emulator):
    emulator.fault("stall after=1 seconds=0.1")
    heard, failure = once(kind, emulator)
    assert failure is None
    assert ending_of(heard) is Ending.COMPLETED


@each_upstream
def test_an_answer_that_drips_is_the_same(kind, emulator):
    said(emulator)
    whole, _ = once(kind, emulator)
    said(emulator)
    emulator.fault("drip bytes=7 seconds=0")
    assert once(kind, emulator) == (whole, None)


# A new connection for each: after a reset the emulator gives the same ids again, and on the same
# connection the second response of one id would be the first one's echo.


@each_of_responses
@pytest.mark.parametrize(
    "name", ["response.created", "response.output_item.done", "response.completed"]
)
def test_what_is_said_twice_is_heard_once(kind, name, emulator):
    said(emulator)
    whole, _ = once(kind, emulator)
    said(emulator)
    emulator.fault(f"duplicate at={name}")
    assert once(kind, emulator) == (whole, None)


@each_of_responses
@pytest.mark.parametrize("by", [1, 5, 1000])
def test_an_item_that_is_told_late_is_heard_in_its_place(kind, by, emulator):
    said(emulator)
    whole = items_of(once(kind, emulator)[0])
    assert [item["type"] for item in whole] == ["reasoning", "message", "function_call"]
    for count in (1, 2, 3):
        said(emulator)
        emulator.fault(f"late at=response.output_item.done nth={count} by={by}")
        heard, failure = once(kind, emulator)
        assert failure is None
        assert items_of(heard) == whole, count


@each_of_responses
@pytest.mark.parametrize("by", [1, 5, 1000])
def test_an_answer_whose_beginning_is_told_late_is_whole(kind, by, emulator):
    said(emulator)
    whole, _ = once(kind, emulator)
    said(emulator)
    emulator.fault(f"late at=response.created by={by}")
    heard, failure = once(kind, emulator)
    assert failure is None
    assert items_of(heard) == items_of(whole)
    assert id_of(heard) == id_of(whole)
    assert end_of(heard) == end_of(whole)


@each_of_responses
def test_a_response_that_fails_has_ended(kind, emulator):
    emulator.fault("fail code=server_error message=Sorry. before=response.completed")
    heard, failure = once(kind, emulator)
    assert failure is None
    end = end_of(heard)
    assert (end.ending, end.detail) == (Ending.FAILED, "server_error: Sorry.")


@pytest.mark.parametrize("kind", ["chat", "messages"])
def test_a_dialect_without_failed_answers_tells_of_an_error(kind, emulator):
    emulator.fault("fail")
    heard, failure = once(kind, emulator)
    assert failure.fate is Fate.LOST
    assert deltas_of(heard) == "You said: hello"
    assert isinstance(heard[0], Opened)
    assert not [each for each in heard if isinstance(each, ItemDone | Ended)]


@each_upstream
@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter"])
def test_an_answer_that_a_limit_ends_is_incomplete(kind, reason, emulator):
    emulator.say("One two three four.")
    name = {"chat": "chunk nth=3", "messages": "content_block_delta nth=2"}
    emulator.fault(f"incomplete reason={reason} after={name.get(kind, '6')}")
    heard, failure = once(kind, emulator)
    assert failure is None
    # In these dialects a filter means that nothing of the answer can go on.
    filtered = kind in {"chat", "messages"} and reason == "content_filter"
    assert ending_of(heard) is (Ending.FAILED if filtered else Ending.INCOMPLETE)
    assert end_of(heard).detail
    assert bool(items_of(heard)) is not filtered


@each_upstream
@pytest.mark.parametrize("code", ["server_error", "rate_limit_exceeded", "overloaded_error"])
def test_an_error_in_the_middle_of_an_answer_is_lost(kind, code, emulator):
    async def run() -> None:
        async with opened(kind, emulator.url) as upstream:
            emulator.fault(f"error code={code} after=1")
            heard, failure = await hear(upstream, asked(kind))
            assert isinstance(heard[0], Opened)
            assert not [each for each in heard if not isinstance(each, Opened | Delta)]
            assert failure.fate is Fate.LOST
            assert ending_of(await hear_whole(upstream, asked(kind))) is Ending.COMPLETED

    within(run)


@each_of_responses
def test_an_anchor_that_was_forgotten_is_lost(kind, emulator):
    async def run() -> None:
        async with opened(kind, emulator.url) as upstream:
            for what in ("anchor", "everything"):
                response = id_of(await hear_whole(upstream, asked(kind)))
                emulator.fault(f"forget what={what}")
                request = going_on(kind, Mode.CHAIN, response)
                assert await fate_of(upstream, request) is Fate.ANCHOR_LOST
                assert ending_of(await hear_whole(upstream, asked(kind))) is Ending.COMPLETED

    within(run)


@each_of_responses
@pytest.mark.parametrize("anchor", ["resp_0123456789abcdef0123456789abcdef", "nonsense"])
def test_an_anchor_that_never_was_is_lost(kind, anchor, emulator):
    request = going_on(kind, Mode.CHAIN, anchor)
    assert once(kind, emulator, request)[1].fate is Fate.ANCHOR_LOST


@each_of_responses
def test_a_conversation_that_never_was_is_lost(kind, emulator):
    request = going_on(kind, Mode.CONVERSATION, "conv_0123456789abcdef0123456789abcdef")
    assert once(kind, emulator, request)[1].fate is Fate.ANCHOR_LOST


@each_of_responses
def test_a_locked_conversation_is_locked(kind, emulator):
    async def run() -> None:
        async with opened(kind, emulator.url) as upstream:
            request = going_on(kind, Mode.CONVERSATION, await upstream.new_conversation())
            emulator.fault("lock")
            assert await fate_of(upstream, request) is Fate.LOCKED
            assert ending_of(await hear_whole(upstream, request)) is Ending.COMPLETED

    within(run)


@each_upstream
def test_a_broken_rule_is_refused(kind, emulator):
    call_id = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
    tool = {"role": "tool", "tool_call_id": "call_1", "content": "x"}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "x"}
    items = {"chat": tool, "messages": {"role": "user", "content": [result]}}
    heard, failure = once(kind, emulator, asked(kind, items.get(kind, call_id)))
    assert (heard, failure.fate, failure.status) == ([], Fate.REFUSED, 400)
    assert emulator.violations() == {"output-without-call": 1}


@each_upstream
def test_a_provider_that_is_not_there_is_busy(kind):
    with EmulatorThread() as emulator:
        url = emulator.url

    async def run() -> None:
        async with opened(kind, url) as upstream:
            assert await fate_of(upstream, asked(kind)) is Fate.BUSY

    within(run)


@each_upstream
def test_what_is_no_json_is_refused_before_it_is_sent(kind, emulator):
    request = asked(kind, settings={"metadata": {"x": object()}})
    assert once(kind, emulator, request)[1].fate is Fate.REFUSED
    assert emulator.requests("POST") == emulator.requests("frame") == []


def test_the_bare_client_hears_the_same_text(emulator):
    said(emulator)
    heard, _ = once("responses", emulator)
    said(emulator)

    async def run() -> str:
        async with AsyncOpenAI(
            base_url=emulator.base_url, api_key="any", timeout=SECONDS
        ) as client:
            stream = await client.responses.create(model=MODEL, input="hello", stream=True)
            events = [event async for event in stream]
        return "".join(e.delta for e in events if e.type == "response.output_text.delta")

    assert within(run) == deltas_of(heard) == "Let me see."
