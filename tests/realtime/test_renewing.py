"""Connections that are given up before they are too old: at a quiet moment, and once."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.emulator import VirtualClock, call, reply
from lockstitch.realtime import Patience, Reconnecting, Restored
from lockstitch.realtime.holding import Busy
from lockstitch.realtime.renewing import Renewal
from lockstitch.runner import Waiting
from tests.generated import examples
from tests.realtime.booking import Book
from tests.realtime.hearing import of, saying, texts_of, types, until, user
from tests.realtime.stage import KINDS, staged, within

AFTER, BY = Patience().renew_after_seconds, Patience().renew_by_seconds
QUIET = Patience().quiet_seconds
MUST_END = {Busy.RESTORING, Busy.EDITING, Busy.ASKED, Busy.RESPONDING}
AT_ONCE = Patience(acknowledgement_seconds=2.0, answer_seconds=5.0, quiet_seconds=0.0)


# --- the decision ------------------------------------------------------------------------------

looks = st.lists(
    st.tuples(st.floats(0.0, BY / 3), st.frozensets(st.sampled_from(list(Busy)), max_size=2)),
    max_size=20,
)


@given(looks)
@settings(max_examples=examples(200), deadline=None)
def test_a_connection_is_given_up_when_it_is_old_and_was_quiet_for_so_long(steps):
    renewal, now, quiet_since = Renewal(Patience(), 0.0), 0.0, None
    for seconds, busy in steps:
        now += seconds
        in_the_way = busy if now < BY else busy & MUST_END
        if now < AFTER or in_the_way:
            quiet_since = None
        elif quiet_since is None:
            quiet_since = now
        quiet = quiet_since is not None and now - quiet_since >= QUIET
        left = renewal.look(now, busy)
        assert (left is None) == quiet
        assert left is None or left > 0


def test_a_provider_without_a_limit_is_never_left():
    renewal = Renewal(Patience(renew_after_seconds=math.inf), 0.0)
    assert renewal.look(1e9, set()) == math.inf


# --- over real sockets -------------------------------------------------------------------------


async def heard_something(session):
    """What is due is looked at after each event; nothing has to be waited for."""
    await session.send({"type": "input_audio_buffer.clear"})
    await until(session, "input_audio_buffer.cleared")


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_connection_is_renewed_and_the_context_pushed_once(kind):
    async def scene():
        clock = VirtualClock(flowing=False)
        async with (
            staged("Still here.", clock=clock) as stage,
            stage.session(kind=kind, patience=AT_ONCE, clock=clock.now) as session,
        ):
            seen = session.snapshot()
            await session.change(added=[user("a", "a"), user("b", "b")])
            clock.advance(AFTER - 1)
            await heard_something(session)
            assert len(stage.frames("session.update")) == 1
            clock.advance(1)
            await session.send({"type": "input_audio_buffer.clear"})
            told = await until(session, Restored)
            (renewed,), (restored,) = of(Reconnecting, told), of(Restored, told)
            assert (renewed.renewal, renewed.attempt, renewed.response_lost) == (True, 0, False)
            assert (restored.items, restored.asked_again) == (2, False)
            created = [one["item"]["id"] for one in stage.frames("conversation.item.create")]
            assert sorted(created) == ["a", "a", "b", "b"]
            # The old one is closed, and everything goes on in the new one.
            assert len(stage.emulator.realtime.sessions) == 1
            assert await session.change(base=seen, added=[user("c", "c")])
            await session.respond()
            await until(session, saying("Still here."))
            assert stage.in_step(session)[:3] == ["a", "b", "c"]
            assert stage.broken() == {}
            clock.advance(AFTER - 1)  # its age is that of the new one
            await heard_something(session)
            assert len(stage.frames("session.update")) == 2

    within(scene)


def test_it_waits_until_a_response_has_ended():
    async def scene():
        clock = VirtualClock(flowing=False)
        async with (
            staged(reply("One two three.", pace=1.0), clock=clock) as stage,
            stage.session(patience=AT_ONCE, clock=clock.now) as session,
        ):
            await session.respond()
            clock.advance(BY)  # even the late one waits for a response
            await heard_something(session)
            while stage.what_passed()[-1] != "rate_limits.updated":
                assert len(stage.frames("session.update")) == 1
                clock.advance(1.0)
                await asyncio.sleep(0)
            told = await until(session, Restored)
            assert of(Reconnecting, told)[0].renewal
            assert [texts_of(wire) for wire in session.items] == [["One two three."]]
            stage.in_step(session)

    within(scene)


def test_it_waits_for_a_call_until_the_time_is_nearly_up_and_the_tool_goes_on():
    async def scene():
        clock, book = VirtualClock(flowing=False), Book()
        async with (
            staged(call("wait", call_id="c1"), "Done.", clock=clock) as stage,
            stage.session(book.wait, patience=AT_ONCE, clock=clock.now) as session,
        ):
            await session.respond()
            await book.begun.wait()
            await until(session, "response.done")
            clock.advance(AFTER)
            await heard_something(session)
            assert len(stage.frames("session.update")) == 1
            clock.advance(BY - AFTER)
            await session.send({"type": "input_audio_buffer.clear"})
            await until(session, Restored)
            book.may_end.set()
            await until(session, saying("Done."))
            assert [wire["type"] for wire in session.items][:2] == [
                "function_call",
                "function_call_output",
            ]
            stage.in_step(session)
            assert stage.broken() == {}

    within(scene)


def test_it_waits_for_a_call_that_waits_for_somebody():
    async def scene():
        clock = VirtualClock(flowing=False)
        async with (
            staged(call("book", {}, call_id="c1"), "Done.", clock=clock) as stage,
            stage.session(patience=AT_ONCE, clock=clock.now) as session,
        ):
            await session.respond()
            await until(session, Waiting)
            clock.advance(AFTER)
            await heard_something(session)
            assert len(stage.frames("session.update")) == 1
            await session.answer("c1", "It is booked.")
            await until(session, saying("Done."))
            await until(session, Restored)
            stage.in_step(session)

    within(scene)


def test_as_long_as_no_other_can_be_had_the_old_connection_is_good(monkeypatch):
    monkeypatch.setattr("lockstitch.realtime.lines.RENEW_AGAIN_SECONDS", 0.001)

    async def scene():
        clock, refused = VirtualClock(flowing=False), []
        async with staged("Still here.", clock=clock) as stage:
            inner = stage.connect()

            async def connect():
                if stage.frames("session.update") and len(refused) < 3:
                    refused.append(None)
                    raise OSError("There is no network.")
                return await inner()

            async with stage.session(connect=connect, patience=AT_ONCE, clock=clock.now) as session:
                await session.change(added=[user("a", "a")])
                clock.advance(AFTER)
                await session.send({"type": "input_audio_buffer.clear"})
                heard = await until(session, Restored)
                assert len(refused) == 3
                (told,) = of(Reconnecting, heard)
                assert told.renewal
                assert stage.in_step(session) == ["a"]

    within(scene)


def test_a_connection_that_was_opened_in_vain_is_closed_again():
    async def scene():
        clock, opened = VirtualClock(flowing=False), []
        async with staged(reply("One.", pace=1.0), clock=clock) as stage:
            inner, closed = stage.connect(), asyncio.Event()

            async def connect():
                connection = await inner()
                opened.append(connection)
                if len(opened) == 2:
                    # While it was opened, somebody has begun something.
                    await session.respond()
                    close = connection.close

                    async def closing():
                        await close()
                        closed.set()

                    connection.close = closing
                return connection

            async with stage.session(connect=connect, patience=AT_ONCE, clock=clock.now) as session:
                clock.advance(AFTER)
                await session.send({"type": "input_audio_buffer.clear"})
                await closed.wait()
                assert len(stage.frames("session.update")) == 1
                while stage.what_passed()[-1] != "rate_limits.updated":
                    clock.advance(1.0)
                    await asyncio.sleep(0)
                await until(session, Restored)
                assert len(opened) == 3
                assert [texts_of(wire) for wire in session.items] == [["One."]]

    within(scene)


def test_closing_while_a_connection_is_renewed_leaves_none_open():
    async def scene():
        clock = VirtualClock(flowing=False)
        async with staged(clock=clock) as stage:
            inner, opened = stage.connect(), []
            second = asyncio.Event()

            async def connect():
                opened.append(await inner())
                if len(opened) == 2:
                    second.set()
                return opened[-1]

            async with stage.session(connect=connect, patience=AT_ONCE, clock=clock.now) as session:
                clock.advance(AFTER)
                await session.send({"type": "input_audio_buffer.clear"})
                await second.wait()
            assert all("closed" in repr(one) for one in opened)

    within(scene)


def test_it_waits_for_the_words_of_what_the_user_said():
    async def scene():
        clock = VirtualClock(flowing=False)
        configured = {"audio": {"input": {"transcription": {"model": "whisper-1"}}}}
        transcribed = "conversation.item.input_audio_transcription.completed"
        async with (
            staged(clock=clock, faults=[f"late at={transcribed} by=1"]) as stage,
            stage.session(patience=AT_ONCE, clock=clock.now, configured=configured) as session,
        ):
            clock.advance(AFTER)
            await stage.emulator.speak("Hello?", responds=False)
            await until(session, "conversation.item.done")
            assert len(stage.frames("session.update")) == 1
            await session.send({"type": "input_audio_buffer.clear"})
            heard = await until(session, Restored)
            assert transcribed in types(heard)
            assert [texts_of(wire) for wire in session.items] == [["Hello?"]]

    within(scene)
