"""Founding case C: a delta of outputs alone, right only behind its anchor, and the anchor is lost.

Where the chain is known it is sent whole; where it is not, the client hears the upstream itself;
half a pair is never sent as a request of its own."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest
from aiohttp import web

from lockstitch.store.memory import MemoryStore
from tests.gateway.faults.playing import (
    ASK,
    FINAL,
    KEYS,
    LOOK,
    OUTPUTS,
    TOOLS,
    WORD,
    Play,
    is_whole,
    output,
    script,
    user,
)
from tests.gateway.faults.serving import (
    MODEL,
    TRANSPORTS,
    Client,
    providers,
    serving,
    upstream,
    wellformed,
)

each_transport = pytest.mark.parametrize("transport", TRANSPORTS)
guarded = pytest.mark.parametrize("guard", ["off", "report", "mend", "refuse"])


def played(transport, work, names=("a",), **settings):
    async def run():
        async with providers(*names, script=script) as made:
            play = Play(made, MemoryStore(), transport, **settings)
            async with asyncio.timeout(15), play.through_a_gateway():
                await work(play, *made)

    asyncio.run(run())


def lose(provider):
    """Everything, with what it keeps for a connection, before it looks at the next request."""
    provider.fault("forget what=everything path=/v1/responses")


def heads(provider):
    """Whether each request had an anchor, and its items' types."""
    return [
        (bool(asked.get("previous_response_id")), [item.get("type") for item in asked["input"]])
        for asked in provider.asked()
    ]


@each_transport
@guarded
def test_case_c_outputs_behind_a_lost_anchor_are_replayed_with_all_that_stands_before(
    transport, guard
):
    async def work(play, provider):
        await play.begin("outputs")
        lose(provider)
        answer = await play.said(*OUTPUTS)
        assert [part["text"] for item in answer.messages for part in item["content"]] == [FINAL]
        assert answer.response["previous_response_id"] == play.looked.id
        is_whole(play.context(play.last), asked=[WORD, ASK], texts=[f"Heard: {WORD}", LOOK])
        *_, sent, replayed = heads(provider)
        # First as the client sent it, then self-contained.
        assert sent == (True, ["function_call_output"] * 2)
        assert replayed[0] is False
        assert replayed[1].count("function_call") == replayed[1].count("function_call_output") == 2
        assert provider.broken() == {"anchor-not-found": 1}

    played(transport, work, told={"guard": guard})


@each_transport
def test_case_c_with_an_unknown_chain_the_client_gets_the_upstreams_own_error(transport):
    """Somebody else began the chain: the journal has never seen it."""

    async def work(play, provider):
        async with Client(provider.url, "json") as straight:
            looked = await straight.ask(input=[user(ASK)], tools=TOOLS)
            provider.forget()
            body = {"input": OUTPUTS, "tools": TOOLS, "previous_response_id": looked.id}
            before = len(provider.asked())
            through = await play.client.ask(**body)
            assert len(provider.asked()) == before + 1
            async with Client(provider.url, transport) as direct:
                told = await direct.ask(**body)
        wellformed(through)
        assert through.raw.rstrip() == told.raw.rstrip()
        assert through.status == told.status
        assert through.error["code"] == "previous_response_not_found"
        assert all(asked.get("previous_response_id") for asked in provider.asked()[1:])

    played(transport, work)


@each_transport
@pytest.mark.parametrize("guard", ["off", "report"])
def test_case_c_half_a_pair_is_never_sent_without_its_anchor(transport, guard):
    async def work(play, provider):
        await play.begin("outputs")
        lose(provider)
        before = len(provider.asked())
        answer = await play.go_on(output(KEYS[0]))
        assert answer.said == "error", answer
        assert "call_charts" in answer.error["message"] or (
            answer.error["code"] == "previous_response_not_found"
        )
        assert heads(provider)[before:] == [(True, ["function_call_output"])]
        # Nothing was lost: with both outputs it goes on.
        await play.said(*OUTPUTS)

    played(transport, work, told={"guard": guard})


@each_transport
def test_case_c_an_output_of_a_call_that_nobody_made_is_never_sent_without_its_anchor(transport):
    async def work(play, provider):
        await play.begin("outputs")
        lose(provider)
        before = len(provider.asked())
        answer = await play.go_on(*OUTPUTS, output("call_of_nobody"))
        assert answer.said == "error", answer
        assert all(anchored for anchored, _ in heads(provider)[before:])
        await play.said(*OUTPUTS)

    played(transport, work, told={"guard": "off"})


@each_transport
def test_case_c_the_chain_goes_to_another_upstream_whole_or_not_at_all(transport):
    async def work(play, a, b):
        await play.begin("outputs")
        await a.emulator.stop()
        answer = await play.said(*OUTPUTS)
        assert b.run_of(answer.id) is not None
        is_whole(play.context(play.last), asked=[WORD, ASK], texts=[f"Heard: {WORD}", LOOK])
        assert b.broken() == {}
        refused = await play.ask(output(KEYS[0]), previous_response_id=play.looked.id)
        assert refused.said == "error", refused
        assert b.broken() == {}

    # Without repairs: the delta lacks an output.
    played(transport, work, names=("a", "b"), told={"guard": "report"})


