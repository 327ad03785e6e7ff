"""The lanes of a client's WebSocket, on real sockets, with upstreams of both kinds."""

from __future__ import annotations

import asyncio
import gc
import json

import pytest
from aiohttp import WSMsgType, web
from msgspec.structs import replace

from lockstitch.gateway.doors.socket import Shared
from lockstitch.gateway.showing.streams import Log
from tests.gateway.building import (
    EACH_SECONDS,
    NOT_FOUND,
    QUICK,
    SECONDS,
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
    told_by,
    until,
    upstream,
    user,
)

TRANSPORTS = pytest.mark.parametrize("transport", ["http", "both"])


def create(**body):
    return {"type": "response.create", "model": "m", **body}


async def frames(ws, count):
    return [json.loads((await ws.receive(timeout=EACH_SECONDS)).data) for _ in range(count)]


@TRANSPORTS
def test_a_lane_hears_the_events_of_its_answer(transport):
    async def main():
        async with both(up_transport=transport) as (up, gw):
            events = told_by("resp_1", message(), call())
            up.then(saying(events))
            ws = await gw.socket()
            await ws.send_json(create(input="x"))
            assert await frames(ws, len(events)) == events
            await ws.close()

    run(main())


@TRANSPORTS
def test_each_lane_is_answered_in_order_and_lanes_side_by_side(transport):
    async def main():
        async with both(up_transport=transport) as (up, gw):
            running = most = 0
            order = []

            def slow(n):
                async def answer(asked):
                    nonlocal running, most
                    running += 1
                    most = max(most, running)
                    order.append(asked.json["input"])
                    await asyncio.sleep(0.03)
                    running -= 1
                    return await streaming(f"resp_{n}", message(str(n)))(asked)

                return answer

            up.then(*(slow(n) for n in range(12)))
            ws = await gw.socket()
            for n in range(12):
                await ws.send_json(create(input=f"{n % 4}:{n // 4}", stream_id=f"lane-{n % 4}"))
            ended = [await next_end(ws) for _ in range(12)]
            assert {end["type"] for end in ended} == {"response.completed"}
            assert 1 < most <= 4
            for lane in "0123":
                mine = [one for one in order if one.startswith(lane)]
                assert mine == [f"{lane}:0", f"{lane}:1", f"{lane}:2"]
            await ws.close()

    run(main())


def test_a_connection_has_so_many_lanes_and_no_more():
    async def main():
        async with both(up_transport="both") as (up, gw):
            ws = await gw.socket()
            for n in range(32):
                await ws.send_json(create(input="x", stream_id=f"l{n}"))
            for _ in range(32):
                assert (await next_end(ws))["type"] == "response.completed"
            await ws.send_json(create(input="x", stream_id="one_more"))
            end = await next_end(ws)
            assert end["error"]["code"] == "websocket_stream_limit_reached"
            await ws.send_json(create(input="x", stream_id="l3"))
            assert (await next_end(ws))["type"] == "response.completed"
            assert len(up.sockets) == 1
            await ws.close()

    run(main())


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 257, 5, ["a"], {"a": 1}, "a\n", True])
def test_a_stream_id_that_is_none_is_refused_and_the_connection_lives(name):
    async def main():
        async with both(up_transport="both") as (_, gw):
            ws = await gw.socket()
            await ws.send_json(create(input="x", stream_id=name))
            assert (await next_end(ws))["error"]["code"] == "invalid_stream_id"
            await ws.send_json(create(input="x"))
            assert (await next_end(ws))["type"] == "response.completed"
            await ws.close()

    run(main())


def test_frames_that_are_none_are_refused_and_the_connection_lives():
    async def main():
        async with both(up_transport="both") as (up, gw):
            ws = await gw.socket()
            bad = [
                "",
                "[]",
                "{",
                '{"type":5}',
                "null",
                "[" * 5000,
                '{"type":"response.create","input":5}',
                '{"type":"response.create","input":[5]}',
                '{"type":"response.create","model":5}',
                '{"type":"response.create","input":"x","input":"y"}',
                '{"type":"response.create","input":"\\ud800"}',
                '{"type":"nothing.known"}',
                "{}",
            ]
            for text in bad:
                await ws.send_str(text)
                assert (await next_end(ws))["type"] == "error", text
            await ws.send_bytes(b"\xff\xfe")
            assert (await next_end(ws))["type"] == "error"
            assert up.asked == []
            await ws.send_bytes(json.dumps(create(input="x")).encode())
            assert (await next_end(ws))["type"] == "response.completed"
            await ws.close()

    run(main())


