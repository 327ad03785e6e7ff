"""Answers that are heard to their end, or written on as they come."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from lockstitch.gateway import events
from lockstitch.gateway.deciding.refusals import Refusal
from lockstitch.gateway.lines import Asking, LineFailure
from lockstitch.gateway.responding import passing
from lockstitch.gateway.responding.passing import Whole, fetched, refused, target_of, told
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller
from tests.gateway.building import QUICK, both, provider, raw, run, until, upstream

ASKING = Asking(method="GET", target="/x", headers=())


def reached(work):
    async def main():
        async with provider() as up:
            one = Reached(upstream(up), QUICK, keyed=False)
            try:
                await work(up, one)
            finally:
                await one.close()

    run(main())


async def endless(asked):
    answer = web.StreamResponse()
    await answer.prepare(asked.request)
    while True:
        await answer.write(b"x" * 1000)
        await asyncio.sleep(0)


def test_an_answer_is_fetched_whole():
    async def work(up, one):
        up.then(raw(b"abc" * 50_000, status=418, kind="a/b"))
        whole = await fetched(one, ASKING)
        assert (whole.status, whole.body) == (418, b"abc" * 50_000)
        assert ("Content-Type", "a/b") in [(n.title(), v) for n, v in whole.headers]

    reached(work)


def test_an_answer_that_is_too_large_is_not_fetched_and_its_line_is_left(monkeypatch):
    monkeypatch.setattr(passing, "LARGEST_ANSWER_BYTES", 10_000)

    async def work(up, one):
        up.then(endless)
        with pytest.raises(LineFailure):
            await fetched(one, ASKING)
        await until(lambda: up.gone)

    reached(work)


def test_whoever_does_not_wait_any_more_leaves_the_line():
    async def work(up, one):
        up.then(endless)
        fetching = asyncio.create_task(fetched(one, ASKING))
        await until(lambda: up.asked)
        fetching.cancel()
        await asyncio.gather(fetching, return_exceptions=True)
        await until(lambda: up.gone)

    reached(work)


def test_an_answer_that_breaks_off_is_a_failure():
    async def work(up, one):
        async def cut(asked):
            answer = web.StreamResponse()
            await answer.prepare(asked.request)
            await answer.write(b"half")
            asked.request.transport.abort()

        up.then(cut)
        with pytest.raises(LineFailure):
            await fetched(one, ASKING)

    reached(work)


def test_a_stream_with_an_event_that_is_too_large_is_ended_and_left(monkeypatch):
    monkeypatch.setattr(events, "LARGEST_EVENT_BYTES", 10_000)

    async def main():
        async with both() as (up, gw):

            async def floods(asked):
                answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
                await answer.prepare(asked.request)
                await answer.write(b'data: {"a":1}\n\ndata: ')
                while True:
                    await answer.write(b"x" * 1000)
                    await asyncio.sleep(0)

            up.then(floods)
            async with gw.client.get(gw.url + "/stream") as answer:
                body = await answer.read()
            assert body.startswith(b'data: {"a":1}\n\n')
            assert b"xxx" not in body
            await until(lambda: up.gone)

    run(main())


def caller():
    return Caller(request_id="req_1", key=None, headers=[])


def test_a_whole_answer_is_told_with_its_headers_and_nothing_of_ours():
    whole = Whole(201, [("X-A", "1"), ("x-a", "2"), ("content-length", "999")], b"body")
    answer = told(caller(), whole)
    assert answer.status == 201
    assert answer.headers.getall("x-a") == ["1", "2"]
    assert answer.headers["lockstitch-request-id"] == "req_1"
    assert "content-type" not in answer.headers
    assert answer.headers.get("content-length", "4") == "4"


def test_a_no_is_told_in_the_form_of_the_provider():
    answer = refused(caller(), Refusal(status=400, message="No.", code="c"))
    assert answer.status == 400
    assert answer.headers.getall("content-type") == ["application/json"]


class Asked:
    def __init__(self, raw_path):
        self.raw_path = raw_path


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/v1/responses", "/responses"),
        ("/v1/responses?x=/v1/y", "/responses?x=/v1/y"),
        ("/v1/a%2Fb", "/a%2Fb"),
        ("/v1/v1/x", "/v1/x"),
    ],
)
def test_a_target_is_what_stands_behind_the_version(path, target):
    assert target_of(Asked(path)) == target
