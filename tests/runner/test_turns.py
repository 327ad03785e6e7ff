"""Turns as they should be: what is told, what is sent, and when it is on disk."""

from __future__ import annotations

import argparse
import asyncio
import json

import pytest

from lockstitch.core.errors import NotAnItem
from lockstitch.core.outcomes import UNKNOWN_TEXT, Outcome
from lockstitch.emulator import call, custom_call, reasoning
from lockstitch.runner import (
    Budget,
    CallBegan,
    CallEnded,
    CannotContinue,
    ItemSaid,
    NoSuchCall,
    OutOfBudget,
    TextDelta,
    Tool,
    TurnEnded,
    Waiting,
    tool,
)
from lockstitch.runner import runner as runner_module
from lockstitch.store import open_store
from lockstitch.store.errors import CannotWrite, ConversationBusy
from lockstitch.store.memory import MemoryStore
from tests.runner.stage import (
    THREAD,
    calls_in,
    of,
    outputs_in,
    played,
    staged,
    text_of,
    within,
)

KINDS = ("responses", "chat", "messages")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def adding(a, b, key):
    return call("add", {"a": a, "b": b}, call_id=key)


def outputs(items):
    """What calls were answered with, by call id."""
    return {item["call_id"]: item["output"] for item in items if "output" in item}


# --- what is told ------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["http", "websocket"])
def test_the_deltas_of_a_text_are_the_text(transport):
    async def run():
        async with staged() as stage:
            stage.emulator.say(reasoning("Who is there?"), "Good morning to you.")
            events = await played(stage.runner(transport=transport).turn(THREAD, "Hello."))
            deltas = of(TextDelta, events)
            assert "".join(d.text for d in deltas if d.kind == "text") == "Good morning to you."
            assert "".join(d.text for d in deltas if d.kind == "reasoning") == "Who is there?"
            assert [said.item["type"] for said in of(ItemSaid, events)] == ["reasoning", "message"]
            (ended,) = of(TurnEnded, events)
            assert events[-1] is ended
            assert (ended.text, ended.rounds) == ("Good morning to you.", 1)
            assert ended.usage["output_tokens"] > 0

    within(run)


@pytest.mark.parametrize("kind", KINDS)
def test_parallel_calls_are_told_run_and_answered(kind):
    async def run():
        async with staged() as stage:
            stage.emulator.say(adding(1, 2, "call_1"), adding(3, 4, "call_2"))
            stage.emulator.say("3 and 7.")
            runner = stage.runner(add, kind=kind, instructions="Be brief.")
            events = await played(runner.turn(THREAD, "Add them."))
            assert [began.call_id for began in of(CallBegan, events)] == ["call_1", "call_2"]
            assert {ended.call_id for ended in of(CallEnded, events)} == {"call_1", "call_2"}
            assert {ended.outcome for ended in of(CallEnded, events)} == {Outcome.FINISHED}
            assert text_of(events) == "3 and 7."
            assert of(TurnEnded, events)[0].rounds == 2
            await stage.whole()
            assert stage.broken() == {}
            stage.emulator.say("Yes.")
            assert text_of(await played(runner.turn(THREAD, "Sure?"))) == "Yes."
            assert stage.broken() == {}

    within(run)


@pytest.mark.parametrize("kind", KINDS)
def test_instructions_are_sent_and_are_no_part_of_the_thread(kind):
    async def run():
        async with staged() as stage:
            runner = stage.runner(kind=kind, instructions="Be brief.")
            for text in ("one", "two"):
                await played(runner.turn(THREAD, text))
                assert str(stage.sent()[-1]).count("Be brief.") == 1
            assert "Be brief." not in str(await runner.history(THREAD))

    within(run)


def test_a_turn_without_a_message_and_with_nothing_to_do_says_the_last_word_again():
    async def run():
        async with staged() as stage:
            stage.emulator.say("Hello.")
            await played(stage.runner().turn(THREAD, "hi"))
            (ended,) = await played(stage.runner().turn(THREAD))
            assert (ended.text, ended.rounds) == ("Hello.", 0)
            assert len(stage.sent()) == 1

    within(run)