@TRANSPORTS
def test_a_request_that_fails_in_the_journal_is_answered_and_the_lane_goes_on(transport):
    async def main():
        async with both(up_transport=transport) as (_, gw):
            ws = await gw.socket()
            gw.store.fails = lambda kind, name: kind == "read"
            await ws.send_json(create(input="x", previous_response_id="resp_9", stream_id="a"))
            await ws.send_json(create(input="y", stream_id="a"))
            first, second = await next_end(ws, "a"), await next_end(ws, "a")
            assert first["type"] == "error"
            assert first["status"] == 503
            assert second["type"] == "response.completed"
            await ws.close()

    run(main())


def test_a_warm_up_that_cannot_be_written_down_is_refused():
    async def main():
        async with both(up_transport="http") as (_, gw):
            ws = await gw.socket()
            gw.store.fails = lambda kind, name: kind in WRITES
            await ws.send_json(create(input="x", generate=False))
            assert (await next_end(ws))["type"] in ("error", "response.failed")
            gw.store.fails = lambda kind, name: False
            await ws.send_json(create(input="x", generate=False))
            end = await next_end(ws)
            assert end["type"] == "response.completed"
            await ws.send_json(create(input="y", previous_response_id=end["response"]["id"]))
            assert (await next_end(ws))["type"] == "response.completed"
            await ws.close()

    run(main())


def test_a_warm_up_that_no_upstream_knows_is_sent_with_the_first_request():
    async def main():
        async with both(up_transport="http") as (up, gw):
            ws = await gw.socket()
            await ws.send_json(create(input=[user("system")], generate=False))
            warm = (await next_end(ws))["response"]["id"]
            assert up.asked == []
            await ws.send_json(create(input=[user("go")], previous_response_id=warm))
            end = await next_end(ws)
            assert end["response"]["previous_response_id"] == warm
            sent = up.asked[-1].json
            assert "previous_response_id" not in sent
            assert [item["content"] for item in sent["input"]] == ["system", "go"]
            await ws.close()

    run(main())


def test_an_anchor_that_cannot_be_replayed_is_refused_in_the_upstreams_words():
    async def main():
        async with both(up_transport="both") as (up, gw):
            ws = await gw.socket()
            # It goes on from what was made without the gateway: the beginning is nowhere.
            up.then(streaming("resp_1", call()))
            await ws.send_json(create(input="x", previous_response_id="resp_0"))
            await next_end(ws)
            up.then(refusing(NOT_FOUND))
            await ws.send_json(create(input=[output()], previous_response_id="resp_1"))
            end = await next_end(ws)
            assert end["type"] == "error"
            assert end["status"] == 400
            assert end["error"] == NOT_FOUND["error"]
            await ws.close()

    run(main())


def test_a_lost_anchor_is_replayed_in_the_same_lane():
    async def main():
        async with both(up_transport="both") as (up, gw):
            ws = await gw.socket()
            up.then(streaming("resp_1", call()))
            await ws.send_json(create(input="x", stream_id="a"))
            await next_end(ws)
            up.then(refusing(NOT_FOUND), streaming("resp_2", message()))
            await ws.send_json(
                create(input=[output()], previous_response_id="resp_1", stream_id="a")
            )
            end = await next_end(ws)
            assert end["type"] == "response.completed"
            assert end["stream_id"] == "a"
            assert end["response"]["previous_response_id"] == "resp_1"
            assert [item["type"] for item in up.asked[-1].json["input"][-2:]] == [
                "function_call",
                "function_call_output",
            ]
            await ws.close()

    run(main())


