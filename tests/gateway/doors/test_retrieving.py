"""Responses that are asked for again, with the official client: at the upstream, and when it has
lost them, is away, or never kept any."""

from __future__ import annotations

import asyncio
import json
import socket

import aiohttp
import pytest
from aiohttp import web
from msgspec import structs
from yarl import URL

from lockstitch.core.facts import Ending
from lockstitch.emulator import call
from lockstitch.gateway.config.model import Limits, Upstream
from lockstitch.gateway.doors import streaming_again
from lockstitch.gateway.doors.reading import Reader
from lockstitch.gateway.keeping.conversations import facts_of
from lockstitch.gateway.keeping.exchanges import kept as kept_in
from lockstitch.gateway.keeping.exchanges import open_calls
from lockstitch.gateway.keeping.notes import AskedNote
from lockstitch.gateway.keeping.recordings import Recording
from lockstitch.gateway.showing.streams import Log
from lockstitch.store.memory import MemoryStore
from tests.gateway import building
from tests.gateway.doors.serving import (
    ask,
    at,
    hear,
    keep,
    nobody,
    raw,
    read_events,
    refusal,
    run,
    said,
    serving,
    until,
)


def asked_for(emulator, response):
    """What the upstream was asked about this response."""
    lines = [entry.what for entry in emulator.entries() if not entry.sent]
    return [line for line in lines if response in line]


# --- told whole --------------------------------------------------------------------------------


def test_the_upstream_that_keeps_a_response_tells_it(emulator):
    async def play():
        made, body = await ask(emulator.base_url, tools=[{"type": "web_search"}])
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            client = served.client().responses
            upstream = served.world.upstreams.get("emulator")
            ask_it, asked = upstream.ask, []

            def asking(one, hearing):
                asked.append(one.target)
                return ask_it(one, hearing)

            upstream.ask = asking
            found = await client.retrieve(made["id"], include=["reasoning.encrypted_content"])
            assert found.to_dict() == made
            query = "include%5B%5D=reasoning.encrypted_content"
            assert asked == [f"/responses/{made['id']}?{query}"]
            assert (await refusal(client.cancel(made["id"])))[0] == 400

    run(play())


def test_what_the_upstream_lost_is_told_from_the_journal(emulator):
    async def play():
        emulator.say("Hello.", call("f", {"a": 1}))
        made, body = await ask(emulator.base_url, metadata={"a": "b"})
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            emulator.forget(made["id"])
            client = served.client().responses
            found = await client.retrieve(made["id"])
            assert found.output_text == "Hello."
            assert (found.status, found.metadata) == ("completed", {"a": "b"})
            assert found.to_dict()["output"] == made["output"]
            assert found.to_dict()["usage"] == made["usage"]
            assert found.tools == []  # only the upstream had them
            status, error = await refusal(client.cancel(made["id"]))
            assert (status, "only a background" in error["message"]) == (400, True)

    run(play())


def test_an_upstream_that_is_away_is_stood_in_for(make_emulator):
    emulator = make_emulator()

    async def play():
        made, body = await ask(emulator.base_url)
        cut, unheard = made | {"id": "resp_cut"}, made | {"id": "resp_2", "status": "queued"}
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            await keep(served.world, raw(unheard))
            recording = await keep(served.world, raw(cut | {"status": "queued"}))
            assert recording.ending is None
            emulator.fault("status code=503 times=1")
            client = served.client().responses
            assert (await client.retrieve(made["id"])).to_dict()["output"] == made["output"]
            emulator.stop()
            assert (await client.retrieve(made["id"])).to_dict()["output"] == made["output"]
            listed = await client.input_items.list(made["id"])
            assert [item.content[0].text for item in listed.data] == ["Hi."]
            # Of these it alone knows what became of them, and it alone can delete and cancel.
            for work in (
                client.retrieve("resp_2"),
                client.cancel("resp_2"),
                client.delete(made["id"]),
            ):
                status, error = await refusal(work)
                assert (status, error["code"]) == (502, "upstream_unreachable")
            assert (await client.retrieve(made["id"])).status == "completed"

    run(play())