@each_transport
def test_case_c_a_chain_that_is_lost_again_and_again_is_replayed_each_time(transport):
    async def work(play, provider):
        await play.begin("outputs")
        lose(provider)
        await play.said(*OUTPUTS)
        asked, texts = [WORD, ASK], [f"Heard: {WORD}", LOOK, FINAL]
        for n in range(4):
            lose(provider)
            await play.said(user(f"And {n}?"))
            asked.append(f"And {n}?")
            is_whole(play.context(play.last), asked=asked, texts=texts)
            texts.append(f"Heard: And {n}?")

    played(transport, work)


@each_transport
def test_siblings_behind_one_response_do_not_see_each_other(transport):
    async def work(play, provider):
        await play.begin("outputs")
        root = play.last
        left = await play.said(*OUTPUTS)
        play.last = root
        right = await play.said(*OUTPUTS)
        assert left.id != right.id
        lose(provider)
        for one, text in ((left, "left"), (right, "right")):
            play.last = one.id
            await play.said(user(text))
            asked, texts = [WORD, ASK, text], [f"Heard: {WORD}", LOOK, FINAL]
            is_whole(play.context(play.last), asked=asked, texts=texts)

    played(transport, work)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Previous response with id '{anchor}' not found."),
        (404, "Response {anchor} was not found on this server"),
        (400, "Invalid `previous_response_id`."),
    ],
)
def test_an_anchor_may_be_lost_in_other_words(status, message):
    """Servers that are compatible do not all use the provider's words."""

    async def run():
        asked = []

        async def respond(request):
            body = await request.json()
            asked.append(body)
            anchor = body.get("previous_response_id")
            if anchor:
                told = {"message": message.format(anchor=anchor), "type": "invalid_request_error"}
                return web.json_response({"error": told}, status=status)
            return web.json_response(
                {"id": f"resp_{len(asked)}", "object": "response", "status": "completed"}
                | {"output": [], "error": None}
            )

        app = web.Application()
        app.router.add_post("/v1/responses", respond)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            told = upstream(f"http://127.0.0.1:{port}/v1", transport="http")
            async with serving(MemoryStore(), told) as base, aiohttp.ClientSession() as session:
                first = {"model": MODEL, "input": "one"}
                async with session.post(f"{base}/responses", json=first) as answer:
                    anchor = (await answer.json())["id"]
                second = {"model": MODEL, "input": "two", "previous_response_id": anchor}
                async with session.post(f"{base}/responses", json=second) as answer:
                    assert answer.status == 200, await answer.text()
            assert [item["content"] for item in asked[-1]["input"]] == ["one", "two"], asked
            assert "previous_response_id" not in json.dumps(asked[-1])
        finally:
            await runner.cleanup()

    asyncio.run(run())


@pytest.mark.parametrize("fault", ["cut after=response.created", "cut after=response.in_progress"])
@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_either_id_of_a_response_that_was_tried_again_can_be_gone_on_from(transport, fault):
    """A client may have taken the id from the beginning, which another try has finished."""

    async def work(play, provider):
        await play.begin("outputs")
        provider.fault(f"{fault} path=/v1/responses")
        answer = await play.said(*OUTPUTS)
        assert answer.said == "completed"
        for lost in (False, True):
            for name in {answer.created, answer.id}:
                if lost:
                    lose(provider)
                play.last = name
                await play.said(user("So?"))
                asked, texts = [WORD, ASK, "So?"], [f"Heard: {WORD}", LOOK, FINAL]
                is_whole(play.context(play.last), asked=asked, texts=texts)
                lose(provider)
                await play.said(user("And?"))
                asked, texts = [*asked, "And?"], [*texts, "Heard: So?"]
                is_whole(play.context(play.last), asked=asked, texts=texts)
        assert set(provider.broken()) <= {"anchor-not-found"}

    played(transport, work)


@each_transport
@pytest.mark.parametrize("lost", [False, True], ids=["kept", "lost"])
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
def test_a_chain_goes_from_upstream_to_upstream_and_back_whole(transport, lost, stored):
    """Item ids and encrypted reasoning of one upstream mean nothing to the other."""

    async def work(play, *made):
        asked, texts, given = [], [], []
        for n in range(4):
            down, well = made[n % 2], made[(n + 1) % 2]
            down.fault("status code=503 path=/v1/responses times=always")
            if lost:
                lose(well)
            await play.said(user(f"{n}"))
            asked = [*asked, f"{n}"]
            assert well.run_of(play.last) is not None
            is_whole(play.context(play.last), asked=asked, texts=texts, given=given)
            texts = [*texts, f"Heard: {n}"]
            if n == 1:
                # Calls and thoughts of this one, outputs for the next.
                await play.said(user(ASK))
                down.emulator.faults.clear()
                well.fault("status code=503 path=/v1/responses times=always")
                await play.said(*OUTPUTS)
                assert down.run_of(play.last) is not None
                asked, texts, given = [*asked, ASK], [*texts, LOOK], KEYS
                is_whole(play.context(play.last), asked=asked, texts=texts, given=given)
                texts = [*texts, FINAL]
            for one in made:
                one.emulator.faults.clear()
        for one in made:
            assert set(one.broken()) <= {"anchor-not-found"}, one.broken()

    settings = {"include": ["reasoning.encrypted_content"]} | ({} if stored else {"store": False})
    played(transport, work, names=("a", "b"), settings=settings)
