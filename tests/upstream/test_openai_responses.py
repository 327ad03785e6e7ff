"""The Responses API over HTTP: the three ways to go on, what was kept, and the bytes."""

import asyncio
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from lockstitch.core.facts import Ending, Mode
from lockstitch.emulator import call, custom_call, reasoning
from lockstitch.upstream import http_stream, openai_responses
from lockstitch.upstream.contract import Ended, Fate, ItemDone, Opened, UpstreamFailure
from tests.upstream.hearing import (
    OF_RESPONSES,
    USER,
    asked,
    deltas_of,
    end_of,
    ending_of,
    fate_of,
    first,
    going_on,
    hear,
    hear_whole,
    id_of,
    items_of,
    once,
    opened,
    raw_items_of,
    within,
)
from tests.upstream.saying import events, saying

KIND = "responses"
each_of_responses = pytest.mark.parametrize("kind", OF_RESPONSES)


def output(call_id: str = "call_1") -> dict[str, str]:
    return {"type": "function_call_output", "call_id": call_id, "output": "done"}


# Ways to go on


@each_of_responses
def test_a_chain_goes_on_from_a_response(kind, emulator):
    async def run() -> None:
        async with opened(kind, emulator.url) as upstream:
            emulator.say(call("f", call_id="call_1"))
            response = id_of(await hear_whole(upstream, asked(kind, mode=Mode.CHAIN)))
            request = going_on(kind, Mode.CHAIN, response, output())
            assert ending_of(await hear_whole(upstream, request)) is Ending.COMPLETED

    within(run)
    assert emulator.violations() == {}


@each_of_responses
def test_a_conversation_goes_on_by_itself(kind, emulator):
    async def run() -> None:
        async with opened(kind, emulator.url) as upstream:
            conversation = await upstream.new_conversation()
            for text in ("one", "two"):
                said = {"role": "user", "content": text}
                await hear_whole(upstream, going_on(kind, Mode.CONVERSATION, conversation, said))
            listed = await upstream.listed(conversation, None)
            texts = [item["content"][0]["text"] for item in listed]
            assert texts == ["one", "You said: one", "two", "You said: two"]

    within(run)


@each_of_responses
def test_everything_is_sent_with_the_items_as_they_came(kind, emulator):
    async def run() -> None:
        async with opened(kind, emulator.url) as upstream:
            settings = {"store": False, "include": ["reasoning.encrypted_content"]}
            emulator.say(
                reasoning("Hm."),
                call("f", {"a": 1}, call_id="call_1"),
                custom_call("g", "text", call_id="call_2"),
            )
            heard = await hear_whole(upstream, asked(kind, settings=settings))
            answers = [output(), output("call_2") | {"type": "custom_tool_call_output"}]
            whole = asked(kind, USER, *items_of(heard), *answers, settings=settings)
            assert ending_of(await hear_whole(upstream, whole)) is Ending.COMPLETED

    within(run)
    assert emulator.violations() == {}


@each_of_responses
def test_settings_go_into_the_body(kind, emulator):
    settings = {"temperature": 0.5, "instructions": "Be brief.", "metadata": {"k": "v"}}
    once(kind, emulator, asked(kind, settings=settings))
    (sent,) = emulator.requests("POST /v1/responses") + emulator.requests("frame response.create")
    assert {name: sent[name] for name in settings} == settings
    assert sent["input"] == [USER]
    assert "previous_response_id" not in sent
    assert "conversation" not in sent


# What was kept


@each_of_responses
def test_a_response_is_read_back_as_it_was_heard(kind, emulator):
    async def run() -> None:
        async with opened(kind, emulator.url) as upstream:
            emulator.say(reasoning("Hm."), "Hello.", call("f", call_id="call_1"))
            heard = await hear_whole(upstream, asked(kind))
            back = await upstream.retrieved(id_of(heard))
            assert back == [each for each in heard if isinstance(each, Opened | ItemDone | Ended)]

    within(run)


@pytest.mark.parametrize("fault", ["fail", "incomplete"])
def test_a_response_that_ended_early_is_read_back_too(fault, emulator):
    async def run() -> None:
        async with opened(KIND, emulator.url) as upstream:
            emulator.fault(fault)
            heard = await hear_whole(upstream, asked(KIND))
            back = await upstream.retrieved(id_of(heard))
            assert back is not None
            assert back[-1] == end_of(heard)

    within(run)