def test_an_upstream_connection_that_is_lost_ends_every_lane_or_is_tried_again():
    async def main():
        async with both(up_transport="both", up_retries=1) as (up, gw):
            ws = await gw.socket()
            # One lane has said something, one has only begun, one nothing.
            begun = told_by("resp_a", message())
            up.then(saying(begun[:4]), saying(told_by("resp_b")[:2]), saying([]))
            for lane in "abc":
                await ws.send_json(create(input="x", stream_id=lane))
            await until(lambda: len(up.asked) == 3)
            await asyncio.sleep(0.05)
            await up.sockets[0].close()
            ends = [await next_end(ws) for _ in range(3)]
            found = {end["stream_id"]: end["type"] for end in ends}
            assert found == {
                "a": "response.failed",
                "b": "response.completed",
                "c": "response.completed",
            }
            assert len(up.sockets) == 2
            await ws.close()

    run(main())


def test_an_error_in_the_middle_of_an_answer_ends_it():
    async def main():
        async with both(up_transport="both") as (up, gw):
            ws = await gw.socket()
            events = told_by("resp_1", message())[:4]
            said = {"type": "error", "status": 500, **error_body("Out of luck.")}
            up.then(saying([*events, said]))
            await ws.send_json(create(input="x"))
            end = await next_end(ws)
            assert end["type"] in ("error", "response.failed")
            await ws.send_json(create(input="y"))
            end = await next_end(ws)
            if end["type"] == "response.failed":
                end = await next_end(ws)  # which makes the stream end in the form of its API
            assert end["type"] == "response.completed"
            await ws.close()

    run(main())


def test_late_frames_of_an_old_answer_do_not_reach_the_next():
    async def main():
        async with both(up_transport="both") as (up, gw):
            ws = await gw.socket()
            late = told_by("resp_old", call("call_late", "fc_late"))

            async def refuses_and_goes_on(asked):
                await saying(late[:2])(asked)
                await refusing(error_body("No."), 400)(asked)
                await asyncio.sleep(0.05)
                await saying(late[2:])(asked)

            async def slow(asked):
                await asyncio.sleep(0.2)
                await saying(told_by("resp_new", message("new")))(asked)

            up.then(refuses_and_goes_on, slow)
            await ws.send_json(create(input="x"))
            assert (await next_end(ws))["type"] in ("error", "response.failed")
            await ws.send_json(create(input="y"))
            end = await next_end(ws)
            assert end["type"] == "response.completed"
            assert end["response"]["id"] == "resp_new", end
            kept = await gw.world.exchanges.exchange("local", "resp_new")
            assert b"call_late" not in b"".join(kept.said)
            await ws.close()

    run(main())


def test_steering_goes_to_the_upstream_of_the_running_answer_and_its_answer_comes_back():
    async def main():
        async with both(up_transport="both") as (up, gw):
            ws = await gw.socket()
            go = asyncio.Event()

            async def answer(asked):
                events = told_by("resp_1", message())
                await saying(events[:3])(asked)
                await go.wait()
                await saying(events[3:])(asked)

            async def steered(asked):
                await asked.socket.send_json(
                    {"type": "response.steer.accepted", "stream_id": asked.json["stream_id"]}
                )
                go.set()

            up.then(answer, steered)
            await ws.send_json(create(input="x", stream_id="a"))
            await frames(ws, 3)
            steer = {"type": "response.steer", "stream_id": "a", "input": "faster"}
            await ws.send_json(steer)
            seen = await frames(ws, 1)
            assert seen[0]["type"] == "response.steer.accepted"
            assert (await next_end(ws))["type"] == "response.completed"
            assert up.asked[-1].json == steer
            # With nothing to steer it is refused, and the connection lives.
            await ws.send_json(steer)
            assert (await next_end(ws))["type"] == "error"
            await ws.close()

    run(main())