# --- outputs -----------------------------------------------------------------------------------


def test_outputs_are_sent_in_the_order_of_the_calls_though_the_last_ended_first():
    async def run():
        ended = []
        turns = {name: asyncio.Event() for name in "abc"}
        turns["c"].set()

        async def step(name: str) -> str:
            await turns[name].wait()
            ended.append(name)
            before = chr(ord(name) - 1)
            if before in turns:
                turns[before].set()
            return name.upper()

        async with staged() as stage:
            made = [call("step", {"name": name}, call_id=f"call_{name}") for name in "abc"]
            stage.emulator.say(*made)
            stage.emulator.say("Done.")
            events = await played(stage.runner(step).turn(THREAD, "Go."))
            assert ended == ["c", "b", "a"]
            assert [each.call_id[-1] for each in of(CallEnded, events)] == ended
            assert outputs_in(stage.sent()[-1]["input"]) == ["call_a", "call_b", "call_c"]

    within(run)


def test_an_output_is_durable_while_the_stream_still_runs(tmp_path):
    url = f"sqlite:///{tmp_path / 'agent.db'}"

    async def run():
        async with staged() as stage:
            # Behind the call comes a text, so slowly that the test would fail if it waited for it.
            stage.emulator.say(adding(1, 2, "call_1"), "one two three", delay=0)
            stage.emulator.fault("stall before=response.output_text.delta seconds=3600")
            runner = stage.runner(add, store=url)
            turn = runner.turn(THREAD, "Add them.")
            async for event in turn:
                if isinstance(event, CallEnded):
                    break
            async with open_store(url) as second:
                stage.store = second
                ledger = await stage.ledger()
            (made,) = ledger.calls_with_key("call_1")
            assert made.outcome is Outcome.FINISHED
            assert ledger.doubts() != []  # the answer is not over
            await turn.aclose()

    within(run)


@pytest.mark.parametrize(
    ("draft", "words"),
    [
        (call("subtract", {"a": 1}, call_id="call_1"), "There is no tool 'subtract'."),
        (call("add", {"a": 1, "b": "x"}, call_id="call_1"), "Expected `int`"),
        (call("add", '{"a": 1, "b', call_id="call_1"), "JSON"),
        (call("fail", call_id="call_1"), "ValueError: no such city"),
    ],
)
def test_what_cannot_be_called_or_fails_is_told_to_the_model(draft, words):
    def fail() -> None:
        raise ValueError("no such city")

    async def run():
        async with staged() as stage:
            stage.emulator.say(draft)
            stage.emulator.say("I see.")
            events = await played(stage.runner(add, fail).turn(THREAD, "Go."))
            assert text_of(events) == "I see."
            (ended,) = of(CallEnded, events)
            assert ended.failed
            assert words in outputs(stage.sent()[-1]["input"])["call_1"]
            assert stage.broken() == {}
            await stage.whole()

    within(run)


def test_a_tool_that_takes_too_long_has_an_unknown_outcome_and_the_turn_goes_on():
    @tool(timeout=0.01)
    async def wait() -> None:
        await asyncio.Event().wait()

    async def run():
        async with staged() as stage:
            stage.emulator.say(call("wait", call_id="call_1"))
            stage.emulator.say("I see.")
            events = await played(stage.runner(wait, grace=0.01).turn(THREAD, "Go."))
            (ended,) = of(CallEnded, events)
            assert ended.outcome is Outcome.UNKNOWN
            told = outputs(stage.sent()[-1]["input"])["call_1"]
            assert told.startswith(UNKNOWN_TEXT)
            assert "its time limit of 0.01 seconds" in told
            assert text_of(events) == "I see."

    within(run)


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_tools_run_at_once_than_were_allowed(most):
    async def run():
        running = 0
        seen = []
        full = asyncio.Event()

        async def work() -> None:
            nonlocal running
            running += 1
            seen.append(running)
            if running == most:
                full.set()
            await full.wait()
            await asyncio.sleep(0)
            running -= 1

        async with staged() as stage:
            stage.emulator.say(*(call("work", call_id=f"call_{n}") for n in range(5)))
            stage.emulator.say("Done.")
            await played(stage.runner(work, tools_at_once=most).turn(THREAD, "Go."))
            assert len(seen) == 5
            assert max(seen) == most

    within(run)


