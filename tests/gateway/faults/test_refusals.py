"""What an upstream says no with: it reaches the client byte for byte where nobody knows better, and
is acted upon where its meaning is known."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from msgspec import structs

from lockstitch.emulator import VirtualClock
from lockstitch.gateway.deciding import retrying
from lockstitch.store.memory import MemoryStore
from tests.gateway.faults.playing import (
    ASK,
    FINAL,
    LOOK,
    OUTPUTS,
    SHAPES,
    THANKS,
    WORD,
    Play,
    is_whole,
    script,
    user,
)
from tests.gateway.faults.serving import (
    MODEL,
    SECONDS,
    TRANSPORTS,
    Client,
    Provider,
    providers,
    serving,
    upstream,
    wellformed,
)

each_transport = pytest.mark.parametrize("transport", TRANSPORTS)
over_http = pytest.mark.parametrize("transport", ["sse", "json"])

HTML = b"<html><body><h1>502 Bad Gateway</h1>\r\n<hr>nginx \xe2\x80\x94 \xff</body></html>"
STRANGE = [
    (400, "application/json", b'{ "error" : {"message":"Quux\\u00e9 overflow", "zip": [1,2]} }'),
    (400, "application/json", b'{"detail":"something else entirely"}'),
    (418, "text/plain", b"I am a teapot"),
    (422, "application/json", b'[{"loc":["body"]}]'),
    (403, "text/html", HTML),
    (404, "text/plain; charset=latin-1", "nicht gefunden: \xfc".encode("latin-1")),
    (413, "application/octet-stream", b""),
    (451, "application/json", b'{"error":'),
]


def played(transport, work, names=("a",), **settings):
    async def run():
        async with providers(*names, script=script) as made:
            play = Play(made, MemoryStore(), transport, **settings)
            async with asyncio.timeout(15), play.through_a_gateway():
                await work(play, *made)

    asyncio.run(run())


@asynccontextmanager
async def answering(respond, **told):
    """An upstream that answers as it is told to; it counts what it is asked."""
    asked = []

    async def received(request):
        asked.append(await request.read())
        return await respond(request)

    app = web.Application()
    app.router.add_route("*", "/v1/{path:.*}", received)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        port = runner.addresses[0][1]
        yield upstream(f"http://127.0.0.1:{port}/v1", transport="http", **told), asked
    finally:
        await runner.cleanup()


# --- words that nobody knows -------------------------------------------------------------------


@pytest.mark.parametrize(("status", "kind", "body"), STRANGE)
@over_http
def test_words_that_nobody_knows_pass_byte_for_byte(transport, status, kind, body):
    async def run():
        async def respond(request):
            headers = {"content-type": kind, "x-request-id": "req_theirs", "x-more": "1"}
            return web.Response(status=status, body=body, headers=headers)

        async with (
            answering(respond) as (told, asked),
            serving(MemoryStore(), told) as base,
            aiohttp.ClientSession() as session,
        ):
            sent = {"model": MODEL, "input": "hello", "stream": transport == "sse"}
            async with session.post(f"{base}/responses", json=sent) as answer:
                assert (answer.status, await answer.read()) == (status, body)
                assert answer.headers["content-type"] == kind
                assert answer.headers["x-more"] == "1"
            assert len(asked) == 1

    asyncio.run(run())


@pytest.mark.parametrize(("status", "kind", "body"), [(502, "text/html", HTML), (500, "a/b", b"!")])
@over_http
def test_a_page_of_a_broken_proxy_passes_as_it_is_when_trying_again_does_not_help(
    transport, status, kind, body
):
    async def run():
        async def respond(request):
            return web.Response(status=status, body=body, headers={"content-type": kind})

        async with (
            answering(respond) as (told, asked),
            serving(MemoryStore(), told) as base,
            aiohttp.ClientSession() as session,
        ):
            sent = {"model": MODEL, "input": "hello", "stream": transport == "sse"}
            async with session.post(f"{base}/responses", json=sent) as answer:
                assert (answer.status, await answer.read()) == (status, body)
                assert answer.headers["content-type"] == kind
            assert len(asked) == told.retries + 1

    asyncio.run(run())


@pytest.mark.parametrize(("status", "kind", "body"), STRANGE)
def test_over_a_websocket_words_that_nobody_knows_come_in_an_error_frame(status, kind, body):
    async def run():
        async def respond(request):
            return web.Response(status=status, body=body, headers={"content-type": kind})

        async with (
            answering(respond) as (told, _),
            serving(MemoryStore(), told) as base,
            Client(base, "websocket") as client,
        ):
            answer = await client.ask(input=[user("hello")])
            assert answer.types == ["error"]
            assert answer.events[0]["status"] == status
            assert not answer.closed

    asyncio.run(run())


@pytest.mark.parametrize(
    "body",
    [
        b'event: error\ndata: {"type":"error","code":"quux","message":"No.","param":null}\n\n',
        b'event: error\ndata: {"type":"error","error":{"message":"strange","code":"zork"}}\n\n',
    ],
)
def test_an_error_event_in_unknown_words_and_without_a_number_passes_unchanged(body):
    async def run():
        async def respond(request):
            return web.Response(body=body, headers={"content-type": "text/event-stream"})

        async with (
            answering(respond) as (told, asked),
            serving(MemoryStore(), told) as base,
            Client(base, "sse") as client,
        ):
            answer = await client.ask(input=[user("hello")])
            assert answer.raw == body
            assert len(asked) == 1

    asyncio.run(run())


@pytest.mark.parametrize("when", ["first", "after created"])
def test_an_error_frame_without_a_number_reaches_the_client(when):
    async def run():
        frame = {"type": "error", "status": 400, "error": {"message": "zork", "type": "quux"}}

        async def respond(request):
            made = web.WebSocketResponse()
            await made.prepare(request)
            async for _ in made:
                if when != "first":
                    response = {"id": "resp_1", "object": "response", "status": "in_progress"}
                    await made.send_json(
                        {"type": "response.created", "sequence_number": 0, "response": response}
                    )
                await made.send_json(frame)
            return made

        async with answering(respond) as (told, _):
            both = structs.replace(told, transport="both")
            async with serving(MemoryStore(), both) as base, Client(base, "websocket") as client:
                for _ in range(3):
                    answer = await client.ask(input=[user("hello")])
                    assert answer.types[-1] in ("error", "response.failed"), answer
                    assert answer.error["message"] == "zork"
                    wellformed(answer)
                    await client.is_quiet()

    asyncio.run(run())


# --- words with a meaning ----------------------------------------------------------------------


@pytest.mark.parametrize("code", ["429", "503", "529"])
@each_transport
def test_an_upstream_that_says_when_is_asked_again_then(transport, code, monkeypatch):
    monkeypatch.setattr(retrying, "LONGEST_WAIT_SECONDS", 5.0)

    async def work(play, provider):
        await play.begin("outputs")
        before = len(provider.asked())
        provider.fault(f"status code={code} retry_after=0.3 path=/v1/responses")
        began = time.monotonic()
        await play.said(*OUTPUTS)
        assert time.monotonic() - began >= 0.3
        assert len(provider.asked()) == before + 2

    played(transport, work)


@pytest.mark.parametrize("code", ["429", "503"])
@over_http
def test_an_upstream_that_asks_for_long_is_passed_on_with_its_wait(transport, code):
    async def work(play, provider):
        provider.fault(f"status code={code} retry_after=3600 path=/v1/responses")
        answer = await play.go_on(user(ASK))
        assert answer.status == int(code)
        assert answer.headers["Retry-After"] == "3600"
        assert len(provider.asked()) == 1

    played(transport, work)


@each_transport
@pytest.mark.parametrize("code", ["400", "401", "404", "409"])
def test_what_will_never_be_taken_is_asked_once(transport, code):
    async def work(play, provider):
        provider.fault(f"status code={code} path=/v1/responses times=always")
        answer = await play.go_on(user(ASK))
        assert answer.said == "error"
        assert len(provider.asked()) == 1

    played(transport, work)


@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_a_failure_that_is_passed_on_names_the_anchor_that_the_client_named(transport):
    """The upstream was asked without one: the chain was replayed."""

    async def work(play, provider):
        await play.begin("outputs")
        provider.fault("forget what=everything path=/v1/responses request=1")
        provider.fault("fail after=response.in_progress code=rate_limit_exceeded request=2")
        answer = await play.go_on(*OUTPUTS)
        assert answer.types == ["response.created", "response.in_progress", "response.failed"]
        assert answer.error["code"] == "rate_limit_exceeded"
        anchors = {event["response"]["previous_response_id"] for event in answer.events}
        assert anchors == {play.looked.id}

    played(transport, work)


# --- an upstream that is not there -------------------------------------------------------------


def nobody():
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


@each_transport
def test_an_upstream_that_is_down_is_said_to_be_in_the_providers_form(transport):
    async def run():
        async with (
            serving(MemoryStore(), upstream(nobody())) as base,
            Client(base, transport) as client,
        ):
            answer = await client.ask(input=[user(ASK)])
            wellformed(answer)
            assert answer.said == "error"
            assert answer.error["type"] in ("server_error", "api_error")
            if transport != "websocket":
                assert answer.status == 502

    asyncio.run(run())


@each_transport
@pytest.mark.parametrize("shape", ["first", "outputs", "full"])
def test_an_upstream_that_goes_down_and_comes_back_is_gone_on_with(transport, shape):
    async def run():
        async with providers("a", script=script) as (provider,):
            play = Play([provider], MemoryStore(), transport)
            port = int(provider.url.rpartition(":")[2].removesuffix("/v1"))
            async with asyncio.timeout(15), play.through_a_gateway():
                await play.begin(shape)
                await provider.emulator.stop()
                answer = await play.struck(shape)
                assert answer.said == "error", answer
                provider.forget()
                await provider.emulator.start(port=port)
                await play.finish(shape, answer)
                asked = [ASK] if shape == "first" else [WORD, ASK]
                texts = [LOOK, FINAL] if shape == "first" else [f"Heard: {WORD}", LOOK, FINAL]
                is_whole(play.context(play.last), asked=[*asked, THANKS], texts=texts)
                assert set(provider.broken()) <= {"anchor-not-found"}

    asyncio.run(run())


@each_transport
def test_an_upstream_that_is_slow_to_begin_is_waited_for(transport):
    async def run():
        async with providers("a", script=script) as (provider,):
            provider.fault("stall seconds=0.6 path=/v1/responses")
            told = upstream(provider, silence_seconds=5.0)
            async with serving(MemoryStore(), told) as base, Client(base, transport) as client:
                answer = await client.ask(input=[user(ASK)])
                wellformed(answer)
                assert answer.said == "completed"
                assert len(provider.asked()) == 1

    asyncio.run(run())


@each_transport
def test_an_upstream_that_never_begins_is_given_up_in_time(transport):
    async def run():
        async with providers("a", script=script) as (provider,):
            provider.fault("stall seconds=3600 path=/v1/responses times=always")
            told = upstream(provider, silence_seconds=0.2, retries=1)
            async with serving(MemoryStore(), told) as base, Client(base, transport) as client:
                began = time.monotonic()
                answer = await client.ask(input=[user(ASK)])
                wellformed(answer)
                assert answer.said == "error"
                assert 0.35 < time.monotonic() - began < SECONDS
                if transport != "websocket":
                    assert answer.status == 504

    asyncio.run(run())


# --- connections that are used up --------------------------------------------------------------


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_connection_that_reached_its_age_is_replaced_unseen(shape, stored):
    """`websocket_connection_limit_reached`: the client's own connection stays."""
    if shape == "conversation" and not stored:
        pytest.skip("a conversation is kept in any case")

    async def run():
        clock = VirtualClock(flowing=False)
        provider = Provider("a", 1, script(), clock=clock, settings={"connection_seconds": 60})
        await provider.emulator.start()
        try:
            settings = {} if stored else {"store": False}
            if not stored:
                settings["include"] = ["reasoning.encrypted_content"]
            play = Play([provider], MemoryStore(), "websocket", settings=settings)
            async with asyncio.timeout(15), play.through_a_gateway():
                await play.begin(shape)
                clock.advance(61)
                answer = await play.struck(shape)
                assert answer.said == "completed", answer
                await play.finish(shape, answer)
                clock.advance(61)
                await play.said(user("Still there?"))
            assert set(provider.broken()) <= {"connection-too-old", "anchor-not-found"}
            if shape != "conversation":
                users = [i for i in play.context(play.last) if i.get("role") == "user"]
                assert len(users) == (3 if shape == "first" else 4)
        finally:
            await provider.emulator.stop()

    asyncio.run(run())


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("code", ["426", "500"])
def test_an_upstream_that_refuses_the_handshake_is_told_of_or_reached(code, times):
    async def run():
        async with providers("a", script=script) as (provider,):
            provider.fault(f"refuse-upgrade code={code} times={times}")
            async with (
                serving(MemoryStore(), upstream(provider)) as base,
                Client(base, "websocket") as client,
            ):
                for _ in range(2):
                    answer = await client.ask(input=[user(ASK)])
                    wellformed(answer)
                assert answer.said == "completed", answer
            assert provider.broken() == {}

    asyncio.run(run())