def test_a_response_that_was_lost_on_the_way_is_read_back(emulator):
    async def run() -> None:
        async with opened(KIND, emulator.url) as upstream:
            emulator.fault("cut after=response.created commit=yes how=reset")
            heard, failure = await hear(upstream, asked(KIND))
            assert failure.fate is Fate.LOST
            back = await upstream.retrieved(id_of(heard))
            assert ending_of(back) is Ending.COMPLETED
            assert items_of(back)[0]["content"][0]["text"] == "You said: hello"

    within(run)


def test_a_response_that_is_not_there_is_none(emulator):
    async def run() -> None:
        async with opened(KIND, emulator.url) as upstream:
            assert await upstream.retrieved("resp_0123456789abcdef0123456789abcdef") is None

    within(run)


def test_a_response_that_is_not_over_is_none():
    async def run() -> None:
        body = msgspec.json.encode({"id": "resp_1", "status": "in_progress", "output": []})
        async with (
            saying([body], kind="application/json") as server,
            opened(KIND, server.url) as upstream,
        ):
            assert await upstream.retrieved("resp_1") is None

    within(run)


@pytest.mark.parametrize(
    ("status", "fate"), [(500, Fate.LOST), (429, Fate.BUSY), (401, Fate.REFUSED)]
)
def test_asking_for_what_was_kept_can_fail(status, fate, emulator):
    async def run() -> None:
        async with opened(KIND, emulator.url, max_retries=5) as upstream:
            for ask in (
                lambda: upstream.retrieved("resp_1"),
                upstream.new_conversation,
                lambda: upstream.listed("conv_1", None),
            ):
                emulator.fault(f"status code={status}")
                with pytest.raises(UpstreamFailure) as caught:
                    await ask()
                assert caught.value.fate is fate

    within(run)


def test_a_listing_has_all_pages_and_goes_on_behind_an_item(emulator, monkeypatch):
    monkeypatch.setattr(openai_responses, "ITEMS_ON_A_PAGE", 3)

    async def run() -> None:
        async with opened(KIND, emulator.url) as upstream:
            conversation = await upstream.new_conversation()
            for _ in range(5):
                await hear_whole(upstream, going_on(KIND, Mode.CONVERSATION, conversation, USER))
            listed = await upstream.listed(conversation, None)
            assert [item["role"] for item in listed] == ["user", "assistant"] * 5
            for place in (0, 4, 9):
                behind = await upstream.listed(conversation, listed[place]["id"])
                assert behind == listed[place + 1 :]

    within(run)


def test_a_listing_that_does_not_end_is_given_up(emulator, monkeypatch):
    monkeypatch.setattr(openai_responses, "ITEMS_ON_A_PAGE", 1)
    monkeypatch.setattr(openai_responses, "MOST_PAGES", 3)

    async def run() -> None:
        async with opened(KIND, emulator.url) as upstream:
            conversation = await upstream.new_conversation()
            for _ in range(2):
                await hear_whole(upstream, going_on(KIND, Mode.CONVERSATION, conversation, USER))
            with pytest.raises(UpstreamFailure, match="more than 3 items"):
                await upstream.listed(conversation, None)

    within(run)


def test_a_conversation_that_is_not_there_cannot_be_listed(emulator):
    async def run() -> None:
        async with opened(KIND, emulator.url) as upstream:
            with pytest.raises(UpstreamFailure) as caught:
                await upstream.listed("conv_0123456789abcdef0123456789abcdef", None)
            assert caught.value.fate is Fate.ANCHOR_LOST

    within(run)


# The bytes

CREATED = {"type": "response.created", "response": {"id": "resp_1"}}
COMPLETED = {"type": "response.completed", "response": {"id": "resp_1", "status": "completed"}}


def heard_of(*pieces: Any, **settings: Any) -> tuple[Any, Any]:
    async def run() -> Any:
        async with (
            saying(pieces, **settings) as server,
            opened(KIND, server.url) as upstream,
        ):
            return await hear(upstream, asked(KIND))

    return within(run)


def test_an_item_is_the_bytes_that_came():
    item = (
        '{ "type": "hologram", "id":"h_1","x":[1.0, 1e3,"é\\u00e9"],"big":12345678901234567890123 }'
    )
    event = b'{"type":"response.output_item.done","output_index":0,"item":%b}' % item.encode()
    heard, failure = heard_of(*events(CREATED, event, COMPLETED))
    assert failure is None
    assert raw_items_of(heard) == [item.encode()]