def test_a_custom_tool_gets_the_raw_text():
    @tool(kind="custom")
    def shout(text: str) -> str:
        return text.upper()

    async def run():
        async with staged() as stage:
            stage.emulator.say(custom_call("shout", 'say "hi"\n{', call_id="call_1"))
            stage.emulator.say("Done.")
            await played(stage.runner(shout).turn(THREAD, "Go."))
            (item,) = stage.sent()[-1]["input"]
            assert item["type"] == "custom_tool_call_output"
            assert item["output"] == 'SAY "HI"\n{'
            assert stage.broken() == {}

    within(run)


def test_content_parts_are_sent_as_parts():
    parts = [
        {"type": "input_text", "text": "a square"},
        {"type": "input_image", "image_url": "https://example.com/a.png"},
    ]

    def draw() -> list:
        return parts

    async def run():
        async with staged() as stage:
            stage.emulator.say(call("draw", call_id="call_1"))
            stage.emulator.say("Done.")
            await played(stage.runner(draw).turn(THREAD, "Go."))
            assert outputs(stage.sent()[-1]["input"])["call_1"] == parts
            assert stage.broken() == {}

    within(run)


# --- tools that are answered from outside ------------------------------------------------------

ASK = Tool.answered_outside("ask", "Ask a person.", {"type": "object", "properties": {}})


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_waits_for_an_answer_from_outside_in_any_process(kind):
    async def run():
        async with staged() as stage:
            stage.emulator.say(call("ask", call_id="call_1"), adding(1, 2, "call_2"))
            stage.emulator.say("Thank you.")
            events = await played(stage.runner(ASK, add, kind=kind).turn(THREAD, "Go."))
            waiting = events[-1]
            assert isinstance(waiting, Waiting)
            assert [pending.call_id for pending in waiting.for_output] == ["call_1"]
            assert [ended.call_id for ended in of(CallEnded, events)] == ["call_2"]

            still = await played(stage.runner(ASK, add, kind=kind).turn(THREAD))
            assert [type(event) for event in still] == [Waiting]

            await stage.runner(ASK, add, kind=kind).answer(THREAD, "call_1", "forty-two")
            with pytest.raises(NoSuchCall, match="call_1"):
                await stage.runner(ASK, kind=kind).answer(THREAD, "call_1", "forty-three")
            resumed = await played(stage.runner(ASK, add, kind=kind).turn(THREAD))
            assert text_of(resumed) == "Thank you."
            assert "forty-two" in str(await stage.whole())
            assert "forty-three" not in str(stage.sent()[-1])
            assert stage.broken() == {}

    within(run)


# --- one runner at a time ----------------------------------------------------------------------


def test_a_second_runner_on_a_thread_is_told_that_it_is_busy_or_waits():
    async def run():
        async with staged() as stage:
            entered, leave = asyncio.Event(), asyncio.Event()

            async def work() -> str:
                entered.set()
                await leave.wait()
                return "done"

            stage.emulator.say(call("work", call_id="call_1"))
            stage.emulator.say("First.")
            stage.emulator.say("Second.")
            first = asyncio.create_task(played(stage.runner(work).turn(THREAD, "Go.")))
            await entered.wait()
            with pytest.raises(ConversationBusy, match=THREAD):
                await played(stage.runner(work).turn(THREAD, "And I?"))
            patient = stage.runner(work, wait=10)
            second = asyncio.create_task(played(patient.turn(THREAD, "And I?")))
            leave.set()
            assert text_of(await first) == "First."
            assert text_of(await second) == "Second."
            texts = [each.get("content") for each in await stage.whole() if "role" in each]
            assert texts[0] == "Go."
            assert texts[-2] == "And I?"
            assert stage.broken() == {}

    within(run)


# --- what is sent ------------------------------------------------------------------------------


