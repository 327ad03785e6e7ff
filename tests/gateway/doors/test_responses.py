"""`POST /v1/responses` on real sockets: what a client sees, whatever its upstream does."""

from __future__ import annotations

import asyncio
import gc
import json

import pytest
from aiohttp import web
from msgspec.structs import replace

from lockstitch.gateway.keeping.chains import Chain
from lockstitch.gateway.keeping.recordings import Recording
from lockstitch.gateway.showing.runs import Runs
from lockstitch.gateway.showing.streams import Log
from tests.gateway.building import (
    NOT_FOUND,
    QUICK,
    WRITES,
    both,
    call,
    encoded,
    error_body,
    events_in,
    gateway,
    keys,
    message,
    next_end,
    open_files,
    output,
    provider,
    raw,
    refusing,
    response,
    run,
    saying,
    sse,
    streaming,
    tasks_left,
    told_by,
    until,
    upstream,
    user,
)

ENDS = {"response.completed", "response.incomplete", "response.failed", "error"}


def types(events):
    return [event.get("type", event.get("error")) for event in events]


def well_formed(events):
    """One beginning, one end, and numbers that rise."""
    assert types(events)[0] == "response.created"
    assert [t for t in types(events) if t in ENDS] == [types(events)[-1]]
    numbers = [event["sequence_number"] for event in events]
    assert numbers == sorted(set(numbers))
    return events


def test_a_stream_passes_byte_for_byte():
    async def main():
        async with both() as (up, gw):
            events = told_by("resp_1", message(), call())
            up.then(saying(events))
            async with gw.client.post(
                gw.url + "/responses", json={"model": "m", "input": "x", "stream": True}
            ) as told:
                assert told.content_type == "text/event-stream"
                assert await told.read() == sse(events)

    run(main())


def with_ids(body):
    blocks = body.removesuffix(b"\n\n").split(b"\n\n")
    return b"".join(b"id: %d\n%b\n\n" % (n, block) for n, block in enumerate(blocks))


SPELLED = {
    "lines that end with CR and LF": lambda body: body.replace(b"\n", b"\r\n"),
    "no space behind the colon": lambda body: body.replace(b"data: ", b"data:"),
    "no name": lambda body: b"\n".join(
        line for line in body.split(b"\n") if not line.startswith(b"event:")
    ),
    "ids": with_ids,
}


@pytest.mark.parametrize("how", sorted(SPELLED))
@pytest.mark.parametrize("at_once", [True, False])
def test_a_stream_passes_byte_for_byte_however_its_lines_are_written(how, at_once):
    async def main():
        body = SPELLED[how](sse(told_by("resp_1", message(), call(), message("on"))))
        blank = b"\r\n\r\n" if b"\r" in body else b"\n\n"

        async def answer(asked):
            told = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await told.prepare(asked.request)
            for block in [body] if at_once else body.removesuffix(blank).split(blank):
                await told.write(block if at_once else block + blank)
            return told

        async with both() as (up, gw):
            up.then(answer)
            asked = {"model": "m", "input": "x", "stream": True}
            async with gw.client.post(gw.url + "/responses", json=asked) as told:
                assert await told.read() == body

    run(main())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_a_stream_in_small_pieces_passes_byte_for_byte(size):
    async def main():
        body = sse(told_by("resp_1", message("é" * 5), call()))

        async def answer(asked):
            told = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await told.prepare(asked.request)
            for n in range(0, len(body), size):
                await told.write(body[n : n + size])
            return told

        async with both() as (up, gw):
            up.then(answer)
            async with gw.client.post(
                gw.url + "/responses", json={"model": "m", "input": "x", "stream": True}
            ) as told:
                assert await told.read() == body

    run(main())


def test_what_was_answered_can_be_gone_on_from_after_the_upstream_forgot_it():
    async def main():
        async with both() as (up, gw):
            up.then(streaming("resp_1", call()))
            await gw.stream(input="x")
            up.then(refusing(NOT_FOUND), streaming("resp_2", message()))
            end = (await gw.stream(input=[output()], previous_response_id="resp_1"))[-1]
            assert end["type"] == "response.completed"
            assert end["response"]["previous_response_id"] == "resp_1"
            replayed = up.asked[-1].json
            assert "previous_response_id" not in replayed
            kinds = [item.get("type", "message") for item in replayed["input"]]
            assert kinds == ["message", "function_call", "function_call_output"]

    run(main())


