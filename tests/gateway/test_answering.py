"""One request, try by try: where it goes, what is repeated, and that it ends at every stage."""

from __future__ import annotations

import asyncio
import json
import socket as sockets

import openai
import pytest
from aiohttp import web
from msgspec.structs import replace

from tests.gateway.building import (
    EACH_SECONDS,
    NOT_FOUND,
    QUICK,
    WRITES,
    both,
    call,
    encoded,
    error_body,
    gateway,
    message,
    next_end,
    open_files,
    output,
    provider,
    raw,
    refusing,
    run,
    saying,
    sse,
    streaming,
    told_by,
    until,
    upstream,
    user,
)

BUSY = error_body("Slow down.", "rate_limit_exceeded")

MCP = {"type": "mcp", "server_label": "s", "server_url": "https://s", "require_approval": "never"}
"""A tool that the provider calls itself, and asks nobody."""


def served(work, **more):
    async def main():
        async with both(**more) as (up, gw):
            await work(up, gw)

    run(main())


def ends(events):
    return events[-1].get("type") or events[-1]


# --- tries -------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
def test_a_request_that_was_lost_is_sent_again_as_often_as_it_may_be(streamed):
    async def work(up, gw):
        async def cut(asked):
            asked.request.transport.abort()

        up.then(cut, cut, cut, cut)
        if streamed:
            assert (await gw.stream(input="x"))[0]["http"] == 502
        else:
            assert (await gw.ask(input="x"))["http"] == 502
        assert len(up.asked) == 3
        up.answers.clear()
        assert (await gw.ask(input="x"))["http"] == 200

    served(work, up_retries=2)


@pytest.mark.parametrize(
    ("more", "times"),
    [({}, 3), ({"tools": [MCP]}, 1), ({"background": True}, 1), ({"conversation": "conv_1"}, 1)],
)
@pytest.mark.parametrize("how", ["cut", "504"])
def test_an_official_client_repeats_what_was_lost_only_where_that_does_no_harm(how, more, times):
    async def work(up, gw):
        async def lost(asked):
            if how == "504":
                said = {"x-should-retry": "true"}
                body = error_body("it was lost before the end")
                return web.json_response(body, status=504, headers=said)
            asked.request.transport.abort()
            return None

        up.then(*[lost] * 10)
        async with openai.AsyncOpenAI(base_url=gw.url, api_key="any", max_retries=2) as client:
            client._sleep_for_retry = no_wait
            with pytest.raises(openai.InternalServerError, match="was lost before the end"):
                await client.responses.create(model="m", input="x", **more)
        assert sum(one.request.method == "POST" for one in up.asked) == times

    async def no_wait(**how):
        """Behind each try that failed."""

    served(work, up_retries=0)


@pytest.mark.parametrize("more", [{"tools": [MCP]}, {"conversation": "conv_1"}])
def test_what_was_not_taken_may_be_sent_again_whatever_it_does(more):
    async def work(up, gw):
        async def busy(asked):
            return web.json_response(BUSY, status=429, headers={"retry-after": "60"})

        up.then(busy)
        body = {"model": "m", "input": "x", **more}
        async with gw.client.post(gw.url + "/responses", json=body) as told:
            assert told.status == 429
            assert "x-should-retry" not in told.headers

    served(work)


def test_a_busy_upstream_is_asked_again_when_it_says_that_this_is_soon():
    async def work(up, gw):
        async def busy(asked):
            return web.json_response(BUSY, status=429, headers={"retry-after": "0"})

        async def long(asked):
            return web.json_response(BUSY, status=429, headers={"retry-after": "3600"})

        up.then(busy)
        assert (await gw.ask(input="x"))["http"] == 200
        assert len(up.asked) == 2
        up.then(long)
        told = await gw.ask(input="x")
        assert told["http"] == 429
        assert told["error"] == BUSY["error"]
        assert len(up.asked) == 3

    served(work)


def test_a_refusal_is_not_repeated():
    async def work(up, gw):
        up.then(refusing(error_body("Never.")))
        assert (await gw.ask(input="x"))["http"] == 400
        assert len(up.asked) == 1

    served(work)


