"""What a caller gives a runner: what it cannot use is refused, before anything is written."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lockstitch.core.errors import NotAnItem
from lockstitch.emulator import call
from lockstitch.runner import CannotContinue, NoSuchCall, Tool, Waiting
from lockstitch.store.errors import UnknownStore
from tests.runner.stage import THREAD, outputs_in, played, staged, text_of, within
from tests.runner.test_effects import KEY, Tools, dead_in_a_tool

ask = Tool.answered_outside("ask", "Ask.", {"type": "object", "properties": {}})


def output(key, text="It was."):
    return {"type": "function_call_output", "call_id": key, "output": text}


# --- when a runner is made ---------------------------------------------------------------------


@pytest.mark.parametrize("store", [None, 5, Path("agent.db")])
def test_what_is_no_store_is_refused(store):
    async def run():
        async with staged() as stage:
            with pytest.raises(UnknownStore, match="is neither a store nor a store URL"):
                stage.runner(store=store)

    within(run)


@pytest.mark.parametrize("most", [0, -1])
def test_a_runner_that_could_run_no_tool_is_refused(most):
    async def run():
        async with staged() as stage:
            with pytest.raises(ValueError, match="tools_at_once"):
                stage.runner(tools_at_once=most)

    within(run)


# --- with a turn -------------------------------------------------------------------------------


@pytest.mark.parametrize("message", [5, b"Hello.", [5], [None], ["Hello.", b""]])
def test_what_is_no_message_is_refused_before_anything_is_written(message):
    async def run():
        async with staged() as stage:
            with pytest.raises(NotAnItem, match="A message is a text"):
                stage.runner().turn(THREAD, message)

    within(run)


@pytest.mark.parametrize("thread", [None, 5, b"thread"])
def test_a_thread_has_a_name(thread):
    async def run():
        async with staged() as stage:
            with pytest.raises(TypeError, match="is no name of a conversation"):
                await played(stage.runner().turn(thread, "Hello."))

    within(run)


@pytest.mark.parametrize("approve", [{"call_1": "no"}, {"call_1": 0}, {"call_1": None}, ["call_1"]])
def test_only_yes_and_no_approve_or_refuse(approve):
    async def run():
        async with staged() as stage:
            with pytest.raises(TypeError, match="True or False"):
                stage.runner().turn(THREAD, approve=approve)

    within(run)


def test_a_filter_may_give_items_one_by_one():
    async def run():
        async with staged() as stage:
            stage.emulator.say("I see.")
            runner = stage.runner(input_filter=lambda items: (item for item in items))
            assert text_of(await played(runner.turn(THREAD, "Hello."))) == "I see."

    within(run)


def test_a_filter_may_change_the_list_that_it_is_given():
    def hide(items):
        for item in items:
            if item.get("role") == "user":
                item["content"] = "****"
        return items

    async def run():
        async with staged() as stage:
            stage.emulator.say("I see.")
            stage.emulator.say("Indeed.")
            await played(stage.runner(input_filter=hide).turn(THREAD, "My card is 4000."))
            # Without the filter: what was sent once is sent so again.
            await played(stage.runner(mode="full").turn(THREAD, "Well?"))
            first, second = (body["input"] for body in stage.sent())
            assert [item["content"] for item in first] == ["****"]
            assert [item["content"] for item in second if item.get("role") == "user"] == [
                "****",
                "Well?",
            ]

    within(run)


# --- outputs that nobody waits for -------------------------------------------------------------


@pytest.mark.parametrize("given", [output("call_9"), ["Hello.", output("call_9")]])
def test_an_output_without_its_call_is_refused_and_the_thread_goes_on(given):
    async def run():
        async with staged() as stage:
            stage.emulator.say("I see.")
            with pytest.raises(NoSuchCall, match="call_9"):
                await played(stage.runner().turn(THREAD, given))
            assert text_of(await played(stage.runner().turn(THREAD, "Good morning."))) == "I see."
            assert "Hello." not in str(await stage.whole())

    within(run)


def test_a_second_output_of_a_call_is_refused_and_the_thread_goes_on():
    async def run():
        async with staged() as stage:
            stage.emulator.say(call("ask", call_id=KEY))
            stage.emulator.say("I see.")
            stage.emulator.say("Indeed.")
            runner = stage.runner(ask)
            assert isinstance((await played(runner.turn(THREAD, "Ask.")))[-1], Waiting)
            with pytest.raises(NoSuchCall, match=KEY):
                await played(runner.turn(THREAD, [output(KEY), output(KEY)]))
            assert text_of(await played(runner.turn(THREAD, output(KEY)))) == "I see."
            with pytest.raises(NoSuchCall, match=KEY):
                await played(runner.turn(THREAD, output(KEY, "It was not.")))
            assert text_of(await played(runner.turn(THREAD, "Well?"))) == "Indeed."
            assert outputs_in(await stage.whole()) == [KEY]
            assert stage.broken() == {}

    within(run)


def test_a_history_may_be_given_with_its_pairs():
    async def run():
        async with staged() as stage:
            stage.emulator.say("I see.")
            made = {"type": "function_call", "call_id": KEY, "name": "ask", "arguments": "{}"}
            history = ["Ask.", made, output(KEY), "And?"]
            assert text_of(await played(stage.runner(ask).turn(THREAD, history))) == "I see."
            assert outputs_in(await stage.whole()) == [KEY]

    within(run)


# --- what was said so far ----------------------------------------------------------------------


def test_a_history_can_be_read_while_a_turn_runs():
    async def run():
        async with staged() as stage:
            stage.emulator.say(call("work", call_id=KEY))
            stage.emulator.say("I see.")
            tools = Tools()
            turn = asyncio.create_task(played(stage.runner(tools.work).turn(THREAD, "Go.")))
            await tools.entered.wait()
            history = await stage.runner(tools.work).history(THREAD)
            assert history[0] == {"role": "user", "content": "Go."}
            assert not turn.done()
            turn.cancel()
            await asyncio.wait([turn])

    within(run)


def test_a_thread_that_is_not_there_has_no_history_and_none_is_begun():
    async def run():
        async with staged() as stage:
            assert await stage.runner().history("typo") == []
            assert [one async for one in stage.store.conversations()] == []

    within(run)


# --- a look-up ---------------------------------------------------------------------------------


def test_a_look_up_that_is_cancelled_from_within_ends_the_turn_and_is_made_again():
    async def run():
        asked = []

        async def on_unknown(pending):
            asked.append(pending.call_id)
            if len(asked) == 1:
                raise asyncio.CancelledError
            return "It was done."

        tools = Tools()
        async with dead_in_a_tool(tools) as stage:
            runner = stage.runner(tools.work, on_unknown=on_unknown)
            with pytest.raises(CannotContinue, match="was cancelled from inside"):
                await played(runner.turn(THREAD))
            assert text_of(await played(runner.turn(THREAD))) == "I see."
            assert asked == [KEY, KEY]

    within(run)


def test_a_look_up_may_be_a_plain_function():
    async def run():
        tools = Tools()
        async with dead_in_a_tool(tools) as stage:
            runner = stage.runner(tools.work, on_unknown=lambda pending: "It was done.")
            assert text_of(await played(runner.turn(THREAD))) == "I see."
            assert "It was done." in str(await stage.whole())

    within(run)


def test_a_turn_that_is_cancelled_in_a_look_up_is_cancelled():
    async def run():
        entered = asyncio.Event()

        async def on_unknown(pending):
            entered.set()
            await asyncio.Event().wait()

        tools = Tools()
        async with dead_in_a_tool(tools) as stage:
            runner = stage.runner(tools.work, on_unknown=on_unknown)
            consumer = asyncio.create_task(played(runner.turn(THREAD)))
            await entered.wait()
            consumer.cancel()
            with pytest.raises(asyncio.CancelledError):
                await consumer
            assert len((await stage.ledger()).unsettled()) == 1

    within(run)