@pytest.mark.parametrize(
    "why", ["stateless", "not stored", "local", "not configured", "not for it"]
)
def test_what_no_upstream_keeps_is_told_from_the_journal_alone(why, emulator):
    async def play():
        made, body = await ask(emulator.base_url, store=False)
        state = "gateway" if why == "stateless" else "upstream"
        name = "another" if why == "not configured" else "emulator"
        allowed = ["another"] if why == "not for it" else None
        async with serving(at(emulator, name, state=state), allowed=allowed) as served:
            note = {"stored": why not in ("not stored", "stateless"), "local": why == "local"}
            await keep(served.world, body, base="resp_0", anchored=True, **note)
            client = served.client().responses
            found = await client.retrieve(made["id"])
            assert found.to_dict()["output"] == made["output"]
            assert found.previous_response_id == "resp_0"
            assert [event.type async for event in await client.retrieve(made["id"], stream=True)]
            await client.delete(made["id"])
            assert asked_for(emulator, made["id"]) == []

    run(play())


def test_a_response_that_was_tried_again_has_the_id_that_was_shown(emulator):
    async def play():
        made, body = await ask(emulator.base_url)
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            await building.tried_again(served.world.exchanges, "anna", "resp_shown", made["id"])
            client = served.client().responses
            found = await client.retrieve("resp_shown")
            assert found.to_dict() == made | {"id": "resp_shown"}
            emulator.forget(made["id"])
            found = await client.retrieve("resp_shown")
            assert (found.id, found.output_text) == (
                "resp_shown",
                made["output"][0]["content"][0]["text"],
            )
            await client.delete("resp_shown")
            for one in ("resp_shown", made["id"]):
                assert (await refusal(client.retrieve(one)))[0] == 404

    run(play())


def test_one_that_nobody_hears_any_more_failed_and_one_that_is_heard_goes_on(emulator):
    async def play():
        async with serving(at(emulator, state="gateway")) as served:
            note = AskedNote(upstream="emulator", stored=False, created=1.0)
            recording = Recording(served.world.exchanges, "anna", note, said("Hi."))
            recording.opened("resp_1")
            item = raw({"type": "message", "id": "msg_1", "role": "assistant", "content": []})
            recording.done(item, 0, 4)
            await recording.durable()
            client = served.client().responses
            found = await client.retrieve("resp_1")
            assert (found.status, len(found.output)) == ("in_progress", 1)
            status, error = await refusal(client.cancel("resp_1"))
            assert (status, "only a background" in error["message"]) == (400, True)
            recording.left()  # as if the process had died: nobody holds it
            await recording.close()
            found = await client.retrieve("resp_1")
            assert (found.status, found.error.code) == ("failed", "server_error")
            assert len(found.output) == 1
            stream = await served.get("/responses/resp_1?stream=true&starting_after=7")
            [last] = read_events(stream[1])
            assert (last["type"], last["sequence_number"]) == ("response.failed", 8)

    run(play())


# --- whose it is -------------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", ["pass", "refuse"])
@pytest.mark.parametrize("state", ["upstream", "gateway"])
def test_what_another_tenant_made_does_not_exist(state, unknown, emulator):
    async def play():
        made, body = await ask(emulator.base_url)
        async with serving(at(emulator, state=state), unknown=unknown) as served:
            await keep(served.world, body, stored=state == "upstream")
            served.world.runs.begin("anna", made["id"], Log())
            other = served.client("bert").responses
            for work in (
                other.retrieve(made["id"]),
                other.retrieve(made["id"], stream=True),
                other.cancel(made["id"]),
                other.delete(made["id"]),
                other.input_items.list(made["id"]),
            ):
                status, error = await refusal(work)
                assert status == 404
                assert error["message"] == f"Response with id '{made['id']}' not found."
            assert asked_for(emulator, made["id"]) == []

    run(play())


