"""One try at an answer: what it shows, what it writes down, and how it ends."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core.facts import Ending
from lockstitch.gateway.deciding.retrying import Shown
from lockstitch.gateway.keeping.journal import Exchanges
from lockstitch.gateway.keeping.notes import AskedNote
from lockstitch.gateway.keeping.recordings import Recording
from lockstitch.gateway.lines import LineFailure
from lockstitch.gateway.responding import passing
from lockstitch.gateway.responding.attempts import Attempt, Broken, Ended, Refused
from lockstitch.gateway.responding.passing import Whole
from lockstitch.gateway.showing.streams import Stream
from tests.gateway.building import (
    Faulty,
    call,
    encoded,
    error_body,
    events_in,
    message,
    response,
    run,
    sse,
    told_by,
    user,
)
from tests.generated import examples

SSE = [("Content-Type", "text/event-stream; charset=utf-8")]


class Seen:
    framed = False
    passes = None

    def __init__(self):
        self.head = None
        self.body = b""
        self.frames = []

    def begin(self, status, headers):
        assert self.head is None
        self.head = (status, headers)

    def show(self, block, events):
        assert self.head is not None
        self.body += block or b""
        self.frames += [json.loads(heard.data) for heard in events]

    def end(self):
        """Nothing more is shown."""


class Trying:
    """An attempt, and all that it touches."""

    def __init__(self, *, framed=False, restored=None, stream=None, visible=True):
        self.seen = Seen()
        self.store = Faulty()
        self.exchanges = Exchanges(self.store)
        note = AskedNote(upstream="up")
        self.recording = Recording(self.exchanges, "t", note, [encoded(user())])
        self.stream = stream or Stream(self.seen, visible=visible)
        self.attempt = Attempt(self.stream, self.recording, framed=framed, restored=restored)

    async def over(self):
        outcome = await self.attempt.outcome
        self.recording.cut()
        await self.recording.close()
        return outcome


EVENTS = told_by("resp_1", message(), call(), message("more", "msg_2"))


@settings(max_examples=examples(25))
@given(st.lists(st.integers(1, 400), max_size=12))
def test_whatever_the_pieces_all_is_shown_as_it_came_and_written_down(sizes):
    async def main():
        one = Trying()
        body = sse(EVENTS)
        one.attempt.begun(200, SSE)
        at = 0
        for size in sizes:
            one.attempt.heard(body[at : at + size])
            at += size
        one.attempt.heard(body[at:])
        outcome = await one.over()
        assert isinstance(outcome, Ended)
        await one.stream.clear()
        assert one.seen.body == body
        kept = await one.exchanges.exchange("t", "resp_1")
        assert kept.ending is Ending.COMPLETED
        said = [message(), call(), message("more", "msg_2")]
        assert [json.loads(item) for item in kept.said] == said
        assert kept.answered.numbers == [4, 7, 10]
        assert one.store.claimed == {}

    run(main(), collect=False)


def test_frames_are_shown_and_written_down():
    async def main():
        one = Trying(framed=True)
        for event in EVENTS:
            one.attempt.heard(encoded(event))
        assert isinstance(await one.over(), Ended)
        await one.stream.clear()
        assert one.seen.frames == EVENTS

    run(main())


@pytest.mark.parametrize("n", range(len(EVENTS)))
@pytest.mark.parametrize("how", ["ended", "broke"])
def test_an_answer_that_breaks_off_anywhere_is_broken_and_known_to_be(n, how):
    async def main():
        one = Trying()
        one.attempt.begun(200, SSE)
        one.attempt.heard(sse(EVENTS[:n]) + sse(EVENTS[n : n + 1])[:-3])
        if how == "ended":
            one.attempt.ended()
        else:
            one.attempt.broke(LineFailure("gone", sent=True))
        outcome = await one.over()
        assert isinstance(outcome, Broken)
        assert outcome.failure.sent
        wanted = Shown.NOTHING if n == 0 else Shown.BEGUN if n <= 2 else Shown.MORE
        assert one.stream.shown is wanted
        await one.stream.clear()
        assert one.seen.body == sse(EVENTS[:n])
        kept = await one.exchanges.exchange("t", "resp_1")
        assert kept is None if n == 0 else kept.ending is Ending.CUT
        assert one.store.claimed == {}

    run(main())


@pytest.mark.parametrize("framed", [False, True])
def test_an_error_before_anything_was_said_is_not_shown(framed):
    async def main():
        one = Trying(framed=framed)
        error = {"type": "error", **error_body("Slow down.", "rate_limit_exceeded")}
        if framed:
            for event in [*EVENTS[:2], error]:
                one.attempt.heard(encoded(event))
        else:
            one.attempt.begun(200, SSE)
            one.attempt.heard(sse([*EVENTS[:2], error]))
        outcome = await one.over()
        assert isinstance(outcome, Refused)
        assert outcome.said.code == "rate_limit_exceeded"
        assert one.seen.frames == EVENTS[:2]
        assert one.stream.shown is Shown.BEGUN

    run(main())


def test_a_failure_before_anything_was_said_is_not_shown_and_after_it_is():
    async def main():
        failed = {
            "type": "response.failed",
            "sequence_number": 2,
            "response": response("resp_1", status="failed", error={"code": "c", "message": "m"}),
        }
        one = Trying()
        one.attempt.begun(200, SSE)
        one.attempt.heard(sse([*EVENTS[:2], failed]))
        outcome = await one.over()
        assert isinstance(outcome, Refused)
        assert outcome.said.code == "c"
        two = Trying()
        two.attempt.begun(200, SSE)
        two.attempt.heard(sse([*EVENTS[:4], failed]))
        assert isinstance(await two.over(), Ended)
        await two.stream.clear()
        assert two.seen.frames[-1] == failed
        kept = await two.exchanges.exchange("t", "resp_1")
        assert kept.ending is Ending.FAILED

    run(main())


def test_a_second_try_does_not_begin_again():
    async def main():
        one = Trying()
        one.attempt.begun(200, SSE)
        one.attempt.heard(sse(EVENTS[:2]))
        one.attempt.broke(LineFailure("gone", sent=True))
        await one.over()
        two = Trying(stream=one.stream)
        two.attempt.begun(200, SSE)
        two.attempt.heard(sse(told_by("resp_2", message())))
        assert isinstance(await two.over(), Ended)
        await one.stream.clear()
        shown = [event["type"] for event in one.seen.frames]
        assert shown.count("response.created") == 1
        assert shown[-1] == "response.completed"

    run(main())


def test_what_the_client_asked_is_restored_in_every_event_that_tells_it():
    async def main():
        one = Trying(restored={"previous_response_id": "resp_0", "store": True})
        one.attempt.begun(200, SSE)
        one.attempt.heard(sse(EVENTS))
        await one.over()
        await one.stream.clear()
        for event in events_in(one.seen.body):
            if "response" in event:
                assert event["response"]["previous_response_id"] == "resp_0"
                assert event["response"]["store"] is True

    run(main())


def test_a_whole_answer_is_told_and_not_shown():
    async def main():
        for status, kind in [(200, "application/json"), (400, "text/event-stream"), (500, None)]:
            one = Trying()
            one.attempt.begun(status, [("content-type", kind)] if kind else [])
            one.attempt.heard(b'{"a"')
            one.attempt.heard(b":1}")
            one.attempt.ended()
            outcome = await one.over()
            assert isinstance(outcome, Whole)
            assert (outcome.status, outcome.body) == (status, b'{"a":1}')
            assert one.seen.head is None

    run(main())


def test_answers_that_are_too_large_are_broken(monkeypatch):
    monkeypatch.setattr(passing, "LARGEST_ANSWER_BYTES", 100)

    async def main():
        one = Trying()
        one.attempt.begun(200, [("content-type", "application/json")])
        for _ in range(30):
            one.attempt.heard(b"x" * 10)
        assert isinstance(await one.over(), Broken)

    run(main())


def test_what_comes_after_the_end_is_not_heard():
    async def main():
        one = Trying()
        one.attempt.begun(200, SSE)
        one.attempt.heard(sse(EVENTS) + b"data: [DONE]\n\n" + sse(told_by("resp_9", message())))
        one.attempt.heard(sse(told_by("resp_9", message())))
        one.attempt.ended()
        one.attempt.broke(LineFailure("late", sent=True))
        assert isinstance(await one.over(), Ended)
        await one.stream.clear()
        assert one.seen.body == sse(EVENTS)
        assert await one.exchanges.exchange("t", "resp_9") is None

    run(main())


def test_comments_keep_a_client_awake_once_its_stream_began():
    async def main():
        one = Trying()
        one.attempt.begun(200, SSE)
        one.attempt.heard(b": early\n\n")
        assert one.seen.head is None
        one.attempt.heard(sse(EVENTS[:1]))
        one.attempt.heard(b": ping\n\n")
        assert one.seen.body == sse(EVENTS[:1]) + b": ping\n\n"
        one.attempt.ended()
        await one.over()

    run(main())


hostile = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                [
                    "response.created",
                    "response.in_progress",
                    "response.output_item.done",
                    "response.completed",
                    "response.failed",
                    "error",
                    "x",
                ]
            )
        },
        optional={
            "response": st.sampled_from([None, 5, {}, {"id": 5}, {"id": "r"}, {"output": [5]}, []]),
            "item": st.sampled_from([None, 5, {}, [], {"type": 5}, call(), message(), "x"]),
            "output_index": st.sampled_from([None, "x", -1, 0, 1, 5, 1e9, True]),
            "sequence_number": st.sampled_from([None, "x", -1, 0, 2**70]),
            "error": st.sampled_from([None, 5, "x", {"code": 5}]),
        },
    ),
    max_size=8,
)


@settings(max_examples=examples(25))
@given(hostile, st.booleans())
def test_events_of_any_shape_are_heard_without_an_error(events, framed):
    async def main():
        one = Trying(framed=framed)
        if framed:
            for event in events:
                one.attempt.heard(encoded(event))
        else:
            one.attempt.begun(200, SSE)
            one.attempt.heard(sse(events))
        one.attempt.broke(LineFailure("the end", sent=True))
        await one.over()
        await one.stream.clear()
        assert one.store.claimed == {}

    run(main(), collect=False)