def test_another_upstream_gets_everything_and_nothing_that_is_not_its():
    async def main():
        async with provider() as one, provider() as two:
            names = (upstream(one, "one", retries=0), upstream(two, "two", retries=0))
            async with gateway(*names) as gw:
                sealed = {"summary": [], "encrypted_content": "e"}
                thought = {"type": "reasoning", "id": "rs_1", **sealed}
                one.then(streaming("resp_1", thought, call("call_1", "fc_1")))
                await gw.ask(input=[user("a")])
                one.then(raw(b"{}", status=503, kind="application/json"))
                two.then(streaming("resp_2", message()))
                end = await gw.ask(input=[output()], previous_response_id="resp_1")
                assert end["id"] == "resp_2"
                assert end["previous_response_id"] == "resp_1"
                sent = two.asked[-1].json
                assert "previous_response_id" not in sent
                kinds = [item.get("type") for item in sent["input"]]
                assert kinds == ["message", "function_call", "function_call_output"]
                assert not any("id" in item for item in sent["input"])
                # The chain stays where it went on.
                two.then(streaming("resp_3", message()))
                await gw.ask(input="b", previous_response_id="resp_2")
                assert two.asked[-1].json["previous_response_id"] == "resp_2"

    run(main())


def test_what_cannot_travel_is_refused_in_the_words_of_its_own_upstream():
    async def main():
        async with provider() as one, provider() as two:
            names = (upstream(one, "one", retries=0), upstream(two, "two", retries=0))
            async with gateway(*names) as gw:
                one.then(streaming("resp_1", message()))
                file = {"type": "input_file", "file_id": "file_1"}
                await gw.ask(input=[{"role": "user", "content": [file]}])
                said = error_body("Down.", "server_is_down")
                one.then(refusing(said, 503))
                told = await gw.ask(input="x", previous_response_id="resp_1")
                assert told["http"] == 503
                assert told["error"] == said["error"]
                assert two.asked == []

    run(main())


def test_a_conversation_of_an_upstream_is_never_sent_to_twice_without_a_word():
    async def work(up, gw):
        async def cut(asked):
            asked.request.transport.abort()

        up.then(cut)
        await gw.ask(input="x", conversation="conv_1")
        assert len(up.asked) == 1

    served(work, up_retries=3)


LISTED = [message("Look."), call("call_1")]


def keeping_a_conversation(up, held, *, first, more=False):
    """Answers with the items of a conversation, and that there are ``more``, and to responses;
    ``first``: what becomes of the first of them. How often each was asked for."""
    asked = {"items": 0, "responses": 0}

    async def answer(one):
        if one.request.path.endswith("/items"):
            asked["items"] += 1
            assert one.request.path == "/v1/conversations/conv_1/items"
            assert one.request.query["order"] == "desc"
            return web.json_response({"object": "list", "data": held[::-1], "has_more": more})
        asked["responses"] += 1
        if asked["responses"] == 1:
            return await first(one)
        return await streaming("resp_1", message())(one)

    up.then(*[answer] * 9)
    return asked


async def cut_off(asked):
    asked.request.transport.abort()


async def down(asked):
    return web.json_response(error_body("Oops.", None, type="server_error"), status=500)


@pytest.mark.parametrize("first", [cut_off, down])
@pytest.mark.parametrize("streamed", [False, True])
def test_outputs_that_are_proven_not_to_be_in_a_conversation_are_sent_again(first, streamed):
    async def work(up, gw):
        asked = keeping_a_conversation(up, LISTED, first=first)
        ask = gw.stream if streamed else gw.ask
        told = await ask(input=[output("call_1")], conversation="conv_1")
        end = told[-1]["response"] if streamed else told
        assert end["id"] == "resp_1"
        assert asked == {"items": 1, "responses": 2}
        assert up.asked[0].body == up.asked[-1].body

    served(work, up_retries=3)