def test_steering_while_the_upstream_closes_does_not_break_the_client():
    async def main():
        async with both(up_transport="both", up_retries=0) as (up, gw):
            ws = await gw.socket()
            up.then(saying(told_by("resp_1", message())[:4]))
            await ws.send_json(create(input="x"))
            await frames(ws, 4)
            asyncio.get_running_loop().create_task(up.sockets[0].close())
            for _ in range(200):
                await ws.send_json({"type": "response.steer", "input": "x"})
                await asyncio.sleep(0)
            await until(lambda: up.open_sockets == 0)
            while (await next_end(ws))["type"] != "response.failed":
                pass
            # Refusals of what came too late may still be under way.
            await ws.send_json(create(input="y"))
            while (await next_end(ws))["type"] != "response.completed":
                pass
            await ws.close()

    run(main())


def test_a_frame_that_is_too_large_ends_the_connection_and_nothing_else():
    async def main():
        async with both(up_transport="both", limits=replace(QUICK, body_bytes=10_000)) as (up, gw):
            ws = await gw.socket()
            await ws.send_json(create(input="x" * 20_000))
            message_ = await ws.receive(timeout=EACH_SECONDS)
            assert message_.type in (WSMsgType.CLOSE, WSMsgType.CLOSED)
            assert ws.close_code == 1009
            assert up.asked == []
            assert (await gw.ask(input="x"))["http"] == 200

    run(main())


@TRANSPORTS
def test_answers_whose_client_has_gone_are_heard_to_their_end(transport):
    async def main():
        before = open_files()
        async with both(up_transport=transport) as (up, gw):
            ws = await gw.socket()
            for n in range(3):
                up.then(saying(told_by(f"resp_{n}", message(), call()), pace=0.02))
                await ws.send_json(create(input="x", stream_id=f"l{n}"))
            await until(lambda: len(up.asked) == 3)
            await asyncio.sleep(0.05)
            ws._response.connection.transport.abort()
            for _ in range(1000):
                kept = [await gw.world.exchanges.exchange("local", f"resp_{n}") for n in range(3)]
                if all(one is not None and one.continues for one in kept):
                    break
                await asyncio.sleep(0.01)
            assert all(one is not None and one.continues for one in kept)
            await until(lambda: not gw.world.running)
            await until(lambda: up.open_sockets == 0)
            assert not gw.store.claimed
            await ws.close()
        assert open_files() <= before + 1

    run(main())


@TRANSPORTS
def test_a_long_connection_does_not_keep_the_answers_it_gave(transport):
    async def main():
        async with both(up_transport=transport, limits=replace(QUICK, events_kept_bytes=0)) as (
            up,
            gw,
        ):
            ws = await gw.socket()
            for n in range(15):
                up.then(streaming(f"resp_{n}", message("x" * 2000)))
                await ws.send_json(create(input="x"))
                await next_end(ws)
            gc.collect()
            logs = [one for one in gc.get_objects() if isinstance(one, Log) and one.size]
            assert len(logs) <= 3
            await ws.close()

    run(main())


@TRANSPORTS
def test_a_reconnecting_upstream_leaves_nothing_behind(transport):
    async def main():
        async with both(up_transport="both", up_retries=0) as (up, gw):
            ws = await gw.socket()
            for n in range(6):
                up.then(saying(told_by(f"resp_{n}", message())[:4], then="cut"))
                await ws.send_json(create(input="x"))
                assert (await next_end(ws))["type"] == "response.failed"
            gc.collect()
            left = [one for one in gc.get_objects() if isinstance(one, Shared)]
            assert len(left) <= 2
            await ws.close()

    run(main())


def test_a_connection_that_is_idle_does_not_hold_up_the_end_of_the_gateway():
    async def main():
        async with both(up_transport="both") as (_, gw):
            ws = await gw.socket()
            await ws.send_json(create(input="x"))
            await next_end(ws)
            began = asyncio.get_running_loop().time()
            reading = asyncio.create_task(ws.receive(timeout=EACH_SECONDS))
            await gw.gateway.drain(EACH_SECONDS)
            assert asyncio.get_running_loop().time() - began < EACH_SECONDS / 2
            closed = await reading
            assert closed.type in (WSMsgType.CLOSE, WSMsgType.CLOSED, WSMsgType.CLOSING)

    run(main())


