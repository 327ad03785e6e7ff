"""Every fault that the emulator has, over every transport, for every shape of a request, with one
upstream and with two.

Ordinary runs take every n-th combination, another one for each fault; THOROUGH=1 takes all."""

from __future__ import annotations

import asyncio
import os
from random import Random

import pytest

from lockstitch import open_store
from lockstitch.emulator.faults import FAULTS
from tests.gateway.faults.playing import SHAPES, script
from tests.gateway.faults.serving import TRANSPORTS, SlowStore, providers
from tests.gateway.faults.weathering import (
    AND,
    ANYWHERE,
    OF_CONVERSATIONS,
    OF_HANDSHAKES,
    OF_WEBSOCKETS,
    faults_for,
    weathers,
)

THOROUGH = bool(os.environ.get("THOROUGH"))
STRIDE = 1 if THOROUGH else 4

each_transport = pytest.mark.parametrize("transport", TRANSPORTS)
each_shape = pytest.mark.parametrize("shape", SHAPES)
one_or_two = pytest.mark.parametrize("names", [("a",), ("a", "b")], ids=["one", "two"])

SURVIVED = ("cut", "lose", "stall", "status code=5", "status code=429", "fail after", "error after")
"""With another upstream that is well, nobody hears of these before anything was said."""
LATER = ("before=end", "output_item", "3600", "after=end")
"""Something was shown by then, or the client is to wait."""
UNHEARD_OF = [
    fault
    for fault in ANYWHERE
    if fault.startswith(SURVIVED) and not any(word in fault for word in LATER)
]


def test_the_list_of_faults_is_walked_completely():
    walked = [*ANYWHERE, *OF_CONVERSATIONS, *OF_WEBSOCKETS, *OF_HANDSHAKES]
    assert {fault.split()[0] for fault in walked} == set(FAULTS)
    for kind in FAULTS.values():
        for name, setting in kind.settings.items():
            for choice in setting.choices:
                assert any(
                    fault.split()[0] == kind.name
                    and (f"{name}={choice}" in fault or (name, choice) == ("commit", "no"))
                    for fault in walked
                ), (kind.name, name, choice)


def _sampled(faults, *about):
    """Every n-th, beginning with another one for each combination."""
    first = sum(map(len, about)) % STRIDE
    return faults[first::STRIDE]


@one_or_two
@each_shape
@each_transport
def test_whatever_strikes_nothing_is_lost_or_said_twice(transport, shape, names):
    async def run():
        async with providers(*names, script=script) as made:
            for fault in _sampled(faults_for(transport, shape), transport, shape, *names):
                await weathers(made, fault, transport, shape)

    asyncio.run(run())


@each_shape
@each_transport
def test_nothing_is_shown_before_the_journal_has_it_however_slow_that_is(transport, shape):
    async def run():
        async with providers("a", script=script) as made:
            faults = faults_for(transport, shape)
            for fault in faults if THOROUGH else faults[len(transport + shape) % 9 :: 9]:
                await weathers(made, fault, transport, shape, store=SlowStore())

    asyncio.run(run())


@pytest.mark.parametrize("fault", UNHEARD_OF)
@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_an_upstream_that_is_well_answers_in_place_of_one_that_is_not(transport, fault):
    async def run():
        async with providers("a", "b", script=script) as made:
            for shape in ("first", "outputs", "full"):
                settings = {"told": {"retries": 0}}
                answer = await weathers(made, fault, transport, shape, **settings)
                assert answer is not None
                assert answer.said == "completed", answer

    asyncio.run(run())


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_strikes_every_try_is_told_once_and_the_next_request_works(transport, times):
    async def run():
        async with providers("a", script=script) as made:
            for fault in ("cut", "cut after=response.created", "lose", "status code=500"):
                for shape in SHAPES:
                    await weathers(made, f"{fault} times={times}", transport, shape)

    asyncio.run(run())


@one_or_two
@each_transport
def test_tries_that_are_struck_one_after_the_other_lose_nothing(transport, names):
    """Faults of all kinds, drawn from a seed: the second strikes the second try, and so on."""

    async def run():
        async with providers(*names, script=script) as made:
            for seed in range(300 if THOROUGH else 12):
                drawn = Random(f"{seed} {transport} {names}")
                shape = drawn.choice(SHAPES)
                some = [one for one in faults_for(transport, shape) if one not in OF_HANDSHAKES]
                faults = drawn.choices(some, k=drawn.randint(2, 4))
                await weathers(made, AND.join(faults), transport, shape)

    asyncio.run(run())


@pytest.mark.parametrize("lane", ["left", "a.b-C_1"])
def test_a_named_lane_weathers_the_same(lane):
    async def run():
        async with providers("a", script=script) as made:
            faults = faults_for("websocket", "outputs")
            for fault in faults if THOROUGH else faults[len(lane) % 4 :: 4]:
                await weathers(made, fault, "websocket", "outputs", lane=lane)

    asyncio.run(run())


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("names", [("a",), ("a", "b")], ids=["one", "two"])
def test_what_the_upstream_does_not_store_is_continued_from_the_journal(transport, names):
    """`store: false`: over HTTP no upstream has the anchor, over a WebSocket one connection has."""

    async def run():
        async with providers(*names, script=script) as made:
            for shape in ("first", "outputs"):
                faults = faults_for(transport, shape)
                for fault in faults if THOROUGH else faults[len(shape) % 5 :: 5]:
                    settings = {"store": False, "include": ["reasoning.encrypted_content"]}
                    await weathers(made, fault, transport, shape, settings=settings)

    asyncio.run(run())


@pytest.mark.parametrize("told", ["http", "websocket"])
@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_one_transport_is_translated_into_the_other(transport, told):
    async def run():
        async with providers("a", script=script) as made:
            for shape in ("first", "outputs", "full"):
                faults = faults_for(told if told == "websocket" else "sse", shape)
                for fault in faults if THOROUGH else faults[len(shape) % 6 :: 6]:
                    await weathers(made, fault, transport, shape, told={"transport": told})

    asyncio.run(run())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_upstream_without_a_memory_is_given_one(transport):
    async def run():
        async with providers("a", "b", script=script) as made:
            for shape in SHAPES:
                faults = faults_for(transport, shape)
                for fault in faults if THOROUGH else faults[len(shape) % 6 :: 6]:
                    await weathers(made, fault, transport, shape, told={"state": "gateway"})

    asyncio.run(run())


# --- stores that last --------------------------------------------------------------------------


def _on_a_store(url, transport, shapes, stride):
    async def run():
        async with providers("a", "b", script=script) as made:
            for shape in shapes:
                faults = faults_for(transport, shape)
                for fault in faults if THOROUGH else faults[len(shape) % stride :: stride]:
                    # Ids begin anew with each fault, and mean what they meant last.
                    store = await open_store(url)
                    try:
                        await weathers(
                            made[: 1 + len(fault) % 2], fault, transport, shape, store=store
                        )
                    finally:
                        await store.close()

    asyncio.run(run())


@each_transport
def test_every_fault_is_weathered_with_a_journal_in_sqlite(transport, tmp_path):
    _on_a_store(f"sqlite:///{tmp_path}/journal.db", transport, SHAPES, 12)


@each_transport
def test_every_fault_is_weathered_with_a_journal_in_postgresql(transport, postgres_url):
    _on_a_store(postgres_url, transport, ("outputs", "conversation"), 14)