@pytest.mark.parametrize(
    "held",
    [[*LISTED, output("call_1"), message("Seen.")], [], [message("Older.")]],
    ids=["it is there", "an empty listing", "a late listing"],
)
def test_outputs_that_may_be_in_a_conversation_are_not_sent_again(held):
    async def work(up, gw):
        asked = keeping_a_conversation(up, held, first=cut_off)
        told = await gw.ask(input=[output("call_1")], conversation="conv_1")
        assert told["http"] == 502
        assert asked == {"items": 1, "responses": 1}

    served(work, up_retries=3)


def test_outputs_that_may_be_listed_on_the_next_page_are_not_sent_again():
    async def work(up, gw):
        asked = keeping_a_conversation(up, LISTED[::-1], first=cut_off, more=True)
        told = await gw.ask(input=[output("call_1")], conversation="conv_1")
        assert told["http"] == 502
        assert asked == {"items": 1, "responses": 1}

    served(work, up_retries=3)


def test_a_try_that_still_runs_in_a_conversation_is_found_there_when_it_has_ended():
    """It was not listed while it ran; then the conversation is locked, and is looked at again."""

    async def work(up, gw):
        held = list(LISTED)
        locked = error_body("Another process is at it.", "conversation_locked")

        async def busy(asked):
            held.extend([output("call_1"), message("Seen.")])
            return web.json_response(locked, status=400)

        async def listing(asked):
            assert asked.request.path.endswith("/items")
            return web.json_response({"object": "list", "data": held[::-1], "has_more": False})

        up.then(cut_off, listing, busy, listing)
        told = await gw.ask(input=[output("call_1")], conversation="conv_1")
        assert told["error"] == locked["error"]
        assert [one.request.method for one in up.asked] == ["POST", "GET", "POST", "GET"]

    served(work, up_retries=5)


def test_a_conversation_that_cannot_be_listed_proves_nothing():
    async def work(up, gw):
        up.then(cut_off, refusing(error_body("No."), 500))
        assert (await gw.ask(input=[output("call_1")], conversation="conv_1"))["http"] == 502
        up.then(cut_off, raw(b"{", kind="application/json"))
        assert (await gw.ask(input=[output("call_1")], conversation="conv_1"))["http"] == 502
        up.then(cut_off, cut_off)
        assert (await gw.ask(input=[output("call_1")], conversation="conv_1"))["http"] == 502
        assert len([one for one in up.asked if one.request.method == "POST"]) == 3

    served(work, up_retries=3)


def test_a_response_that_began_in_a_conversation_is_not_looked_for_and_not_repeated():
    async def work(up, gw):
        up.then(saying(told_by("resp_1")[:2], then="cut"))
        events = await gw.stream(input=[output("call_1")], conversation="conv_1")
        assert ends(events) == "response.failed"
        assert len(up.asked) == 1

    served(work, up_retries=3)


def test_a_try_that_said_something_is_not_repeated():
    async def work(up, gw):
        up.then(saying(told_by("resp_1", message())[:4], then="cut"))
        assert ends(await gw.stream(input="x")) == "response.failed"
        assert len(up.asked) == 1

    served(work, up_retries=3)


def test_a_lost_anchor_is_replayed_once_and_what_follows_passes():
    async def work(up, gw):
        up.then(streaming("resp_1", message()))
        await gw.ask(input="x")
        up.then(refusing(NOT_FOUND), refusing(NOT_FOUND))
        told = await gw.ask(input="y", previous_response_id="resp_1")
        assert told["http"] == 400
        assert len(up.asked) == 3

    served(work, up_retries=3)


def test_an_unknown_anchor_is_never_replaced():
    async def work(up, gw):
        up.then(refusing(NOT_FOUND))
        told = await gw.ask(input=[output()], previous_response_id="resp_strange")
        assert told["error"] == NOT_FOUND["error"]
        assert len(up.asked) == 1

    served(work)


def test_a_lost_anchor_behind_a_call_without_its_output_is_not_replayed():
    """Founding case C, in both directions."""

    async def work(up, gw):
        up.then(streaming("resp_1", call("call_1"), call("call_2", "fc_2")))
        await gw.ask(input="x")
        for items in ([output("call_1")], [user("on")], [output("call_1"), output("call_9")]):
            up.then(refusing(NOT_FOUND))
            told = await gw.ask(input=items, previous_response_id="resp_1")
            assert told["error"] == NOT_FOUND["error"]
        assert all("previous_response_id" in one.json for one in up.asked[1:])

    served(work, up_guard="report")