def test_a_gateway_that_drains_takes_no_more_requests_on_a_connection():
    async def main():
        async with both(up_transport="both") as (up, gw):
            ws = await gw.socket()
            up.then(saying(told_by("resp_1", message()), pace=0.05))
            await ws.send_json(create(input="x", stream_id="a"))
            await frames(ws, 1)
            draining = asyncio.create_task(gw.gateway.drain(3.0))
            await asyncio.sleep(0.02)
            asked = len(up.asked)
            await ws.send_json(create(input="y", stream_id="b"))
            told = []
            while (message_ := await ws.receive(timeout=EACH_SECONDS)).type is WSMsgType.TEXT:
                event = json.loads(message_.data)
                told.append((event["stream_id"], event["type"]))
            assert message_.type is WSMsgType.CLOSE
            assert ("a", "response.completed") in told
            assert {kind for lane, kind in told if lane == "b"} <= {"error"}
            assert len(up.asked) == asked
            await draining

    run(main())


def test_a_key_that_was_taken_back_is_not_taken_on_an_open_connection():
    async def main():
        async with both(up_transport="both", keys=keys("a", "b")) as (up, gw):
            ws = await gw.socket("lsk_a")
            await ws.send_json(create(input="x"))
            assert (await next_end(ws))["type"] == "response.completed"
            config = replace(gw.world.config, keys=keys("b"))
            await gw.gateway.reload(config)
            asked = len(up.asked)
            await ws.send_json(create(input="y"))
            message_ = await ws.receive(timeout=EACH_SECONDS)
            refused = message_.type is WSMsgType.TEXT and json.loads(message_.data)
            assert message_.type is not WSMsgType.TEXT or refused["type"] == "error", refused
            assert len(up.asked) == asked
            await ws.close()

    run(main())


def test_a_key_has_its_limits_on_a_connection():
    async def main():
        async with both(up_transport="both", keys=keys("a", concurrent=1)) as (up, gw):
            ws = await gw.socket("lsk_a")
            up.then(saying(told_by("resp_1", message()), pace=0.03))
            await ws.send_json(create(input="x", stream_id="a"))
            await frames(ws, 1)
            await ws.send_json(create(input="x", stream_id="b"))
            end = await next_end(ws, "b")
            assert end["status"] == 429
            assert (await next_end(ws, "a"))["type"] == "response.completed"
            await ws.send_json(create(input="x", stream_id="b"))
            assert (await next_end(ws, "b"))["type"] == "response.completed"
            await ws.close()

    run(main())


def test_what_another_key_made_is_not_there_on_a_connection():
    async def main():
        for transport in ("http", "both"):
            async with both(up_transport=transport, keys=keys("a", "b"), unknown_chains="pass") as (
                up,
                gw,
            ):
                up.then(streaming("resp_1", call()))
                await gw.ask(input="x", key="lsk_a")
                asked = len(up.asked)
                ws = await gw.socket("lsk_b")
                await ws.send_json(create(input=[output()], previous_response_id="resp_1"))
                end = await next_end(ws)
                assert end["error"]["code"] == "previous_response_not_found"
                assert len(up.asked) == asked
                await ws.close()

    run(main())


def test_a_handshake_that_the_upstream_refuses_is_told_with_its_status():
    async def main():
        async def no(request):
            return web.json_response(error_body("Incorrect API key provided."), status=401)

        async with both(up_transport="websocket", up_retries=0) as (up, gw):
            up._converse = no
            ws = await gw.socket()
            await ws.send_json(create(input="x"))
            end = await next_end(ws)
            assert end["type"] == "error"
            assert end["status"] == 401
            await ws.close()

    run(main())


def test_too_many_requests_in_a_lane_are_refused_and_the_others_answered():
    async def main():
        async with both(up_transport="both") as (up, gw):
            go = asyncio.Event()

            async def waits(asked):
                await go.wait()
                return await streaming("resp_0", message())(asked)

            up.then(waits)
            ws = await gw.socket()
            await ws.send_json(create(input="x"))
            await until(lambda: len(up.asked) == 1)  # it waits no more
            for _ in range(69):
                await ws.send_json(create(input="x"))
            refused = [await next_end(ws) for _ in range(5)]
            assert {one["status"] for one in refused} == {429}
            go.set()
            ended = [await next_end(ws) for _ in range(65)]
            assert {one["type"] for one in ended} == {"response.completed"}
            await ws.close()

    run(main())