def test_an_unknown_response_is_passed_on_or_refused(emulator):
    async def play():
        made, _ = await ask(emulator.base_url)
        async with serving(at(emulator), unknown="refuse") as served:
            status, error = await refusal(served.client().responses.retrieve(made["id"]))
            assert (status, error["type"]) == (404, "invalid_request_error")
            assert asked_for(emulator, made["id"]) == []
        async with serving(at(emulator)) as served:
            client = served.client().responses
            assert (await client.retrieve(made["id"])).to_dict() == made
            assert (await client.input_items.list(made["id"])).data
            events = [event async for event in await client.retrieve(made["id"], stream=True)]
            assert events[-1].type == "response.completed"
            await client.delete(made["id"])
            assert (await refusal(client.retrieve(made["id"])))[0] == 404
        async with serving(at(emulator, state="gateway")) as served:
            assert (await refusal(served.client().responses.retrieve(made["id"])))[0] == 404

    run(play())


def test_an_unknown_response_is_looked_for_at_each_upstream_in_turn(make_emulator):
    first, second = make_emulator(), make_emulator()

    async def play():
        made, _ = await ask(second.base_url)
        async with serving(at(first, "first"), at(second, "second")) as served:
            client = served.client().responses
            assert (await client.retrieve(made["id"])).to_dict() == made
            events = [event async for event in await client.retrieve(made["id"], stream=True)]
            assert events[-1].response.id == made["id"]
            assert served.callers[-1].upstream == "second"
            first.stop()
            assert (await client.retrieve(made["id"])).to_dict() == made
            assert (await refusal(client.retrieve("resp_nobody")))[0] == 502

    run(play())


def test_ids_that_nobody_gave(emulator):
    async def play():
        async with serving(at(emulator), unknown="refuse") as served:
            for strange in ("..", "%00", "a" * 5000, "conversation", "%F0%9F%98%80"):
                status, _ = await served.get(f"/responses/x{strange}")
                assert status == 404

    run(play())


@pytest.mark.parametrize(
    ("query", "param"),
    [("stream=maybe", "stream"), ("stream=true&starting_after=-1", "starting_after")],
)
def test_a_query_that_means_nothing_is_refused(query, param, emulator):
    async def play():
        async with serving(at(emulator)) as served:
            status, body = await served.get(f"/responses/resp_1?{query}")
            assert (status, json.loads(body)["error"]["param"]) == (400, param)

    run(play())


# --- deleted -----------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [False, True])
def test_what_was_deleted_is_gone_everywhere(lost, emulator):
    async def play():
        made, body = await ask(emulator.base_url)
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            log = Log()
            served.world.runs.begin("anna", made["id"], log)
            log.add(b'event: a\ndata: {"type":"a","sequence_number":0}\n\n')
            served.world.runs.end("anna", made["id"])
            if lost:
                emulator.forget(made["id"])
            client = served.client()
            answer = await client.delete(f"/responses/{made['id']}", cast_to=object)
            assert answer == {"id": made["id"], "object": "response", "deleted": True}
            for work in (
                client.responses.retrieve(made["id"]),
                client.responses.retrieve(made["id"], stream=True),
                client.responses.input_items.list(made["id"]),
                client.responses.delete(made["id"]),
            ):
                assert (await refusal(work))[0] == 404
            assert await served.world.exchanges.exchange("anna", made["id"]) is None
            assert served.world.runs.size == 0
            names = [one.conversation async for one in served.world.store.conversations()]
            assert names == []

    run(play())


def test_one_that_is_heard_when_it_is_deleted_is_not_told_again(emulator):
    async def play():
        async with serving(at(emulator, state="gateway")) as served:
            world, log = served.world, Log()
            note = AskedNote(upstream="emulator", stored=False)
            recording = Recording(world.exchanges, "anna", note, said("Hi."))
            recording.opened("resp_1")
            await recording.durable()
            world.runs.begin("anna", "resp_1", log)
            client = served.client().responses
            await client.delete("resp_1")
            log.add(b'event: a\ndata: {"type":"a","sequence_number":0}\n\n')
            assert (await refusal(client.retrieve("resp_1", stream=True)))[0] == 404
            world.runs.end("anna", "resp_1")
            assert (await refusal(client.retrieve("resp_1", stream=True)))[0] == 404
            recording.left()
            await recording.close()

    run(play())


