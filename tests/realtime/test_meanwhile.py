"""What happens while something else does: a line is lost in the middle of a write, the model calls
while a line is filled, calls go while somebody is asked about them."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.core.facts import CallSettled, ItemAdded
from lockstitch.core.records import decoded
from lockstitch.emulator import call
from lockstitch.realtime import NoSuchCall, Reconnecting, Restored, Session, SessionOver
from lockstitch.realtime.connection import event_of
from lockstitch.runner import Waiting, tool
from lockstitch.store.errors import CannotWrite, StoreError
from lockstitch.store.memory import MemoryStore
from tests.realtime.booking import Book
from tests.realtime.hearing import of, saying, until, user
from tests.realtime.stage import SECONDS, staged, within

HASTY_SECONDS = 0.01


class HeldBack:
    """Connections of which one tells an event of a type only behind the next of another."""

    def __init__(self, connect, type, *, behind, on):
        self._connect = connect
        self._type, self._behind, self._on = type, behind, on
        self._opened = 0
        self.held = asyncio.Event()

    async def __call__(self):
        inner, self._opened = await self._connect(), self._opened + 1
        if self._opened != self._on:
            return inner
        kept, due = [], []
        outer = self

        class Holding:
            send, close = inner.send, inner.close

            async def receive(self):
                while True:
                    if due:
                        return due.pop()
                    event = event_of(await inner.receive())
                    if event["type"] == outer._type and not outer.held.is_set():
                        kept.append(event)
                        outer.held.set()
                        continue
                    if event["type"] == outer._behind and kept:
                        due.append(kept.pop())
                    return event

        return Holding()


def test_a_call_that_is_made_while_a_new_line_is_filled_is_run_once():
    async def scene():
        book = Book()
        faults = ["cut before=input_audio_buffer.cleared how=reset"]
        turns = (call("book", {"flight": "LS 1"}, call_id="c1"), "Done.")
        async with staged(*turns, faults=faults) as stage:
            connect = HeldBack(stage.connect(), "session.updated", behind="response.done", on=2)
            async with stage.session(book.book, connect=connect) as session:
                await session.change(added=[user("a", "a")])
                sending = asyncio.create_task(session.send({"type": "input_audio_buffer.clear"}))
                await connect.held.wait()
                await stage.emulator.speak("Book it.")  # the line has no context so far
                heard = await until(session, saying("Done."))
                assert len(of(Restored, heard)) == 1
                assert book.booked == ["LS 1"]
                types = [wire["type"] for wire in session.items]
                at = types.index("function_call")
                assert types[at + 1] == "function_call_output"
                stage.in_step(session)
                await sending

    within(scene)


class Stuck(MemoryStore):
    """A store that takes its time over some facts, and may fail then."""

    def __init__(self, is_one):
        super().__init__()
        self._is_one = is_one
        self.asked = asyncio.Event()
        self.may_write = asyncio.Event()
        self.fails = False

    async def append(self, claim, after, records, **how):
        if any(self._is_one(decoded(record)) for record in records):
            self.asked.set()
            await self.may_write.wait()
            if self.fails:
                raise CannotWrite("The disk is full.")
        await super().append(claim, after, records, **how)


def _is_call(fact):
    return isinstance(fact, ItemAdded) and b"call_id" in fact.item


def _is_output(fact):
    return isinstance(fact, CallSettled)


@pytest.fixture
def hasty(monkeypatch):
    """A line that has ended is heard for a moment only."""
    monkeypatch.setattr("lockstitch.realtime.line.CLOSE_SECONDS", HASTY_SECONDS)


@pytest.mark.usefixtures("hasty")
def test_a_line_that_is_lost_while_a_call_is_written_down_loses_nothing_and_runs_it_once():
    async def scene():
        book = Book()
        turns = (call("book", {"flight": "LS 1"}, call_id="c1"), "Done.")
        faults = ["cut after=response.done how=reset"]
        async with staged(*turns, faults=faults) as stage:
            stage.store = Stuck(_is_call)
            async with stage.session(book.book) as session:
                await session.change(added=[user("a", "a")])
                waiting = await _lost_while_it_writes(stage, session)
                stage.store.may_write.set()
                heard = await until(session, saying("Done."))
                await waiting
                assert book.booked == ["LS 1"]
                assert [wire["type"] for wire in session.items] == [
                    "message",
                    "function_call",
                    "function_call_output",
                    "message",
                ]
                stage.in_step(session)
                # What was being written down is told, and before the loss.
                kinds = [one["type"] if isinstance(one, dict) else type(one) for one in heard]
                assert kinds.index("response.done") < kinds.index(Reconnecting)
            made = [wire for wire in session.history() if wire["type"] == "function_call"]
            assert len(made) == 1

    within(scene)


async def _lost_while_it_writes(stage, session):
    """The line is lost, and found to be, while the store takes its time. Gives who waits for the
    next one."""
    line = session._lines.newest
    asking = asyncio.create_task(session.respond())
    await stage.store.asked.wait()
    sending = asyncio.create_task(_chatter(session, line))
    while line.lost is None:  # whoever sends finds out
        await line.rung(SECONDS)
    await asyncio.sleep(10 * HASTY_SECONDS)  # and nobody listens to it any longer
    return asyncio.gather(asking, sending, return_exceptions=True)


async def _chatter(session, line):
    while line.lost is None:
        await session.send({"type": "input_audio_buffer.clear"})
        await asyncio.sleep(0.001)


@pytest.mark.usefixtures("hasty")
def test_a_write_that_fails_while_its_line_is_lost_ends_the_session():
    async def scene():
        faults = ["cut after=response.done how=reset"]
        async with staged(call("book", {}, call_id="c1"), faults=faults) as stage:
            stage.store = Stuck(_is_call)
            async with stage.session() as session:
                waiting = await _lost_while_it_writes(stage, session)
                stage.store.fails = True
                stage.store.may_write.set()
                with pytest.raises(CannotWrite, match="The disk is full"):
                    await until(session, "never")
                with pytest.raises(SessionOver, match="The disk is full"):
                    await session.change(added=[user("a", "a")])
                await waiting

    within(scene)


def test_the_answer_of_a_caller_who_is_cancelled_is_delivered():
    async def scene():
        async with staged(call("book", {}, call_id="c1"), "Done.") as stage:
            stage.store = Stuck(_is_output)
            async with stage.session() as session:
                await session.respond()
                await until(session, Waiting)
                answering = asyncio.create_task(session.answer("c1", "It is booked."))
                await stage.store.asked.wait()
                answering.cancel()
                await asyncio.gather(answering, return_exceptions=True)
                assert answering.cancelled()
                stage.store.may_write.set()
                await until(session, saying("Done."))
                stage.in_step(session)

    within(scene)


def test_an_answer_that_cannot_be_written_ends_the_session():
    async def scene():
        async with staged(call("book", {}, call_id="c1"), "Done.") as stage:
            stage.store = Stuck(_is_output)
            stage.store.fails = True
            stage.store.may_write.set()
            async with stage.session() as session:
                await session.respond()
                await until(session, Waiting)
                with pytest.raises(CannotWrite):
                    await session.answer("c1", "It is booked.")
                with pytest.raises(SessionOver, match="The disk is full"):
                    await session.respond()

    within(scene)


@pytest.mark.parametrize("asks", [False, True], ids=["for an output", "for an approval"])
def test_a_call_that_goes_while_somebody_is_asked_about_it_holds_up_nobody(asks):
    async def scene():
        book = Book()
        tools = [tool(needs_approval=True)(book.book)] if asks else []
        turns = (call("book", {"flight": "LS 1"}, call_id="c1"),)
        turns += (call("book", {"flight": "LS 2"}, call_id="c2"), "Done.")
        async with staged(*turns) as stage, stage.session(*tools) as session:
            await session.respond()
            await until(session, Waiting)
            await until(session, "response.done")
            gone = {"type": "conversation.item.delete", "item_id": session.items[0]["id"]}
            await session.send(gone)
            await until(session, "conversation.item.deleted")
            with pytest.raises(NoSuchCall):
                await session.answer("c1", "It is booked.")
            await session.respond()
            await until(session, Waiting)
            if asks:
                session.approve({"c2": True})
            else:
                await session.answer("c2", "It is booked.")
            await until(session, saying("Done."))  # nothing else is open
            assert book.booked == (["LS 2"] if asks else [])
            stage.in_step(session)

    within(scene)


def test_what_was_acknowledged_before_a_line_was_lost_is_told_as_done():
    async def scene():
        faults = ["cut before=conversation.item.added nth=3 how=reset"]
        async with staged(faults=faults) as stage, stage.session() as session:
            edited = await session.change(added=[user(one, one) for one in "abcd"])
            assert stage.struck() == 1
            assert sorted(edited.done) == ["a", "b", "c", "d"]
            assert stage.in_step(session) == ["a", "b", "c", "d"]

    within(scene)


def test_an_output_may_be_replaced_to_and_fro_over_lost_connections():
    async def scene():
        faults = ["cut before=input_audio_buffer.cleared how=reset times=2"]
        async with staged(faults=faults) as stage, stage.session() as session:
            pair = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
            await session.change(added=[{"id": "f", **pair}, _output("o1")])
            first = session.snapshot()
            for name, other in (("o1", "o2"), ("o2", "o1")):
                assert await session.change(removed=[name], added=[_output(other)])
                await session.send({"type": "input_audio_buffer.clear"})
                await until(session, Restored)
            assert stage.in_step(session) == ["f", "o1"]
            # What the first snapshot shows is what is there.
            assert await session.edit([*first.items, user("a", "a")], base=first)
            assert stage.in_step(session) == ["f", "o1", "a"]

    within(scene)


def _output(id):
    return {"id": id, "type": "function_call_output", "call_id": "c1", "output": f"said by {id}"}


class Unreleased(MemoryStore):
    """A store that cannot let a conversation go."""

    closed = False

    async def release(self, claim):
        raise StoreError("It is not reachable.")

    async def close(self):
        self.closed = True


def test_a_store_of_its_own_is_closed_whatever_it_says(monkeypatch):
    async def scene():
        store = Unreleased()

        async def opened(url):
            return store

        monkeypatch.setattr("lockstitch.realtime.session.open_store", opened)
        async with staged() as stage:
            session = await Session.open(stage.connect(), store="memory:")
            with pytest.raises(StoreError, match="not reachable"):
                await session.close()
            assert store.closed

    within(scene)


def test_what_is_put_in_front_of_an_output_by_its_caller_tears_no_pair_when_a_line_is_lost():
    async def scene():
        pair = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
        for nth in (2, 3, 4):
            faults = [f"cut before=conversation.item.added nth={nth} how=reset"]
            async with staged(faults=faults) as stage, stage.session() as session:
                added = [user("a", "a"), {"id": "f", **pair}, user("b", "b"), _output("o1")]
                edited = await session.change(added=added)
                assert stage.struck() == 1
                assert sorted(edited.done) == ["a", "b", "f", "o1"]
                assert stage.in_step(session) == ["a", "f", "o1", "b"]

    within(scene)