def test_an_upstream_that_streams_to_who_asked_for_no_stream_is_heard_all_the_same():
    async def work(up, gw):
        up.then(raw(sse(told_by("resp_1", message()))))
        assert (await gw.ask(input="x"))["id"] == "resp_1"
        error = {"type": "error", **error_body("Bad luck.")}
        up.then(raw(sse([*told_by("resp_2", message())[:4], error])))
        told = await gw.ask(input="x")
        assert told["http"] >= 400
        assert "mistake" not in told["error"]["message"], told
        up.then(raw(sse(told_by("resp_3", message())[:4])))
        told = await gw.ask(input="x")
        assert told.get("status") == "failed" or told["http"] == 502

    served(work, up_retries=0)


def test_a_try_that_is_answered_whole_behind_the_beginning_of_a_stream_is_no_second_answer():
    async def work(up, gw):
        up.then(saying(told_by("resp_1")[:2], then="cut"))
        whole = encoded(told_by("resp_2", message())[-1]["response"])
        up.then(raw(whole, kind="application/json"))
        reader, writer = await gw.talk()
        body = encoded({"model": "m", "input": "x", "stream": True})
        writer.write(
            b"POST /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n" % len(body) + body
        )
        told = await reader.read()
        assert told.count(b"HTTP/1.1 ") == 1
        assert told.endswith(b"\n\n\r\n0\r\n\r\n")
        assert b"event: response.failed" in told
        assert len(up.asked) == 2
        assert len(gw.world.runs) == 0
        writer.close()

    served(work, up_retries=1)


def test_a_whole_answer_to_who_asked_for_no_stream_may_follow_a_stream_that_broke():
    async def work(up, gw):
        up.then(raw(sse(told_by("resp_1")[:2])))
        up.then(streaming("resp_2", message()))
        assert (await gw.ask(input="x"))["id"] == "resp_2"

    served(work, up_retries=1)


def test_who_follows_a_response_is_told_when_whoever_asked_for_it_is_cancelled():
    async def work(up, gw):
        up.then(saying(told_by("resp_1", message())[:2], then="hang"))
        reader, writer = await gw.talk()
        body = encoded({"model": "m", "input": "x", "stream": True})
        writer.write(
            b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
            + body
        )
        await reader.readuntil(b"response.in_progress")
        (asking,) = gw.gateway._listener._server.connections
        async with gw.client.get(gw.url + "/responses/resp_1?stream=true") as told:
            assert b"resp_1" in await told.content.readuntil(b"\n\n")
            asking._task_handler.cancel()
            async with asyncio.timeout(EACH_SECONDS):
                await told.content.read()
        writer.close()

    served(work)


async def chain_that_moved(one, two, gw):
    """Begun at the first upstream, gone on at the second."""
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}
    one.then(streaming("resp_1", sealed, message("a", "msg_1")))
    await gw.ask(input=[user("a")])
    one.then(raw(b"{}", status=503, kind="application/json"))
    two.then(streaming("resp_2", message("b", "msg_2")))
    assert (await gw.ask(input=[user("b")], previous_response_id="resp_1"))["id"] == "resp_2"
    return [user("a"), sealed, message("a", "msg_1"), user("b"), message("b", "msg_2")]


def moving(work):
    async def main():
        async with provider() as one, provider() as two:
            names = (upstream(one, "one", retries=0), upstream(two, "two", retries=0))
            async with gateway(*names) as gw:
                await work(one, two, gw)

    run(main())


def test_what_was_left_out_for_another_upstream_is_noted_however_it_came_there():
    async def work(one, two, gw):
        await chain_that_moved(one, two, gw)
        kept = await gw.world.exchanges.exchange("local", "resp_2")
        assert kept.asked.away
        two.then(streaming("resp_3", message("c", "msg_3")))
        await gw.ask(input=[user("c")], previous_response_id="resp_2")
        assert (await gw.world.exchanges.exchange("local", "resp_3")).asked.away
        assert not (await gw.world.exchanges.exchange("local", "resp_1")).asked.away

    moving(work)