@pytest.mark.parametrize("state", ["upstream", "gateway"])
def test_a_stream_whose_response_is_deleted_goes_on_to_its_end_and_is_not_kept(state):
    async def play():
        async with building.both(up_state=state) as (up, gw):
            events = building.told_by("resp_1", building.call(), building.message("hi"))
            deleted = asyncio.Event()

            async def slow(asked):
                told = web.StreamResponse(headers={"content-type": "text/event-stream"})
                await told.prepare(asked.request)
                await told.write(building.sse(events[:5]))
                await deleted.wait()
                await told.write(building.sse(events[5:]))
                return told

            up.then(slow)
            hearing = asyncio.create_task(gw.stream(input="x"))
            exchange = gw.world.exchanges.exchange
            while (kept := await exchange("local", "resp_1")) is None or not kept.said:
                await asyncio.sleep(0.01)
            up.then(building.raw(b"{}", kind="application/json"))
            async with gw.client.delete(gw.url + "/responses/resp_1") as gone:
                assert gone.status == 200
            deleted.set()
            told = await hearing
            assert [event["type"] for event in told] == [event["type"] for event in events]
            assert not gw.world.journal_failed
            assert await exchange("local", "resp_1") is None

    building.run(play())


def test_a_delete_that_the_upstream_refuses_deletes_nothing(emulator):
    async def play():
        made, body = await ask(emulator.base_url)
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            emulator.fault("status code=500 times=1")
            client = served.client().responses
            assert (await refusal(client.delete(made["id"])))[0] == 500
            assert (await client.retrieve(made["id"])).id == made["id"]

    run(play())


# --- in the background -------------------------------------------------------------------------


def in_background(emulator, text="Done.", **settings):
    emulator.say(text, call("f", {"a": 1}), pace=0.02, **settings)
    return ask(emulator.base_url, background=True)


def test_the_end_of_a_response_that_nobody_heard_is_written_down(emulator):
    async def play():
        made, body = await in_background(emulator)
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            client = served.client().responses
            seen = await client.retrieve(made["id"])
            while seen.status in ("queued", "in_progress"):
                await asyncio.sleep(0.02)
                seen = await client.retrieve(made["id"])
            kept = await served.world.exchanges.exchange("anna", made["id"])
            assert kept.ending is Ending.COMPLETED
            assert [json.loads(item) for item in kept.said] == seen.to_dict()["output"]
            assert [one.call.key for one in open_calls(kept.said)] == [seen.output[-1].call_id]
            await client.retrieve(made["id"])
            again = await served.world.exchanges.reopened("anna", made["id"])
            assert kept_in(facts_of(again)) == kept  # and once
            await again.close()
            # And so it can be gone on from, and told.
            [last] = await served.world.exchanges.path("anna", made["id"])
            assert last.continues
            emulator.forget(made["id"])
            again = await client.retrieve(made["id"])
            assert again.to_dict()["output"] == seen.to_dict()["output"]
            assert (await client.cancel(made["id"])).status == "completed"

    run(play())


def test_a_cancelled_response_is_written_down_as_such(emulator):
    async def play():
        made, body = await in_background(emulator, delay=5)
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            client = served.client().responses
            assert (await client.cancel(made["id"])).status == "cancelled"
            kept = await served.world.exchanges.exchange("anna", made["id"])
            assert (kept.ending, kept.answered.ended_by) == (Ending.FAILED, "response.cancelled")
            emulator.forget(made["id"])
            assert (await client.retrieve(made["id"])).status == "cancelled"
            assert (await client.cancel(made["id"])).status == "cancelled"

    run(play())


def test_one_in_the_background_that_was_lost_failed(emulator):
    async def play():
        made, body = await in_background(emulator, delay=5)
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            emulator.forget(made["id"])
            client = served.client().responses
            assert (await client.retrieve(made["id"])).status == "failed"
            assert (await client.cancel(made["id"])).status == "failed"
            events = [event async for event in await client.retrieve(made["id"], stream=True)]
            assert [event.type for event in events] == ["response.created", "response.failed"]

    run(play())


