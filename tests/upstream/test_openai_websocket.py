"""The Responses API over a WebSocket: connections, and what lives in them."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from lockstitch.core.facts import Ending, Mode
from lockstitch.emulator import Settings, VirtualClock, call
from lockstitch.testing import EmulatorThread
from lockstitch.upstream import openai_websocket, sockets
from lockstitch.upstream.contract import Ended, Fate, Opened
from tests.deaf_server import DeafServer
from tests.upstream.hearing import (
    asked,
    deltas_of,
    ending_of,
    fate_of,
    first,
    going_on,
    hear,
    hear_whole,
    id_of,
    items_of,
    opened,
    within,
)

KIND = "websocket"
UNSTORED = {"store": False}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "done"}


def on_one_client(work: Any, emulator: EmulatorThread, **settings: Any) -> None:
    async def run() -> None:
        async with opened(KIND, emulator.url, **settings) as upstream:
            await work(upstream)

    within(run)


async def ended(upstream: Any) -> None:
    """The idle connection is closed from the other side, and that has arrived."""
    (socket,) = upstream._idle
    while await socket.is_usable():
        await asyncio.sleep(0.01)


def handshakes(emulator: EmulatorThread) -> int:
    return len(emulator.requests("GET /v1/responses"))


def test_many_requests_use_one_connection(emulator):
    async def work(upstream: Any) -> None:
        for number in range(20):
            said = {"role": "user", "content": f"number {number}"}
            heard = await hear_whole(upstream, asked(KIND, said))
            assert deltas_of(heard) == f"You said: number {number}"

    on_one_client(work, emulator)
    assert handshakes(emulator) == 1


def test_an_anchor_that_is_not_stored_lives_in_the_connection(emulator):
    async def work(upstream: Any) -> None:
        emulator.say(call("f", call_id="call_1"))
        response = id_of(await hear_whole(upstream, asked(KIND, settings=UNSTORED)))
        request = going_on(KIND, Mode.CHAIN, response, OUTPUT, **UNSTORED)
        assert ending_of(await hear_whole(upstream, request)) is Ending.COMPLETED

    on_one_client(work, emulator)
    assert handshakes(emulator) == 1


@pytest.mark.parametrize("fault", ["close code=1001 after=response.completed", "cut"])
def test_an_anchor_that_is_not_stored_goes_with_the_connection(fault, emulator):
    async def work(upstream: Any) -> None:
        response = id_of(await hear_whole(upstream, asked(KIND, settings=UNSTORED)))
        emulator.fault(fault)
        _, failure = await hear(upstream, asked(KIND))
        if failure is None:
            await ended(upstream)
        request = going_on(KIND, Mode.CHAIN, response, **UNSTORED)
        assert await fate_of(upstream, request) is Fate.ANCHOR_LOST
        assert ending_of(await hear_whole(upstream, asked(KIND))) is Ending.COMPLETED

    on_one_client(work, emulator)
    assert handshakes(emulator) == 2


def test_each_of_several_chains_goes_on_where_it_was_said(emulator):
    async def work(upstream: Any) -> None:
        anchors: list[str | None] = [None] * 4
        for _ in range(3):
            requests = [
                asked(KIND, mode=Mode.CHAIN, anchor=anchor, settings=UNSTORED) for anchor in anchors
            ]
            answers = await asyncio.gather(*(hear_whole(upstream, each) for each in requests))
            anchors = [id_of(heard) for heard in answers]
            # Whichever comes first.
            anchors.reverse()

    on_one_client(work, emulator)
    assert handshakes(emulator) == 4
    assert emulator.violations() == {}


def test_no_more_connections_are_kept_than_the_limit(emulator, monkeypatch):
    monkeypatch.setattr(openai_websocket, "MOST_IDLE_SOCKETS", 2)

    async def work(upstream: Any) -> None:
        await asyncio.gather(*(hear_whole(upstream, asked(KIND)) for _ in range(5)))
        assert repr(upstream).endswith(", 2 idle>")
        await upstream.close()
        assert repr(upstream).endswith(", 0 idle>")
        assert ending_of(await hear_whole(upstream, asked(KIND))) is Ending.COMPLETED

    on_one_client(work, emulator)


@pytest.mark.parametrize("code", [1000, 1001, 1006, 1009, 1011, 1012])
@pytest.mark.parametrize("point", ["before=first-byte", "after=response.created"])
def test_a_connection_that_closes_is_lost_and_opened_anew(code, point, emulator):
    async def work(upstream: Any) -> None:
        emulator.fault(f"close code={code} {point}")
        heard, failure = await hear(upstream, asked(KIND))
        assert failure.fate is Fate.LOST
        assert len(heard) == (1 if "created" in point else 0)
        assert ending_of(await hear_whole(upstream, asked(KIND))) is Ending.COMPLETED

    on_one_client(work, emulator)
    assert handshakes(emulator) == 2


def test_a_connection_that_closed_between_two_answers_is_not_used(emulator):
    async def work(upstream: Any) -> None:
        for _ in range(3):
            emulator.fault("close code=1000 after=response.completed")
            assert ending_of(await hear_whole(upstream, asked(KIND))) is Ending.COMPLETED
            await ended(upstream)

    on_one_client(work, emulator)
    assert handshakes(emulator) == 3


def test_a_connection_that_is_too_old_is_left_before_the_provider_ends_it(emulator, monkeypatch):
    monkeypatch.setattr(sockets, "OLDEST_SECONDS", -1.0)

    async def work(upstream: Any) -> None:
        for _ in range(2):
            await hear_whole(upstream, asked(KIND))

    on_one_client(work, emulator)
    assert handshakes(emulator) == 2


@pytest.fixture
def still() -> Any:
    """An emulator whose clock stands still, and whose connections live for a minute."""
    settings = Settings(connection_seconds=60)
    with EmulatorThread(clock=VirtualClock(flowing=False), settings=settings) as emulator:
        yield emulator


def test_a_connection_that_the_provider_ended_is_opened_anew(still):
    async def work(upstream: Any) -> None:
        await hear_whole(upstream, asked(KIND))
        still.advance(61)
        await ended(upstream)
        assert ending_of(await hear_whole(upstream, asked(KIND))) is Ending.COMPLETED

    on_one_client(work, still)
    assert handshakes(still) == 2


def test_a_limit_that_is_reached_while_the_answer_is_waited_for_asks_for_a_new_connection(still):
    async def work(upstream: Any) -> None:
        still.fault("stall seconds=600")
        hearing = asyncio.create_task(hear(upstream, asked(KIND)))
        while not still.requests("frame"):
            await asyncio.sleep(0.01)
        still.advance(61)
        heard, failure = await hearing
        assert (heard, failure.fate) == ([], Fate.NEW_CONNECTION)
        assert ending_of(await hear_whole(upstream, asked(KIND))) is Ending.COMPLETED

    on_one_client(work, still)
    assert handshakes(still) == 2


def test_an_answer_in_which_a_limit_is_reached_is_lost(still):
    async def work(upstream: Any) -> None:
        still.fault("stall after=response.created seconds=600")
        stream = upstream.stream(asked(KIND))
        assert isinstance(await anext(stream), Opened)
        still.advance(61)
        with pytest.raises(Exception, match="websocket_connection_limit_reached") as caught:
            await anext(stream)
        assert caught.value.fate is Fate.LOST

    on_one_client(work, still)


@pytest.mark.parametrize(("code", "fate"), [(426, Fate.REFUSED), (500, Fate.BUSY)])
def test_a_handshake_that_is_refused_sent_nothing(code, fate, emulator):
    async def work(upstream: Any) -> None:
        emulator.fault(f"refuse-upgrade code={code}")
        heard, failure = await hear(upstream, asked(KIND))
        assert (heard, failure.fate, failure.status) == ([], fate, code)
        assert ending_of(await hear_whole(upstream, asked(KIND))) is Ending.COMPLETED

    on_one_client(work, emulator)


def test_a_refusal_leaves_the_connection_as_it_was(emulator):
    async def work(upstream: Any) -> None:
        assert await fate_of(upstream, asked(KIND, OUTPUT)) is Fate.REFUSED
        assert ending_of(await hear_whole(upstream, asked(KIND))) is Ending.COMPLETED

    on_one_client(work, emulator)
    assert handshakes(emulator) == 1


@pytest.mark.parametrize(
    "fault",
    [
        "duplicate at=response.completed",
        "late at=response.output_item.done by=1000",
        "late at=response.created by=1000",
    ],
)
def test_late_words_of_one_answer_are_not_heard_in_the_next(fault, emulator):
    async def work(upstream: Any) -> None:
        for number in range(4):
            emulator.fault(fault)
            said = {"role": "user", "content": f"number {number}"}
            heard = await hear_whole(upstream, asked(KIND, said))
            (item,) = items_of(heard)
            assert item["content"][0]["text"] == f"You said: number {number}"

    on_one_client(work, emulator)
    assert handshakes(emulator) == 1


def test_closing_the_iterator_early_closes_the_connection(emulator):
    async def work(upstream: Any) -> None:
        emulator.fault("stall after=response.created seconds=60")
        (begun,) = await first(upstream, asked(KIND), 1)
        assert isinstance(begun, Opened)
        heard = await hear_whole(upstream, asked(KIND))
        assert id_of(heard) != begun.id

    on_one_client(work, emulator)
    assert handshakes(emulator) == 2


def test_cancelling_closes_the_connection(emulator):
    async def work(upstream: Any) -> None:
        emulator.fault("stall seconds=60")
        hearing = asyncio.create_task(hear(upstream, asked(KIND)))
        while not emulator.requests("frame"):
            await asyncio.sleep(0.01)
        hearing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hearing
        assert repr(upstream).endswith(", 0 idle>")
        assert ending_of(await hear_whole(upstream, asked(KIND))) is Ending.COMPLETED

    on_one_client(work, emulator)
    assert handshakes(emulator) == 2


@pytest.mark.parametrize("leaving", ["left", "cancelled", "cancelled twice"])
def test_a_server_that_does_not_hear_our_goodbye_is_left_all_the_same(leaving):
    deaf = DeafServer()

    async def run() -> None:
        async with deaf, opened(KIND, deaf.url) as upstream:
            hearing = asyncio.create_task(
                first(upstream, asked(KIND), 1 if leaving == "left" else 2)
            )
            if leaving != "left":
                await deaf.asked.wait()
                hearing.cancel()
            if leaving == "cancelled twice":
                await asyncio.sleep(0)
                hearing.cancel()
            await asyncio.wait([hearing])
            async with asyncio.timeout(10):  # its library alone would take twice as long
                await deaf.left.wait()

    within(run)


def test_leaving_at_the_end_keeps_the_connection(emulator):
    async def work(upstream: Any) -> None:
        for _ in range(3):
            async with aclosing(upstream.stream(asked(KIND))) as stream:
                async for heard in stream:
                    if isinstance(heard, Ended):
                        break

    on_one_client(work, emulator)
    assert handshakes(emulator) == 1


def test_an_answer_larger_than_a_mebibyte_is_heard(emulator):
    async def work(upstream: Any) -> None:
        emulator.say("x" * 1_500_000)
        (item,) = items_of(await hear_whole(upstream, asked(KIND)))
        assert len(item["content"][0]["text"]) == 1_500_000

    on_one_client(work, emulator)
