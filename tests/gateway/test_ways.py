"""How an upstream is asked: by a POST, or by a frame on a connection of its own."""

from __future__ import annotations

import pytest

from lockstitch.gateway.deciding.asked import NotARequest
from lockstitch.gateway.lines import LineFailure
from lockstitch.gateway.responding.ways import OverHttp, OverSocket
from lockstitch.gateway.upstreams import Reached
from tests.gateway.building import (
    QUICK,
    encoded,
    message,
    provider,
    run,
    saying,
    streaming,
    told_by,
    until,
    upstream,
    user,
)
from tests.gateway.wire.playing import Heard

BODY = encoded({"model": "m", "input": [user()], "stream": True})


class Framed(Heard):
    """Hears frames, which have no head."""

    def heard(self, data):
        self.pieces.append(data)


def reached(work, **more):
    async def main():
        async with provider() as up:
            one = Reached(upstream(up, **more), QUICK, keyed=False)
            try:
                await work(up, one)
            finally:
                await one.close()

    run(main())


def test_a_body_is_posted_as_it_is():
    async def work(up, one):
        heard = Heard()
        await OverHttp("/responses?a=b").ask(one, BODY, [("x", "1")], heard)
        await heard.over()
        assert heard.is_whole
        assert up.asked[0].body == BODY
        assert up.asked[0].request.raw_path == "/v1/responses?a=b"

    reached(work)


def test_a_frame_is_posted_as_a_body_that_is_streamed():
    async def work(up, one):
        body = {"model": "m", "input": "x", "store": False}
        frame = encoded({"type": "response.create", "stream_id": "a", **body})
        heard = Heard()
        given = [("Content-Type", "text/plain"), ("content-length", "999"), ("x", "1")]
        await OverHttp(from_frame=True).ask(one, frame, given, heard)
        await heard.over()
        assert up.asked[0].json == {"model": "m", "input": "x", "store": False, "stream": True}
        assert up.asked[0].request.headers.getall("content-type") == ["application/json"]

    reached(work)


def test_a_warm_up_has_no_form_as_a_post():
    async def work(up, one):
        frame = encoded({"type": "response.create", "model": "m", "generate": False})
        with pytest.raises(NotARequest):
            await OverHttp(from_frame=True).ask(one, frame, [], Heard())
        assert up.asked == []

    reached(work)


def test_a_body_is_sent_as_a_frame_and_its_connection_left_afterwards():
    async def work(up, one):
        events = told_by("resp_1", message())
        up.then(saying(events))
        heard = Framed()
        line = await OverSocket().ask(one, BODY, [("content-type", "x"), ("x", "1")], heard)
        await until(lambda: len(heard.pieces) == len(events))
        assert up.asked[0].json == {"type": "response.create", "model": "m", "input": [user()]}
        line.pause()
        line.resume()
        line.leave()
        line.leave()
        await until(lambda: up.open_sockets == 0)
        assert not heard.is_over

    reached(work, transport="websocket")


def test_a_connection_that_is_lost_breaks_the_answer():
    async def work(up, one):
        up.then(saying(told_by("resp_1", message())[:3], then="cut"))
        heard = Framed()
        await OverSocket().ask(one, BODY, [], heard)
        await heard.over()
        assert isinstance(heard.failure, LineFailure)
        assert heard.failure.sent

    reached(work, transport="websocket")


def test_what_has_no_form_as_a_frame_opens_no_connection():
    async def work(up, one):
        with pytest.raises(NotARequest):
            await OverSocket().ask(one, encoded({"model": "m", "background": True}), [], Framed())
        assert up.sockets == []

    reached(work, transport="websocket")


def test_an_upstream_that_is_not_there_was_not_asked():
    async def work(up, one):
        nowhere = Reached(
            upstream(up, url="http://127.0.0.1:1/v1", connect_seconds=1.0), QUICK, keyed=False
        )
        for way in (OverHttp(), OverSocket()):
            with pytest.raises(LineFailure) as failed:
                await way.ask(nowhere, BODY, [], Heard())
            assert not failed.value.sent
        await nowhere.close()

    reached(work)


def test_answers_come_over_both_ways_alike():
    async def work(up, one):
        up.then(streaming("resp_1", message()), streaming("resp_1", message()))
        heard, framed = Heard(), Framed()
        await OverHttp().ask(one, BODY, [], heard)
        await heard.over()
        line = await OverSocket().ask(one, BODY, [], framed)
        await until(lambda: len(framed.pieces) == 6)
        line.leave()
        assert all(piece in heard.body for piece in framed.pieces)

    reached(work, transport="both")