@pytest.mark.parametrize("after", [None, 0, 3, 7])
def test_a_stream_of_the_background_is_passed_on_and_its_end_written_down(after, emulator):
    async def play():
        made, body = await in_background(emulator)
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            query = "" if after is None else f"&starting_after={after}"
            _, stream = await served.get(f"/responses/{made['id']}?stream=true{query}")
            events = read_events(stream)
            assert events[0]["sequence_number"] == (0 if after is None else after + 1)
            assert events[-1]["type"] == "response.completed"
            kept = await served.world.exchanges.exchange("anna", made["id"])
            assert kept.ending is Ending.COMPLETED
            assert kept.answered.last == events[-1]["sequence_number"]
            emulator.forget(made["id"])
            _, again = await served.get(f"/responses/{made['id']}?stream=true{query}")
            known = {event["sequence_number"]: event for event in events}
            condensed = read_events(again)
            for event in condensed[after is None :]:
                assert known[event["sequence_number"]]["type"] == event["type"]

    run(play())


@pytest.mark.parametrize("how", ["close", "reset", "half-frame"])
def test_a_stream_that_breaks_at_the_upstream_is_gone_on_with(how, emulator):
    async def play():
        made, body = await in_background(emulator)
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            whole = (await served.get(f"/responses/{made['id']}?stream=true"))[1]
            emulator.fault(f"cut after=4 how={how} times=1")
            emulator.fault(f"cut after=8 how={how} times=1")
            _, stream = await served.get(f"/responses/{made['id']}?stream=true")
            events = read_events(stream)
            if how == "close":
                # It looks like the end of the stream: the rest is told from the journal.
                assert events[-1] == read_events(whole)[-1]
            else:
                assert stream == whole

    run(play())


def test_the_end_is_waited_for_where_the_upstream_does_not_stream_it(emulator):
    async def play():
        made, body = await in_background(emulator, delay=0.3)
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            upstream = served.world.upstreams.get("emulator")
            ask_it = upstream.ask

            def asking(one, hearing):
                # As if there were no such thing as a stream of a response.
                target = one.target.replace("stream=true", "stream=false")
                return ask_it(structs.replace(one, target=target), hearing)

            upstream.ask = asking
            client = served.client().responses
            events = [event async for event in await client.retrieve(made["id"], stream=True)]
            assert [event.type for event in events] == [
                "response.created",
                "response.output_item.done",
                "response.output_item.done",
                "response.completed",
            ]
            assert events[-1].response.output_text == "Done."

    run(play())


def test_a_stream_that_is_cancelled_is_told_so(emulator):
    async def play():
        made, body = await in_background(emulator, delay=5)
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            reading = asyncio.create_task(served.get(f"/responses/{made['id']}?stream=true"))
            await until(lambda: asked_for(emulator, made["id"]))
            await served.client().responses.cancel(made["id"])
            events = read_events((await reading)[1])
            assert events[-1]["type"] == "response.cancelled"
            assert events[-1]["response"]["status"] == "cancelled"

    run(play())


@pytest.mark.parametrize("begun", [False, True])
def test_an_upstream_that_goes_away_with_a_response_that_runs(begun, make_emulator):
    emulator = make_emulator()

    async def play():
        emulator.say("Done.", pace=0.02, faults=["stall after=3 seconds=5"])
        made, body = await ask(emulator.base_url, background=True)
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            if not begun:
                emulator.stop()
            reading = asyncio.create_task(served.get(f"/responses/{made['id']}?stream=true"))
            if begun:
                await until(lambda: served.heard and served.heard[-1])
                emulator.stop()
            status, told = await reading
            if not begun:
                assert (status, b"upstream_unreachable" in told) == (502, True)
                return
            events = read_events(told)
            assert [event["sequence_number"] for event in events] == list(range(len(events)))
            assert events[-1]["type"] == "response.failed"

    run(play())