def test_an_anchored_request_goes_upstream_as_it_came():
    async def main():
        async with both() as (up, gw):
            await gw.ask(input="x")
            body = b'{ "model":"m" , "previous_response_id":"plain_1","input":"y","new":1.0}'
            async with gw.client.post(gw.url + "/responses", data=body) as told:
                assert told.status == 200
            assert up.asked[-1].body == body

    run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_a_refusal_passes_unchanged(streamed):
    async def main():
        async with both() as (up, gw):
            body = encoded(error_body("Nobody has heard of this."))
            up.then(raw(body, status=418, kind="application/json"))
            async with gw.client.post(
                gw.url + "/responses", json={"model": "m", "input": "x", "stream": streamed}
            ) as told:
                assert told.status == 418
                assert await told.read() == body

    run(main())


def test_the_end_is_shown_only_when_the_journal_has_it():
    async def main():
        async with both() as (up, gw):
            go = asyncio.Event()

            async def delay(kind, name):
                if kind in WRITES:
                    await go.wait()

            gw.store.delay = delay
            up.then(streaming("resp_1", message(), call()))
            async with gw.client.post(
                gw.url + "/responses", json={"model": "m", "input": "x", "stream": True}
            ) as told:
                await until(lambda: b"output_item.done" in b"".join(told.content._buffer))
                await asyncio.sleep(0.1)  # for more of it, if it were wrong
                seen = told.content.read_nowait()
                shown = types(events_in(seen))
                assert shown.count("response.output_item.done") == 1  # the message's
                assert "response.completed" not in shown
                go.set()
                rest = await told.read()
                assert types(events_in(seen + rest))[-1] == "response.completed"
                assert seen + rest == sse(told_by("resp_1", message(), call()))

    run(main())


@pytest.mark.parametrize("n", range(6))
@pytest.mark.parametrize("streamed", [False, True])
def test_a_journal_that_fails_anywhere_never_lets_an_end_be_seen_that_it_does_not_have(n, streamed):
    async def main():
        async with both() as (up, gw):
            up.then(streaming("resp_1", message(), call()))
            before = len(gw.store.calls)
            gw.store.fail_nth(n)
            if streamed:
                events = well_formed(await gw.stream(input="x"))
                completed = events[-1]["type"] == "response.completed"
                shown = [e for e in events if e["type"] == "response.output_item.done"]
                calls = [e for e in shown if e["item"]["type"] == "function_call"]
            else:
                told = await gw.ask(input="x")
                assert told["http"] in (200, 500), told
                if told["http"] == 500:
                    assert told["error"]["code"] == "journal_unavailable"
                completed, calls = told["http"] == 200, []
            gw.store.fails = lambda *_: False
            kept = await gw.world.exchanges.exchange("local", "resp_1")
            if completed:
                assert kept is not None
                assert kept.continues
            if calls:
                assert kept is not None
                assert len(kept.said) == 2
            await tasks_left()
            # Only a release that failed leaves its claim, which ends by itself.
            failed = gw.store.calls[before + n : before + n + 1]
            assert not gw.store.claimed or failed == ["release"]

    run(main())


def test_a_failure_behind_the_beginning_of_a_stream_is_no_second_answer():
    """A stream that was tried again is kept under two ids; that the second cannot be written must
    not put the head of another answer into the stream."""

    async def main():
        async with both() as (up, gw):
            first = told_by("resp_1", message())[:2]
            up.then(saying(first, then="cut"), streaming("resp_2", message()))

            def fails(kind, name):
                return kind == "begin" and name.endswith("resp_1") and len(up.asked) == 2

            gw.store.fails = fails
            reader, writer = await gw.talk()
            body = encoded({"model": "m", "input": "x", "stream": True})
            writer.write(
                b"POST /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
                b"content-length: %d\r\n\r\n" % len(body) + body
            )
            told = await reader.read()
            writer.close()
            assert told.count(b"HTTP/1.1 ") == 1, told[-600:]
            assert told.count(b"event: response.completed") <= 1
            assert told.endswith(b"0\r\n\r\n")

    run(main())


