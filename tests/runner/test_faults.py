"""Every fault that the emulator has, in every way a runner can meet it: the turn ends right, or it
fails with the right error and the thread goes on.

Cuts are taken further in `test_cuts`."""

from __future__ import annotations

import asyncio
import os
import socket
from itertools import count

import pytest
from openai import AsyncOpenAI

from lockstitch.emulator import Settings, VirtualClock
from lockstitch.emulator.faults import FAULTS
from lockstitch.runner import Budget, OutOfBudget, ProviderRefused, Retrying, Runner, backoff
from tests.runner.stage import MODES, THREAD, TRANSPORTS, of, played, staged, text_of, within
from tests.runner.stage_three import (
    FINAL,
    LATER,
    NAMES,
    THREE_CALLS,
    USER,
    Counting,
    provider_has_it_once,
    sail,
)

CREATE = "path=/v1/responses"
CASE_SECONDS = 10.0
"""A turn takes some hundredths of a second; one that takes this long hangs."""
STRIDE = 1 if os.environ.get("THOROUGH") else 3
"""Of the events that are struck one by one, ordinary runs take every third."""
SILENCE_SECONDS = 0.2
"""Far above what passes between two events on loopback."""

each_mode = pytest.mark.parametrize("mode", MODES)
each_transport = pytest.mark.parametrize("transport", TRANSPORTS)


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch):
    monkeypatch.setattr(backoff, "FIRST_DELAY_SECONDS", 0.001)
    # The emulator asks for a whole second with 429.
    monkeypatch.setattr(backoff, "LONGEST_DELAY_SECONDS", 0.02)


def choices(fault, setting):
    return FAULTS[fault].settings[setting].choices


REFUSING = ("400", "401", "404")
"""Statuses that a second try does not change."""

SURVIVED = [
    *(f"cut how={how}" for how in choices("cut", "how")),
    "stall seconds=3600",
    "stall seconds=3600 before=response.output_item.done",
    "stall seconds=0.01 before=end",
    "drip bytes=64 seconds=0",
    "duplicate",
    "late",
    "fail",
    "fail after=response.created",
    "fail code=rate_limit_exceeded",
    *(f"incomplete reason={reason}" for reason in choices("incomplete", "reason")),
    "error",
    "error after=response.created",
    "error code=rate_limit_exceeded",
    *(f"status code={code}" for code in choices("status", "code") if code not in REFUSING),
    *(f"lose how={how}" for how in choices("lose", "how")),
    *(f"forget what={what}" for what in choices("forget", "what")),
]
OF_ALL_DIALECTS = {"cut", "stall", "drip", "error", "status", "lose"}
OF_CONVERSATIONS = ["lock"]
OF_WEBSOCKETS = [f"close code={code}" for code in choices("close", "code")]
OF_HANDSHAKES = ["refuse-upgrade code=500"]

BROKEN_BY = {
    "forget": {"anchor-not-found", "not-found"},
    "lock": {"conversation-locked"},
}
"""The rules that are broken because a fault made it so."""

FINAL_REFUSALS = [f"status code={code}" for code in REFUSING]
UPGRADE_REFUSED = "refuse-upgrade code=426"


def test_the_list_is_walked_completely():
    walked = [*SURVIVED, *OF_CONVERSATIONS, *OF_WEBSOCKETS, *OF_HANDSHAKES]
    walked += [*FINAL_REFUSALS, UPGRADE_REFUSED]
    assert {fault.split()[0] for fault in walked} == set(FAULTS)
    for kind in FAULTS.values():
        for name, setting in kind.settings.items():
            if name != "commit":  # in `test_cuts`, at every event
                wanted = {f"{kind.name} {name}={choice}" for choice in setting.choices}
                assert wanted <= set(walked)


async def weathers(stage, fault, **settings):
    """The turn ends right, though a fault strikes it; what was told."""
    stage.emulator.reset()
    stage.emulator.fault(fault)
    budget = Budget(silence_seconds=SILENCE_SECONDS)
    try:
        async with asyncio.timeout(CASE_SECONDS):
            events = await sail(stage, thread=fault, budget=budget, **settings)
        broken = BROKEN_BY.get(fault.split()[0], set())
        assert stage.broken().keys() <= broken, stage.broken()
    except BaseException as error:
        error.add_note(f"{fault}, {settings}")
        raise
    return events


