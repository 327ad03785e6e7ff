"""Threads that are taken up again: after a store that failed at its first write, its second, …; and
after `kill -9` at every step of a tool call. Pairs are whole, and no effect happens twice."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from itertools import count
from pathlib import Path

import pytest

import lockstitch
from lockstitch.core.facts import CallSettled
from lockstitch.core.outcomes import UNKNOWN_TEXT
from lockstitch.core.records import decoded
from lockstitch.emulator import ALWAYS, Script, Turn, call, reply
from lockstitch.realtime import Restored, Session, SessionOver
from lockstitch.realtime.websocket import websocket
from lockstitch.runner import CallBegan, CallEnded
from lockstitch.store.errors import CannotWrite, StoreError
from lockstitch.store.memory import MemoryStore
from lockstitch.store.sqlite import SqliteStore
from lockstitch.testing import EmulatorThread
from tests.realtime import killing
from tests.realtime.hearing import (
    come_to,
    function_call,
    function_output,
    of,
    saying,
    texts_of,
    until,
    user,
)
from tests.realtime.playing import BOOK, FINAL, LAST, Effects, decide, played
from tests.realtime.stage import MODEL, SECONDS, THREAD, staged, within
from tests.runner.killing_checks import lines
from tests.runner.killing_points import Effect

CASE_SECONDS = 10.0
"""A case takes some hundredths of a second; one that takes this long hangs."""


class Failing(MemoryStore):
    """A store whose nth write fails; the write itself may have been made all the same."""

    def __init__(self, fails_at, written):
        super().__init__()
        self.writes = 0
        self.fails_at = fails_at
        self.written = written

    async def append(self, claim, after, records, **how):
        self.writes += 1
        if self.writes != self.fails_at:
            return await super().append(claim, after, records, **how)
        if self.written:
            await super().append(claim, after, records, **how)
        raise CannotWrite("The disk is full.")


@pytest.mark.parametrize("written", [False, True], ids=["not written", "written all the same"])
def test_a_session_whose_store_fails_ends_and_another_takes_its_thread_up(written):
    async def scene():
        for number in count(1):
            async with staged(decide=decide) as stage, asyncio.timeout(CASE_SECONDS):
                stage.store = Failing(number, written)
                try:
                    if not await _taken_up(stage):
                        break
                except BaseException as error:
                    error.add_note(f"write {number}")
                    raise
        assert number > 10

    asyncio.run(scene())


async def _taken_up(stage):
    """Fail at a write, then go on in another session; False if no write failed."""
    effects = Effects()
    store = stage.store
    try:
        async with stage.session(*effects.tools) as session:
            await played(session)
    except (SessionOver, StoreError):
        pass  # whoever waits for the session hears that it is over; whoever reads, why
    if store.writes < store.fails_at:
        assert [len(effects.of(name)) for name in ("book", "look")] == [1, 1]
        return False
    store.fails_at = None
    async with stage.session(*effects.tools) as session:
        have = [texts_of(wire) for wire in session.items]
        if [LAST] not in have:
            await _finished(session, have)
        stage.in_step(session)
        check_effects(effects, session)
        assert stage.broken() == {}
    return True


async def _finished(session, have):
    """Go on from wherever it was left, as a caller does who looks at what is there."""
    if [BOOK] not in have and ["In short."] not in have:
        await session.change(added=[user(BOOK, "again")])
        await session.respond()
    elif [FINAL] not in have and not any(w["type"] == "function_call" for w in session.items):
        await session.respond()
    if [FINAL] not in have:
        await come_to(session, FINAL)


def check_effects(effects, session):
    """The call of a tool that must not run twice has one effect, or none that is known."""
    assert len(effects.of("book")) <= 1
    outputs = {
        wire["call_id"]: wire["output"]
        for wire in session.items
        if wire["type"] == "function_call_output"
    }
    said = outputs["call_book"]
    assert said.startswith(UNKNOWN_TEXT) or (said, len(effects.of("book"))) == ("LS 1 is booked", 1)
    assert outputs.get("call_look", "looked") == "looked"


# --- on disk first -----------------------------------------------------------------------------


class Gated(MemoryStore):
    """A store that keeps outputs waiting."""

    def __init__(self):
        super().__init__()
        self.asked = asyncio.Event()
        self.may_write = asyncio.Event()

    async def append(self, claim, after, records):
        if any(isinstance(decoded(record), CallSettled) for record in records):
            self.asked.set()
            await self.may_write.wait()
        await super().append(claim, after, records)


@pytest.mark.parametrize("cut", [False, True], ids=["on the same line", "on the next line"])
def test_an_output_is_on_disk_before_it_is_sent(cut):
    async def scene():
        faults = ["cut after=response.done how=reset"] if cut else []
        turns = (call("look", call_id="c1"), FINAL)
        async with staged(*turns, faults=faults) as stage:
            stage.store = Gated()
            async with stage.session(*Effects().tools) as session:
                await session.respond()
                await stage.store.asked.wait()
                if cut:
                    await until(session, "session.updated")
                    await until(session, "session.updated")
                else:
                    await until(session, "response.done")
                    await session.send({"type": "input_audio_buffer.clear"})
                    await until(session, "input_audio_buffer.cleared")
                created = [one["item"]["type"] for one in stage.frames("conversation.item.create")]
                assert "function_call_output" not in created
                stage.store.may_write.set()
                await come_to(session, FINAL)
                stage.in_step(session)

    within(scene)


def test_what_is_heard_is_on_disk_before_it_is_handed_on():
    async def scene():
        async with staged(decide=decide) as stage, stage.session() as session:
            await session.change(added=[user(BOOK, "first")])
            await session.respond()
            heard = 0
            async for event in session:
                if isinstance(event, dict) and event["type"] == "conversation.item.done":
                    heard += 1
                    ledger = await stage.ledger()
                    assert ledger.entries_with_id(event["item"]["id"])
                if heard == 3:
                    return

    within(scene)


# --- killed ------------------------------------------------------------------------------------

POINTS = [
    ("before ItemAdded", 2),
    ("after ItemAdded", 2),
    ("before CallStarted", 1),
    ("after CallStarted", 1),
    ("before book", 1),
    ("after book", 1),
    ("before CallSettled", 1),
    ("after CallSettled", 1),
    ("before CallSettled", 2),
]
"""The second item is the first call."""


@pytest.mark.parametrize("point", POINTS, ids=lambda point: f"{point[0]} {point[1]}")
def test_a_session_that_is_killed_resumes_with_whole_pairs_and_no_second_effect(point, tmp_path):
    async def resumed(url):
        async with (
            asyncio.timeout(SECONDS),
            await SqliteStore.open(tmp_path / "voice.db") as store,
        ):
            session = await Session.open(
                websocket(url, key="any"),
                session=killing.CONFIGURED,
                tools=killing.TOOLS,
                thread=killing.THREAD,
                store=store,
            )
            async with session:
                if not any(wire["type"] == "function_call" for wire in session.items):
                    await session.respond()
                await come_to(session, killing.FINAL)
                return session.items, session.history()

    def answer(asked):
        if asked.output is not None:
            return reply(killing.FINAL)
        return reply(
            call("book", {"flight": "LS 1"}, call_id="call_book"),
            call("note", {"text": "early"}, call_id="call_note"),
        )

    script = Script([Turn(decide=answer, times=ALWAYS)])
    with EmulatorThread(script=script) as emulator:
        url = f"{emulator.base_url.replace('http', 'ws', 1)}/realtime?model={MODEL}"
        left = asyncio.run(_killed(url, tmp_path, *point))
        assert left == -signal.SIGKILL
        before = lines(tmp_path / "effects", Effect)
        killing.Here.folder = tmp_path
        items, history = asyncio.run(resumed(url))
        done = lines(tmp_path / "effects", Effect)
        assert lockstitch.check(items, dialect="realtime") == []
        assert lockstitch.check(history, dialect="realtime") == []
        assert emulator.violations() == {}
    outputs = {w["call_id"]: w["output"] for w in items if w["type"] == "function_call_output"}
    booked = [one for one in done if one.tool == "book"]
    if outputs["call_book"].startswith(UNKNOWN_TEXT):
        assert booked == [one for one in before if one.tool == "book"]
    else:
        (effect,) = booked
        assert outputs["call_book"] == f"book by {effect.process}"
    # The other one is idempotent: it may run twice, with the same key. If the process died before
    # it heard of this call, there is none.
    noted = [one for one in done if one.tool == "note"]
    assert len({one.key for one in noted}) <= 1
    assert [f"note by {one.process}" for one in noted][-1:] == [
        output for call_id, output in outputs.items() if call_id == "call_note"
    ]


async def _killed(url, folder, where, nth):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.realtime.killing", url, str(folder), where, str(nth)),
        cwd=Path(__file__).parents[2],
        env=os.environ,
    )
    async with asyncio.timeout(SECONDS):
        return await process.wait()


# --- what is taken up --------------------------------------------------------------------------


def test_a_thread_is_taken_up_with_its_history_and_its_edits():
    async def scene():
        async with staged(decide=decide) as stage:
            effects = Effects()
            async with stage.session(*effects.tools) as session:
                await played(session)
                before = session.items
            async with stage.session(*effects.tools) as again:
                (restored,) = of(Restored, await until(again, Restored))
                assert restored.items == len(before)
                assert stage.in_step(again) == [wire["id"] for wire in before]
                assert [texts_of(wire) for wire in again.items] == [texts_of(w) for w in before]
                # What was summarised away is in the history, and not in the context.
                assert [BOOK] in [texts_of(wire) for wire in again.history()]
                assert [BOOK] not in [texts_of(wire) for wire in again.items]
                assert len(effects.done) == 2

    within(scene)


def test_an_output_that_nobody_has_answered_is_answered_when_the_thread_is_taken_up():
    async def scene():
        effects = Effects()
        async with staged(decide=decide) as stage:
            async with stage.session(*effects.tools, replies=False) as session:
                await session.change(added=[user(BOOK, "first")])
                await session.respond()
                await until(session, CallEnded)
                await until(session, CallEnded)
            async with stage.session(*effects.tools) as again:
                await come_to(again, FINAL)
                assert len(effects.done) == 2
                stage.in_step(again)

    within(scene)


def test_a_call_that_never_started_is_run_when_the_thread_is_taken_up():
    async def scene():
        effects = Effects()
        async with staged(call("book", {"flight": "LS 1"}, call_id="c1"), FINAL) as stage:
            async with stage.session() as session:  # without tools: nobody runs it
                await session.respond()
                await until(session, "response.done")
            async with stage.session(*effects.tools) as again:
                heard = await until(again, saying(FINAL))
                assert [one.attempt for one in of(CallBegan, heard)] == [1]
                assert len(effects.of("book")) == 1
                stage.in_step(again)

    within(scene)


def test_a_call_that_is_gone_and_was_never_answered_is_told_as_it_is():
    async def scene():
        async with staged(call("book", {"flight": "LS 1"}, call_id="c1")) as stage:
            async with stage.session() as session:
                await session.respond()
                await until(session, "response.done")
                gone = {"type": "conversation.item.delete", "item_id": session.items[0]["id"]}
                await session.send(gone)
                await until(session, "conversation.item.deleted")
                assert [wire["type"] for wire in session.history()] == ["function_call"]
            effects = Effects()
            async with stage.session(*effects.tools) as again:
                assert again.items == []
                assert effects.done == []
                assert lockstitch.check(again.history(), dialect="realtime") == []
                assert "Never started" in again.history()[-1]["output"]

    within(scene)


def test_pairs_that_a_caller_has_put_there_are_taken_up_and_never_run():
    async def scene():
        effects = Effects()
        async with staged() as stage:
            async with stage.session(*effects.tools) as session:
                await session.change(
                    added=[
                        user("a", "a"),
                        function_call("f", "c1", "book", '{"flight": "LS 9"}'),
                        function_output("o", "c1", "long ago"),
                        function_call("g", "c2", "book", '{"flight": "LS 9"}'),
                    ]
                )
                assert stage.in_step_but_open(session) == ["a", "f", "o", "g"]
                # Moved, a pair is made again, under other ids.
                seen = session.snapshot()
                target = [*seen.items[1:3], seen.items[0], seen.items[3]]
                assert await session.edit(target, base=seen)
                order = [wire["type"] for wire in session.items]
            async with stage.session(*effects.tools) as again:
                assert [wire["type"] for wire in again.items] == order
                assert effects.done == []
                assert stage.broken() == {}

    within(scene)


def test_speech_is_taken_up_as_its_words():
    async def scene():
        configured = {"audio": {"input": {"transcription": {"model": "whisper-1"}}}}
        async with staged("It is sunny.") as stage:
            async with stage.session(configured=configured) as session:
                await stage.emulator.speak("How is the weather?")
                await until(session, saying("It is sunny."))
            async with stage.session(configured=configured) as again:
                assert [texts_of(wire) for wire in again.items] == [
                    ["How is the weather?"],
                    ["It is sunny."],
                ]
                facts = len(again._thread.journal.ledger)
            async with stage.session(configured=configured) as third:
                # To be taken up is nothing new to say.
                assert len(third._thread.journal.ledger) == facts

    within(scene)


def test_a_thread_without_a_name_is_a_new_one():
    async def scene():
        async with staged() as stage, stage.session(thread=None) as session:
            assert session.thread != THREAD
            assert session.items == []

    within(scene)