# --- conversations -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "reset"])
@each_transport
def test_an_ambiguous_send_to_a_conversation_is_never_made_twice(transport, how):
    async def work(play, provider):
        await play.begin("conversation")
        before = len(provider.asked())
        provider.fault(f"lose how={how} path=/v1/responses times=always")
        await play.go_on(*OUTPUTS)
        provider.emulator.faults.clear()
        assert len(provider.asked()) == before + 1
        held = await play.held()
        outputs = [item for item in held if item["type"] == "function_call_output"]
        assert len(outputs) == 2
        assert json.dumps(held).count(FINAL) == 1
        await play.said(user("So?"))
        assert provider.broken() == {}

    played(transport, work)


@each_transport
def test_a_conversation_that_is_locked_is_waited_for(transport):
    async def work(play, provider):
        await play.begin("conversation")
        provider.fault("lock path=/v1/responses")
        await play.said(*OUTPUTS)

    played(transport, work)


@each_transport
def test_a_conversation_that_stays_locked_is_said_to_be(transport):
    async def work(play, provider):
        await play.begin("conversation")
        provider.fault("lock path=/v1/responses times=always")
        answer = await play.go_on(*OUTPUTS)
        assert answer.said == "error"
        assert answer.error["code"] == "conversation_locked"

    played(transport, work)