def test_a_stream_that_cannot_be_had_any_more_is_ended_from_the_journal(emulator):
    async def play():
        emulator.say("Hello.", call("f"))
        made, stream = await ask(emulator.base_url, stream=True)
        async with serving(at(emulator)) as served:
            await keep(served.world, b"", stream=stream)
            emulator.fault("cut after=4 how=reset times=always")
            _, told = await served.get(f"/responses/{made['id']}?stream=true")
            events, known = read_events(told), read_events(stream)
            assert events[:5] == known[:5]
            assert events[-1]["sequence_number"] == known[-1]["sequence_number"]
            assert events[-1]["response"]["output"] == made["output"]

    run(play())


# --- streamed from the journal -----------------------------------------------------------------


def stateless(emulator):
    return at(emulator, state="gateway")


def test_the_rest_of_a_stream_is_told_from_the_journal(emulator):
    async def play():
        emulator.say("Hello.", call("f", {"a": 1}), "Bye.")
        made, stream = await ask(emulator.base_url, stream=True, store=False)
        known = read_events(stream)
        async with serving(stateless(emulator)) as served:
            await keep(served.world, b"", stream=stream, stored=False)
            client = served.client().responses
            for after in range(-1, len(known) + 1):
                query = f"&starting_after={after}" if after >= 0 else ""
                status, told = await served.get(f"/responses/{made['id']}?stream=true{query}")
                assert status == 200
                expected = [
                    event
                    for event in known
                    if event["sequence_number"] > after
                    and event["type"] in ("response.output_item.done", "response.completed")
                ]
                events = read_events(told)
                assert events[after < 0 :] == expected
            whole = await client.retrieve(made["id"], stream=True)
            types = [event.type async for event in whole]
            assert types[0] == "response.created"
            async with client.stream(response_id=made["id"]) as again:
                final = await again.get_final_response()
            assert final.output_text == "Hello.Bye."
            assert [item.type for item in final.output] == ["message", "function_call", "message"]
            async with client.stream(response_id=made["id"], starting_after=5) as again:
                numbers = [event.sequence_number async for event in again]
            assert numbers
            assert min(numbers) > 5
            assert asked_for(emulator, made["id"]) == []

    run(play())


@pytest.mark.parametrize("ends", [True, False])
def test_a_stream_of_what_another_process_hears_waits_for_its_end(ends, emulator):
    async def play():
        emulator.say("Hello.")
        made, stream = await ask(emulator.base_url, stream=True, store=False)
        async with serving(stateless(emulator)) as served:
            # It shares the store, and nothing else.
            note = AskedNote(upstream="emulator", stored=False)
            recording = Recording(served.world.exchanges, "anna", note, said("Hi."))
            recording.opened(made["id"])
            await recording.durable()
            found = await served.client().responses.retrieve(made["id"])
            assert found.status == "in_progress"
            reading = asyncio.create_task(served.get(f"/responses/{made['id']}?stream=true"))
            await asyncio.sleep(0.2)
            assert not reading.done()
            if ends:
                hear(recording, stream)
            else:
                recording.left()
            await recording.close()
            events = read_events((await reading)[1])
            last = "response.completed" if ends else "response.failed"
            assert events[-1]["type"] == last

    run(play())


# --- streamed from the log ---------------------------------------------------------------------


def block(number, kind="a", size=0):
    data = json.dumps({"type": kind, "sequence_number": number, "x": "x" * size})
    return f"event: {kind}\ndata: {data}\n\n".encode()


