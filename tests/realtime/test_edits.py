"""Edits over real sockets: what is asked for is there, and what nobody saw is not deleted."""

from __future__ import annotations

import asyncio

from lockstitch.emulator import call
from lockstitch.mirror import Why
from tests.realtime.booking import Book
from tests.realtime.hearing import function_call, function_output, saying, texts_of, until, user
from tests.realtime.stage import staged, within


def test_an_edit_takes_the_context_to_its_target_and_is_remembered():
    async def scene():
        async with staged() as stage:
            async with stage.session() as session:
                await session.change(added=[user("a", "a"), user("b", "b"), user("c", "c")])
                seen = session.snapshot()
                edited = await session.edit([seen.items[2], user("new", "n")], base=seen)
                assert edited
                assert set(edited.done) == {"a", "b", "n"}
                assert stage.in_step(session) == ["c", "n"]
            async with stage.session() as again:
                assert stage.in_step(again) == ["c", "n"]

    within(scene)


def test_what_came_since_the_caller_looked_is_not_deleted():
    async def scene():
        async with staged() as stage, stage.session() as session:
            await session.change(added=[user("a", "a"), user("b", "b")])
            seen = session.snapshot()
            await session.change(added=[user("c", "c")])
            assert await session.edit([seen.items[1]], base=seen)
            assert stage.in_step(session) == ["b", "c"]

    within(scene)


def test_edits_at_the_same_time_come_one_after_the_other():
    async def scene():
        async with staged() as stage, stage.session() as session:
            new = [user(str(n), f"n{n}") for n in range(20)]
            await asyncio.gather(*(session.change(added=[wire]) for wire in new))
            assert stage.in_step(session) == [wire["id"] for wire in new]
            assert stage.broken() == {}

    within(scene)


def test_a_rejected_edit_is_told_in_the_words_of_the_provider_and_the_rest_is_done():
    async def scene():
        async with staged() as stage, stage.session() as session:
            bad = {"id": "bad", "type": "message", "role": "nobody", "content": []}
            edited = await session.change(added=[user("a", "a"), bad, user("b", "b")])
            assert not edited
            (refusal,) = edited.rejected
            assert refusal.item_id == "bad"
            assert "nobody" in refusal.message
            assert set(edited.done) == {"a", "b"}
            assert stage.in_step(session) == ["a", "b"]

    within(scene)


def test_a_changed_item_is_replaced_and_an_older_snapshot_still_means_it():
    async def scene():
        async with staged() as stage, stage.session() as session:
            await session.change(added=[user("a", "a"), user("b", "b")])
            seen = session.snapshot()
            assert await session.change(changed=[user("other", "a")], base=seen)
            assert await session.change(removed=["a"], base=session.snapshot())
            assert stage.in_step(session) == ["b"]

    within(scene)


def test_a_summary_stands_for_the_oldest_half_and_tears_no_pair():
    async def scene():
        async with staged() as stage, stage.session() as session:
            await session.change(added=[user("a", "a"), function_call("f", "c1")])
            await session.change(added=[function_output("o", "c1"), user("b", "b")])
            seen = session.snapshot()
            await session.summarise(user("in short", "s"), base=seen, fraction=0.5)
            assert stage.in_step(session) == ["s", "f", "o", "b"]
            assert stage.broken() == {}

    within(scene)


def test_a_provider_that_takes_items_at_the_end_only_gets_them_there():
    async def scene():
        async with staged() as stage:
            async with stage.session(links=False) as session:
                await session.change(added=[user("a", "a"), user("b", "b")])
                assert await session.change(removed=["a"], added=[user("c", "c")])
                assert stage.in_step(session) == ["b", "c"]
            async with stage.session(links=False) as again:
                assert stage.in_step(again) == ["b", "c"]
                sent = stage.frames("conversation.item.create")
                assert all("previous_item_id" not in one for one in sent)

    within(scene)


def test_a_copy_that_was_refused_and_made_again_is_no_refusal():
    async def scene():
        async with staged() as stage:
            inner, wrong = stage.connect(), ["nobody"]

            async def connect():
                connection = await inner()
                send = connection.send

                def misplaced(event):
                    if event.get("previous_item_id") == "a" and wrong:
                        event = event | {"previous_item_id": wrong.pop()}
                    return send(event)

                connection.send = misplaced
                return connection

            async with stage.session(connect=connect) as session:
                await session.change(added=[user("One.", "a")])
                edited = await session.change(changed=[user("Two.", "a")])
                assert not wrong
                assert edited
                assert [texts_of(item) for item in session.items] == [["Two."]]

    within(scene)


def test_a_call_in_flight_is_kept_whatever_the_caller_wants():
    async def scene():
        book = Book()
        turns = (call("wait", call_id="c1"), "Done.")
        async with staged(*turns) as stage, stage.session(book.wait) as session:
            await session.respond()
            await until(session, "response.done")
            await book.begun.wait()
            edited = await session.edit([], base=session.snapshot())
            (kept,) = edited.kept
            assert kept.why is Why.IN_FLIGHT
            book.may_end.set()
            await until(session, saying("Done."))
            stage.in_step(session)

    within(scene)