def test_a_history_that_moved_is_sent_in_full_without_what_is_anothers_at_the_first_try():
    async def work(one, two, gw):
        history = await chain_that_moved(one, two, gw)
        two.then(streaming("resp_3", message("c", "msg_3")))
        await gw.ask(input=[user("c")], previous_response_id="resp_2")
        two.then(streaming("resp_4", message("d", "msg_4")))
        history += [user("c"), message("c", "msg_3"), user("d")]
        before = len(two.asked)
        assert (await gw.ask(input=history))["id"] == "resp_4"
        assert len(two.asked) == before + 1
        kinds = [item["type"] for item in two.asked[-1].json["input"]]
        assert "reasoning" not in kinds

    moving(work)


def test_what_went_as_it_came_is_not_noted_as_left_out():
    """A history that cannot travel goes as it is."""

    async def work(one, two, gw):
        history = await chain_that_moved(one, two, gw)
        file = {"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}
        two.then(streaming("resp_3", message("c", "msg_3")))
        assert (await gw.ask(input=[*history, file]))["id"] == "resp_3"
        assert two.asked[-1].json["input"] == [*history, file]
        assert not (await gw.world.exchanges.exchange("local", "resp_3")).asked.away

    moving(work)


# --- what could not be kept --------------------------------------------------------------------


def unwritable(gw):
    gw.store.fails = lambda kind, name: kind in WRITES


@pytest.mark.parametrize("over", ["http", "socket"])
def test_a_call_that_could_not_be_kept_is_not_in_what_ends_a_stream_that_broke(over):
    async def work(up, gw):
        unwritable(gw)
        up.then(saying(told_by("resp_1", message(), call())[:-1], then="cut"))
        if over == "http":
            end = (await gw.stream(input="x"))[-1]
        else:
            ws = await gw.socket()
            await ws.send_json({"type": "response.create", "model": "m", "input": "x"})
            end = await next_end(ws)
            await ws.close()
        assert end["type"] == "response.failed"
        assert end["response"]["error"]["code"] == "journal_unavailable"
        assert end["response"]["output"] == []

    served(work, up_retries=0)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_failure_that_could_not_be_kept_is_not_passed_on(streamed):
    async def work(up, gw):
        unwritable(gw)
        error = {"code": "server_error", "message": "The model gave up."}
        up.then(raw(sse(told_by("resp_1", ending="failed", error=error))))
        if streamed:
            end = (await gw.stream(input="x"))[-1]["response"]
        else:
            end = await gw.ask(input="x")
            assert end["http"] == 500
        assert end["error"]["code"] == "journal_unavailable"
        assert "gave up" not in json.dumps(end)

    served(work, up_retries=0)


@pytest.mark.parametrize("transport", ["http", "websocket"])
def test_an_official_client_does_not_repeat_what_was_answered_and_could_not_be_kept(transport):
    """It repeats whatever has a status from 500 on by itself, up to its `max_retries`."""

    async def work(up, gw):
        unwritable(gw)
        async with openai.AsyncOpenAI(base_url=gw.url, api_key="any", max_retries=2) as client:
            with pytest.raises(openai.InternalServerError) as caught:
                await client.responses.create(model="m", input="x", tools=[MCP])
        assert len(up.asked) == 1
        assert (caught.value.status_code, caught.value.code) == (500, "journal_unavailable")
        assert "The upstream received this request" in caught.value.message
        assert "not sent" not in caught.value.message
        assert "retry-after" not in caught.value.response.headers

    served(work, up_transport=transport)


def test_a_stream_whose_answer_could_not_be_kept_says_that_the_upstream_has_the_request():
    async def work(up, gw):
        unwritable(gw)
        end = (await gw.stream(input="x"))[-1]
        assert end["type"] == "response.failed"
        assert "The upstream received this request" in end["response"]["error"]["message"]

    served(work)


@pytest.mark.parametrize("streamed", [False, True])
def test_nothing_more_is_sent_until_the_journal_can_be_written_again(streamed):
    async def work(up, gw):
        async def status(**body):
            if streamed:
                (first, *_) = await gw.stream(**body)
                return first.get("http", 200)
            return (await gw.ask(**body))["http"]

        gw.store.fails = lambda kind, name: kind in {*WRITES, "claim"}
        await status(input="x")
        assert len(up.asked) == 1
        for _ in range(3):
            assert await status(input="x") == 503
        assert len(up.asked) == 1
        gw.store.fails = lambda kind, name: False
        assert await status(input="x") == 200
        assert len(up.asked) == 2
        assert not [one async for one in gw.store.conversations() if "tried" in one.conversation]

    served(work)


def test_nothing_is_sent_where_a_look_at_its_health_has_shown_that_the_journal_is_away():
    async def work(up, gw):
        gw.store.fails = lambda kind, name: True
        async with gw.client.get(gw.url.replace("/v1", "/health/ready")) as told:
            assert told.status == 503
        assert (await gw.ask(input="x"))["http"] == 503
        assert up.asked == []
        gw.store.fails = lambda kind, name: False
        assert (await gw.ask(input="x"))["http"] == 200

    served(work)


def test_a_journal_that_fails_behind_a_try_does_not_make_it_unsent():
    """The first upstream may have it; what would be sent to the next one cannot be read."""

    async def main():
        async with provider() as one, provider() as two:
            names = (upstream(one, "one", retries=0), upstream(two, "two", retries=0))
            async with gateway(*names) as gw:
                one.then(streaming("resp_1", message()))
                await gw.ask(input="a")

                async def cut(asked):
                    gw.world.exchanges._remembered.clear()
                    gw.store.fails = lambda kind, name: kind == "read"
                    asked.request.transport.abort()

                one.then(cut)
                told = await gw.ask(input="b", previous_response_id="resp_1")
                assert told["http"] == 500
                assert "not sent" not in told["error"]["message"]
                assert two.asked == []

    run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_an_error_that_begins_the_stream_of_a_conversation_passes_in_its_own_words(streamed):
    async def work(up, gw):
        error = {"type": "error", **error_body("It is raining here.", "server_error")}
        up.then(raw(sse([error])))
        if streamed:
            assert await gw.stream(input="x", conversation="conv_1") == [error]
        else:
            told = await gw.ask(input="x", conversation="conv_1")
            assert told["error"]["message"] == "It is raining here."
            assert told["error"]["code"] == "server_error"
        assert len(up.asked) == 1

    served(work, up_retries=3)


# --- stages ------------------------------------------------------------------------------------

STAGES = ("preparing", "connecting", "begun", "said", "held", "waiting")


def staged(stage, up, gw):
    """Bring a request to this stage, where it stays."""
    go = asyncio.Event()
    if stage == "preparing":

        async def slow(kind, name):
            if kind == "read":
                await go.wait()

        gw.store.delay = slow
    elif stage == "connecting":

        async def silent(asked):
            await go.wait()
            return web.Response(status=500)

        up.then(silent)
    elif stage == "begun":
        up.then(saying(told_by("resp_1", message())[:2], then="hang"))
    elif stage == "said":
        up.then(saying(told_by("resp_1", message(), call())[:5], then="hang"))
    elif stage == "held":

        async def stuck(kind, name):
            if kind in WRITES:
                await go.wait()

        gw.store.delay = stuck
        up.then(streaming("resp_1", call()))
    else:

        async def busy(asked):
            return web.json_response(BUSY, status=429, headers={"retry-after": "0.4"})

        up.then(*[busy] * 5)
    return go


@pytest.mark.parametrize("over", ["http", "socket"])
@pytest.mark.parametrize("how", ["stop", "gone", "both", "cancel"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_request_ends_at_every_stage_and_leaves_nothing_behind(stage, how, over):
    async def main():
        before = open_files()
        async with (
            provider() as up,
            gateway(
                upstream(up, transport="http", retries=1),
                limits=replace(QUICK, unattended_seconds=0.3),
            ) as gw,
        ):
            go = staged(stage, up, gw)
            body = {"model": "m", "input": "x", "previous_response_id": "resp_0"}
            if over == "http":
                reader, writer = await gw.talk()
                sent = encoded({**body, "stream": True})
                writer.write(
                    b"POST /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
                    b"content-length: %d\r\n\r\n" % len(sent) + sent
                )
            else:
                ws = await gw.socket()
                await ws.send_json({"type": "response.create", **body})
            await until(lambda: gw.world.running)
            await asyncio.sleep(0.05)
            running = list(gw.world.running)
            if how == "cancel":
                # As the server does with whoever has not ended when it closes.
                for connection in gw.gateway._listener._server.connections:
                    connection._task_handler.cancel()
            elif how != "stop":
                if over == "http":
                    writer.transport.abort()
                else:
                    ws._response.connection.transport.abort()
            if how in ("stop", "both"):
                for one in running:
                    one.stop("It is over.")
            await asyncio.sleep(0.02)
            go.set()
            gw.store.delay = None
            if how == "stop" and over == "http":
                told = await reader.read()
                assert told.count(b"HTTP/1.1 ") == 1
                if b"text/event-stream" in told:
                    assert told.endswith(b"\n\n\r\n0\r\n\r\n")
                    assert b"response.failed" in told or b"response.completed" in told
            elif how == "stop":
                end = await next_end(ws)
                assert end["type"] in ("error", "response.failed", "response.completed")
            await until(lambda: not gw.world.running)
            await until(lambda: not gw.store.claimed)
            assert len(gw.world.runs) == 0
            if over == "http":
                writer.close()
            else:
                await ws.close()
        assert open_files() <= before + 1

    run(main())


def test_the_same_upstream_connection_is_used_again_after_an_answer():
    async def work(up, gw):
        peers = set()

        async def answer(asked):
            peers.add(asked.request.transport.get_extra_info("peername"))
            return await streaming(f"resp_{len(up.asked)}", message())(asked)

        up.then(*[answer] * 6)
        for n in range(6):
            await (gw.stream(input="x") if n % 2 else gw.ask(input="x"))
        assert len(peers) <= 2

    served(work)


def test_a_client_that_does_not_read_holds_its_upstream_back():
    async def work(up, gw):
        said = 0

        async def floods(asked):
            nonlocal said
            told = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await told.prepare(asked.request)
            await told.write(sse(told_by("resp_1")[:2]))
            for n in range(2_000):
                delta = {"type": "response.output_text.delta", "sequence_number": n + 2}
                await told.write(sse([{**delta, "delta": "x" * 10_000}]))
                said = n
            return told

        up.then(floods)
        deaf = sockets.socket()
        deaf.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", gw.port))
        body = encoded({"model": "m", "input": "x", "stream": True})
        deaf.sendall(
            b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
            + body
        )
        first = -1
        while said != first:  # until nobody takes any more
            first = said
            await asyncio.sleep(0.2)
        assert 0 < said < 1_900
        deaf.close()
        await until(lambda: not gw.world.running)

    served(work, limits=replace(QUICK, unread_bytes=64 * 1024))


@pytest.mark.parametrize("transport", ["http", "websocket"])
def test_it_is_measured_how_long_an_upstream_is_silent_at_first(transport):
    async def work(up, gw):
        await gw.stream(input="x")
        (seconds,) = gw.world.metrics.first_byte_seconds.collect()
        counts = {
            one.name: one.value for one in seconds.samples if one.labels == {"upstream": "up"}
        }
        assert counts["lockstitch_upstream_first_byte_seconds_count"] == 1

    served(work, up_transport=transport)


def test_what_is_kept_says_who_asked_and_what_was_answered():
    async def work(up, gw):
        up.then(streaming("resp_1", message(), model="m-1"))
        await gw.stream(input="x", store=False)
        kept = await gw.world.exchanges.exchange("local", "resp_1")
        assert kept.asked.upstream == "up"
        assert kept.asked.model == "m"
        assert not kept.asked.stored
        assert kept.answered.ended_by == "response.completed"
        assert kept.answered.last == 5
        assert json.loads(bytes(kept.answered.response))["output"] == []

    served(work)