# --- everything that passes --------------------------------------------------------------------


@pytest.mark.parametrize("when", ["request=1", "request=2", "times=2"])
@each_mode
@each_transport
def test_a_turn_ends_right_whatever_strikes_it(transport, mode, when):
    async def run():
        faults = SURVIVED + (OF_CONVERSATIONS if mode == "conversation" else [])
        if transport == "websocket":
            faults += OF_WEBSOCKETS
        async with staged(THREE_CALLS) as stage:
            for fault in faults:
                await weathers(stage, f"{fault} {CREATE} {when}", transport=transport, mode=mode)
                assert stage.struck() > 0, fault

    asyncio.run(run())


@pytest.mark.parametrize("when", ["request=1", "request=2", "times=2"])
@pytest.mark.parametrize("kind", ["chat", "messages"])
def test_a_turn_of_another_dialect_ends_right_whatever_strikes_it(kind, when):
    async def run():
        async with staged(THREE_CALLS) as stage:
            for fault in SURVIVED:
                if fault.split()[0] in OF_ALL_DIALECTS and "response." not in fault:
                    await weathers(stage, f"{fault} {when}", kind=kind, mode="full")
                    assert stage.struck() > 0, fault

    asyncio.run(run())


@pytest.mark.parametrize("times", [1, 2])
@each_mode
def test_a_handshake_that_fails_is_made_again(mode, times):
    async def run():
        async with staged(THREE_CALLS) as stage:
            for fault in OF_HANDSHAKES:
                struck = f"{fault} times={times}"
                events = await weathers(stage, struck, transport="websocket", mode=mode)
                assert stage.struck() == len(of(Retrying, events)) == times

    asyncio.run(run())


@pytest.mark.parametrize(("first", "fault"), [*enumerate(["duplicate", "late", "late by=3"])])
@each_transport
def test_events_may_come_twice_or_out_of_order_anywhere(transport, fault, first):
    async def run():
        async with staged(THREE_CALLS) as stage:
            for number in count(first % STRIDE, STRIDE):
                await weathers(stage, f"{fault} at={number} {CREATE}", transport=transport)
                if not stage.struck():
                    break
            assert number > 20

    asyncio.run(run())


@each_mode
def test_an_answer_may_be_incomplete_from_any_event_on(mode):
    async def run():
        async with staged(THREE_CALLS) as stage:
            for number in count(1, STRIDE):
                stage.emulator.reset()
                fault = f"incomplete before={number} {CREATE}"
                stage.emulator.fault(fault)
                counting = Counting()
                runner = stage.runner(*counting.tools, mode=mode)
                events = await played(runner.turn(fault, USER))
                # Without a whole call it is the model's last word; else it goes on.
                assert text_of(events) == (FINAL if counting.effects else ""), fault
                assert set(counting.effects.values()) <= {1}
                assert len(counting.effects) in (0, len(NAMES))
                assert text_of(await played(runner.turn(fault, "Thanks."))) == LATER
                assert (await stage.ledger(fault)).unsettled() == []
                assert stage.broken() == {}
                if not stage.struck():
                    break
            assert number > 20

    asyncio.run(run())


# --- what does not pass ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transport", "fault"),
    [(transport, fault) for transport in TRANSPORTS for fault in FINAL_REFUSALS]
    + [("websocket", UPGRADE_REFUSED)],
)
@each_mode
def test_a_refusal_is_told_at_once_and_the_thread_goes_on(transport, mode, fault):
    async def run():
        async with staged(THREE_CALLS) as stage:
            # The second request: three tools have run by then.
            handshake = fault == UPGRADE_REFUSED
            stage.emulator.fault(fault if handshake else f"{fault} {CREATE} request=2")
            counting = Counting()
            runner = stage.runner(*counting.tools, transport=transport, mode=mode)
            with pytest.raises(ProviderRefused, match="The provider returned an error"):
                await played(runner.turn(THREAD, USER))
            assert len(stage.sent()) == (0 if handshake else 2)
            again = stage.runner(*counting.tools, transport=transport, mode=mode)
            assert text_of(await played(again.turn(THREAD))) == FINAL
            assert counting.effects == dict.fromkeys(NAMES, 1)
            assert text_of(await played(again.turn(THREAD, "Thanks."))) == LATER
            await stage.whole()
            await provider_has_it_once(stage, mode)
            assert stage.broken() == {}

    within(run)


