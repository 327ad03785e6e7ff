"""An end that an upstream shows is seen by nobody before the journal has it: not while somebody
still hears the response, and not while it is tried again under another id."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest
from aiohttp import web

from lockstitch.core.facts import Ending
from lockstitch.emulator import call
from lockstitch.gateway.config.model import Limits
from lockstitch.gateway.doors.kept_responses import is_heard
from lockstitch.gateway.keeping.notes import AskedNote
from lockstitch.gateway.keeping.recordings import Recording
from lockstitch.gateway.showing.streams import Log
from lockstitch.store.errors import CannotWrite
from tests.gateway import building
from tests.gateway.building import both, message, saying, streaming, told_by
from tests.gateway.doors.serving import (
    ask,
    at,
    hear,
    keep,
    raw,
    read_events,
    run,
    said,
    serving,
    until,
)


def heard(world, tenant="anna"):
    """Somebody who hears a response, here or in another process: what they have is in the store."""
    note = AskedNote(upstream="emulator", created=1.0)
    return Recording(world.exchanges, tenant, note, said("Hi."))


async def ending(world, response, tenant="anna"):
    return (await world.exchanges.exchange(tenant, response)).ending


# --- told whole --------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["ends", "breaks off", "dies"])
def test_a_response_has_no_end_before_whoever_hears_it_has_heard_that(how, emulator):
    async def play():
        emulator.say("Hello.", call("f"))
        made, stream = await ask(emulator.base_url, stream=True)
        async with serving(at(emulator)) as served:
            recording = heard(served.world)
            recording.opened(made["id"])
            await recording.durable()
            client = served.client().responses
            for _ in range(2):
                found = await client.retrieve(made["id"])
                assert (found.id, found.status, found.output) == (made["id"], "in_progress", [])
                assert await ending(served.world, made["id"]) is None
            if how == "ends":
                hear(recording, stream)
            elif how == "breaks off":
                recording.cut()
            else:
                recording.left()
            await recording.close()
            found = await client.retrieve(made["id"])
            assert found.to_dict() == made
            kept = await served.world.exchanges.exchange("anna", made["id"])
            assert kept.ending is Ending.COMPLETED
            assert [json.loads(item) for item in kept.said] == made["output"]

    run(play())


def test_what_was_seen_as_ended_is_kept_when_the_line_of_whoever_hears_it_breaks():
    """The client reads nothing and asks how it stands; the upstream has all of it."""

    async def play():
        async with both() as (up, gw):
            events = told_by("resp_1", message("hi"), building.call())
            breaks = asyncio.Event()

            async def broken(asked):
                told = web.StreamResponse(headers={"content-type": "text/event-stream"})
                await told.prepare(asked.request)
                await told.write(building.sse(events[:3]))
                await breaks.wait()
                asked.request.transport.abort()
                return told

            async def look():
                up.then(building.raw(raw(events[-1]["response"]), kind="application/json"))
                async with gw.client.get(gw.url + "/responses/resp_1") as told:
                    return (await told.json())["status"]

            up.then(broken)
            hearing = asyncio.create_task(gw.stream(input="x"))
            exchange = gw.world.exchanges.exchange
            while await exchange("local", "resp_1") is None:
                await asyncio.sleep(0.01)
            assert await look() == "in_progress"
            breaks.set()
            assert (await hearing)[-1]["type"] == "response.failed"
            assert await ending(gw.world, "resp_1", "local") is Ending.CUT
            assert await look() == "completed"
            assert await ending(gw.world, "resp_1", "local") is Ending.COMPLETED

    building.run(play())


def test_a_response_that_has_only_just_begun_is_waited_for(emulator):
    async def play():
        made, body = await ask(emulator.base_url)
        async with serving(at(emulator)) as served:
            world = served.world
            world.runs.begin("anna", made["id"], Log())
            asking = asyncio.create_task(served.client().responses.delete(made["id"]))
            await asyncio.sleep(0.12)
            assert not asking.done()
            await keep(world, body)
            await asking
            assert await world.exchanges.exchange("anna", made["id"]) is None

    run(play())


def test_an_end_that_cannot_be_written_down_is_not_shown(emulator):
    async def play():
        made, body = await ask(emulator.base_url)
        odd = json.loads(body)
        async with serving(at(emulator)) as served:
            await keep(served.world, raw(odd | {"status": "queued"}))
            append = served.world.store.append

            async def failing(claim, after, records, **how):
                raise CannotWrite("The disk is full.")

            served.world.store.append = failing
            with pytest.raises(openai.InternalServerError, match="journal"):
                await served.client().responses.retrieve(made["id"])
            assert any("not written down" in note for note in served.callers[-1].notes)
            served.world.store.append = append
            found = await served.client().responses.retrieve(made["id"])
            assert found.status == "completed"
            assert await ending(served.world, made["id"]) is Ending.COMPLETED

    run(play())


# --- tried again -------------------------------------------------------------------------------


def test_an_id_whose_answer_is_tried_again_is_nobody_elses_to_end():
    async def play():
        async with both() as (up, gw):
            first = told_by("resp_1", message("lost"))
            again = asyncio.Event()

            async def late(asked):
                await again.wait()
                return await streaming("resp_2", message("found"))(asked)

            up.then(saying(first[:2], then="cut"), late)
            hearing = asyncio.create_task(gw.stream(input="x"))
            await building.until(lambda: len(up.asked) == 2)
            assert await ending(gw.world, "resp_1", "local") is Ending.CUT
            # It broke off, and is heard all the same: here, and for every other process.
            assert await is_heard(gw.world, "local", "resp_1")
            up.then(building.raw(raw(first[-1]["response"]), kind="application/json"))
            async with gw.client.get(gw.url + "/responses/resp_1") as told:
                found = await told.json()
            assert (found["status"], found["output"]) == ("in_progress", [])
            again.set()
            assert (await hearing)[-1]["response"]["id"] == "resp_2"
            one, two = [await gw.world.exchanges.exchange("local", f"resp_{n}") for n in (1, 2)]
            assert one == two
            assert one.continues
            await building.until(lambda: gw.store.claimed == {})

    building.run(play())


def test_an_upstream_that_gives_its_id_again_means_the_newer():
    async def play():
        async with both() as (up, gw):
            up.then(saying(told_by("resp_1", message("lost"))[:2], then="cut"))
            up.then(streaming("resp_1", message("found")))
            assert (await gw.stream(input="x"))[-1]["type"] == "response.completed"
            kept = await gw.world.exchanges.exchange("local", "resp_1")
            assert kept.ending is Ending.COMPLETED
            assert b"found" in kept.said[0]
            await building.until(lambda: gw.store.claimed == {})

    building.run(play())


def test_an_answer_that_broke_off_for_good_is_free_again():
    async def play():
        async with both(up_retries=1) as (up, gw):
            for n in (1, 2):
                up.then(saying(told_by(f"resp_{n}", message())[:2], then="cut"))
            assert (await gw.stream(input="x"))[-1]["type"] == "response.failed"
            await building.until(lambda: gw.store.claimed == {})
            assert await ending(gw.world, "resp_1", "local") is Ending.CUT

    building.run(play())


def test_an_end_whose_first_id_cannot_be_kept_is_not_shown():
    async def play():
        async with both() as (up, gw):
            exchanges = gw.world.exchanges
            up.then(saying(told_by("resp_1", message())[:2], then="cut"))

            async def full(asked):
                # What it began with is written down; nothing more of the first can be.
                one = await exchanges.exchange("local", "resp_1")
                assert one.ending is Ending.CUT
                append = gw.store.append

                async def failing(claim, after, records, **how):
                    if claim.conversation.endswith("resp_1"):
                        raise CannotWrite("The disk is full.")
                    await append(claim, after, records, **how)

                gw.store.append = failing
                return await streaming("resp_2", message())(asked)

            up.then(full)
            last = (await gw.stream(input="x"))[-1]
            assert (last["type"], last["response"]["error"]["code"]) == (
                "response.failed",
                "journal_unavailable",
            )

    building.run(play())


# --- streamed again ----------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [True, False])
def test_the_end_of_a_stream_waits_for_whoever_hears_the_response(ends, emulator):
    async def play():
        emulator.say("Hello.", call("f"), call("g"))
        made, stream = await ask(emulator.base_url, stream=True)
        async with serving(at(emulator)) as served:
            recording = heard(served.world)
            recording.opened(made["id"])
            await recording.durable()
            reading = asyncio.create_task(served.get(f"/responses/{made['id']}?stream=true"))
            await until(lambda: served.heard and b"Hello" in served.heard[-1])
            await asyncio.sleep(1.2)
            told = read_events(bytes(served.heard[-1]).replace(b": waiting\n\n", b""))
            done = [event["item"]["type"] for event in told if event["type"].endswith("item.done")]
            assert done == ["message"]  # no call, and no end
            if ends:
                hear(recording, stream)
            else:
                recording.cut()
            await recording.close()
            assert (await reading)[1].replace(b": waiting\n\n", b"") == stream
            kept = await served.world.exchanges.exchange("anna", made["id"])
            assert kept.ending is Ending.COMPLETED
            assert [json.loads(item) for item in kept.said] == made["output"]

    run(play())


def test_a_call_in_a_stream_that_is_read_again_is_kept_before_it_is_seen(emulator):
    async def play():
        emulator.say("Done.", call("f", {"a": 1}), "More.", pace=0.02)
        made, body = await ask(emulator.base_url, background=True)
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            seen = []
            async for event in await served.client().responses.retrieve(made["id"], stream=True):
                if event.type == "response.output_item.done" and event.item.type != "message":
                    kept = await served.world.exchanges.exchange("anna", made["id"])
                    seen += [json.loads(item)["id"] for item in kept.said]
                    assert event.item.id in seen
            assert seen

    run(play())


def test_more_than_may_be_held_behind_a_call_is_told_from_the_journal(emulator):
    async def play():
        emulator.say(call("f", {"a": 1}), "long " * 2000)
        made, body = await ask(emulator.base_url, background=True)
        async with serving(at(emulator), limits=Limits(unread_bytes=4000)) as served:
            await keep(served.world, body)
            events = read_events((await served.get(f"/responses/{made['id']}?stream=true"))[1])
            done = [event["item"] for event in events if event["type"].endswith("item.done")]
            assert done == events[-1]["response"]["output"]
            assert [item["type"] for item in done] == ["function_call", "message"]
            assert not any(event["type"].endswith("text.delta") for event in events)
            assert await ending(served.world, made["id"]) is Ending.COMPLETED

    run(play())


def test_a_stream_whose_response_became_another_is_not_gone_on_with_as_that(emulator):
    async def play():
        emulator.say("Hello.")
        made, _ = await ask(emulator.base_url)
        emulator.say("Something else.")
        other, body = await ask(emulator.base_url)
        async with serving(at(emulator)) as served:
            await keep(served.world, body)
            recording = heard(served.world)
            recording.opened(made["id"])
            await recording.durable()
            reading = asyncio.create_task(served.get(f"/responses/{made['id']}?stream=true"))
            await until(lambda: served.heard and b"Hello" in served.heard[-1])
            recording.cut(held=True)
            await recording.lead_to(other["id"])
            await recording.close()
            events = read_events((await reading)[1])
            assert events[-1]["type"] == "response.failed"
            assert not any("Something" in json.dumps(event) for event in events)
            # Who asks then is told what it became.
            found = await served.client().responses.retrieve(made["id"])
            assert (found.id, found.output_text) == (made["id"], "Something else.")

    run(play())
