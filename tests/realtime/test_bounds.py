"""What a session keeps beside the context does not grow with the call, nor with a server that
tells whatever it likes."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.emulator import call, reply
from lockstitch.mirror import Create
from lockstitch.realtime import ConnectionLost
from lockstitch.realtime.following import Following
from lockstitch.realtime.limits import MOST_ITEMS_UNWRITTEN, Patience
from lockstitch.realtime.line import Line
from lockstitch.realtime.origins import Origins
from tests.realtime.booking import Book
from tests.realtime.hearing import function_call, saying, texts_of, until, user
from tests.realtime.stage import Through, staged, within


def test_a_server_that_tells_whatever_it_likes_fills_no_table():
    async def scene():
        line = Line(None)
        for number in range(5_000):
            named = {"event_id": f"e{number}", "message": "No."}
            line.take({"type": "error", "error": named})
            item = function_call(f"f{number}", f"c{number}") | {"status": "completed"}
            line.take({"type": "response.output_item.done", "response_id": "r", "item": item})
            line.take({"type": "input_audio_buffer.committed", "item_id": f"i{number}"})
        assert len(line.following) == 0
        assert len(line.origins) <= MOST_ITEMS_UNWRITTEN

    within(scene)


def test_what_is_followed_is_forgotten_with_whoever_follows():
    following = Following()
    following.refuse("e", {"message": "No."})
    assert following.get("e") is None
    with following.one("e") as followed:
        following.refuse("e", {"message": "No."})
        assert followed.refusal == {"message": "No."}
    assert len(following) == 0


def test_two_events_with_one_id_are_followed_one_after_the_other():
    following = Following()
    with following.one("e") as first:
        with following.one("e") as second:
            following.refuse("e", {"message": "No."})
        following.refuse("e", {"message": "No."})
    assert first.refusal is None
    assert second.refusal == {"message": "No."}
    assert len(following) == 0


def test_who_made_an_item_is_forgotten_once_it_is_written_down_or_will_not_come():
    origins = Origins()
    a, b, c = (
        Create(event_id=f"e{one}", item={"id": one}, previous_item_id=None, copy_of=copied)
        for one, copied in (("a", None), ("b", "x"), ("c", None))
    )
    origins.creates([a, b, c])
    assert [origins.is_ours(one) for one in "abcd"] == [True, True, True, False]
    assert [origins.is_copy(one) for one in "abcd"] == [False, True, False, False]
    origins.written([{"id": "a"}, {"id": "b", "status": "in_progress"}])
    assert [origins.is_ours(one) for one in "abc"] == [False, True, True]
    origins.keep(lambda create: create is c)
    assert [origins.is_ours(one) for one in "abc"] == [False, False, True]
    for number in range(MOST_ITEMS_UNWRITTEN + 5):
        origins.sends(f"s{number}")
    assert not origins.is_ours("s0")
    assert origins.is_ours(f"s{MOST_ITEMS_UNWRITTEN + 4}")


def test_after_many_edits_calls_and_refusals_nothing_of_them_is_left():
    async def scene():
        book = Book()
        async with (
            staged(decide=_book_and_be_done) as stage,
            stage.session(book.book) as session,
        ):
            line = session._lines.newest
            for number in range(15):
                nobody = {"type": "message", "role": "nobody", "content": []}
                await session.change(added=[user("a", f"a{number}"), nobody])
                await session.change(changed=[user("b", f"a{number}")])
                await session.respond()
                await until(session, saying("Done."))
                await session.respond({"conversation": "none"})
                await session.edit([], base=session.snapshot())
            assert len(book.booked) == 15
            assert session.items == stage.provider.items() == []
            assert len(line.following) == 0
            assert line.origins._created == {}
            assert session._thread._memory.run_here == set()
            assert session._calls._under_way == session._calls._approved == {}

    within(scene)


def _book_and_be_done(asked):
    return reply("Done." if asked.output else call("book", {"flight": "LS 1"}))


def test_an_edit_that_stays_in_doubt_is_followed_no_longer_than_its_caller_waits():
    async def scene():
        silent = {
            "conversation.item.added",
            "conversation.item.done",
            "conversation.item.retrieved",
        }

        def passes(event):
            return None if event["type"] in silent else event

        async with staged() as stage:
            connect = Through(stage.connect(), passes)
            patience = Patience(acknowledgement_seconds=0.5)
            async with stage.session(connect=connect, patience=patience) as session:
                assert (await session.change(added=[user("a", "a")])).in_doubt == ("a",)
                line = session._lines.newest
                assert len(line.following) == 0
                assert line.origins.is_ours("a")  # it may still come
                silent.clear()
                assert await session.change(added=[user("b", "b")])
                await session.change(added=[user("c", "c")])
                assert len(line.following) == 0
                assert not line.origins.is_ours("a")
                assert stage.in_step(session) == ["a", "b", "c"]

    within(scene)


# --- waits -------------------------------------------------------------------------------------


def test_a_connection_that_never_stands_is_tried_again():
    async def scene():
        async with staged() as stage:
            inner, tries = stage.connect(), []

            async def connect():
                tries.append(None)
                if len(tries) == 1:
                    await asyncio.Event().wait()
                return await inner()

            patience = Patience(connect_seconds=0.5)
            async with stage.session(connect=connect, patience=patience) as session:
                assert len(tries) > 1
                assert await session.change(added=[user("a", "a")])

    within(scene)


def test_a_connection_that_takes_nothing_is_lost(monkeypatch):
    monkeypatch.setattr("lockstitch.realtime.line.SEND_SECONDS", 0.05)
    monkeypatch.setattr("lockstitch.realtime.line.CLOSE_SECONDS", 0.05)

    async def scene():
        async with staged() as stage:
            inner, stuck = stage.connect(), []

            async def connect():
                connection = await inner()
                send = connection.send

                async def sticking(event):
                    if event["type"] == "conversation.item.create" and not stuck:
                        stuck.append(event)
                        await asyncio.Event().wait()
                    await send(event)

                connection.send = sticking
                return connection

            async with stage.session(connect=connect) as session:
                assert await session.change(added=[user("a", "a")])
                assert stage.in_step(session) == ["a"]
                assert len(stage.frames("session.update")) == 2
                assert [texts_of(wire) for wire in session.items] == [["a"]]

    within(scene)


def test_a_line_that_was_lost_says_so_to_whoever_sends():
    async def scene():
        line = Line(None)
        line.end(ConnectionLost("It is gone."))
        with pytest.raises(ConnectionLost, match="It is gone"):
            await line.send({"type": "input_audio_buffer.clear"})

    within(scene)