def test_events_that_nobody_knows_are_passed_over():
    odd = {"type": "response.telepathy.delta", "delta": {"x": 1}, "item": 7, "response": [1]}
    heard, failure = heard_of(b": comment\n\n", *events(CREATED, odd, {}, COMPLETED, b"[DONE]"))
    assert failure is None
    assert [type(each) for each in heard] == [Opened, Ended]


def test_an_item_that_waits_is_heard_before_the_cut():
    event = {"type": "response.output_item.done", "output_index": 1, "item": {"id": "fc_1"}}
    heard, failure = heard_of(*events(CREATED, event), ends=False)
    assert failure.fate is Fate.LOST
    assert items_of(heard) == [{"id": "fc_1"}]


def test_an_answer_that_is_no_stream_is_lost_and_says_so():
    heard, failure = heard_of(b"<html>Welcome</html>", kind="text/html")
    assert (heard, failure.fate) == ([], Fate.LOST)
    assert "text/html" in str(failure)


def test_an_error_page_of_a_proxy_is_told_by_its_status():
    heard, failure = heard_of(b"<html>No</html>", kind="text/html", status="502 Bad Gateway")
    assert (heard, failure.fate, failure.status) == ([], Fate.LOST, 502)


def test_a_stream_that_ends_without_its_last_event_is_lost():
    heard, failure = heard_of(*events(CREATED))
    assert failure.fate is Fate.LOST
    assert heard == [Opened("resp_1")]


# Connections


def test_requests_one_after_the_other_use_one_connection():
    async def run() -> None:
        async with (
            saying(events(CREATED, COMPLETED)) as server,
            opened(KIND, server.url) as upstream,
        ):
            for _ in range(5):
                await hear_whole(upstream, asked(KIND))
            assert (server.requests, server.connections) == (5, 1)

    within(run)


def test_closing_the_iterator_early_lets_go_of_the_connection():
    async def run() -> None:
        async with (
            saying(events(CREATED), stays=True) as server,
            opened(KIND, server.url) as upstream,
        ):
            assert await first(upstream, asked(KIND), 1) == [Opened("resp_1")]
            await server.gone.wait()

    within(run)


def test_cancelling_lets_go_of_the_connection():
    async def run() -> None:
        async with (
            saying(events(CREATED), stays=True) as server,
            opened(KIND, server.url) as upstream,
        ):
            hearing = asyncio.create_task(hear(upstream, asked(KIND)))
            while not server.requests:
                await asyncio.sleep(0)
            hearing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hearing
            await server.gone.wait()

    within(run)


def test_a_server_that_stays_after_the_last_word_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(http_stream, "LINGER_SECONDS", 0.05)

    async def run() -> None:
        async with (
            saying(events(CREATED, COMPLETED), stays=True) as server,
            opened(KIND, server.url) as upstream,
        ):
            assert ending_of(await hear_whole(upstream, asked(KIND))) is Ending.COMPLETED
            await server.gone.wait()

    within(run)


def test_the_end_is_heard_before_the_body_ends():
    async def run() -> None:
        async with (
            saying(events(CREATED, COMPLETED), stays=True) as server,
            opened(KIND, server.url) as upstream,
            aclosing(upstream.stream(asked(KIND))) as stream,
        ):
            assert await anext(stream) == Opened("resp_1")
            assert isinstance(await anext(stream), Ended)
            assert not server.gone.is_set()

    within(run)


def test_many_answers_at_a_time_are_not_mixed_up(emulator):
    async def run() -> None:
        async with opened(KIND, emulator.url) as upstream:
            texts = [f"number {number}" for number in range(30)]
            requests = [asked(KIND, {"role": "user", "content": text}) for text in texts]
            answers = await asyncio.gather(*(hear_whole(upstream, each) for each in requests))
            assert [deltas_of(each) for each in answers] == [f"You said: {text}" for text in texts]

    within(run)


def test_a_fate_needs_no_answer(emulator):
    async def run() -> None:
        async with opened(KIND, emulator.url, timeout=0.2) as upstream:
            emulator.fault("stall seconds=60")
            assert await fate_of(upstream, asked(KIND)) is Fate.LOST

    within(run)