@pytest.mark.parametrize("after", [-1, 0, 4, 5, 9, 30])
def test_a_stream_is_followed_without_a_gap_and_nothing_twice(after):
    async def play():
        async with serving() as served:
            log = Log()
            served.world.runs.begin("anna", "resp_1", log)
            log.add(block(0) + block(1))
            log.add(block(2))
            query = f"&starting_after={after}" if after >= 0 else ""
            reading = asyncio.create_task(served.get(f"/responses/resp_1?stream=true{query}"))
            await until(lambda: log._followers)
            log.add(block(3))
            await asyncio.sleep(0.01)
            log.add(block(4) + block(5))
            log.add(b": awake\n\n")
            log.add(block(6))
            log.end()
            status, told = await reading
            assert status == 200
            numbers = [event["sequence_number"] for event in read_events(told)]
            assert numbers == [n for n in range(7) if n > after]
            assert log._followers == []
            # Also when it is over.
            _, again = await served.get(f"/responses/resp_1?stream=true{query}")
            numbers = [event["sequence_number"] for event in read_events(again)]
            assert numbers == [n for n in range(7) if n > after]

    run(play())


def test_a_follower_that_goes_away_is_forgotten():
    async def play():
        async with serving() as served:
            log = Log()
            served.world.runs.begin("anna", "resp_1", log)
            headers = {"authorization": "Bearer anna"}
            url = f"{served.url}/responses/resp_1?stream=true"
            async with aiohttp.ClientSession() as session:
                async with session.get(url, headers=headers) as answer:
                    log.add(block(0))
                    assert await answer.content.readuntil(b"\n\n")
                await until(lambda: not log._followers)

    run(play())


def test_a_follower_that_does_not_read_holds_little_and_loses_nothing(monkeypatch):
    readers = []

    class Seen(Reader):
        def __init__(self, client, caller, **told):
            super().__init__(client, caller, **told)
            readers.append(client)
            # The system alone would take megabytes.
            sending = client._transport.get_extra_info("socket")
            sending.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)

    monkeypatch.setattr(streaming_again, "Reader", Seen)

    async def play():
        limits = Limits(unread_bytes=32 * 1024, unread_seconds=60)
        async with serving(limits=limits) as served:
            log = Log()
            served.world.runs.begin("anna", "resp_1", log)
            receiving = socket.socket()
            receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            receiving.connect(("127.0.0.1", URL(served.url).port))
            client, writer = await asyncio.open_connection(sock=receiving, limit=1024)
            head = b"GET /v1/responses/resp_1?stream=true HTTP/1.0\r\n"
            writer.write(head + b"authorization: Bearer anna\r\n\r\n")
            await until(lambda: log._followers)
            for n in range(380):
                log.add(block(n, size=10_000))
            await asyncio.sleep(0.3)
            assert readers[0].full
            assert readers[0].backlog < 32 * 1024 + 20_000
            log.end()
            told = (await client.read()).partition(b"\r\n\r\n")[2]
            writer.close()
            numbers = [event["sequence_number"] for event in read_events(told)]
            assert numbers == list(range(380))

    run(play())


def test_a_follower_of_what_grows_too_large_gets_the_rest_from_the_journal(emulator):
    async def play():
        emulator.say("Hello.", call("f"))
        made, stream = await ask(emulator.base_url, stream=True, store=False)
        known = read_events(stream)
        async with serving(stateless(emulator), limits=Limits(unread_bytes=16 * 1024)) as served:
            log = Log()
            served.world.runs.begin("anna", made["id"], log)
            note = AskedNote(upstream="emulator", stored=False)
            recording = Recording(served.world.exchanges, "anna", note, said("Hi."))
            recording.opened(made["id"])
            await recording.durable()
            reading = asyncio.create_task(served.get(f"/responses/{made['id']}?stream=true"))
            await until(lambda: log._followers)
            first, second, *_ = stream.split(b"\n\n")
            log.add(first + b"\n\n")
            await until(lambda: served.heard and served.heard[-1])
            log.add(second + b"\n\n")
            log.drop()  # before the reader could take it
            await asyncio.sleep(0.05)
            hear(recording, stream)
            await recording.close()
            log.end()
            served.world.runs.end("anna", made["id"])
            events = read_events((await reading)[1])
            assert events[0] == known[0]
            assert [event["type"] for event in events[1:]] == [
                "response.output_item.done",
                "response.output_item.done",
                "response.completed",
            ]

    run(play())