def test_an_input_filter_rewrites_what_is_sent_once_and_for_all():
    def redact(items):
        return [
            {**item, "content": item["content"].replace("4000 1234", "****")}
            if isinstance(item.get("content"), str)
            else item
            for item in items
        ]

    async def redact_later(items):
        await asyncio.sleep(0)
        return redact(items)

    async def run():
        for mode in ("previous_response_id", "full"):
            for rewrite in (redact, redact_later):
                async with staged() as stage:
                    runner = stage.runner(add, input_filter=rewrite, mode=mode)
                    stage.emulator.say(adding(1, 2, "call_1"))
                    stage.emulator.say("Paid.")
                    stage.emulator.say("Yes.")
                    await played(runner.turn(THREAD, "My card is 4000 1234."))
                    await played(runner.turn(THREAD, "Paid?"))
                    assert "4000" not in str(stage.sent())
                    assert "****" in str(stage.sent()[0])
                    assert stage.broken() == {}

    within(run)


def test_a_filter_that_breaks_a_pair_is_refused_before_anything_is_sent():
    def drop(items):
        return [item for item in items if item.get("type") != "function_call_output"]

    async def run():
        async with staged() as stage:
            stage.emulator.say(adding(1, 2, "call_1"))
            stage.emulator.say("Well.")
            with pytest.raises(CannotContinue, match="call_1"):
                await played(stage.runner(add, input_filter=drop).turn(THREAD, "Go."))
            assert len(stage.sent()) == 1
            assert text_of(await played(stage.runner(add).turn(THREAD))) == "Well."
            assert stage.broken() == {}
            await stage.whole()

    within(run)


def test_a_filter_that_gives_no_list_back_is_refused_before_anything_is_sent():
    def changes_in_place(items):
        items[:] = [item for item in items if item.get("type") != "function_call_output"]

    def gives_one_item(items):
        return items[0]

    async def run():
        for rewrite in (changes_in_place, gives_one_item):
            async with staged() as stage:
                with pytest.raises(CannotContinue, match=r"input filter returned .*Return the"):
                    await played(stage.runner(add, input_filter=rewrite).turn(THREAD, "Go."))
                assert stage.sent() == []

    within(run)


def test_the_mode_may_be_another_one_in_every_turn():
    modes = ("previous_response_id", "conversation", "full", "conversation", "previous_response_id")

    async def run():
        async with staged() as stage:
            for number, mode in enumerate(modes):
                stage.emulator.say(adding(number, 1, f"call_{number}"))
                stage.emulator.say(f"Answer {number}.")
                runner = stage.runner(add, mode=mode)
                events = await played(runner.turn(THREAD, f"Question {number}?"))
                assert text_of(events) == f"Answer {number}."
                context = str(await stage.context(mode))
                for earlier in range(number + 1):
                    assert context.count(f"Question {earlier}?") == 1
            assert outputs_in(await stage.whole()) == [f"call_{n}" for n in range(len(modes))]
            assert stage.broken() == {}

    within(run)


# --- budgets -----------------------------------------------------------------------------------


def test_a_model_that_calls_for_ever_is_stopped_and_can_go_on():
    async def run():
        async with staged() as stage:
            for n in range(3):
                stage.emulator.say(adding(n, n, f"call_{n}"))
            stage.emulator.say("At last.")
            runner = stage.runner(add, budget=Budget(rounds=2))
            with pytest.raises(OutOfBudget, match="took 2 answers"):
                await played(runner.turn(THREAD, "Go."))
            await stage.whole()
            assert text_of(await played(runner.turn(THREAD))) == "At last."
            assert calls_in(await stage.whole()) == ["call_0", "call_1", "call_2"]
            assert stage.broken() == {}

    within(run)


def test_a_turn_that_takes_too_long_ends_with_its_tool_settled():
    async def run():
        async def wait() -> None:
            await asyncio.Event().wait()

        async with staged() as stage:
            stage.emulator.say(call("wait", call_id="call_1"))
            stage.emulator.say("I see.")
            runner = stage.runner(wait, budget=Budget(seconds=0.3), grace=0.01)
            with pytest.raises(OutOfBudget, match=r"longer than 0\.3 seconds"):
                await played(runner.turn(THREAD, "Go."))
            assert outputs(await stage.whole())["call_1"].startswith(UNKNOWN_TEXT)
            assert text_of(await played(stage.runner(wait).turn(THREAD))) == "I see."
            assert stage.broken() == {}

    within(run)


