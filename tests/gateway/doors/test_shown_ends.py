"""An end that an upstream shows is seen by nobody before the journal has it: not while somebody
still hears the response, and not while it is tried again under another id."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest
from aiohttp import web
from msgspec import structs

from lockstitch.core.facts import Ending
from lockstitch.emulator import call
from lockstitch.gateway.config.model import Limits
from lockstitch.gateway.doors import resuming
from lockstitch.gateway.keeping.notes import AskedNote
from lockstitch.gateway.keeping.recordings import Recording
from lockstitch.gateway.showing.streams import Log
from lockstitch.store.errors import CannotWrite, ConversationBusy
from tests.gateway import building
from tests.gateway.building import both, message, saying, streaming, told_by
from tests.gateway.doors.serving import (
    ask,
    at,
    hear,
    keep,
    raw,
    read_events,
    refusal,
    run,
    said,
    serving,
    until,
)


def heard(world, tenant="anna", upstream="emulator"):
    """Somebody who hears a response, here or in another process: what they have is in the store."""
    note = AskedNote(upstream=upstream, created=1.0)
    return Recording(world.exchanges, tenant, note, said("Hi."))


async def unheard(gw):
    """A response that began, and that nobody hears any more."""
    recording = heard(gw.world, "local", "up")
    recording.opened("resp_1")
    recording.left()
    await recording.close()


async def streamed(asked, events, *, pace=0.0, ends=None):
    """An upstream that streams a response again; ``ends``: the last event waits for that."""
    told = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await told.prepare(asked.request)
    for event in events[:-1]:
        await asyncio.sleep(pace)
        await told.write(building.sse([event]))
    if ends is not None:
        await asyncio.sleep(0.2)  # so that it comes by itself
        await told.write(b": theirs\n\n")
        await ends.wait()
    await told.write(building.sse(events[-1:]))
    return told


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


def test_one_that_broke_off_is_not_told_so_while_somebody_writes_down_how_it_ended():
    async def play():
        async with both() as (up, gw):
            recording = heard(gw.world, "local", "up")
            recording.opened("resp_1")
            recording.cut()
            await recording.close()
            whole = raw(told_by("resp_1", message())[-1]["response"])

            async def look():
                up.then(building.raw(whole, kind="application/json"))
                async with gw.client.get(gw.url + "/responses/resp_1") as told:
                    return (await told.json())["status"]

            async with await gw.world.exchanges.reopened("local", "resp_1"):
                assert await look() == "in_progress"
            assert await look() == "completed"

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
            assert any("was not stored" in note for note in served.callers[-1].notes)
            served.world.store.append = append
            found = await served.client().responses.retrieve(made["id"])
            assert found.status == "completed"
            assert await ending(served.world, made["id"]) is Ending.COMPLETED

    run(play())


def test_a_response_that_runs_and_cannot_be_written_down_is_not_asked_for_elsewhere(emulator):
    async def play():
        made, _ = await ask(emulator.base_url)
        async with serving(at(emulator)) as served:
            world = served.world
            log = Log()
            world.runs.begin("anna", made["id"], log)
            status, error = await refusal(served.client().responses.retrieve(made["id"]))
            assert (status, error["code"]) == (503, "journal_unavailable")
            log.end()
            assert (await served.client().responses.retrieve(made["id"])).status == "completed"

    run(play())


def test_a_response_that_is_cancelled_is_told_so_also_to_whom_it_is_heard_by_another(emulator):
    async def play():
        emulator.say("Late.", delay=5)
        made, _ = await ask(emulator.base_url, background=True)
        async with serving(at(emulator)) as served:
            recording = heard(served.world)
            recording.opened(made["id"])
            await recording.durable()
            assert (await served.client().responses.cancel(made["id"])).status == "cancelled"
            recording.left()
            await recording.close()

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
            # It broke off, and is heard all the same: here, and for every other process.
            assert await ending(gw.world, "resp_1", "local") is None
            with pytest.raises(ConversationBusy):
                await gw.world.exchanges.reopened("local", "resp_1")
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


def failed(id, code="server_error"):
    """An answer that began, and failed at once."""
    error = {"code": code, "message": "Try again."}
    beginning = told_by(id, message())[:2]
    last = told_by(id, ending="failed", error=error)[-1]
    return [*beginning, last | {"sequence_number": 2}]


def test_an_id_that_failed_and_is_tried_again_leads_to_the_next_and_is_its_tenants():
    async def play():
        async with both(keys=building.keys("a", "b")) as (up, gw):
            again = asyncio.Event()

            async def late(asked):
                await again.wait()
                return await streaming("resp_2", message("found"))(asked)

            async def look(key):
                headers = {"authorization": f"Bearer {key}"}
                async with gw.client.get(gw.url + "/responses/resp_1", headers=headers) as told:
                    return told.status, await told.json()

            up.then(saying(failed("resp_1")), late)
            hearing = asyncio.create_task(gw.stream(input="x", key="lsk_a"))
            await building.until(lambda: len(up.asked) == 2)
            up.then(building.raw(raw(failed("resp_1")[-1]["response"]), kind="application/json"))
            status, told = await look("lsk_a")
            assert (status, told["status"]) == (200, "in_progress")
            again.set()
            assert (await hearing)[-1]["type"] == "response.completed"
            assert (await look("lsk_b"))[0] == 404
            one, two = [await gw.world.exchanges.exchange("a", f"resp_{n}") for n in (1, 2)]
            assert one == two

    building.run(play())


def test_one_that_failed_and_is_not_tried_again_is_kept_as_failed_before_that_is_seen():
    async def play():
        async with both(up_retries=0) as (up, gw):
            up.then(saying(failed("resp_1")))
            ws = await gw.socket()
            await ws.send_json({"type": "response.create", "model": "m", "input": "x"})
            assert (await building.next_end(ws))["type"] == "response.failed"
            assert await ending(gw.world, "resp_1", "local") is Ending.FAILED
            assert gw.store.claimed == {}
            await ws.close()

    building.run(play())


def test_an_answer_that_broke_off_in_the_middle_is_let_go_before_that_is_seen():
    async def play():
        async with both() as (up, gw):
            up.then(saying(told_by("resp_1", message(), building.call())[:5], then="cut"))
            ws = await gw.socket()
            await ws.send_json({"type": "response.create", "model": "m", "input": "x"})
            assert (await building.next_end(ws))["type"] == "response.failed"
            assert await ending(gw.world, "resp_1", "local") is Ending.CUT
            assert gw.store.claimed == {}
            await ws.close()

    building.run(play())


def test_an_id_that_nobody_saw_leads_nowhere():
    """The client reads no events."""

    async def play():
        async with both(up_transport="websocket") as (up, gw):
            up.then(saying(told_by("resp_1", message("lost"))[:4], then="cut"))
            up.then(streaming("resp_2", message("found")))
            assert (await gw.ask(input="x"))["id"] == "resp_2"
            assert (await gw.world.exchanges.exchange("local", "resp_1")).ending is Ending.CUT
            assert gw.store.claimed == {}

    building.run(play())


@pytest.mark.parametrize("name", ["resp_1", "resp_2"])
def test_one_that_was_tried_again_is_deleted_with_all_that_was_sent(name):
    async def play():
        async with both(up_state="gateway") as (up, gw):
            up.then(saying(told_by("resp_1", message("lost"))[:2], then="cut"))
            up.then(streaming("resp_2", message("found")))
            secret = {"type": "message", "id": "msg_secret", "role": "user", "content": "SECRET"}
            await gw.stream(input=[secret])
            exchanges = gw.world.exchanges
            assert await exchanges.item("local", "msg_secret") is not None
            async with gw.client.delete(f"{gw.url}/responses/{name}") as gone:
                assert gone.status == 200
            assert await exchanges.item("local", "msg_secret") is None
            for one in ("resp_1", "resp_2"):
                async with gw.client.get(f"{gw.url}/responses/{one}") as told:
                    assert told.status == 404

    building.run(play())


def test_a_try_that_came_to_nothing_is_deleted_alone():
    async def play():
        async with both(up_state="gateway", up_retries=2) as (up, gw):
            for n in (1, 2):
                up.then(saying(told_by(f"resp_{n}", message("lost"))[:2], then="cut"))
            up.then(streaming("resp_3", message("found")))
            await gw.stream(input="x")
            exchange = gw.world.exchanges.exchange
            assert (await exchange("local", "resp_2")).answered.began_as is None
            async with gw.client.delete(f"{gw.url}/responses/resp_2") as gone:
                assert gone.status == 200
            assert await exchange("local", "resp_2") is None
            assert (await exchange("local", "resp_1")).id == "resp_3"

    building.run(play())


def test_an_id_that_an_upstream_has_given_again_is_not_deleted_with_what_it_led_to():
    async def play():
        async with both(up_state="gateway") as (up, gw):
            up.then(saying(told_by("resp_1", message("lost"))[:2], then="cut"))
            up.then(streaming("resp_2", message("found")))
            await gw.stream(input="x")
            up.then(streaming("resp_1", message("newer")))
            await gw.stream(input="y")
            async with gw.client.delete(f"{gw.url}/responses/resp_2") as gone:
                assert gone.status == 200
            exchange = gw.world.exchanges.exchange
            assert await exchange("local", "resp_2") is None
            assert b"newer" in (await exchange("local", "resp_1")).said[0]

    building.run(play())


def test_one_that_is_deleted_while_it_is_tried_again_is_said_to_its_end_and_not_kept():
    async def play():
        async with both(up_state="gateway") as (up, gw):
            again = asyncio.Event()

            async def late(asked):
                await again.wait()
                return await streaming("resp_2", message("found"))(asked)

            up.then(saying(told_by("resp_1", message("lost"))[:2], then="cut"), late)
            hearing = asyncio.create_task(gw.stream(input="x"))
            await building.until(lambda: len(up.asked) == 2)
            async with gw.client.delete(f"{gw.url}/responses/resp_1") as gone:
                assert gone.status == 200
            again.set()
            assert (await hearing)[-1]["type"] == "response.completed"
            for one in ("resp_1", "resp_2"):
                assert await gw.world.exchanges.exchange("local", one) is None
            assert not gw.world.journal_failed

    building.run(play())


def test_a_conversation_gets_nothing_of_an_answer_whose_first_id_cannot_be_kept():
    async def play():
        async with both(up_state="gateway") as (up, gw):
            async with gw.client.post(gw.url + "/conversations", json={}) as made:
                conversation = (await made.json())["id"]
            up.then(saying(told_by("resp_1", message())[:2], then="cut"))
            up.then(filling(gw, "resp_1", streaming("resp_2", message())))
            last = (await gw.stream(input="x", conversation=conversation))[-1]
            assert last["response"]["error"]["code"] == "journal_unavailable"
            async with gw.client.get(f"{gw.url}/conversations/{conversation}/items") as told:
                assert (await told.json())["data"] == []

    building.run(play())


def test_nothing_is_tried_again_whose_beginning_cannot_be_kept():
    async def play():
        async with both() as (up, gw):
            begin = gw.store.begin

            async def failing(*given, **how):
                gw.store.begin = begin
                raise CannotWrite("The disk is full.")

            gw.store.begin = failing
            up.then(saying(told_by("resp_1", message())[:2], then="cut"))
            last = (await gw.stream(input="x"))[-1]
            assert last["response"]["error"]["code"] == "journal_unavailable"
            assert len(up.asked) == 1

    building.run(play())


def test_an_upstream_that_gives_its_id_again_goes_on_with_it():
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


def test_an_id_that_was_given_twice_and_then_another_leads_there():
    async def play():
        async with both(up_retries=2) as (up, gw):
            for _ in range(2):
                up.then(saying(told_by("resp_1", message("lost"))[:2], then="cut"))
            up.then(streaming("resp_2", message("found")))
            assert (await gw.stream(input="x"))[-1]["type"] == "response.completed"
            one, two = [await gw.world.exchanges.exchange("local", f"resp_{n}") for n in (1, 2)]
            assert one == two
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


def filling(gw, response, answer):
    """An answer with which the journal of another response becomes full."""

    async def full(asked):
        assert await gw.world.exchanges.exchange("local", response) is not None
        append = gw.store.append

        async def failing(claim, after, records, **how):
            if claim.conversation.endswith(response):
                raise CannotWrite("The disk is full.")
            await append(claim, after, records, **how)

        gw.store.append = failing
        return await answer(asked)

    return full


def test_an_end_whose_first_id_cannot_be_kept_is_not_shown():
    async def play():
        async with both() as (up, gw):
            up.then(saying(told_by("resp_1", message())[:2], then="cut"))
            up.then(filling(gw, "resp_1", streaming("resp_2", message())))
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
            await recording.lead_to(other["id"])
            await recording.close()
            events = read_events((await reading)[1])
            assert events[-1]["type"] == "response.failed"
            assert not any("Something" in json.dumps(event) for event in events)
            # Who asks then is told what it became.
            found = await served.client().responses.retrieve(made["id"])
            assert (found.id, found.output_text) == (made["id"], "Something else.")

    run(play())


def test_who_has_only_heard_that_somebody_is_there_is_told_what_the_response_became():
    async def play():
        async with both() as (up, gw):
            found = raw(told_by("resp_2", message("found"))[-1]["response"])
            await keep(gw.world, found, upstream="up", tenant="local", stored=False)
            recording = heard(gw.world, "local", "up")
            recording.opened("resp_1")
            await recording.durable()

            async def silent(asked):
                told = web.StreamResponse(headers={"content-type": "text/event-stream"})
                await told.prepare(asked.request)
                await told.write(b": theirs\n\n")
                await recording.lead_to("resp_2")
                return told

            lost = raw(told_by("resp_1", message("lost"))[-1]["response"])
            up.then(silent, building.raw(lost, kind="application/json"))
            async with gw.client.get(f"{gw.url}/responses/resp_1?stream=true") as told:
                body = await told.read()
            assert b": theirs" in body
            last = building.events_in(body)[-1]
            assert (last["type"], last["response"]["output"]) == (
                "response.completed",
                [message("found")],
            )

    building.run(play())


def ending_so(last):
    """The events of a response with a call and a message, with this end."""
    events = told_by("resp_1", building.call(), message("hi"))[:-1]
    return [*events, last | {"sequence_number": len(events)}]


ENDS = {
    "an error": {"type": "error", "code": "server_error", "message": "No.", "param": None},
    "failed, and nothing listed": told_by("resp_1", ending="failed")[-1],
}


@pytest.mark.parametrize("end", ENDS)
def test_a_call_that_no_end_tells_of_is_not_shown_in_a_stream_that_is_read_again(end):
    async def play():
        async with both() as (up, gw):
            await unheard(gw)
            events = ending_so(ENDS[end])
            up.then(building.raw(building.sse(events)))
            async with gw.client.get(f"{gw.url}/responses/resp_1?stream=true") as told:
                seen = building.events_in(await told.read())
            done = [event["item"] for event in seen if event["type"].endswith("item.done")]
            kept = await gw.world.exchanges.exchange("local", "resp_1")
            known = [json.loads(item) for item in kept.said]
            assert [item for item in done if item not in known] == []
            assert seen[-1]["type"] in ("response.failed", "error")

    building.run(play())


def test_a_response_that_lists_nothing_in_the_end_is_kept_as_it_was_said():
    async def play():
        async with both() as (up, gw):
            await unheard(gw)
            events = ending_so(told_by("resp_1")[-1])
            up.then(building.raw(building.sse(events)))
            async with gw.client.get(f"{gw.url}/responses/resp_1?stream=true") as told:
                assert building.events_in(await told.read()) == events
            kept = await gw.world.exchanges.exchange("local", "resp_1")
            assert [json.loads(item)["id"] for item in kept.said] == ["fc_1", "msg_1"]
            assert kept.continues

    building.run(play())


@pytest.mark.parametrize("cut", [None, 2])
def test_what_a_client_had_and_the_journal_has_not_is_kept_when_no_end_lists_it(cut):
    """The gateway died between showing a message and writing it down."""

    async def play():
        async with both(up_retries=1) as (up, gw):
            await unheard(gw)
            events = told_by("resp_1", message("hi"), building.call())
            events[-1]["response"]["output"] = []
            after = next(n for n, one in enumerate(events) if "item.done" in one["type"])

            def rest(asked):
                behind = int(asked.request.query.get("starting_after", -1))
                assert behind < after
                return streamed(asked, events[behind + 1 :])

            async def broken(asked):
                told = await streamed(asked, events[:cut])
                asked.request.transport.abort()
                return told

            if cut is not None:
                up.then(broken)
            up.then(rest)
            query = f"stream=true&starting_after={after}"
            async with gw.client.get(f"{gw.url}/responses/resp_1?{query}") as told:
                seen = building.events_in(await told.read())
            assert seen == events[after + 1 :]
            kept = await gw.world.exchanges.exchange("local", "resp_1")
            assert kept.ending is Ending.COMPLETED
            assert [json.loads(item) for item in kept.said] == [message("hi"), building.call()]

    building.run(play())


@pytest.mark.parametrize(
    "response",
    [
        {"id": "resp_1", "output": []},
        {"id": "resp_1", "status": "in_progress"},
        {"status": "completed"},
        {"id": "another", "status": "completed"},
        None,
        5,
    ],
)
def test_an_event_that_ends_a_response_does_so_whatever_the_response_in_it_says(response):
    async def play():
        async with both() as (up, gw):
            note = AskedNote(upstream="up", base="resp_0", anchored=True)
            recording = Recording(gw.world.exchanges, "local", note, said("Hi."))
            recording.opened("resp_1")
            recording.left()
            await recording.close()
            events = ending_so({"type": "response.completed", "response": response})
            up.then(building.raw(building.sse(events)))
            async with gw.client.get(f"{gw.url}/responses/resp_1?stream=true") as told:
                seen = building.events_in(await told.read())
            assert [event["type"] for event in seen] == [event["type"] for event in events]
            kept = await gw.world.exchanges.exchange("local", "resp_1")
            assert kept.ending is Ending.COMPLETED
            assert [json.loads(item)["id"] for item in kept.said] == ["fc_1", "msg_1"]
            assert kept.answered.last == seen[-1]["sequence_number"]

    building.run(play())


def test_a_client_whose_call_is_held_hears_that_somebody_is_there(monkeypatch):
    monkeypatch.setattr(resuming, "AWAKE_SECONDS", 0.1)

    async def play():
        async with both() as (up, gw):
            await unheard(gw)
            events = told_by("resp_1", building.call(), message())
            ends = asyncio.Event()

            up.then(lambda asked: streamed(asked, events, ends=ends))
            async with gw.client.get(f"{gw.url}/responses/resp_1?stream=true") as told:
                seen = b""
                while b": waiting" not in seen or b": theirs" not in seen:
                    part = await told.content.readany()
                    assert part, seen
                    seen += part
                assert b"output_item.done" not in seen
                ends.set()
                seen += await told.read()
            assert building.events_in(seen) == events

    building.run(play())


def test_nobody_hears_a_stream_whose_client_has_gone_before_it_began():
    async def play():
        async with both() as (up, gw):
            await unheard(gw)
            begins = asyncio.Event()

            async def late(asked):
                await begins.wait()
                told = web.StreamResponse(headers={"content-type": "text/event-stream"})
                await told.prepare(asked.request)
                while True:
                    await told.write(b": on and on\n\n")
                    await asyncio.sleep(0.01)

            up.then(late)
            _, writer = await gw.talk()
            writer.write(b"GET /v1/responses/resp_1?stream=true HTTP/1.1\r\nhost: x\r\n\r\n")
            await building.until(lambda: up.asked)
            writer.transport.abort()
            await asyncio.sleep(0.2)  # for the gateway to notice
            begins.set()
            await building.until(lambda: up.gone)

    building.run(play())


def test_the_patience_with_who_hears_it_begins_when_the_stream_is_over():
    """However long that was."""

    async def play():
        limits = structs.replace(building.QUICK, unattended_seconds=3.0)
        async with both(limits=limits) as (up, gw):
            recording = heard(gw.world, "local", "up")
            recording.opened("resp_1")
            await recording.durable()
            events = told_by("resp_1", message())
            over = asyncio.Event()

            async def slow(asked):
                told = await streamed(asked, events, pace=0.7)
                over.set()
                return told

            up.then(slow)
            async with gw.client.get(f"{gw.url}/responses/resp_1?stream=true") as told:
                reading = asyncio.create_task(told.read())
                await over.wait()
                await asyncio.sleep(1.5)
                hear(recording, building.sse(events))
                await recording.close()
                assert building.events_in(await reading)[-1]["type"] == "response.completed"

    building.run(play())