@pytest.mark.parametrize(
    ("mode", "fault"),
    [
        *((mode, fault) for mode in MODES for fault in ("cut", "status code=503", "fail", "error")),
        ("previous_response_id", "lose"),
        ("full", "lose"),
        ("conversation", "lock"),
    ],
)
@each_transport
def test_a_fault_that_does_not_pass_ends_the_turn_and_the_thread_goes_on(transport, mode, fault):
    async def run():
        async with staged(THREE_CALLS) as stage:
            stage.emulator.fault(f"{fault} {CREATE} times=always")
            counting = Counting()
            settings = {"transport": transport, "mode": mode}
            runner = stage.runner(*counting.tools, **settings, budget=Budget(attempts=3))
            with pytest.raises(OutOfBudget, match="Gave up after 3 attempts") as gave_up:
                await played(runner.turn(THREAD, USER))
            assert ".." not in str(gave_up.value)  # the provider's own words end in a full stop
            assert len(stage.sent()) == 3
            stage.emulator.faults.clear()
            assert text_of(await played(runner.turn(THREAD))) == FINAL
            assert counting.effects == dict.fromkeys(NAMES, 1)
            assert text_of(await played(runner.turn(THREAD, "Thanks."))) == LATER
            await stage.whole()
            await provider_has_it_once(stage, mode)
            assert stage.broken().keys() <= BROKEN_BY.get(fault, set())

    within(run)


# --- how it passes -----------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["429", "503"])
@each_transport
def test_the_provider_says_how_long_to_wait(transport, code, monkeypatch):
    monkeypatch.setattr(backoff, "LONGEST_DELAY_SECONDS", 30)
    wait = 0.05

    async def run():
        async with staged(THREE_CALLS) as stage:
            loop = asyncio.get_running_loop()
            began = loop.time()
            fault = f"status code={code} retry_after={wait} {CREATE}"
            events = await weathers(stage, fault, transport=transport)
            (retrying,) = of(Retrying, events)
            assert (retrying.attempt, retrying.delay_seconds) == (2, wait)
            assert loop.time() - began >= wait

    within(run)


def test_no_provider_makes_a_turn_wait_for_ever():
    async def run():
        async with staged(THREE_CALLS) as stage:
            events = await weathers(stage, f"status code=429 retry_after=3600 {CREATE}")
            (retrying,) = of(Retrying, events)
            assert retrying.delay_seconds == backoff.LONGEST_DELAY_SECONDS

    within(run)


def test_a_provider_that_is_not_there_is_not_said_to_be_busy():
    async def run():
        with socket.socket() as held:  # so that nobody listens there
            held.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
            async with (
                AsyncOpenAI(base_url=url, api_key="any") as client,
                Runner(
                    client=client, model="m", store="memory:", budget=Budget(attempts=2)
                ) as runner,
            ):
                turn = runner.turn("t", "Hello.")
                retrying = await anext(turn)
                assert isinstance(retrying, Retrying)
                assert retrying.reason.startswith("not taken: The connection failed")
                with pytest.raises(OutOfBudget, match="after 2 attempts"):
                    await anext(turn)

    within(run)


@each_transport
def test_a_lost_anchor_is_replayed_at_once_from_the_ledger(transport):
    async def run():
        async with staged(THREE_CALLS) as stage:
            fault = f"forget what=everything {CREATE} request=2"
            events = await weathers(stage, fault, transport=transport)
            (retrying,) = of(Retrying, events)
            assert retrying.reason.startswith("anchor lost")
            assert retrying.delay_seconds == 0
            _, refused, replayed, _ = stage.sent()
            assert "previous_response_id" in refused
            assert "previous_response_id" not in replayed
            assert replayed["input"][0]["content"] == USER
            assert stage.broken() == {"anchor-not-found": 1}

    within(run)