def test_a_timeout_of_somebody_elses_is_not_taken_for_the_budget():
    def late(items):
        raise TimeoutError("the filter's own")

    async def run():
        async with staged() as stage:
            with pytest.raises(TimeoutError, match="the filter's own"):
                await played(stage.runner(input_filter=late).turn(THREAD, "Go."))

    within(run)


# --- answers that end early --------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_incomplete_answer_is_the_end_of_the_turn_and_stays(kind):
    async def run():
        async with staged() as stage:
            stage.emulator.say("Once upon a", ends="incomplete")
            runner = stage.runner(kind=kind)
            events = await played(runner.turn(THREAD, "Tell."))
            assert text_of(events) == "Once upon a"
            assert of(TurnEnded, events)[0].incomplete
            stage.emulator.say("time.")
            assert text_of(await played(runner.turn(THREAD, "Go on."))) == "time."
            assert "Once upon a" in str(await stage.whole())
            assert stage.broken() == {}

    within(run)


@pytest.mark.parametrize("mode", ["previous_response_id", "conversation", "full"])
def test_a_call_that_broke_off_in_an_incomplete_answer_is_not_run(mode):
    async def run():
        async with staged() as stage:
            stage.emulator.say(adding(1, 2, "call_1"), adding(3, 4, "call_2"))
            stage.emulator.fault("incomplete after=response.output_item.added nth=2")
            stage.emulator.say("I see.")
            stage.emulator.say("Yes.")
            runner = stage.runner(add, mode=mode)
            events = await played(runner.turn(THREAD, "Go."))
            assert [began.call_id for began in of(CallBegan, events)] == ["call_1"]
            assert text_of(events) == "I see."
            assert text_of(await played(runner.turn(THREAD, "Sure?"))) == "Yes."
            assert (await stage.ledger()).unsettled() == []
            assert stage.broken() == {}

    within(run)


# --- servers that are not quite right ----------------------------------------------------------


@pytest.mark.parametrize("mode", ["previous_response_id", "full"])
def test_a_server_may_give_all_its_answers_the_same_id(mode):
    async def run():
        async with staged() as stage:
            runner = stage.runner(mode=mode)
            for text in ("one", "two", "three"):
                stage.emulator.reset()  # which begins with the same ids
                events = await played(runner.turn(THREAD, text))
                assert text_of(events) == f"You said: {text}"
            assert str(await stage.whole()).count("You said") == 3

    within(run)


@pytest.mark.parametrize("kind", ["chat", "messages"])
def test_ids_of_answers_do_not_matter_where_nothing_is_kept(kind):
    async def run():
        async with staged() as stage:
            runner = stage.runner(add, kind=kind)
            for _ in range(2):
                stage.emulator.reset()
                assert text_of(await played(runner.turn(THREAD, "hello"))) == "You said: hello"
            assert stage.broken() == {}

    within(run)


# --- the store of a runner ---------------------------------------------------------------------


@pytest.fixture
def opened(monkeypatch):
    """The stores that runners open."""
    stores = []

    class Noted(MemoryStore):
        fails = False
        closed = False

        async def release(self, claim):
            await super().release(claim)
            if self.fails:
                raise CannotWrite("The disk is full.")

        async def close(self):
            self.closed = True
            await super().close()

    async def open_one(url):
        stores.append(Noted())
        await asyncio.sleep(0)
        return stores[-1]

    monkeypatch.setattr(runner_module, "open_store", open_one)
    return stores


