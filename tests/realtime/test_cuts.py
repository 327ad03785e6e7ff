"""Lost connections: after the first event, the second, … until none is lost. Each time the context
is pushed again, whole and once, and the conversation comes to its end."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from lockstitch.emulator import Settings, VirtualClock, call, reply
from lockstitch.realtime import (
    CannotConnect,
    ConnectionLost,
    Patience,
    Reconnecting,
    Restored,
    SessionOver,
)
from lockstitch.runner import CallEnded
from tests.realtime.booking import Book
from tests.realtime.hearing import come_to, of, saying, texts_of, until, user
from tests.realtime.playing import (
    FINAL,
    Effects,
    check_played,
    decide,
    played,
    settled,
)
from tests.realtime.stage import KINDS, SECONDS, staged, within

CASE_SECONDS = 10.0
"""A case takes some hundredths of a second; one that takes this long hangs."""
LEAST_SENDS = 8
LEAST_EVENTS = 30
"""A conversation has more; if fewer are found, the cuts are not where they should be."""


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch):
    monkeypatch.setattr("lockstitch.runner.backoff.FIRST_DELAY_SECONDS", 0.001)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("websocket", "cut after={} how=close"),
        ("websocket", "cut after={} how=reset"),
        ("websocket", "cut before={} how=half-frame"),
        ("openai", "cut after={} how=close"),
        ("openai", "close after={} code=1001"),
        ("websocket", "cut after={} how=reset times=2"),
    ],
)
def test_a_conversation_that_is_cut_anywhere_comes_to_its_end(kind, fault):
    async def scene():
        for number in count(1):
            cut = fault.format(number)
            async with staged(decide=decide, faults=[cut]) as stage:
                effects = Effects()
                try:
                    async with (
                        asyncio.timeout(CASE_SECONDS),
                        stage.session(*effects.tools, kind=kind) as session,
                    ):
                        await played(session)
                        await settled(stage, session)
                        check_played(stage, session, effects)
                except BaseException as error:
                    error.add_note(cut)
                    raise
                if stage.struck() == 0:
                    break
        assert number > LEAST_EVENTS

    asyncio.run(scene())


class Breaking:
    """Connections whose nth send fails, counted over all of them; it may have arrived."""

    def __init__(self, connect, nth, *, arrives):
        self._connect = connect
        self._nth, self._arrives = nth, arrives
        self.sent = 0

    async def __call__(self):
        connection = await self._connect()
        send = connection.send

        async def breaking(event):
            self.sent += 1
            if self.sent != self._nth:
                return await send(event)
            if self._arrives:
                await send(event)
            raise ConnectionLost("Nobody knows whether it arrived.")

        connection.send = breaking
        return connection


@pytest.mark.parametrize("arrives", [False, True], ids=["not arrived", "arrived"])
def test_a_conversation_in_which_any_send_fails_comes_to_its_end(arrives, monkeypatch):
    monkeypatch.setattr("lockstitch.realtime.line.CLOSE_SECONDS", 0.01)

    async def scene():
        for number in count(1):
            async with staged(decide=decide) as stage, asyncio.timeout(CASE_SECONDS):
                effects = Effects()
                connect = Breaking(stage.connect(), number, arrives=arrives)
                try:
                    async with stage.session(*effects.tools, connect=connect) as session:
                        await played(session)
                        await settled(stage, session)
                        check_played(stage, session, effects)
                except BaseException as error:
                    error.add_note(f"send {number}")
                    raise
                if connect.sent < number:
                    break
        assert number > LEAST_SENDS

    asyncio.run(scene())


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_had_at_first_is_tried_again(kind):
    async def scene():
        faults = ("refuse-upgrade code=500", "status code=503", "cut after=0", "cut after=1")
        async with staged("Hello.", faults=faults) as stage, stage.session(kind=kind) as session:
            await session.respond()
            await until(session, saying("Hello."))
            assert not stage.emulator.faults.unstruck()

    within(scene)


def test_a_lost_connection_is_told_and_the_context_pushed_once():
    async def scene():
        faults = ["cut before=conversation.item.deleted how=reset"]
        async with staged(faults=faults) as stage, stage.session() as session:
            await session.change(added=[user(str(n), f"n{n}") for n in range(5)])
            assert await session.change(removed=["n4"])
            told = [one for one in await until(session, Restored) if not isinstance(one, dict)]
            lost, restored = told
            assert isinstance(lost, Reconnecting)
            assert (lost.attempt, lost.response_lost) == (1, False)
            assert (restored.items, restored.rejected, restored.asked_again) == (5, (), False)
            created = [one["item"]["id"] for one in stage.frames("conversation.item.create")]
            assert sorted(created) == sorted([f"n{n}" for n in range(5)] * 2)
            assert len(stage.frames("session.update")) == 2
            assert stage.in_step(session) == ["n0", "n1", "n2", "n3"]

    within(scene)


def test_a_snapshot_holds_over_a_lost_connection():
    async def scene():
        faults = ["cut before=conversation.item.added nth=6 how=reset"]
        async with staged(faults=faults) as stage, stage.session() as session:
            await session.change(added=[user("a", "a"), user("b", "b"), user("c", "c")])
            await session.change(changed=[user("other", "b")])
            seen = session.snapshot()
            await session.change(added=[user("unseen", "u")])
            await session.change(added=[user("last", "l")])
            assert stage.struck() == 1
            replaced = seen.items[1]["id"]
            assert await session.edit([user("new", "n"), seen.items[1]], base=seen)
            assert stage.in_step(session) == ["n", replaced, "u", "l"]

    within(scene)


def test_a_change_that_came_since_the_snapshot_is_not_undone_over_a_lost_connection():
    async def scene():
        faults = ["cut after=conversation.item.deleted"]
        async with staged(faults=faults) as stage, stage.session() as session:
            await session.change(added=[user("old", "a")])
            seen = session.snapshot()
            await session.change(changed=[user("new", "a")])
            await until(session, Restored)
            assert await session.edit([*seen.items, user("b", "b")], base=seen)
            assert [texts_of(wire) for wire in session.items] == [["new"], ["b"]]
            stage.in_step(session)

    within(scene)


@pytest.mark.parametrize(
    ("cut", "texts"),
    [("before", [["a"], ["b"]]), ("after", [["a"], ["One two three."], ["b"]])],
    ids=["lost", "finished"],
)
def test_what_was_unfinished_in_the_snapshot_is_as_it_became_over_a_lost_connection(cut, texts):
    async def scene():
        faults = [f"cut {cut}=response.output_item.done"]
        turns = reply("One two three.", pace=0.05), "Again."
        stages = staged(*turns, faults=faults)
        async with stages as stage, stage.session(replies=False) as session:
            await session.change(added=[user("a", "a")])
            await session.respond()
            await until(session, "response.output_text.delta")
            seen = session.snapshot()
            assert seen.items[1]["status"] == "in_progress"
            await until(session, Restored)
            assert await session.edit([*seen.items, user("b", "b")], base=seen)
            assert [texts_of(wire) for wire in session.items] == texts
            stage.in_step(session)

    within(scene)


@pytest.mark.parametrize("how", ["moved", "changed"])
@pytest.mark.parametrize(
    "fault", ["cut before=conversation.item.deleted", "cut after=conversation.item.added nth=4"]
)
def test_what_a_copy_took_the_place_of_goes_over_a_lost_connection(how, fault):
    """The copy was there, and the old one had not gone."""

    async def scene():
        async with staged(faults=[fault]) as stage, stage.session() as session:
            await session.change(added=[user(name, name) for name in "abc"])
            seen = session.snapshot()
            a, b, c = seen.items
            if how == "moved":
                assert await session.edit([c, a, b], base=seen)
            else:
                assert await session.change(changed=[user("other", "c")], base=seen)
            texts = [texts_of(wire) for wire in session.items]
            assert texts == ([["c"], ["a"], ["b"]] if how == "moved" else [["a"], ["b"], ["other"]])
            assert stage.struck() == 1
            stage.in_step(session)

    within(scene)


@pytest.mark.parametrize("nth", [6, 7], ids=["behind the call", "behind its output"])
def test_a_pair_that_is_being_moved_stays_a_pair_over_a_lost_connection(nth):
    async def scene():
        book = Book()
        fault = f"cut after=conversation.item.added nth={nth}"
        stages = staged(call("book", {"flight": "LS 1"}), faults=[fault])
        async with stages as stage, stage.session(book.book, replies=False) as session:
            await session.change(added=[user("a", "a")])
            await session.respond()
            await until(session, CallEnded)
            await session.change(added=[user("b", "b"), user("c", "c")])
            seen = session.snapshot()
            a, called, output, b, c = seen.items
            assert await session.edit([a, b, c, called, output], base=seen)
            assert stage.struck() == 1
            assert stage.in_step(session)[:3] == ["a", "b", "c"]
            kinds = [wire["type"] for wire in session.items]
            assert kinds == ["message"] * 3 + ["function_call", "function_call_output"]

    within(scene)


def test_an_output_that_comes_while_there_is_no_connection_stands_behind_its_call():
    async def scene():
        ended = asyncio.Event()

        async def wait() -> str:
            """Wait."""
            await ended.wait()
            return "it ended"

        faults = ["cut before=conversation.item.added nth=3 how=reset"]
        async with staged(call("wait", call_id="c1"), "Done.", faults=faults) as stage:
            connects = []

            async def connect():
                connects.append(None)
                if len(connects) == 2:
                    ended.set()
                    await until_ended.wait()
                return await stage.connect()()

            until_ended = asyncio.Event()
            async with stage.session(wait, connect=connect) as session:
                await session.change(added=[user("Wait.", "a")])
                await session.respond()
                await until(session, "response.done")
                changing = asyncio.create_task(session.change(added=[user("Well?", "b")]))
                await until(session, CallEnded)
                until_ended.set()
                assert await changing
                await until(session, saying("Done."))
                ids = stage.in_step(session)
                assert [wire["type"] for wire in session.items][1:3] == [
                    "function_call",
                    "function_call_output",
                ]
                assert ids[0] == "a"
                assert stage.broken() == {}

    within(scene)


def test_a_response_of_which_nothing_is_left_is_asked_for_again_as_it_was():
    async def scene():
        turns = (reply("One two.", faults=["cut after=response.output_text.delta"]), "Again.")
        async with staged(*turns) as stage, stage.session() as session:
            await session.change(added=[user("Count.", "a")])
            await session.respond({"instructions": "Be brief."})
            (restored,) = of(Restored, await until(session, saying("Again.")))
            assert restored.asked_again
            asked = [one.get("response") for one in stage.frames("response.create")]
            assert asked == [{"instructions": "Be brief."}] * 2
            assert [texts_of(wire) for wire in session.items] == [["Count."], ["Again."]]
            stage.in_step(session)

    within(scene)


def test_a_response_that_had_said_something_is_not_asked_for_again():
    async def scene():
        turns = (reply("Done.", faults=["cut before=response.done"]), "Again.")
        async with staged(*turns) as stage, stage.session() as session:
            await session.respond()
            heard = await until(session, Restored)
            assert of(Reconnecting, heard)[0].response_lost
            assert not of(Restored, heard)[0].asked_again
            assert [texts_of(wire) for wire in session.items] == [["Done."]]
            assert len(stage.frames("response.create")) == 1

    within(scene)


CANCEL = {"type": "response.cancel"}


def test_a_response_that_was_cancelled_is_not_asked_for_again():
    async def scene():
        turns, faults = (reply("One two three.", pace=0.1), "Again."), ["cut before=response.done"]
        async with staged(*turns, faults=faults) as stage, stage.session() as session:
            await session.respond()
            await until(session, "response.output_text.delta")
            await session.send(CANCEL)
            (restored,) = of(Restored, await until(session, Restored))
            assert not restored.asked_again
            assert len(stage.frames("response.create")) == 1

    within(scene)


def test_a_response_that_is_cancelled_while_there_is_no_connection_is_not_asked_for_again():
    async def scene():
        turns = (reply("One two.", faults=["cut after=response.output_text.delta"]), "Again.")
        async with staged(*turns) as stage:
            inner, may_connect = stage.connect(), asyncio.Event()
            may_connect.set()

            async def connect():
                await may_connect.wait()
                return await inner()

            async with stage.session(connect=connect) as session:
                await session.respond()
                may_connect.clear()
                await until(session, Reconnecting)
                cancelling = asyncio.create_task(session.send(CANCEL))
                await asyncio.sleep(0)  # it waits for a connection
                may_connect.set()
                (restored,) = of(Restored, await until(session, Restored))
                assert not restored.asked_again
                await cancelling
                assert len(stage.frames("response.create")) == 1

    within(scene)


def test_speech_of_which_nobody_has_the_words_is_told_as_lost():
    async def scene():
        faults = ["cut before=conversation.item.added nth=3 how=reset"]
        async with staged("I heard you.", faults=faults) as stage, stage.session() as session:
            await stage.emulator.speak("Hello?")
            await until(session, saying("I heard you."))
            await session.change(added=[user("b", "b")])
            (restored,) = of(Restored, await until(session, Restored))
            (lost,) = restored.unplaceable
            assert lost.why.value.startswith("it is speech without words")
            assert [texts_of(wire) for wire in session.items] == [["I heard you."], ["b"]]

    within(scene)


def test_a_session_that_reached_its_age_goes_on_in_a_new_one():
    async def scene():
        clock = VirtualClock(flowing=False)
        settings = Settings(connection_seconds=3600.0)
        async with (
            staged("Still here.", clock=clock, settings=settings) as stage,
            stage.session() as session,
        ):
            await session.change(added=[user("a", "a")])
            clock.advance(3601.0)
            (lost,) = of(Reconnecting, await until(session, Reconnecting))
            assert "60 minutes" in lost.reason
            await until(session, Restored)
            await session.respond()
            await until(session, saying("Still here."))
            stage.in_step(session)

    within(scene)


def test_connections_that_come_to_nothing_are_given_up():
    async def scene():
        faults = ["cut before=conversation.item.added how=reset times=always"]
        async with (
            staged(faults=faults) as stage,
            stage.session(patience=Patience(attempts=3)) as session,
        ):
            with pytest.raises(SessionOver, match="retries in a row: 3"):
                await session.change(added=[user("a", "a")])
            with pytest.raises(CannotConnect):
                await until(session, "never")
            with pytest.raises(SessionOver):
                await session.answer("c", "x")

    within(scene)


def test_the_acknowledgement_of_an_edit_may_come_after_its_deadline():
    async def scene():
        patience = Patience(acknowledgement_seconds=0.3)
        faults = ["stall before=conversation.item.added seconds=0.4"]
        async with staged(faults=faults) as stage, stage.session(patience=patience) as session:
            edited = await session.change(added=[user("a", "a"), user("b", "b")])
            assert edited
            assert stage.in_step(session) == ["a", "b"]
            assert len(stage.frames("conversation.item.create")) == 2
            assert stage.broken() == {}

    within(scene)


def test_an_event_that_comes_twice_or_late_changes_nothing():
    async def scene():
        for fault in (
            "duplicate at=conversation.item.added times=always",
            "duplicate at=conversation.item.done times=always",
            "late at=conversation.item.done",
            "late at=response.output_item.done by=2",
            "duplicate at=response.output_item.done times=always",
        ):
            async with (
                staged(decide=decide, faults=[fault]) as stage,
                asyncio.timeout(CASE_SECONDS),
            ):
                effects = Effects()
                async with stage.session(*effects.tools) as session:
                    await played(session)
                    await settled(stage, session)
                    check_played(stage, session, effects)

    within(scene)


def test_a_long_history_is_pushed_in_its_order():
    # Seconds of work, in which nobody answers; also for a machine that has more to do.
    seconds = 3 * SECONDS
    patience = Patience(acknowledgement_seconds=seconds)

    async def scene():
        async with staged() as stage:
            ids = [f"n{n}" for n in range(5000)]  # more than a mirror remembers the edits of
            async with stage.session(patience=patience) as session:
                assert await session.change(added=[user(one, one) for one in ids])
                assert stage.in_step(session) == ids
            async with stage.session(patience=patience) as again:
                assert stage.in_step(again) == ids

    within(scene, seconds=seconds)


def test_what_is_sent_while_there_is_no_connection_waits_for_the_next():
    async def scene():
        faults = ["cut before=conversation.item.added how=reset"]
        async with staged(faults=faults) as stage, stage.session() as session:
            await session.change(added=[user("a", "a")])
            await session.send({"type": "input_audio_buffer.clear"})
            await until(session, "input_audio_buffer.cleared")

    within(scene)


def test_the_model_goes_on_after_a_cut_between_output_and_reply():
    async def scene():
        effects = Effects()
        faults = ["cut before=response.created nth=2 how=reset"]
        async with (
            staged(decide=decide, faults=faults) as stage,
            stage.session(*effects.tools) as session,
        ):
            await session.change(added=[user("Book it, and look.", "first")])
            await session.respond()
            await come_to(session, FINAL)
            stage.in_step(session)

    within(scene)
