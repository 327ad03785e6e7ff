"""A warm-up that no upstream is asked for: a response of the gateway's own."""

from __future__ import annotations

import pytest
from aiohttp import web

from tests.gateway.building import both, keys, next_end, refusing, run, saying, told_by, user

WARM = {"type": "response.create", "model": "m", "generate": False}


def served(work, **more):
    async def main():
        async with both(**{"up_transport": "http", **more}) as (up, gw):
            await work(up, gw)

    run(main())


def test_it_says_nothing_and_is_kept():
    async def work(up, gw):
        ws = await gw.socket()
        await ws.send_json({**WARM, "input": [user("a")], "instructions": "i", "stream_id": "l"})
        events = [(await ws.receive_json()) for _ in range(3)]
        assert [event["type"].rpartition(".")[2] for event in events] == [
            "created",
            "in_progress",
            "completed",
        ]
        assert {event["stream_id"] for event in events} == {"l"}
        assert [event["sequence_number"] for event in events] == [0, 1, 2]
        body = events[-1]["response"]
        assert body["output"] == []
        assert body["instructions"] == "i"
        kept = await gw.world.exchanges.exchange("local", body["id"])
        assert kept.asked.local
        assert kept.continues
        assert up.asked == []
        assert not gw.store.claimed
        await ws.close()

    served(work)


def test_several_warm_ups_behind_one_another_are_sent_together():
    async def work(up, gw):
        ws = await gw.socket()
        previous = {}
        for n in range(3):
            await ws.send_json({**WARM, "input": [user(str(n))], **previous})
            previous = {"previous_response_id": (await next_end(ws))["response"]["id"]}
        go = {**WARM, "input": [user("go")], "generate": True, **previous}
        await ws.send_json(go)
        assert (await next_end(ws))["type"] == "response.completed"
        sent = up.asked[0].json
        assert [item["content"] for item in sent["input"]] == ["0", "1", "2", "go"]
        assert "generate" not in sent
        await ws.close()

    served(work)


def test_a_warm_up_can_be_gone_on_from_without_a_word():
    async def work(up, gw):
        ws = await gw.socket()
        await ws.send_json({**WARM, "input": [user("a")]})
        warm = (await next_end(ws))["response"]["id"]
        await ws.send_json({**WARM, "generate": True, "input": [], "previous_response_id": warm})
        assert (await next_end(ws))["type"] == "response.completed"
        assert [item["content"] for item in up.asked[0].json["input"]] == ["a"]
        await ws.close()

    served(work)


def test_it_is_there_for_its_tenant_alone():
    async def work(up, gw):
        one, two = await gw.socket("lsk_a"), await gw.socket("lsk_b")
        await one.send_json({**WARM, "input": [user("secret")]})
        warm = (await next_end(one))["response"]["id"]
        for generate in (True, False):
            await two.send_json({**WARM, "generate": generate, "previous_response_id": warm})
            assert (await next_end(two))["type"] == "error"
        assert up.asked == []
        await one.close()
        await two.close()

    served(work, keys=keys("a", "b"), unknown_chains="pass")


@pytest.mark.parametrize("n", range(4))
def test_whatever_fails_in_the_journal_the_lane_goes_on(n):
    async def work(up, gw):
        ws = await gw.socket()
        gw.store.fail_nth(n)
        await ws.send_json({**WARM, "input": [user("a")]})
        end = await next_end(ws)
        gw.store.fails = lambda *_: False
        if end["type"] == "response.completed":
            assert await gw.world.exchanges.exchange("local", end["response"]["id"]) is not None
        await ws.send_json({**WARM, "input": [user("a")]})
        assert (await next_end(ws))["type"] == "response.completed"
        await ws.close()

    served(work)


def test_an_upstream_that_knows_warm_ups_is_asked():
    async def work(up, gw):
        ws = await gw.socket()
        up.then(refusing({"error": {"message": "no"}}))
        await ws.send_json({**WARM, "input": [user("a")]})
        assert (await next_end(ws))["type"] == "error"
        assert up.asked[0].json["generate"] is False
        await ws.close()

    served(work, up_transport="both")


def test_one_that_an_upstream_had_begun_with_begins_once_and_is_found_under_both_ids():
    async def work(up, gw):
        ws = await gw.socket()
        up.then(saying(told_by("resp_1")[:2], then="cut"))
        await ws.send_json({**WARM, "input": [user("a")]})
        begun = [await ws.receive_json() for _ in range(2)]
        assert {event["response"]["id"] for event in begun} == {"resp_1"}
        end = await next_end(ws)
        numbers = [event["sequence_number"] for event in (*begun, end)]
        assert (end["type"], numbers) == ("response.completed", [0, 1, 2])
        for name in ("resp_1", end["response"]["id"]):
            assert (await gw.world.exchanges.exchange("local", name)).asked.local
        await ws.close()

    async def main():
        async with both(up_transport="both", up_retries=2) as (up, gw):
            converse = up._converse

            async def once(request):
                """A WebSocket, and then no more: a balancer that is being changed."""
                up._converse = refuse
                return await converse(request)

            async def refuse(request):
                return web.Response(status=426)

            up._converse = once
            await work(up, gw)

    run(main())