def test_requests_that_wait_are_no_larger_together_than_one_may_be():
    async def main():
        async with both(up_transport="both", limits=replace(QUICK, body_bytes=50_000)) as (up, gw):
            go = asyncio.Event()

            async def waits(asked):
                await go.wait()
                return await streaming("resp_0", message())(asked)

            up.then(waits)
            ws = await gw.socket()
            await ws.send_json(create(input="x"))
            await until(lambda: len(up.asked) == 1)
            for _ in range(3):
                await ws.send_json(create(input="x" * 20_000))
            refused = await next_end(ws)
            assert refused["status"] == 429
            assert "bytes in requests that wait" in refused["error"]["message"]
            go.set()
            ended = [await next_end(ws) for _ in range(3)]
            assert {one["type"] for one in ended} == {"response.completed"}
            await ws.send_json(create(input="x" * 20_000))
            assert (await next_end(ws))["type"] == "response.completed"
            await ws.close()

    run(main())


async def flood(ws, frame, count):
    """More than anybody reads: it is held back in the middle of a frame, any time."""
    for _ in range(count):
        await ws.send_json(frame)


def test_a_client_steers_no_faster_than_its_upstream_reads():
    async def main():
        listening = asyncio.Event()
        heard = []
        events = told_by("resp_1", message())

        async def converse(request):
            ws = web.WebSocketResponse(max_msg_size=0)
            await ws.prepare(request)
            await ws.receive()
            for event in events[:3]:
                await ws.send_json(event)
            await listening.wait()
            while len(heard) < 500:
                heard.append(json.loads((await ws.receive()).data)["type"])
            for event in events[3:]:
                await ws.send_json(event)
            await ws.receive()
            return ws

        limits = replace(QUICK, unread_bytes=20_000, silence_seconds=SECONDS)
        async with both(up_transport="both", limits=limits) as (up, gw):
            up._converse = converse
            ws = await gw.socket()
            await ws.send_json(create(input="x"))
            assert await frames(ws, 3) == events[:3]
            (session,) = gw.world.sessions
            (shared,) = session.shared.values()
            frame = {"type": "response.steer", "input": "x" * 100_000}
            flooding = asyncio.create_task(flood(ws, frame, 500))
            await until(lambda: session.is_full)
            await asyncio.sleep(0.3)
            assert not flooding.done()
            assert shared.backlog < limits.unread_bytes + 2 * 101_000
            listening.set()
            await flooding
            assert await frames(ws, len(events) - 3) == events[3:]
            assert heard == ["response.steer"] * 500
            await ws.close()

    run(main())


def test_a_client_that_does_not_read_what_it_is_refused_with_is_not_read_either():
    async def main():
        limits = replace(QUICK, unread_bytes=20_000)
        async with both(up_transport="both", limits=limits) as (_, gw):
            ws = await gw.socket()
            frame = {"type": "x" * 100_000}
            flooding = asyncio.create_task(flood(ws, frame, 500))
            await until(lambda: gw.world.sessions)
            (session,) = gw.world.sessions
            await until(lambda: session.is_full)
            await asyncio.sleep(0.3)
            assert not flooding.done()
            assert session.client.backlog < limits.unread_bytes + 2 * 101_000
            for _ in range(500):
                assert (await next_end(ws))["type"] == "error"
            await flooding
            await ws.send_json(create(input="x"))
            assert (await next_end(ws))["type"] == "response.completed"
            await ws.close()

    run(main())