# --- what it saw -------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [False, True])
def test_input_items_are_all_that_the_response_saw(lost, emulator):
    async def play():
        emulator.say("Hello.", call("f", {"a": 1}))
        first, body = await ask(emulator.base_url)
        done = raw(
            {
                "type": "function_call_output",
                "call_id": first["output"][-1]["call_id"],
                "output": "1",
            }
        )
        second, after = await ask(
            emulator.base_url,
            input=[json.loads(done)],
            previous_response_id=first["id"],
        )
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            note = {"base": first["id"], "anchored": True}
            await keep(served.world, after, items=[done], **note)
            if lost:
                emulator.forget()
            client = served.client().responses
            listed = await client.input_items.list(second["id"], order="asc")
            assert [item.type for item in listed.data] == [
                "message",
                "message",
                "function_call",
                "function_call_output",
            ]
            assert listed.data[0].content[0].to_dict() == {"type": "input_text", "text": "Hi."}
            assert {item.status for item in listed.data} == {"completed"}
            ids = [item.id for item in listed.data]
            assert [one.partition("_")[0] for one in ids] == ["msg", "msg", "fc", "fco"]
            paged = [item.id async for item in client.input_items.list(second["id"], limit=1)]
            if lost:
                # Of those that came without an id the upstream may give others every time.
                assert paged == ids[::-1]
            page = await client.input_items.list(second["id"], limit=3)
            assert (page.has_more, len(page.data)) == (True, 3)
            for wrong in ({"limit": 0}, {"limit": 101}, {"order": "up"}):
                status, error = await refusal(client.input_items.list(second["id"], **wrong))
                assert (status, error["param"]) == (400, next(iter(wrong)))

    run(play())


def test_an_input_that_is_not_all_known_is_not_told_in_part(emulator):
    async def play():
        made, body = await ask(emulator.base_url, store=False)
        async with serving(stateless(emulator)) as served:
            await keep(served.world, body, stored=False, base="resp_0", anchored=True)
            work = served.client().responses.input_items.list(made["id"])
            status, error = await refusal(work)
            assert status == 404
            assert "resp_0 is not in the journal" in error["message"]

    run(play())


# --- when things break -------------------------------------------------------------------------


def test_a_journal_that_cannot_be_read_is_said_so(emulator):
    async def play():
        store = MemoryStore()
        async with serving(at(emulator), store=store) as served:
            await store.close()
            status, error = await refusal(served.client().responses.retrieve("resp_1"))
            assert (status, error["code"]) == (503, "journal_unavailable")

    run(play())


def test_a_stream_ends_well_when_the_journal_goes_away(emulator):
    async def play():
        made, _ = await ask(emulator.base_url, store=False)
        store = MemoryStore()
        async with serving(stateless(emulator), store=store) as served:
            await keep(served.world, raw(made | {"status": "queued"}), stored=False)
            log = Log()
            served.world.runs.begin("anna", made["id"], log)
            log.add(block(0) + block(1))
            reading = asyncio.create_task(served.get(f"/responses/{made['id']}?stream=true"))
            await until(lambda: served.heard and served.heard[-1].count(b"data:") == 2)
            log.add(block(2))
            log.drop()
            await store.close()
            log.end()
            served.world.runs.end("anna", made["id"])
            events = read_events((await reading)[1])
            assert [event["type"] for event in events] == ["a", "a", "response.failed"]
            assert events[-1]["sequence_number"] == 2

    run(play())


def test_nobody_is_asked_over_http_who_does_not_speak_it(emulator):
    async def play():
        made, body = await ask(emulator.base_url)
        async with serving(at(emulator, transport="websocket")) as served:
            await keep(served.world, body)
            found = await served.client().responses.retrieve(made["id"])
            assert found.to_dict()["output"] == made["output"]
            assert asked_for(emulator, made["id"]) == []

    run(play())


def test_an_upstream_that_is_nowhere_is_told_by_its_name_alone():
    async def play():
        down = Upstream(name="down", url=nobody())
        async with serving(down) as served:
            status, body = await served.get("/responses/resp_1")
            assert status == 502
            assert b"'down'" in body
            assert down.url.encode() not in body

    run(play())