@each_transport
def test_a_lost_conversation_is_replayed_into_a_new_one(transport):
    async def run():
        async with staged(THREE_CALLS) as stage:
            fault = f"forget what=everything {CREATE} request=2"
            await weathers(stage, fault, transport=transport, mode="conversation")
            _, refused, replayed, _ = stage.sent()
            assert refused["conversation"] != replayed["conversation"]
            assert replayed["input"][0]["content"] == USER

    within(run)


@each_transport
def test_an_ambiguous_send_to_a_conversation_is_looked_for_and_not_made_twice(transport):
    async def run():
        async with staged(THREE_CALLS) as stage:
            for which in ("request=1", "request=2", "times=2"):
                fault = f"lose {CREATE} {which}"
                await weathers(stage, fault, transport=transport, mode="conversation")
                # Two answers, and that to the thanks: the one that was lost was found.
                assert len(stage.sent()) == 3

    within(run)


@each_transport
def test_an_answer_that_was_kept_is_asked_for_by_its_id(transport):
    async def run():
        async with staged(THREE_CALLS) as stage:
            fault = f"cut after=response.created commit=yes {CREATE} times=2"
            events = await weathers(stage, fault, transport=transport)
            assert of(Retrying, events) == []
            assert len(stage.sent()) == 3

    within(run)


@pytest.mark.parametrize(
    ("mode", "fault", "then"),
    [
        ("conversation", "status code=503 path=/v1/conversations times=2", None),
        ("conversation", "cut path=/v1/conversations", None),
        ("conversation", f"lose {CREATE}", "status code=500 path=/v1/conversations/ times=2"),
        ("conversation", f"lose {CREATE}", "cut path=/v1/conversations/"),
        ("previous_response_id", "cut before=end commit=yes", "status path=/v1/responses/"),
        ("previous_response_id", "cut before=end commit=yes", "cut path=/v1/responses/"),
        ("conversation", "cut before=end commit=yes", "status path=/v1/responses/"),
        ("conversation", "cut before=end", "lock path=/v1/responses times=2"),
    ],
)
@each_transport
def test_looking_for_what_was_lost_may_fail_too(transport, mode, fault, then):
    async def run():
        async with staged(THREE_CALLS) as stage:
            stage.emulator.reset()
            stage.emulator.fault(fault)
            if then is not None:
                stage.emulator.fault(then)
            await sail(stage, transport=transport, mode=mode)
            assert stage.broken().keys() <= {"conversation-locked"}
            assert stage.emulator.faults.unstruck() == []

    within(run)


@pytest.mark.parametrize("stall", ["", f"stall seconds=61 before=end {CREATE}"])
@each_mode
def test_a_websocket_that_reached_its_age_is_replaced_at_once(mode, stall):
    async def run():
        clock = VirtualClock(flowing=False)
        settings = Settings(connection_seconds=60)
        async with staged(THREE_CALLS, clock=clock, settings=settings) as stage:
            if stall:
                # The answer is not over when its connection is.
                stage.emulator.fault(stall)
            counting = Counting()
            wind, charts, book = counting.tools

            async def book_for_long(city: str) -> str:
                clock.advance(61)
                return await book(city)

            book_for_long.__name__ = "book"
            tools = (wind, charts, book_for_long)
            runner = stage.runner(*tools, transport="websocket", mode=mode)
            events = await played(runner.turn(THREAD, USER))
            assert text_of(events) == FINAL
            assert text_of(await played(runner.turn(THREAD, "Thanks."))) == LATER
            assert stall or of(Retrying, events) == []
            assert counting.effects == dict.fromkeys(NAMES, 1)
            await stage.whole()
            await provider_has_it_once(stage, mode)
            assert stage.broken().keys() <= {"connection-too-old"}
            entries = stage.emulator.record.entries()
            assert sum(entry.kind == "upgrade" for entry in entries) == 2

    within(run)