def test_a_try_that_broke_before_anything_was_said_is_repeated_in_the_same_stream():
    async def main():
        async with both() as (up, gw):
            first = told_by("resp_1", message())[:2]
            up.then(saying(first, then="cut"), streaming("resp_2", message()))
            events = well_formed(await gw.stream(input="x"))
            assert types(events).count("response.created") == 1
            assert events[-1]["type"] == "response.completed"
            # Under both ids it is the same.
            one = await gw.world.exchanges.exchange("local", "resp_1")
            two = await gw.world.exchanges.exchange("local", "resp_2")
            assert one is not None
            assert one == two

    run(main())


def test_who_sees_the_end_of_an_answer_can_go_on_from_the_id_that_it_began_with(monkeypatch):
    async def main():
        async with both() as (up, gw):
            exchanges = gw.world.exchanges
            lead_to = Recording.lead_to

            async def late(*given):
                await asyncio.sleep(0.1)
                await lead_to(*given)

            monkeypatch.setattr(Recording, "lead_to", late)
            up.then(saying(told_by("resp_1", message())[:2], then="cut"))
            up.then(streaming("resp_2", message()))
            ws = await gw.socket()
            await ws.send_json({"type": "response.create", "model": "m", "input": "x"})
            assert (await next_end(ws))["response"]["id"] == "resp_2"
            one, two = [await exchanges.exchange("local", f"resp_{n}") for n in (1, 2)]
            assert one is not None
            assert one == two
            await ws.close()

    run(main())


def test_a_chain_goes_on_behind_an_answer_that_was_tried_again():
    """The client names the id that it saw first; the upstream forgets all two turns later."""

    async def main():
        async with both() as (up, gw):
            first = told_by("resp_1", message())[:2]
            up.then(saying(first, then="cut"), streaming("resp_2", message("two", "msg_2")))
            await gw.stream(input="x")
            up.then(streaming("resp_3", message("three", "msg_3")))
            await gw.stream(input="y", previous_response_id="resp_1")
            up.then(refusing(NOT_FOUND), streaming("resp_4", message()))
            end = (await gw.stream(input="z", previous_response_id="resp_3"))[-1]
            assert end["type"] == "response.completed", end
            assert len(up.asked[-1].json["input"]) == 5

    run(main())


def test_an_anchor_is_named_by_the_id_that_the_upstream_knows():
    async def main():
        async with both() as (up, gw):
            first = told_by("resp_1", message())[:2]
            up.then(saying(first, then="cut"), streaming("resp_2", call()))
            await gw.stream(input="x")
            await gw.stream(input=[output()], previous_response_id="resp_1")
            assert up.asked[-1].json["previous_response_id"] == "resp_2"

    run(main())


def test_a_stream_that_broke_off_ends_well_formed():
    async def main():
        async with both() as (up, gw):
            events = told_by("resp_1", message(), call())
            for n in range(3, len(events)):
                up.then(saying(events[:n], then="cut"))
                told = well_formed(await gw.stream(input="x"))
                assert told[-1]["type"] == "response.failed"
                assert told[-1]["response"]["id"] == "resp_1"
                assert told[:-1] == events[:n]

    run(main())


def test_what_broke_off_cannot_be_gone_on_from_by_replay():
    async def main():
        async with both() as (up, gw):
            up.then(saying(told_by("resp_1", call())[:-1], then="cut"))
            await gw.stream(input="x")
            up.then(refusing(NOT_FOUND))
            told = await gw.ask(input=[output()], previous_response_id="resp_1")
            assert told["http"] == 400
            assert told["error"] == NOT_FOUND["error"]

    run(main())


def test_an_upstream_that_cannot_be_reached_is_said_to_be_so():
    async def main():
        async with provider() as up:
            pass
        async with gateway(upstream(up)) as gw:
            assert (await gw.ask(input="x"))["http"] == 502

    run(main())