SEEN = {
    "responses": [
        {"type": "input_text", "text": "seen:"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
    ],
    "chat": [{"type": "text", "text": "seen:"}],
    "messages": [
        {"type": "text", "text": "seen:"},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
    ],
}


@pytest.mark.parametrize("made_for", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_tool_made_for_one_api_does_not_break_a_thread_of_another(kind, made_for):
    async def run():
        def look() -> list:
            """Look."""
            return SEEN[made_for]

        async with staged() as stage:
            stage.emulator.say(call("look", call_id="call_1"))
            stage.emulator.say("Seen.")
            events = await played(stage.runner(look, kind=kind).turn(THREAD, "Look."))
            assert text_of(events) == "Seen."
            (ended,) = of(CallEnded, events)
            assert json.loads(ended.output) == SEEN[made_for]
            sent = json.dumps((stage.sent()[-1].get("input") or stage.sent()[-1]["messages"])[-1])
            # Content stands in the request as it is; JSON in a text has its quotes escaped.
            takes_it = (kind, made_for) == ("messages", "chat") or kind == made_for
            assert (json.dumps(SEEN[made_for]) in sent) == takes_it
            assert stage.broken() == {}

    within(run)


@pytest.mark.parametrize("made_for", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_from_outside_made_for_another_api_is_not_added(kind, made_for):
    async def run():
        look = Tool.answered_outside("look", "Look.", {"type": "object", "properties": {}})
        async with staged() as stage:
            stage.emulator.say(call("look", call_id="call_1"))
            stage.emulator.say("Seen.")
            runner = stage.runner(look, kind=kind)
            await played(runner.turn(THREAD, "Look."))
            if kind == made_for or (kind, made_for) == ("messages", "chat"):
                await runner.answer(THREAD, "call_1", SEEN[made_for])
            else:
                with pytest.raises(NotAnItem, match=f"The {kind} API takes no"):
                    await runner.answer(THREAD, "call_1", SEEN[made_for])
                await runner.answer(THREAD, "call_1", "seen")
            assert text_of(await played(runner.turn(THREAD))) == "Seen."
            assert stage.broken() == {}

    within(run)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tool_that_exits_ends_neither_its_turn_nor_another(kind):
    async def run():
        asked, may_end = asyncio.Event(), asyncio.Event()

        async def resize(width: str) -> None:
            """Resize."""
            await asked.wait()
            may_end.set()
            argparse.ArgumentParser(exit_on_error=True).parse_args([width])

        async def wait() -> str:
            """Wait."""
            asked.set()
            await may_end.wait()
            return "waited"

        async with staged() as stage:
            stage.emulator.say(call("resize", {"width": "--wide"}, call_id="call_1"))
            stage.emulator.say(call("wait", call_id="call_2"))
            stage.emulator.say("Sorry.")
            stage.emulator.say("Done.")
            runner = stage.runner(resize, wait, kind=kind)
            first = asyncio.create_task(played(runner.turn("first", "Resize it.")))
            while not stage.sent():
                await asyncio.sleep(0.001)
            second = asyncio.create_task(played(runner.turn("second", "Wait.")))
            (ended,) = of(CallEnded, await first)
            assert (ended.output, ended.outcome) == ("SystemExit: 2", Outcome.FINISHED)
            assert ended.failed
            (ended,) = of(CallEnded, await second)
            assert ended.output == "waited"
            await stage.whole("first")
            await stage.whole("second")
            assert stage.broken() == {}

    within(run)


def test_turns_that_begin_at_once_share_one_store(opened):
    async def run():
        async with staged() as stage:
            for _ in range(3):
                stage.emulator.say("Hello.")
            agent = stage.runner(store="sqlite:///any.db")
            turns = [agent.turn(f"thread-{number}", "Hello.") for number in range(3)]
            await asyncio.gather(*map(played, turns))
            await agent.close()
            (store,) = opened
            assert store.closed

    within(run)


def test_a_runner_that_cannot_let_go_of_a_thread_lets_go_of_all_the_rest(opened):
    async def run():
        async with staged() as stage:
            stage.emulator.say("Hello.")
            agent = stage.runner(store="sqlite:///any.db")
            turn = agent.turn(THREAD, "Hello.")
            await anext(turn)
            (store,) = opened
            store.fails = True
            with pytest.raises(CannotWrite):
                await agent.close()
            assert store.closed
            await turn.aclose()

    within(run)