def test_a_client_that_was_held_back_is_read_again_when_its_upstream_is_gone():
    async def main():
        leaving = asyncio.Event()

        async def converse(request):
            ws = web.WebSocketResponse(max_msg_size=0)
            await ws.prepare(request)
            await ws.receive()
            await ws.send_json(told_by("resp_1", message())[0])
            await leaving.wait()
            request.transport.abort()
            return ws

        limits = replace(QUICK, unread_bytes=20_000, silence_seconds=SECONDS)
        async with both(up_transport="both", up_retries=0, limits=limits) as (up, gw):
            up._converse = converse
            ws = await gw.socket()
            await ws.send_json(create(input="x"))
            await frames(ws, 1)
            (session,) = gw.world.sessions
            frame = {"type": "response.steer", "input": "x" * 100_000}
            flooding = asyncio.create_task(flood(ws, frame, 200))
            await until(lambda: session.is_full)
            assert not flooding.done()
            leaving.set()
            # Nothing takes the rest, and that may be told before the response has ended.
            while (await next_end(ws))["type"] != "response.failed":
                pass
            await flooding
            await ws.close()
            await until(lambda: not gw.world.sessions)

    run(main())


def test_a_handshake_that_is_none_is_refused():
    async def main():
        async with both(up_transport="both") as (up, gw):
            for path in (b"/v1/responses", b"/v1/realtime"):
                reader, writer = await gw.talk()
                writer.write(
                    b"GET " + path + b" HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\n"
                    b"connection: upgrade\r\n\r\n"
                )
                assert b" 400 " in await reader.readline()
                writer.close()
            await until(lambda: up.open_sockets == 0)

    run(main())


def test_frames_that_are_refused_use_up_no_lane():
    async def main():
        async with both(up_transport="both") as (_, gw):
            ws = await gw.socket()
            for n in range(40):
                await ws.send_json({"type": "response.steer", "stream_id": f"s{n}", "input": "x"})
                assert (await next_end(ws))["type"] == "error"
            await ws.send_json(create(input="x", stream_id="real"))
            assert (await next_end(ws))["type"] == "response.completed"
            await ws.close()

    run(main())


@pytest.mark.parametrize(
    "path",
    [
        *("/responses/", "//responses", "/responses//", "/responses/resp_1", "/%72esponses/"),
        *("/Responses", "/responses;a", "/%2572esponses", "/%5cresponses"),
    ],
)
def test_no_spelling_of_the_path_leads_past_the_gateway(path):
    async def main():
        async with both(up_transport="both", keys=keys("a", "b"), unknown_chains="refuse") as (
            up,
            gw,
        ):
            up.then(streaming("resp_1", call()))
            await gw.ask(input="x", key="lsk_a")
            asked = len(up.asked)
            reader, writer = await gw.talk()
            writer.write(
                f"GET /v1{path} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\n"
                "connection: upgrade\r\nauthorization: Bearer lsk_b\r\n"
                "sec-websocket-version: 13\r\n"
                "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
            )
            await reader.readuntil(b"\r\n\r\n")
            # A frame whose mask is zero.
            text = json.dumps(create(input=[output()], previous_response_id="resp_1")).encode()
            head = (
                b"\x81" + bytes([0x80 | len(text)])
                if len(text) < 126
                else (b"\x81\xfe" + len(text).to_bytes(2, "big"))
            )
            writer.write(head + bytes(4) + text)
            await asyncio.sleep(0.1)
            assert len(up.asked) == asked
            writer.close()

    run(main())


# --- an upstream that does not stream ----------------------------------------------------------