def test_a_body_that_is_none_is_refused_in_words():
    async def main():
        async with both() as (up, gw):
            for body in (b"", b"[]", b"{", b'{"input":5}', b'{"model":1}', b'{"a":1,"a":2}'):
                async with gw.client.post(gw.url + "/responses", data=body) as told:
                    assert told.status == 400, body
                    assert (await told.json())["error"]["message"]
            assert up.asked == []

    run(main())


# --- clients that go away ----------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1, 3, 5, 8])
def test_an_answer_whose_client_has_gone_is_heard_to_its_end(after):
    async def main():
        before = open_files()
        async with both() as (up, gw):
            events = told_by("resp_1", message(), call())
            up.then(saying(events, pace=0.03))
            reader, writer = await gw.talk()
            body = encoded({"model": "m", "input": "x", "stream": True})
            writer.write(
                b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
                + body
            )
            for _ in range(after):
                await reader.readuntil(b"\n\n")
            await until(lambda: up.asked)
            writer.transport.abort()

            async def ended():
                kept = await gw.world.exchanges.exchange("local", "resp_1")
                return kept is not None and kept.continues

            for _ in range(1000):
                if await ended():
                    break
                await asyncio.sleep(0.01)
            assert await ended()
            await until(lambda: not gw.world.running)
            assert not gw.store.claimed
        assert open_files() <= before + 1

    run(main())


def test_an_answer_that_nobody_hears_is_left_after_a_while():
    async def main():

        async with both(limits=replace(QUICK, unattended_seconds=0.2)) as (up, gw):
            up.then(saying(told_by("resp_1", message())[:4], then="hang"))
            reader, writer = await gw.talk()
            body = encoded({"model": "m", "input": "x", "stream": True})
            writer.write(
                b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
                + body
            )
            await reader.readuntil(b"\n\n")
            writer.transport.abort()
            await until(lambda: not gw.world.running)
            await until(lambda: up.gone)
            await until(lambda: not gw.store.claimed)
            kept = await gw.world.exchanges.exchange("local", "resp_1")
            assert kept is not None
            assert not kept.continues

    run(main())


# --- the end of the gateway --------------------------------------------------------------------


def test_a_gateway_that_is_closed_ends_its_streams_well_and_leaves_nothing_behind():
    async def main():
        async with provider() as up:
            async with gateway(upstream(up)) as gw:
                up.then(saying(told_by("resp_1", message())[:4], then="hang"))
                asking = asyncio.create_task(gw.stream(input="x"))
                await until(lambda: gw.world.runs.is_running("local", "resp_1"))
                await gw.gateway.drain(0.05)
                events = well_formed(await asking)
                assert events[-1]["type"] == "response.failed"
                assert not gw.store.claimed
                assert not gw.world.running
            await until(lambda: up.gone)

    run(main())


def test_a_handler_that_is_cancelled_leaves_nothing_behind():
    """As the server does to whoever has not ended when it closes."""

    async def main():
        async with provider() as up, gateway(upstream(up)) as gw:
            up.then(saying(told_by("resp_1", message())[:4], then="hang"))
            asking = asyncio.create_task(gw.stream(input="x"))
            await until(lambda: gw.world.runs.is_running("local", "resp_1"))
            await gw.gateway._listener.close()
            await asyncio.gather(asking, return_exceptions=True)
            await until(lambda: not gw.world.running)
            await until(lambda: up.gone)
            await until(lambda: not gw.store.claimed)
            assert not gw.world.runs.is_running("local", "resp_1")

    run(main())


# --- memory ------------------------------------------------------------------------------------


def test_what_is_kept_of_ended_streams_is_bounded_by_what_it_really_takes():
    async def main():
        async with both() as (up, gw):
            most = 8_000
            gw.world.runs = Runs(most)
            for n in range(25):
                up.then(streaming(f"resp_{n}", message("x" * 800)))
                await gw.stream(input="x")
            kept = {id(log): log.size for log in gw.world.runs._ended.values()}
            assert sum(kept.values()) <= most
            assert gw.world.runs.size == sum(log.size for log in gw.world.runs._ended.values())

    run(main())


