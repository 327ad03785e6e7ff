"""A turn that is left before its end: by a break, an error, a cancel, a timeout, an interrupt.

Afterwards the thread is whole, free, and goes on."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import aclosing
from itertools import count

import pytest

from lockstitch.core.outcomes import UNKNOWN_TEXT, Outcome
from lockstitch.emulator import call
from lockstitch.runner import CallBegan, CallContext, CallEnded, ItemSaid, TextDelta, backoff
from lockstitch.store import open_store
from tests.runner.stage import THREAD, of, outputs_in, played, staged, text_of, within
from tests.runner.stage_three import (
    FINAL,
    KEYS,
    LATER,
    THREE_CALLS,
    USER,
    Counting,
    provider_has_it_once,
)

STRIDE = 1 if os.environ.get("THOROUGH") else 3
"""Of the events at which a turn is left, ordinary runs take every third."""
SHORT_GRACE = 0.01
LONG_GRACE = 60.0
"""Never waited for: a test that reaches it has failed."""


class Ended(Exception):
    """What a consumer raises."""


class Work:
    """A tool that works until it is cancelled, and what it does then."""

    def __init__(self, then="stops"):
        self.entered = asyncio.Event()
        self.runs = 0
        self._then = then

    async def work(self) -> str:
        """Work."""
        self.runs += 1
        self.entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self._then == "ends well":
                return "saved"
            if self._then == "holds on":
                await asyncio.Event().wait()
            raise


async def output_of(stage, key="call_1"):
    """What the one call was answered with, in a thread that is whole."""
    history = await stage.whole()
    (found,) = [item for item in history if item.get("call_id") == key and "output" in item]
    return found["output"]


async def goes_on(stage, *tools):
    """Another process takes the thread up, and the provider finds nothing wrong."""
    events = await played(stage.runner(*tools).turn(THREAD))
    assert text_of(events) == "I see."
    assert stage.broken() == {}


# --- a cancel in the middle of a tool ----------------------------------------------------------


async def cancelled_in_a_tool(stage, tool_object, grace):
    stage.emulator.say(call("work", call_id="call_1"))
    stage.emulator.say("I see.")
    runner = stage.runner(tool_object.work, grace=grace)
    consumer = asyncio.create_task(played(runner.turn(THREAD, "Go.")))
    await tool_object.entered.wait()
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer


@pytest.mark.parametrize(
    ("then", "grace", "words"),
    [
        ("stops", LONG_GRACE, "It was cancelled before it gave an output."),
        ("holds on", SHORT_GRACE, "It was cancelled, and it still runs."),
    ],
)
def test_a_tool_that_is_cancelled_has_an_unknown_outcome(then, grace, words):
    async def run():
        async with staged() as stage:
            work = Work(then)
            await cancelled_in_a_tool(stage, work, grace)
            assert await output_of(stage) == f"{UNKNOWN_TEXT}\n{words}"
            await goes_on(stage, work.work)
            assert work.runs == 1

    within(run)


def test_what_a_tool_gives_back_within_its_grace_time_counts():
    async def run():
        async with staged() as stage:
            work = Work("ends well")
            await cancelled_in_a_tool(stage, work, LONG_GRACE)
            assert await output_of(stage) == "saved"
            await goes_on(stage, work.work)
            assert work.runs == 1

    within(run)


def test_a_function_in_a_thread_hears_that_it_is_to_end():
    async def run():
        entered = threading.Event()

        def copy(context: CallContext) -> str:
            entered.set()
            assert context.wait(LONG_GRACE)
            return "half of it"

        async with staged() as stage:
            stage.emulator.say(call("copy", call_id="call_1"))
            stage.emulator.say("I see.")
            runner = stage.runner(copy, grace=LONG_GRACE)
            consumer = asyncio.create_task(played(runner.turn(THREAD, "Go.")))
            await asyncio.to_thread(entered.wait, 10)
            consumer.cancel()
            with pytest.raises(asyncio.CancelledError):
                await consumer
            assert await output_of(stage) == "half of it"
            await goes_on(stage, copy)

    within(run)


def test_a_timeout_around_the_loop_is_a_timeout():
    async def run():
        async with staged() as stage:
            work = Work()
            stage.emulator.say(call("work", call_id="call_1"))
            stage.emulator.say("I see.")

            async def consume():
                async with asyncio.timeout(None) as limit:
                    async for event in stage.runner(work.work).turn(THREAD, "Go."):
                        if isinstance(event, CallBegan):
                            await work.entered.wait()
                            limit.reschedule(asyncio.get_running_loop().time())

            with pytest.raises(TimeoutError):
                await consume()
            assert (await output_of(stage)).startswith(UNKNOWN_TEXT)
            await goes_on(stage, work.work)

    within(run)


def test_a_second_cancel_does_not_leave_the_thread_held():
    async def run():
        async with staged() as stage:
            work = Work("holds on")
            stage.emulator.say(call("work", call_id="call_1"))
            stage.emulator.say("I see.")
            runner = stage.runner(work.work, grace=0.2)
            consumer = asyncio.create_task(played(runner.turn(THREAD, "Go.")))
            await work.entered.wait()
            for _ in range(3):
                consumer.cancel()
                await asyncio.sleep(0.001)
            with pytest.raises(asyncio.CancelledError):
                await consumer
            assert (await output_of(stage)).startswith(UNKNOWN_TEXT)
            await goes_on(stage, work.work)

    within(run)


def test_calls_that_wait_for_room_when_the_turn_is_cancelled_run_later():
    async def run():
        async with staged() as stage:
            work = Work()
            ran = []

            async def note(text: str) -> None:
                ran.append(text)

            stage.emulator.say(
                call("work", call_id="call_1"), call("note", {"text": "b"}, call_id="call_2")
            )
            stage.emulator.say("I see.")
            runner = stage.runner(work.work, note, tools_at_once=1)
            turn = runner.turn(THREAD, "Go.")
            async with aclosing(turn):
                async for event in turn:
                    if isinstance(event, ItemSaid) and event.item["call_id"] == "call_2":
                        await work.entered.wait()
                        break
            assert ran == []
            await goes_on(stage, work.work, note)
            assert ran == ["b"]
            assert outputs_in(await stage.whole()) == ["call_1", "call_2"]

    within(run)


# --- a cancel in the middle of an answer -------------------------------------------------------


@pytest.mark.parametrize("mode", ["previous_response_id", "conversation", "full"])
@pytest.mark.parametrize("transport", ["http", "websocket"])
def test_a_turn_that_is_left_in_the_middle_of_a_text_says_it_anew(transport, mode):
    async def run():
        async with staged() as stage:
            stage.emulator.say("A long story, told slowly.")
            stage.emulator.fault("stall before=response.output_text.delta nth=2 seconds=3600")
            stage.emulator.say("I see.")
            turn = stage.runner(transport=transport, mode=mode).turn(THREAD, "Tell.")
            async with aclosing(turn):
                async for event in turn:
                    if isinstance(event, TextDelta):
                        break
            events = await played(stage.runner(transport=transport, mode=mode).turn(THREAD))
            assert text_of(events) == "I see."
            assert "A long" not in str(await stage.whole())
            assert str(await stage.context(mode)).count("Tell.") == 1
            assert set(stage.broken()) <= {"conversation-locked"}

    within(run)


@pytest.mark.parametrize("how", ["left", "cancelled"])
@pytest.mark.parametrize(
    ("transport", "mode"),
    [
        ("http", "previous_response_id"),
        ("http", "conversation"),
        ("websocket", "conversation"),
        ("websocket", "full"),
    ],
)
def test_a_turn_may_be_left_at_any_event_and_goes_on(transport, mode, how, monkeypatch):
    monkeypatch.setattr(backoff, "FIRST_DELAY_SECONDS", 0.002)

    async def run():
        async with staged(THREE_CALLS) as stage:
            for number in count(0, STRIDE):
                stage.emulator.reset()
                thread = f"thread-{number}"
                counting = Counting()
                settings = {"transport": transport, "mode": mode}
                turn = stage.runner(*counting.tools, **settings).turn(thread, USER)
                told = await _told(turn, number, how)
                second = stage.runner(*counting.tools, **settings)
                assert text_of(await played(second.turn(thread))) == FINAL
                history = await stage.whole(thread)
                assert outputs_in(history) == KEYS
                assert str(history).count(FINAL) == 1
                assert text_of(await played(second.turn(thread, "Thanks."))) == LATER
                await provider_has_it_once(stage, mode, thread)
                # Once; or not at all, and then the model was told that nobody knows.
                assert set(counting.effects.values()) <= {1}
                unknown = str(history).count(UNKNOWN_TEXT)
                not_run = str(history).count("It was not run: it was cancelled.")
                assert counting.effects.total() + unknown + not_run >= len(KEYS)
                assert stage.broken().keys() <= {"conversation-locked"}
                if told < number:
                    break
            assert number > 10

    asyncio.run(run())


async def _told(turn, number, how):
    """Leave a turn after so many events; how many there were."""
    told = 0

    async def consume():
        nonlocal told
        async with aclosing(turn):
            async for _ in turn:
                if told == number:
                    break
                told += 1
                if told == number and how == "cancelled":
                    asyncio.current_task().cancel()

    consumer = asyncio.create_task(consume())
    await asyncio.wait([consumer])
    if not consumer.cancelled():
        consumer.result()
    return told


# --- leaving the loop --------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["break", "error"])
def test_a_loop_may_be_left_and_the_next_turn_of_the_runner_begins(how):
    async def run():
        async with staged() as stage:
            work = Work("ends well")
            stage.emulator.say(call("work", call_id="call_1"))
            stage.emulator.say("I see.")
            runner = stage.runner(work.work)

            async def consume():
                async for event in runner.turn(THREAD, "Go."):
                    if isinstance(event, CallBegan):
                        await work.entered.wait()
                        if how == "break":
                            break
                        raise Ended

            if how == "break":
                await consume()
            else:
                with pytest.raises(Ended):
                    await consume()
            assert text_of(await played(runner.turn(THREAD))) == "I see."
            assert await output_of(stage) == "saved"
            assert work.runs == 1
            assert stage.broken() == {}

    within(run)


def test_a_runner_that_is_closed_after_a_break_has_settled_everything(tmp_path):
    url = f"sqlite:///{tmp_path / 'agent.db'}"

    async def run():
        async with staged() as stage:
            work = Work("ends well")
            stage.emulator.say(call("work", call_id="call_1"))
            stage.emulator.say("I see.")
            async with stage.runner(work.work, store=url) as runner:
                async for event in runner.turn(THREAD, "Go."):
                    if isinstance(event, CallBegan):
                        await work.entered.wait()
                        break
            async with stage.runner(work.work, store=url) as runner:
                history = await runner.history(THREAD)
                assert history[-1]["output"] == "saved"
                assert text_of(await played(runner.turn(THREAD))) == "I see."

    within(run)


def test_a_program_that_ends_in_the_middle_of_a_turn_leaves_a_thread_that_goes_on(tmp_path):
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    turns = [call("work", call_id="call_1")]

    async def interrupted():
        async with staged() as stage:
            work = Work()
            stage.emulator.say(*turns)
            runner = stage.runner(work.work, store=url)
            async for event in runner.turn(THREAD, "Go."):
                if isinstance(event, CallBegan):
                    await work.entered.wait()
                    # As Ctrl-C does: the task of the program is cancelled, then all others.
                    asyncio.current_task().cancel()

    with pytest.raises(asyncio.CancelledError):
        within(interrupted)

    async def resumed():
        async with staged() as stage:
            stage.emulator.say("I see.")
            work = Work()
            async with stage.runner(work.work, store=url, mode="full") as runner:
                events = await played(runner.turn(THREAD))
                assert text_of(events) == "I see."
                assert work.runs == 0
                told = [item for item in await runner.history(THREAD) if "output" in item]
                assert told[0]["output"].startswith(UNKNOWN_TEXT)

    within(resumed)


def test_what_was_told_before_a_break_was_on_disk():
    async def run():
        async with staged() as stage:

            async def quick() -> str:
                return "quick"

            stage.emulator.say(call("quick", call_id="call_1"))
            stage.emulator.say("I see.")
            turn = stage.runner(quick).turn(THREAD, "Go.")
            async with aclosing(turn):
                async for event in turn:
                    if isinstance(event, CallEnded):
                        assert event.outcome is Outcome.FINISHED
                        break
            assert await output_of(stage) == "quick"
            events = await played(stage.runner(quick).turn(THREAD))
            assert of(CallBegan, events) == []
            assert text_of(events) == "I see."

    within(run)


def test_however_often_a_turn_is_cancelled_the_thread_is_free_when_it_is_over(tmp_path):
    async def run():
        async with (
            staged() as stage,
            open_store(f"sqlite:///{tmp_path / 'agent.db'}") as stage.store,
        ):
            for number in range(40):
                stage.emulator.say("Hello.")
                runner = stage.runner()
                consumer = asyncio.create_task(played(runner.turn(f"thread-{number}", "Hi.")))
                # Before the first write, in the middle of it, and while the thread is let go.
                for _ in range(number):
                    await asyncio.sleep(0)
                while not consumer.done():
                    consumer.cancel()
                    await asyncio.sleep(0)
                await played(runner.turn(f"thread-{number}", "Again."))

    within(run)