@pytest.mark.parametrize("lane", [None, "a"])
def test_a_response_that_came_whole_is_told_in_events_kept_and_gone_on_from(lane):
    named = {} if lane is None else {"stream_id": lane}

    async def main():
        async with both() as (up, gw):
            await work(up, gw)

    async def work(up, gw):
        whole = encoded(response("resp_1", call(), message("hi")))
        up.then(raw(whole, kind="application/json"))
        ws = await gw.socket()
        await ws.send_json(create(input="x", **named))
        told = await frames(ws, 4)
        assert [event["type"] for event in told] == [
            "response.created",
            "response.output_item.done",
            "response.output_item.done",
            "response.completed",
        ]
        assert {event.get("stream_id") for event in told} == {lane}
        url = gw.url + "/responses/resp_1?stream=true&starting_after=1"
        async with gw.client.get(url) as again:
            rest = events_in(await again.read())
        assert [event["sequence_number"] for event in rest] == [2, 3]
        up.then(refusing(NOT_FOUND, 404), raw(sse(told_by("resp_2", message("on")))))
        asked = {"previous_response_id": "resp_1", "input": [output()]}
        await ws.send_json(create(**asked, **named))
        assert (await next_end(ws))["response"]["id"] == "resp_2"
        sent = up.asked[-1].json["input"]
        kinds = [item.get("type") for item in sent[1:]]
        assert kinds == ["function_call", "message", "function_call_output"]
        await ws.close()

    run(main())


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"<html>", "text/html", "neither a stream"),
        (b'{"id":"resp_1","status":"queued"}', "application/json", "neither a stream"),
        (b'{"error":{"message":"too long","code":"x"}}', "application/json", "too long"),
    ],
)
def test_what_is_neither_a_stream_nor_a_response_is_an_error_with_words(body, kind, words):
    async def main():
        async with both() as (up, gw):
            await work(up, gw)

    async def work(up, gw):
        up.then(raw(body, kind=kind))
        ws = await gw.socket()
        await ws.send_json(create(input="x"))
        (told,) = await frames(ws, 1)
        assert (told["type"], told["status"]) == ("error", 502)
        assert words in told["error"]["message"]
        assert len(up.asked) == 1
        await ws.close()

    run(main())


# --- another configuration ---------------------------------------------------------------------


def test_an_upstream_that_was_moved_is_asked_at_its_new_address_on_an_open_connection():
    async def main():
        async with (
            provider() as old,
            provider() as new,
            gateway(upstream(old, transport="both")) as gw,
        ):
            ws = await gw.socket()
            old.then(streaming("resp_1", message("hi")))
            await ws.send_json(create(input="x"))
            await next_end(ws)
            moved = upstream(new, transport="both")
            await gw.gateway.reload(replace(gw.world.config, upstreams=(moved,)))
            new.then(refusing(NOT_FOUND, 404), streaming("resp_2", message("on")))
            await ws.send_json(create(input="y", previous_response_id="resp_1"))
            assert (await next_end(ws))["response"]["id"] == "resp_2"
            assert len(old.asked) == 1
            assert [item["role"] for item in new.asked[-1].json["input"]] == [
                *("user", "assistant", "user")
            ]
            await until(lambda: old.open_sockets == 0)
            (session,) = gw.world.sessions
            assert len(session.flow._lines) == 1  # of the old one nothing is left
            await ws.close()

    run(main())


def test_a_configuration_that_leaves_an_upstream_as_it_is_leaves_its_connection_open():
    async def main():
        async with both(up_transport="both") as (up, gw):
            ws = await gw.socket()
            for n in range(2):
                await ws.send_json(create(input="x"))
                await next_end(ws)
                await gw.gateway.reload(gw.world.config)
                assert len(up.sockets) == 1, n
            await ws.close()

    run(main())


def test_an_upstream_that_was_moved_says_its_last_answer_to_the_end():
    async def main():
        async with (
            provider() as old,
            provider() as new,
            gateway(upstream(old, transport="both")) as gw,
        ):
            ws = await gw.socket()
            go_on = asyncio.Event()
            events = told_by("resp_1", message("hi"))

            async def slow(asked):
                for event in events[:3]:
                    await asked.socket.send_json({**event, "stream_id": "a"})
                await go_on.wait()
                for event in events[3:]:
                    await asked.socket.send_json({**event, "stream_id": "a"})

            old.then(slow)
            await ws.send_json(create(input="x", stream_id="a"))
            await frames(ws, 3)
            moved = upstream(new, transport="both")
            await gw.gateway.reload(replace(gw.world.config, upstreams=(moved,)))
            await ws.send_json(create(input="y", stream_id="b"))
            assert (await next_end(ws, "b"))["type"] == "response.completed"
            go_on.set()
            assert (await next_end(ws, "a"))["response"]["id"] == "resp_1"
            assert (len(old.asked), len(new.asked)) == (1, 1)
            await until(lambda: old.open_sockets == 0)
            await ws.close()

    run(main())