def test_a_stream_that_was_tried_again_is_counted_once_it_has_its_size():
    async def main():
        async with both() as (up, gw):
            most = 8_000
            gw.world.runs = Runs(most)
            for n in range(0, 24, 2):
                up.then(saying(told_by(f"resp_{n}")[:2], then="cut"))
                up.then(streaming(f"resp_{n + 1}", message("x" * 800)))
                await gw.stream(input="x")
            kept = {id(log): log.size for log in gw.world.runs._ended.values()}
            assert sum(kept.values()) <= most

    run(main())


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_leaves_nothing_to_the_garbage_collector(stream):
    """What waits for it is memory that grows between two of its rounds."""

    async def main():
        async with both() as (up, gw):
            asks = gw.stream if stream else gw.ask
            for n in range(8):
                up.then(streaming(f"resp_{n}", message("x" * 800)))
                if n == 3:  # what is made once has been made
                    gc.collect()
                    gc.disable()
                await asks(input=f"say {n}")
            await until(lambda: not gw.world.running)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            left = [one for one in gc.garbage if type(one).__module__.startswith("lockstitch.")]
            assert left == []

    try:
        run(main())
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("again", ["the same id", "another", "nothing"])
def test_an_answer_that_was_tried_again_leaves_nothing_large_to_the_garbage_collector(again):
    async def main():
        async with both() as (up, gw):
            gw.world.runs.limit(0)  # nothing is kept for who comes back
            gc.collect()
            gc.disable()
            before = [id(one) for one in gc.get_objects() if isinstance(one, Log)]
            up.then(saying(told_by("resp_1", message())[:2], then="cut"))
            if again == "nothing":
                up.then(saying(told_by("resp_2", message())[:2], then="cut"))
            else:
                up.then(streaming("resp_1" if again == "the same id" else "resp_2", message()))
            await gw.stream(input="x")
            await until(lambda: not gw.world.running)
            logs = [one for one in gc.get_objects() if isinstance(one, Log)]
            assert [one for one in logs if id(one) not in before] == []

    try:
        run(main())
    finally:
        gc.enable()


# --- tenancy -----------------------------------------------------------------------------------


def test_what_another_key_made_is_not_there():
    async def main():
        for unknown in ("refuse", "pass"):
            async with both(keys=keys("a", "b"), unknown_chains=unknown) as (up, gw):
                up.then(streaming("resp_1", call("call_9", "fc_9")))
                await gw.ask(input="x", key="lsk_a")
                asked = len(up.asked)
                told = await gw.ask(
                    input=[output("call_9")], previous_response_id="resp_1", key="lsk_b"
                )
                assert told["http"] == 400, (unknown, told)
                assert told["error"]["code"] == "previous_response_not_found"
                assert len(up.asked) == asked

    run(main())


REASONED = {"type": "reasoning", "id": "rs_secret", "summary": []}


@pytest.mark.parametrize(
    "named",
    [
        {"type": "item_reference", "id": "msg_secret"},
        {"id": "msg_secret"},
        {"type": None, "id": "msg_secret"},
        REASONED,
    ],
)
def test_an_item_of_another_key_cannot_be_referred_to(named):
    async def main():
        async with both(keys=keys("a", "b"), unknown_chains="refuse") as (up, gw):
            up.then(streaming("resp_1", REASONED, message("secret", "msg_secret")))
            await gw.ask(input="x", key="lsk_a")
            asked = len(up.asked)
            told = await gw.ask(input=[named, user()], key="lsk_b")
            assert told["http"] in (400, 404), told
            assert len(up.asked) == asked
            assert (await gw.ask(input=[named, user()], key="lsk_a"))["http"] == 200

    run(main())


