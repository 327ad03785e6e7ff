"""Sessions over real sockets: edits, responses, tools, and their end."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.core.outcomes import UNKNOWN_TEXT, Outcome
from lockstitch.emulator import Settings, call, reply
from lockstitch.ledgers.making import item_added
from lockstitch.mirror import Why
from lockstitch.realtime import (
    CannotConnect,
    ConfigurationRefused,
    NoReply,
    NoSuchCall,
    OutputUnplaced,
    Patience,
    RealtimeError,
    ResponseRefused,
    Session,
    SessionOver,
)
from lockstitch.realtime.websocket import websocket
from lockstitch.runner import CallBegan, CallEnded, Waiting, tool
from lockstitch.store.errors import ConversationBusy
from lockstitch.store.journal import Journal
from tests.realtime.hearing import (
    function_call,
    function_output,
    of,
    saying,
    texts_of,
    types,
    until,
    user,
)
from tests.realtime.stage import KINDS, THREAD, Through, staged, within

HURRIED = Patience(acknowledgement_seconds=0.25, answer_seconds=1.0, hold_seconds=0.25)


class Book:
    """A tool that counts its effects."""

    def __init__(self):
        self.booked = []
        self.may_end = asyncio.Event()
        self.begun = asyncio.Event()

    async def book(self, flight: str) -> str:
        """Book a flight."""
        self.booked.append(flight)
        return f"{flight} is booked"

    async def wait(self) -> str:
        """Wait until it may end."""
        self.begun.set()
        await self.may_end.wait()
        return "it ended"


# --- events ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_of_the_server_is_handed_on_as_it_came(kind):
    async def scene():
        async with staged("Hello to you.") as stage, stage.session(kind=kind) as session:
            await session.change(added=[user("Hello.")])
            await session.respond()
            heard = await until(session, "rate_limits.updated")
            sent = [
                entry.readable()["data"]
                for entry in stage.emulator.record.entries()
                if entry.sent and entry.kind == "frame"
            ]
            assert [event for event in heard if isinstance(event, dict)] == sent
            stage.in_step(session)
            assert stage.broken() == {}

    within(scene)


def test_what_the_user_says_is_remembered_with_its_words():
    async def scene():
        configured = {"audio": {"input": {"transcription": {"model": "whisper-1"}}}}
        async with (
            staged("It is sunny.") as stage,
            stage.session(configured=configured) as session,
        ):
            await stage.emulator.speak("How is the weather?")
            await until(session, saying("It is sunny."))
            stage.in_step(session)
            assert [texts_of(item) for item in session.history()] == [
                ["How is the weather?"],
                ["It is sunny."],
            ]

    within(scene)


# --- edits -------------------------------------------------------------------------------------


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


def test_an_edit_whose_acknowledgement_is_lost_is_asked_about_and_not_made_twice():
    async def scene():
        lost = []

        def passes(event):
            named = event.get("item", {}).get("id")
            if named == "a" and event["type"] in {
                "conversation.item.added",
                "conversation.item.done",
            }:
                lost.append(event["type"])
                return None
            return event

        async with staged() as stage:
            connect = Through(stage.connect(), passes)
            async with stage.session(connect=connect, patience=HURRIED) as session:
                edited = await session.change(added=[user("a", "a")])
                assert edited
                assert edited.done == ("a",)
                assert lost == ["conversation.item.added", "conversation.item.done"]
                assert len(stage.frames("conversation.item.create")) == 1
                assert stage.frames("conversation.item.retrieve")
                assert stage.in_step(session) == ["a"]

    within(scene)


def test_an_edit_that_never_arrived_is_asked_about_and_made_again():
    async def scene():
        class Deaf:
            """A connection that loses the first create on its way out."""

            def __init__(self, inner):
                self._inner = inner
                self.lost = 0
                self.receive, self.close = inner.receive, inner.close

            async def send(self, event):
                if event["type"] == "conversation.item.create" and not self.lost:
                    self.lost += 1
                else:
                    await self._inner.send(event)

        async with staged() as stage:

            async def connect():
                return Deaf(await stage.connect()())

            async with stage.session(connect=connect, patience=HURRIED) as session:
                edited = await session.change(added=[user("a", "a")])
                assert edited.done == ("a",)
                assert len(stage.frames("conversation.item.create")) == 1
                assert stage.in_step(session) == ["a"]

    within(scene)


def test_an_edit_that_nobody_ever_answers_is_in_doubt_and_a_later_one_finds_out():
    async def scene():
        deaf = {"conversation.item.added", "conversation.item.done", "conversation.item.retrieved"}
        silent = set(deaf)

        def passes(event):
            return None if event["type"] in silent else event

        async with staged() as stage:
            connect = Through(stage.connect(), passes)
            async with stage.session(connect=connect, patience=HURRIED) as session:
                edited = await session.change(added=[user("a", "a")])
                assert not edited
                assert edited.in_doubt == ("a",)
                silent.clear()
                assert await session.change(added=[user("b", "b")])
                assert stage.in_step(session) == ["a", "b"]
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


# --- what waits for what -----------------------------------------------------------------------


def test_an_edit_of_the_tail_waits_until_the_response_has_ended():
    async def scene():
        async with (
            staged(reply("One two three.", pace=0.02)) as stage,
            stage.session() as session,
        ):
            await session.change(added=[user("Count.", "a")])
            await session.respond()
            await session.change(added=[user("And on.", "b")])
            assert [wire["id"] for wire in session.items][0::2] == ["a", "b"]
            ended = [n for n, one in enumerate(_frames(stage)) if one == "response.done"]
            created = [
                n for n, one in enumerate(_frames(stage)) if one == "frame conversation.item.create"
            ]
            assert created[-1] > ended[0]
            stage.in_step(session)

    within(scene)


def test_an_edit_elsewhere_does_not_wait():
    async def scene():
        async with (
            staged(reply("One two three.", pace=0.02)) as stage,
            stage.session() as session,
        ):
            await session.change(added=[user("a", "a"), user("b", "b")])
            await session.respond()
            seen = session.snapshot()
            assert await session.summarise(user("in short", "s"), base=seen, count=1)
            assert "response.done" not in _frames(stage)
            await until(session, "response.done")
            assert stage.in_step(session)[:2] == ["s", "b"]

    within(scene)


def test_an_edit_of_the_tail_that_was_held_too_long_goes_all_the_same():
    async def scene():
        async with (
            staged(reply("One two three.", pace=5.0)) as stage,
            stage.session(patience=HURRIED) as session,
        ):
            await session.change(added=[user("Count.", "a")])
            await session.respond()
            assert await session.change(added=[user("And on.", "b")])
            assert "response.done" not in _frames(stage)
            assert "b" in [wire["id"] for wire in stage.provider.items()]

    within(scene)


def test_a_response_waits_for_the_one_that_is_active_and_one_out_of_band_does_not():
    async def scene():
        turns = (reply("One two.", pace=0.02), "Aside.", "Three.")
        async with staged(*turns) as stage, stage.session() as session:
            await session.change(added=[user("Count.")])
            await session.respond()
            await session.respond({"conversation": "none"})
            await session.respond()
            await until(session, saying("Three."))
            stage.in_step(session)
            assert [texts_of(wire) for wire in session.items] == [
                ["Count."],
                ["One two."],
                ["Three."],
            ]
            assert stage.broken() == {}

    within(scene)


def test_a_response_that_the_server_began_first_is_waited_for():
    async def scene():
        async with (
            staged(reply("I heard you.", pace=0.01), "Asked for.") as stage,
            stage.session() as session,
        ):
            await stage.emulator.speak("Hello?")
            # Sent before the server's own is heard of here: it is refused, and asked again.
            await session.respond()
            await until(session, saying("Asked for."))
            stage.in_step(session)

    within(scene)


def test_a_response_that_is_refused_is_told_in_the_words_of_the_provider():
    async def scene():
        async with staged() as stage, stage.session() as session:
            with pytest.raises(ResponseRefused, match=r"will not respond: .*smell"):
                await session.respond({"output_modalities": ["smell"]})
            await session.respond()

    within(scene)


def test_a_response_that_never_begins_is_not_waited_for_for_ever():
    async def scene():
        def passes(event):
            return None if event["type"] == "response.created" else event

        async with staged() as stage:
            connect = Through(stage.connect(), passes)
            async with stage.session(connect=connect, patience=HURRIED) as session:
                with pytest.raises(ResponseRefused, match="has begun within"):
                    await session.respond()

    within(scene)


def _frames(stage):
    return [entry.what for entry in stage.emulator.record.entries() if entry.kind == "frame"]


# --- tools -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_is_run_once_answered_in_its_place_and_the_model_goes_on(kind):
    async def scene():
        book = Book()
        turns = (call("book", {"flight": "LS 1"}, call_id="call_1"), "Done.")
        async with staged(*turns) as stage, stage.session(book.book, kind=kind) as session:
            await session.change(added=[user("Book it.")])
            await session.respond()
            heard = await until(session, saying("Done."))
            assert [type(one) for one in heard if isinstance(one, CallBegan | CallEnded)] == [
                CallBegan,
                CallEnded,
            ]
            stage.in_step(session)
            assert [wire["type"] for wire in session.items] == [
                "message",
                "function_call",
                "function_call_output",
                "message",
            ]
            assert book.booked == ["LS 1"]
            assert stage.broken() == {}

    within(scene)


def test_the_model_goes_on_once_when_the_last_of_several_calls_is_answered():
    async def scene():
        book = Book()
        turns = (
            reply(call("wait", call_id="c1"), call("book", {"flight": "LS 1"}, call_id="c2")),
            "Done.",
        )
        async with staged(*turns) as stage, stage.session(book.book, book.wait) as session:
            await session.respond()
            await until(session, CallEnded)
            await until(session, "conversation.item.done")
            assert len(stage.frames("response.create")) == 1
            book.may_end.set()
            await until(session, saying("Done."))
            assert len(stage.frames("response.create")) == 2
            stage.in_step(session)
            calls = [wire["call_id"] for wire in session.items if "call_id" in wire]
            assert calls == ["c1", "c1", "c2", "c2"]

    within(scene)


def test_without_replies_nothing_is_asked_for():
    async def scene():
        book = Book()
        async with (
            staged(call("book", {"flight": "LS 1"})) as stage,
            stage.session(book.book, replies=False) as session,
        ):
            await session.respond()
            await until(session, CallEnded)
            await until(session, "conversation.item.done")
            await session.send({"type": "input_audio_buffer.clear"})
            await until(session, "input_audio_buffer.cleared")
            assert len(stage.frames("response.create")) == 1
            stage.in_step(session)

    within(scene)


def test_a_call_of_a_response_out_of_band_is_not_run():
    async def scene():
        book = Book()
        async with (
            staged(call("book", {"flight": "LS 1"})) as stage,
            stage.session(book.book) as session,
        ):
            await session.respond({"conversation": "none"})
            await until(session, "response.done")
            await session.send({"type": "input_audio_buffer.clear"})
            await until(session, "input_audio_buffer.cleared")
            assert book.booked == []
            assert session.history() == session.items == []

    within(scene)


def test_a_call_that_the_client_itself_has_created_is_not_run():
    async def scene():
        book = Book()
        async with staged() as stage, stage.session(book.book) as session:
            made = function_call("f", "c1", "book", '{"flight": "LS 1"}')
            await session.change(added=[made])
            await session.send({"type": "conversation.item.create", "item": {**made, "id": "g"}})
            await until(session, lambda one: isinstance(one, dict) and _named(one) == "g")
            assert book.booked == []

    within(scene)


def _named(event):
    return event["type"] == "conversation.item.done" and event["item"]["id"]


def test_a_call_that_was_cut_short_is_neither_run_nor_remembered():
    async def scene():
        book = Book()
        turn = reply(call("book", {"flight": "LS 1"}), faults=["incomplete before=end"])
        cut = "incomplete before=response.function_call_arguments.done"
        async with (
            staged(reply(*turn.drafts, faults=[cut])) as stage,
            stage.session(book.book) as session,
        ):
            await session.respond()
            await until(session, "response.done")
            assert book.booked == []
            assert session.history() == []

    within(scene)


def test_a_call_that_asks_first_runs_when_it_is_approved():
    async def scene():
        book = Book()
        asking = tool(needs_approval=True)(book.book)
        turns = (call("book", {"flight": "LS 1"}, call_id="c1"), "Done.")
        async with staged(*turns) as stage, stage.session(asking) as session:
            await session.respond()
            (waiting,) = of(Waiting, await until(session, Waiting))
            assert [one.call_id for one in waiting.for_approval] == ["c1"]
            assert book.booked == []
            with pytest.raises(NoSuchCall):
                session.approve({"c2": True})
            session.approve({"c1": True})
            await until(session, saying("Done."))
            assert book.booked == ["LS 1"]
            stage.in_step(session)

    within(scene)


def test_who_approved_of_a_call_did_not_approve_of_the_next_with_its_id():
    async def scene():
        book = Book()
        asking = tool(needs_approval=True)(book.book)
        again = call("book", {"flight": "LS 1"}, call_id="c1")
        async with staged(again, again) as stage, stage.session(asking) as session:
            await session.respond()
            await until(session, Waiting)
            session.approve({"c1": True})
            await until(session, CallEnded)
            await until(session, Waiting)
            assert book.booked == ["LS 1"]
            session.approve({"c1": False})
            (ended,) = of(CallEnded, await until(session, CallEnded))
            assert ended.outcome is Outcome.NEVER_STARTED
            assert book.booked == ["LS 1"]

    within(scene)


def test_what_others_say_to_a_call_that_a_tool_of_ours_answers_is_not_its_output():
    async def scene():
        book = Book()
        async with (
            staged(call("wait", call_id="c1"), "Done.") as stage,
            stage.session(book.wait) as session,
        ):
            await session.respond()
            await until(session, "response.done")
            await book.begun.wait()
            await session.change(added=[function_output("o", "c1", "From elsewhere.")])
            book.may_end.set()
            (unplaced,) = of(OutputUnplaced, await until(session, OutputUnplaced))
            assert unplaced.call_id == "c1"
            assert session.history()[-1]["output"] == "it ended"
            assert stage.in_step(session)[-1] == "o"

    within(scene)


def test_a_reply_that_does_not_come_is_told():
    async def scene():
        book = Book()

        def passes(event):
            begun = event["type"] == "response.created" and stage.frames("response.create")[1:]
            return None if begun else event

        async with staged(call("book", {"flight": "LS 1"}), "Done.") as stage:
            connect = Through(stage.connect(), passes)
            async with stage.session(book.book, connect=connect, patience=HURRIED) as session:
                await session.respond()
                (told,) = of(NoReply, await until(session, NoReply))
                assert "has begun within" in told.why

    within(scene)


def test_a_call_without_a_tool_of_ours_is_answered_from_outside():
    async def scene():
        async with (
            staged(call("book", {"flight": "LS 1"}, call_id="c1"), "Done.") as stage,
            stage.session() as session,
        ):
            await session.respond()
            (waiting,) = of(Waiting, await until(session, Waiting))
            assert [one.call_id for one in waiting.for_output] == ["c1"]
            await session.answer("c1", "It is booked.")
            await until(session, saying("Done."))
            stage.in_step(session)
            with pytest.raises(NoSuchCall):
                await session.answer("c1", "Again.")

    within(scene)


def test_an_output_that_somebody_else_gave_is_the_output():
    async def scene():
        async with (
            staged(call("book", {"flight": "LS 1"}, call_id="c1")) as stage,
            stage.session() as session,
        ):
            await session.respond()
            await until(session, Waiting)
            await until(session, "response.done")
            assert await session.change(added=[function_output("o", "c1", "It is booked.")])
            assert stage.in_step(session)[-1] == "o"
            assert session.history()[-1]["output"] == "It is booked."
        ledger = await stage.ledger()
        assert ledger.unsettled() == []

    within(scene)


def test_a_tool_that_does_not_exist_is_told_to_the_model():
    async def scene():
        book = Book()
        async with (
            staged(call("fly", {}, call_id="c1"), "Sorry.") as stage,
            stage.session(book.book) as session,
        ):
            await session.respond()
            (ended,) = of(CallEnded, await until(session, saying("Sorry.")))
            assert (ended.failed, ended.output) == (True, "There is no tool 'fly'.")
            stage.in_step(session)

    within(scene)


def test_the_output_of_a_call_that_is_gone_is_on_disk_and_told():
    async def scene():
        book = Book()
        async with (
            staged(call("wait", call_id="c1")) as stage,
            stage.session(book.wait) as session,
        ):
            await session.respond()
            await until(session, "response.done")
            await book.begun.wait()
            (made,) = session.items
            # An edit would keep it: this is somebody who does not ask the mirror.
            await session.send({"type": "conversation.item.delete", "item_id": made["id"]})
            await until(session, "conversation.item.deleted")
            book.may_end.set()
            (unplaced,) = of(OutputUnplaced, await until(session, OutputUnplaced))
            assert unplaced.call_id == "c1"
            assert "not there" in unplaced.why
            assert session.history()[-1]["output"] == "it ended"
            assert stage.broken() == {}

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


def test_parts_of_an_output_go_as_a_text():
    async def scene():
        async def look() -> list:
            """Look."""
            return [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]

        async with (
            staged(call("look", call_id="c1"), "Done.") as stage,
            stage.session(look) as session,
        ):
            await session.respond()
            await until(session, saying("Done."))
            assert session.items[1]["output"] == "one\ntwo"
            assert stage.broken() == {}

    within(scene)


# --- the end, and the beginning ----------------------------------------------------------------


def test_closing_asks_tools_to_end_and_leaves_an_honest_outcome():
    async def scene():
        book = Book()
        async with staged(call("wait", call_id="c1")) as stage:
            async with stage.session(book.wait, grace=0.05) as session:
                await session.respond()
                await book.begun.wait()
            (ended,) = of(CallEnded, [event async for event in session])
            assert ended.outcome is Outcome.UNKNOWN
            ledger = await stage.ledger()
            assert ledger.unsettled() == []
            assert UNKNOWN_TEXT in ledger.history()[-1]["output"]

    within(scene)


def test_who_waits_on_a_session_that_is_closed_hears_of_it():
    async def scene():
        async with staged(reply("One two three.", pace=5.0)) as stage, stage.session() as session:
            await session.respond()
            held = asyncio.create_task(session.change(added=[user("a")]))
            asked = asyncio.create_task(session.respond())
            read = asyncio.create_task(_all(session))
            await asyncio.sleep(0)
            await session.close()
            assert types(await read)[0] == "session.created"
            for task in (held, asked):
                with pytest.raises(SessionOver, match="was closed"):
                    await task
            with pytest.raises(SessionOver, match="was closed"):
                await session.send({"type": "input_audio_buffer.clear"})
            await session.close()

    within(scene)


async def _all(session):
    return [event async for event in session]


def test_a_caller_who_is_cancelled_leaves_its_edit_to_be_carried_out():
    async def scene():
        async with staged() as stage, stage.session() as session:
            editing = asyncio.create_task(session.change(added=[user("a", "a")]))
            await asyncio.sleep(0)
            editing.cancel()
            await until(session, lambda one: isinstance(one, dict) and _named(one) == "a")
            assert stage.in_step(session) == ["a"]

    within(scene)


def test_a_refused_configuration_is_told_and_nothing_is_left_behind():
    async def scene():
        async with staged() as stage:
            with pytest.raises(ConfigurationRefused, match="smell"):
                async with stage.session(configured={"output_modalities": ["smell"]}):
                    pass
            async with stage.session() as session:  # the thread is free
                assert session.items == []

    within(scene)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_is_refused_is_not_tried_again(kind):
    async def scene():
        async with staged(settings=Settings(key="right")) as stage:
            with pytest.raises(CannotConnect, match="401"):
                async with stage.session(kind=kind):
                    pass
            assert len([e for e in stage.emulator.record.entries() if not e.sent]) == 1

    within(scene)


def test_a_server_that_is_not_there_is_given_up_after_its_attempts(monkeypatch):
    monkeypatch.setattr("lockstitch.runner.backoff.FIRST_DELAY_SECONDS", 0.001)

    async def scene():
        with pytest.raises(CannotConnect, match="open it again later"):
            await Session.open(
                websocket("ws://127.0.0.1:9/v1/realtime?model=m"), patience=Patience(attempts=2)
            )

    within(scene)


def test_a_changed_configuration_holds_on_the_next_line_too():
    async def scene():
        faults = ["cut before=conversation.item.added how=reset"]
        async with staged("One.", faults=faults) as stage, stage.session() as session:
            await session.configure({"instructions": "Be brief."})
            with pytest.raises(ConfigurationRefused, match="smell"):
                await session.send(
                    {"type": "session.update", "session": {"output_modalities": ["smell"]}}
                )
            await session.change(added=[user("a", "a")])
            assert stage.struck() == 1
            body = stage.provider.settings.body
            assert (body["instructions"], body["output_modalities"]) == ("Be brief.", ["text"])
            stage.in_step(session)

    within(scene)


def test_two_processes_do_not_have_the_same_thread():
    async def scene():
        async with staged() as stage, stage.session():
            with pytest.raises(ConversationBusy):
                async with stage.session():
                    pass

    within(scene)


def test_a_thread_of_another_kind_is_not_taken():
    async def scene():
        async with staged() as stage:
            async with await Journal.open(stage.store, THREAD) as journal:
                await journal.append(item_added("Hello."))
            with pytest.raises(RealtimeError, match="dialect responses"):
                async with stage.session():
                    pass

    within(scene)
