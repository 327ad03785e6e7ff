"""What may run after a crash, and what may not: by what a tool declares, and what is on disk.

A crash is an image of the store at that moment: what another process would find."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from lockstitch.core.outcomes import UNKNOWN_TEXT, Outcome
from lockstitch.emulator import call
from lockstitch.runner import CallBegan, CallContext, CallEnded, Effect, ItemSaid, backoff, tool
from lockstitch.store.memory import MemoryStore
from tests.runner.stage import MODES, THREAD, of, outputs_in, played, staged, text_of, within

KEY = "call_1"


class Tools:
    """Tools that note how they were called. In the first life they never end."""

    def __init__(self, effect=Effect.ONCE):
        self.entered = asyncio.Event()
        self.contexts = []
        self.ends = False

        @tool(effect=effect)
        async def work(context: CallContext) -> str:
            """Work."""
            self.contexts.append(context)
            self.entered.set()
            if not self.ends:
                await asyncio.Event().wait()
            return f"done in attempt {context.attempt}"

        self.work = work


async def image_of(store, thread=THREAD):
    """What another process finds if this one dies now."""
    image = MemoryStore()
    claim = await image.claim(thread, owner="image", seconds=60)
    await image.append(claim, 0, [record async for record in store.read(thread)])
    await image.release(claim)
    return image


@asynccontextmanager
async def dead_in_a_tool(tools, *, answering=False, mode=None):
    """A stage on which a process died in the middle of the tool; its store is what it left."""
    async with staged() as stage:
        stage.emulator.say(call("work", call_id=KEY))
        stage.emulator.say("I see.")
        if answering:
            stage.emulator.fault("stall before=end seconds=3600")
        first = stage.runner(tools.work, mode=mode, grace=0)
        life = asyncio.create_task(played(first.turn(THREAD, "Go.")))
        await tools.entered.wait()
        if not answering:
            while (await stage.ledger()).doubts():
                await asyncio.sleep(0.001)
        image = await image_of(stage.store)
        life.cancel()
        await asyncio.wait([life])
        stage.store = image
        tools.ends = True
        yield stage


def output_in(history):
    (output,) = [item["output"] for item in history if "output" in item]
    return output


# --- started, with no end ----------------------------------------------------------------------


@pytest.mark.parametrize("answering", [False, True])
@pytest.mark.parametrize("effect", [Effect.READ, Effect.IDEMPOTENT])
def test_what_may_run_twice_is_run_again_with_the_same_key(effect, answering):
    async def run():
        tools = Tools(effect)
        async with dead_in_a_tool(tools, answering=answering) as stage:
            events = await played(stage.runner(tools.work).turn(THREAD))
            first, second = tools.contexts
            assert first.key == second.key
            assert (first.call_id, first.thread) == (second.call_id, second.thread) == (KEY, THREAD)
            assert (first.attempt, second.attempt) == (1, 2)
            assert [began.attempt for began in of(CallBegan, events)] == [2]
            assert output_in(await stage.whole()) == "done in attempt 2"
            assert text_of(events) == "I see."
            assert stage.broken() == {}

    within(run)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("answering", [False, True])
def test_what_may_run_once_is_not_run_again_and_the_model_is_told(mode, answering):
    async def run():
        tools = Tools()
        async with dead_in_a_tool(tools, answering=answering, mode=mode) as stage:
            events = await played(stage.runner(tools.work, mode=mode).turn(THREAD))
            assert len(tools.contexts) == 1
            assert of(CallBegan, events) == []
            assert of(CallEnded, events)[0].outcome is Outcome.UNKNOWN
            assert output_in(await stage.whole()) == UNKNOWN_TEXT
            assert UNKNOWN_TEXT in str(stage.sent()[-1]["input"])
            assert text_of(events) == "I see."
            assert stage.broken() == {}

    within(run)


def test_keys_are_those_of_calls_and_not_of_names():
    async def run():
        async with staged() as stage:
            tools = Tools(Effect.IDEMPOTENT)
            tools.ends = True
            for _ in range(2):
                # The model gives its calls the same name in every answer.
                stage.emulator.say(call("work", call_id=KEY))
            stage.emulator.say("Done.")
            await played(stage.runner(tools.work).turn(THREAD, "Go."))
            first, second = tools.contexts
            assert first.call_id == second.call_id
            assert first.key != second.key

    within(run)


def test_a_thread_that_was_forgotten_and_begins_again_has_other_keys():
    async def run():
        async with staged() as stage:
            tools = Tools(Effect.IDEMPOTENT)
            tools.ends = True
            for number in range(2):
                stage.emulator.say(call("work", call_id=f"call_{number}"))
                stage.emulator.say("Done.")
                await played(stage.runner(tools.work).turn(THREAD, "Go."))
                assert await stage.store.delete(THREAD)
            # Whoever does the work still knows the first: it would not do the second.
            first, second = tools.contexts
            assert first.key != second.key

    within(run)


# --- asking somebody who knows -----------------------------------------------------------------


@pytest.mark.parametrize("found", ["it was done", None])
def test_the_caller_may_look_up_what_became_of_it(found):
    async def run():
        asked = []

        async def look_up(pending):
            asked.append(pending)
            return found

        tools = Tools()
        async with dead_in_a_tool(tools) as stage:
            events = await played(stage.runner(tools.work, on_unknown=look_up).turn(THREAD))
            (pending,) = asked
            assert (pending.call_id, pending.name, pending.arguments) == (KEY, "work", "{}")
            assert len(tools.contexts) == 1
            assert output_in(await stage.whole()) == (UNKNOWN_TEXT if found is None else found)
            assert text_of(events) == "I see."

    within(run)


def test_a_look_up_that_fails_settles_nothing_and_is_made_again():
    async def run():
        async def fail(pending):
            raise ConnectionError("the ledger of the bank")

        async def look_up(pending):
            return "it was done"

        tools = Tools()
        async with dead_in_a_tool(tools) as stage:
            with pytest.raises(ConnectionError, match="the bank"):
                await played(stage.runner(tools.work, on_unknown=fail).turn(THREAD))
            assert len((await stage.ledger()).unsettled()) == 1
            await played(stage.runner(tools.work, on_unknown=look_up).turn(THREAD))
            assert output_in(await stage.whole()) == "it was done"
            assert len(tools.contexts) == 1

    within(run)


def test_nobody_is_asked_about_what_may_run_twice():
    async def run():
        async def never(pending):
            raise AssertionError

        tools = Tools(Effect.READ)
        async with dead_in_a_tool(tools) as stage:
            await played(stage.runner(tools.work, on_unknown=never).turn(THREAD))
            assert output_in(await stage.whole()) == "done in attempt 2"

    within(run)


# --- ended, or never started -------------------------------------------------------------------


@pytest.mark.parametrize("answering", [False, True])
def test_an_output_that_was_on_disk_is_used(answering):
    async def run():
        async with staged() as stage:
            tools = Tools()
            tools.ends = True
            stage.emulator.say(call("work", call_id=KEY))
            stage.emulator.say("I see.")
            if answering:
                stage.emulator.fault("stall before=end seconds=3600")
            turn = stage.runner(tools.work).turn(THREAD, "Go.")
            async for event in turn:
                if isinstance(event, CallEnded):
                    break
            image = await image_of(stage.store)
            await turn.aclose()
            stage.store = image
            events = await played(stage.runner(tools.work).turn(THREAD))
            assert of(CallBegan, events) == []
            assert len(tools.contexts) == 1
            assert output_in(await stage.whole()) == "done in attempt 1"
            assert text_of(events) == "I see."
            assert stage.broken() == {}

    within(run)


@pytest.mark.parametrize("effect", Effect)
def test_a_call_that_never_started_is_run_whatever_it_declares(effect):
    async def run():
        async with staged() as stage:
            tools = Tools(effect)
            stage.emulator.say(call("work", call_id=KEY), call("work", call_id="call_2"))
            stage.emulator.say("I see.")
            # One at a time: the second has not begun when the process dies.
            first = stage.runner(tools.work, tools_at_once=1, grace=0)
            life = asyncio.create_task(played(first.turn(THREAD, "Go.")))
            await tools.entered.wait()
            while (await stage.ledger()).doubts():
                await asyncio.sleep(0.001)
            image = await image_of(stage.store)
            life.cancel()
            await asyncio.wait([life])
            stage.store = image
            tools.ends = True
            await played(stage.runner(tools.work).turn(THREAD))
            ran = [(context.call_id, context.attempt) for context in tools.contexts]
            again = [] if effect is Effect.ONCE else [(KEY, 2)]
            assert ran == [(KEY, 1), *again, ("call_2", 1)]
            assert outputs_in(await stage.whole()) == [KEY, "call_2"]
            assert stage.broken() == {}

    within(run)


def test_calls_of_an_answer_that_nobody_heard_to_its_end_are_asked_for_again():
    async def run():
        async with staged() as stage:
            tools = Tools()
            tools.ends = True
            stage.emulator.say(call("work", call_id=KEY))
            stage.emulator.fault("stall before=end seconds=3600")
            turn = stage.runner(tools.work, eager=False).turn(THREAD, "Go.")
            async for event in turn:
                if isinstance(event, ItemSaid):
                    break
            image = await image_of(stage.store)
            await turn.aclose()
            stage.store = image
            stage.emulator.say(call("work", call_id="call_2"))
            stage.emulator.say("I see.")
            events = await played(stage.runner(tools.work, eager=False).turn(THREAD))
            assert [began.call_id for began in of(CallBegan, events)] == ["call_2"]
            assert len(tools.contexts) == 1
            assert outputs_in(await stage.whole()) == ["call_2"]
            assert stage.broken() == {}

    within(run)


# --- a model that repeats itself ---------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("again", "effects"),
    [
        (("note", {"text": "a"}, KEY), ["a"]),
        (("note", {"text": "b"}, KEY), ["a", "b"]),
        (("note", {"text": "a"}, "call_2"), ["a", "a"]),
    ],
    ids=["the same call", "other arguments", "another id"],
)
def test_a_call_that_is_repeated_after_a_cut_has_one_effect(mode, again, effects, monkeypatch):
    monkeypatch.setattr(backoff, "FIRST_DELAY_SECONDS", 0.001)

    async def run():
        done = []

        def note(text: str) -> str:
            """Note it."""
            done.append(text)
            return f"noted {text}, as number {len(done)}"

        async with staged() as stage:
            name, arguments, key = again
            stage.emulator.say(call("note", {"text": "a"}, call_id=KEY))
            stage.emulator.fault("cut before=end")
            stage.emulator.say(call(name, arguments, call_id=key))
            stage.emulator.say("Noted.")
            events = await played(stage.runner(note, mode=mode).turn(THREAD, "Note it."))
            assert text_of(events) == "Noted."
            assert done == effects
            # The call that was cut and the repeated one have an output each.
            told = [item["output"] for item in await stage.whole() if "output" in item]
            assert told == [f"noted {text}, as number {n}" for n, text in enumerate(effects, 1)] * (
                3 - len(effects)
            )
            assert stage.broken() == {}

    within(run)


def test_a_call_of_a_later_answer_is_run_though_a_broken_one_had_the_same_id(monkeypatch):
    # Some servers begin to count anew in every answer, and the same question has a new answer.
    monkeypatch.setattr(backoff, "FIRST_DELAY_SECONDS", 0.001)

    async def run():
        asked = []

        def hour() -> str:
            """What time it is."""
            asked.append(KEY)
            return f"{len(asked)} o'clock"

        async with staged() as stage:
            stage.emulator.say(call("hour", call_id=KEY))
            stage.emulator.fault("cut before=end")
            stage.emulator.say("One.")
            stage.emulator.say(call("hour", call_id=KEY))
            stage.emulator.say("Two.")
            runner = stage.runner(hour)
            assert text_of(await played(runner.turn(THREAD, "What time is it?"))) == "One."
            assert text_of(await played(runner.turn(THREAD, "And now?"))) == "Two."
            told = [item["output"] for item in await stage.whole() if "output" in item]
            assert told == ["1 o'clock", "2 o'clock"]

    within(run)


# --- a call that was made elsewhere ------------------------------------------------------------


def made_elsewhere(key=KEY):
    """A history that ends with a call: nobody here knows whether it was run."""
    work = {"type": "function_call", "call_id": key, "name": "work", "arguments": "{}"}
    return [{"role": "user", "content": "Go."}, work]


@pytest.mark.parametrize("effect", Effect)
def test_a_call_that_was_brought_along_is_run_only_if_that_changes_nothing(effect):
    async def run():
        tools = Tools(effect)
        tools.ends = True
        async with staged() as stage:
            stage.emulator.say("I see.")
            # Whoever made it before had another key for it: with ours, twice would be twice.
            runs = effect is Effect.READ
            assert text_of(await played(stage.runner(tools.work).turn(THREAD, made_elsewhere())))
            assert len(tools.contexts) == runs
            told = output_in(await stage.whole())
            assert told == ("done in attempt 1" if runs else UNKNOWN_TEXT)

    within(run)


def test_the_caller_may_look_up_what_became_of_a_call_that_was_brought_along():
    async def run():
        tools = Tools()

        async def on_unknown(pending):
            return f"{pending.call_id} was done"

        async with staged() as stage:
            stage.emulator.say("I see.")
            runner = stage.runner(tools.work, on_unknown=on_unknown)
            await played(runner.turn(THREAD, made_elsewhere()))
            assert output_in(await stage.whole()) == "call_1 was done"
            assert tools.contexts == []

    within(run)


@pytest.mark.parametrize("approved", [True, False])
def test_who_approves_of_a_call_that_was_brought_along_has_decided(approved):
    async def run():
        ran = []

        @tool(needs_approval=True)
        def work() -> str:
            """Work."""
            ran.append(KEY)
            return "done"

        async with staged() as stage:
            stage.emulator.say("I see.")
            await played(stage.runner(work).turn(THREAD, made_elsewhere()))
            assert ran == []
            await played(stage.runner(work).turn(THREAD, approve={KEY: approved}))
            assert ran == [KEY] * approved
            told = output_in(await stage.whole())
            # It was refused here; before that it may have run.
            assert told == ("done" if approved else f"{UNKNOWN_TEXT}\nIt was not approved.")

    within(run)