def test_an_item_of_another_key_does_not_become_ones_own_by_sending_its_id():
    async def main():
        async with both(keys=keys("a", "b"), unknown_chains="refuse") as (up, gw):
            up.then(streaming("resp_1", message("secret", "msg_secret")))
            await gw.ask(input="x", key="lsk_a")
            await gw.ask(input=[message("mine", "msg_secret"), user()], key="lsk_b")
            asked = len(up.asked)
            reference = {"type": "item_reference", "id": "msg_secret"}
            assert (await gw.ask(input=[reference, user()], key="lsk_b"))["http"] in (400, 404)
            assert len(up.asked) == asked
            # Whose upstream gives the same ids to everybody has items of its own by them.
            up.then(streaming("resp_2", message("mine", "msg_secret")))
            await gw.ask(input="x", key="lsk_b")
            assert (await gw.ask(input=[reference, user()], key="lsk_b"))["http"] == 200

    run(main())


@pytest.mark.parametrize(
    "path",
    [
        "//responses/resp_1",
        "/./responses/resp_1",
        "/x/../responses/resp_1",
        "/responses//resp_1",
        "/responses/resp_1/anything",
        "/responses/%72esp_1",
        "/%72esponses/resp_1",
        "/Responses/resp_1",
        "/responses;v=1/resp_1",
        "/responses%20/resp_1",
        "/responses./resp_1",
        "/%2572esponses/resp_1",
        "/%5cresponses%5cresp_1",
        "/x%5c..%5cresponses%5cresp_1",
        "/x/%252e%252e/responses/resp_1",
        "/models/%252e%252e/responses/resp_1",
        "/%20responses%00/resp_1",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_no_spelling_of_a_path_reaches_what_another_key_made(path, method):
    async def main():
        async with both(keys=keys("a", "b"), unknown_chains="refuse") as (up, gw):
            up.then(streaming("resp_1", message("secret")))
            await gw.ask(input="x", key="lsk_a")
            asked = len(up.asked)
            reader, writer = await gw.talk()
            writer.write(
                f"{method} /v1{path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer lsk_b\r\n"
                "connection: close\r\n\r\n".encode()
            )
            told = await reader.read()
            writer.close()
            assert len(up.asked) == asked, (told[:80], up.asked[-1].request.raw_path)

    run(main())


def test_an_output_of_another_key_is_no_evidence():
    async def main():
        async with both(keys=keys("a", "b"), up_guard="mend") as (up, gw):
            up.then(streaming("resp_1", call("call_7")))
            await gw.ask(input="x", key="lsk_a")
            await gw.ask(
                input=[output("call_7", "a secret")], previous_response_id="resp_1", key="lsk_a"
            )
            await gw.ask(input=[user(), call("call_7"), user("on")], key="lsk_b")
            assert "a secret" not in up.asked[-1].body.decode()

    run(main())


def test_an_output_of_another_conversation_is_no_evidence():
    """Some servers count calls from zero in every conversation."""

    async def main():
        async with both(up_guard="mend") as (up, gw):
            up.then(streaming("resp_1", call("call_0", name="weather")))
            await gw.ask(input="Oslo?")
            await gw.ask(input=[output("call_0", "rain")], previous_response_id="resp_1")
            history = [user("Paris?"), call("call_0", name="stocks"), user("on")]
            await gw.ask(input=history)
            assert "rain" not in up.asked[-1].body.decode()

    run(main())


# --- other upstreams ---------------------------------------------------------------------------


def test_what_is_no_response_is_not_asked_for_over_a_websocket():
    async def main():
        async with both(up_transport="websocket") as (up, gw):
            await gw.ask(path="/responses/compact", input=[user()])
            assert [one.json for one in up.asked if one.socket is not None] == []

    run(main())


def test_a_request_that_has_no_form_as_a_frame_leaves_no_connection_behind():
    async def main():
        async with both(up_transport="websocket") as (up, gw):
            told = await gw.ask(input="x", background=True)
            assert told["http"] == 400
            await until(lambda: up.open_sockets == 0)

    run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_a_client_over_http_is_answered_by_an_upstream_that_speaks_only_websocket(streamed):
    async def main():
        async with both(up_transport="websocket") as (up, gw):
            up.then(streaming("resp_1", message("over a socket")))
            if streamed:
                end = well_formed(await gw.stream(input="x"))[-1]["response"]
            else:
                end = await gw.ask(input="x")
            assert end["output"][0]["content"][0]["text"] == "over a socket"
            await until(lambda: up.open_sockets == 0)

    run(main())


def test_a_chain_of_two_upstreams_carries_nothing_of_one_to_the_other():
    """It began at one, went on at the other, and that one lost it."""

    async def main():
        async with provider() as x, provider() as y:
            names = [upstream(x, "x", retries=0), upstream(y, "y", retries=0)]
            async with gateway(*names) as gw:
                secret = {
                    "type": "reasoning",
                    "id": "rs_x",
                    "summary": [],
                    "encrypted_content": "of-x",
                }
                x.then(streaming("resp_1", secret, message("one", "msg_x")))
                await gw.ask(input="a")
                x.then(raw(b"", status=503, kind="text/plain"))
                y.then(streaming("resp_2", message("two", "msg_y")))
                assert (await gw.ask(input="b", previous_response_id="resp_1"))["http"] == 200
                assert "of-x" not in y.asked[-1].body.decode()
                y.then(refusing(NOT_FOUND), streaming("resp_3", message("three", "msg_z")))
                assert (await gw.ask(input="c", previous_response_id="resp_2"))["http"] == 200
                assert len(y.asked[-1].json["input"]) == 5
                assert "of-x" not in y.asked[-1].body.decode()
                assert "msg_x" not in y.asked[-1].body.decode()

    run(main())


def test_a_response_that_grew_in_the_background_is_not_written_off_when_its_stream_breaks():
    async def main():
        async with both(up_retries=0) as (up, gw):
            up.then(saying(told_by("resp_1", message(), background=True)[:3], then="cut"))
            await gw.stream(input="x", background=True)
            kept = await gw.world.exchanges.exchange("local", "resp_1")
            assert kept is not None
            assert kept.ending is None  # whoever asks for it later writes down its end

    run(main())


def test_a_history_sent_again_in_full_is_kept_by_its_end():
    async def main():
        async with both() as (up, gw):
            up.then(streaming("resp_1", message("one", "msg_1")))
            await gw.ask(input=[user("a")])
            history = [user("a"), message("one", None), user("b")]
            up.then(streaming("resp_2", message("two", "msg_2")))
            await gw.ask(input=history)
            kept = await gw.world.exchanges.exchange("local", "resp_2")
            assert kept.asked.base == "resp_1"
            assert [json.loads(item) for item in kept.items] == [user("b")]

    run(main())


def test_a_history_is_kept_whole_where_what_it_goes_on_from_was_deleted():
    async def main():
        async with both() as (up, gw):
            up.then(streaming("resp_1", message("one", "msg_1")))
            await gw.ask(input=[user("a")])
            await gw.world.exchanges.forget("local", "resp_1")
            up.then(streaming("resp_2", message("two", "msg_2")))
            await gw.ask(input=[user("a"), message("one", None), user("b")])
            up.then(refusing(NOT_FOUND), streaming("resp_3", message()))
            told = await gw.ask(input="c", previous_response_id="resp_2")
            assert told["http"] == 200, told
            assert len(up.asked[-1].json["input"]) == 5

    run(main())


def test_the_same_history_sent_twice_is_answered_and_kept_twice():
    async def main():
        async with both() as (up, gw):
            up.then(streaming("resp_1", message("one", "msg_1")))
            await gw.ask(input=[user("a")])
            history = [user("a"), message("one", None)]
            for n in (2, 3):
                up.then(streaming(f"resp_{n}", message("same", f"msg_{n}")))
                await gw.ask(input=history)
                chain = Chain.of(await gw.world.exchanges.path("local", f"resp_{n}"))
                assert len(chain.ledger.history()) == 3

    run(main())


def test_an_upstream_that_gives_every_response_the_same_id_harms_nobody():
    async def main():
        async with both() as (up, gw):
            for _ in range(3):
                up.then(streaming("resp_same", message()))
                told = await gw.ask(input="x", previous_response_id="resp_same")
                assert told["http"] == 200
            up.then(refusing(NOT_FOUND))
            calls = len(gw.store.calls)
            told = await gw.ask(input="x", previous_response_id="resp_same")
            assert told["http"] == 400
            assert len(gw.store.calls) - calls < 100
            assert not gw.store.claimed

    run(main())


@pytest.mark.parametrize("id", ["a/b", "../x", "", "x" * 5000, "\u0000", "é\n", "conversation/c"])
def test_an_id_of_any_characters_is_answered(id):
    async def main():
        async with both() as (up, gw):
            up.then(streaming(id, message()), streaming(id, message()))
            assert well_formed(await gw.stream(input="x"))[-1]["type"] == "response.completed"
            assert (await gw.ask(input="x"))["http"] == 200
            assert not gw.store.claimed

    run(main())


def test_two_streams_with_the_same_id_at_once_are_both_answered():
    async def main():
        async with both() as (up, gw):
            events = told_by("resp_same", message())
            up.then(saying(events, pace=0.02), saying(events, pace=0.02))
            both_told = await asyncio.gather(gw.stream(input="x"), gw.stream(input="x"))
            assert {events[-1]["type"] for events in both_told} == {"response.completed"}

    run(main())


def test_the_response_of_a_stream_without_output_is_as_it_was_said():
    async def main():
        async with both() as (up, gw):
            up.then(raw(encoded(response("resp_1", message())), kind="application/json"))
            told = await gw.ask(input="x")
            assert told["id"] == "resp_1"

    run(main())


@pytest.mark.parametrize(
    "path",
    [
        *("//responses", "/responses/", "/responses//compact", "/responses//", "/%72esponses"),
        *("/RESPONSES", "/responses;a", "/responses%20", "/%2572esponses", "/%5cresponses"),
    ],
)
def test_no_spelling_of_a_path_goes_on_from_what_another_key_made(path):
    async def main():
        async with both(keys=keys("a", "b"), unknown_chains="refuse") as (up, gw):
            up.then(streaming("resp_1", message("secret")))
            await gw.ask(input="x", key="lsk_a")
            asked = len(up.asked)
            body = encoded({"model": "m", "input": "y", "previous_response_id": "resp_1"})
            reader, writer = await gw.talk()
            writer.write(
                f"POST /v1{path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer lsk_b\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
                + body
            )
            told = await reader.read()
            writer.close()
            assert told.split(b" ")[1] in (b"400", b"404"), told[:100]
            assert len(up.asked) == asked

    run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_a_client_that_left_before_its_answer_began_is_not_answered_for_ever(streamed):
    async def main():
        async with both(limits=replace(QUICK, unattended_seconds=0.2)) as (up, gw):

            async def drips(asked):
                told = web.StreamResponse(headers={"content-type": "application/json"})
                if not streamed:
                    await told.prepare(asked.request)
                while asked.request.transport is not None:
                    if not streamed:
                        await told.write(b" ")
                    await asyncio.sleep(0.02)
                raise ConnectionResetError

            up.then(drips)
            _, writer = await gw.talk()
            body = encoded({"model": "m", "input": "x", "stream": streamed})
            writer.write(
                b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
                + body
            )
            await until(lambda: up.asked)
            writer.transport.abort()
            await until(lambda: not gw.world.running, seconds=3)
            await until(lambda: up.gone)

    run(main())


@pytest.mark.parametrize("transport", ["http", "websocket"])
@pytest.mark.parametrize("streamed", [True, False])
def test_an_answer_with_half_a_character_ends_once_and_is_kept(transport, streamed):
    half = "\ud83d"

    async def main():
        async with both(up_transport=transport) as (up, gw):
            events = told_by("resp_1", message(half), call(arguments=json.dumps({"a": half})))
            up.then(saying(events))
            if streamed:
                assert await gw.stream(input="x") == events
            else:
                assert (await gw.ask(input="x"))["id"] == "resp_1"
            up.then(refusing(NOT_FOUND, 404), streaming("resp_2", message("on")))
            told = await gw.ask(input=[output()], previous_response_id="resp_1")
            assert told["id"] == "resp_2"
            _, said, called, _ = up.asked[-1].json["input"]
            assert said["content"][0]["text"] == "\ufffd"
            assert called["call_id"] == "call_1"

    run(main())
