"""What a client sees: in order, and what is held only when it may be seen."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.gateway.events import Heard, Splitter, peeked
from lockstitch.gateway.showing.streams import LARGEST_LOG_BYTES, Log, Stream, sse_of
from tests.gateway.building import EACH_SECONDS, encoded, message, run, sse, told_by
from tests.generated import examples


class Seen:
    """A sink that keeps everything."""

    def __init__(self):
        self.begun = []
        self.blocks = []
        self.events = []
        self.ended = 0

    def begin(self, status, headers):
        self.begun.append(status)

    def show(self, block, events):
        assert not self.ended
        self.blocks.append(block)
        self.events += [heard.event.sequence_number for heard in events]

    def end(self):
        self.ended += 1


def event(n, **more):
    data = encoded({"type": "x", "sequence_number": n, **more})
    return Heard(peeked(data), data)


def shown(stream, n):
    stream.show(None, (event(n),))


def test_a_head_goes_out_once():
    async def main():
        seen = Seen()
        stream = Stream(seen)
        stream.begin(200, ())
        stream.begin(201, ())
        assert seen.begun == [200]

    run(main())


@settings(max_examples=examples(30))
@given(
    st.lists(
        st.sampled_from(["show", "hold", "release first", "release last", "turn"]), max_size=25
    )
)
def test_events_are_seen_in_order_and_never_before_what_holds_them(steps):
    async def main():
        seen = Seen()
        stream = Stream(seen, Log())
        loop = asyncio.get_running_loop()
        count, holds = 0, []
        for step in steps:
            if step == "show":
                shown(stream, count)
                count += 1
            elif step == "hold":
                future = loop.create_future()
                stream.hold(future)
                holds.append((count, future))
            elif step == "turn":
                await asyncio.sleep(0)
            else:
                open_ = [future for _, future in holds if not future.done()]
                if open_:
                    open_[0 if step == "release first" else -1].set_result(None)
            pending = [at for at, future in holds if not future.done()]
            assert seen.events == list(range(len(seen.events)))
            if pending:
                assert len(seen.events) <= min(pending)
        for _, future in holds:
            if not future.done():
                future.set_result(None)
        await stream.clear()
        assert seen.events == list(range(count))
        assert stream.number == count - 1
        assert stream.events == count

    run(main(), collect=False)


def test_what_is_held_by_what_failed_is_never_seen():
    async def main():
        seen = Seen()
        stream = Stream(seen, Log())
        loop = asyncio.get_running_loop()
        shown(stream, 0)
        first, second = loop.create_future(), loop.create_future()
        stream.hold(first)
        shown(stream, 1)
        stream.hold(second)
        shown(stream, 2)
        first.set_exception(OSError("no"))
        second.set_exception(OSError("no"))
        await asyncio.sleep(0)
        shown(stream, 3)
        with pytest.raises(OSError, match="no"):
            await stream.clear()
        assert seen.events == [0]
        last = event(9)
        stream.show_last(sse_of(last), last)
        assert seen.events == [0, 9]
        stream.end()
        assert seen.ended == 1

    run(main())


def test_a_hold_that_was_cancelled_does_not_hang_whoever_waits():
    async def main():
        stream = Stream(Seen())
        future = asyncio.get_running_loop().create_future()
        stream.hold(future)
        shown(stream, 0)
        future.cancel()
        with pytest.raises(BaseException) as raised:  # noqa: PT011
            async with asyncio.timeout(EACH_SECONDS):
                await stream.clear()
        assert not isinstance(raised.value, TimeoutError)

    run(main())


def test_whoever_waits_for_a_stream_to_be_clear_waits_for_everything():
    async def main():
        seen = Seen()
        stream = Stream(seen)
        future = asyncio.get_running_loop().create_future()
        stream.hold(future)
        shown(stream, 0)
        waiting = asyncio.create_task(stream.clear())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        future.set_result(None)
        await waiting
        assert seen.events == [0]
        await stream.clear()

    run(main())


# --- logs --------------------------------------------------------------------------------------


def logged(events):
    log = Log()
    for one in events:
        log.add(sse([one]))
    return log


def test_a_log_gives_what_came_behind_a_number():
    events = told_by("resp_1", message())
    log = logged(events)
    for n in range(-1, len(events)):
        found = log.since(n)
        assert found == sse(events[n + 1 :])


def test_a_log_that_grew_too_large_is_not_kept_and_says_so():
    log = Log()
    heard = []
    log.follow(heard.append)
    block = sse([{"type": "x", "sequence_number": 0, "d": "x" * 1_000_000}])
    for _ in range(LARGEST_LOG_BYTES // len(block) + 2):
        log.add(block)
    assert log.blocks is None
    assert log.size == 0
    assert log.since(0) is None
    assert len(heard) == LARGEST_LOG_BYTES // len(block) + 2


def test_whoever_follows_a_log_is_told_each_block_and_the_end():
    log = Log()
    first, second = [], []
    stop = log.follow(first.append)
    log.follow(second.append)
    log.add(b"a")
    stop()
    stop()
    log.add(b"b")
    log.end()
    assert first == [b"a"]
    assert second == [b"a", b"b", b""]
    assert log.over


def test_whoever_stops_following_while_being_told_disturbs_nobody():
    log = Log()
    heard = []
    stops = []

    def leaves(block):
        stops[0]()

    stops.append(log.follow(leaves))
    log.follow(heard.append)
    log.add(b"a")
    assert heard == [b"a"]


def test_a_frame_is_logged_as_lines_and_without_its_lane():
    seen = Seen()
    log = Log()
    stream = Stream(seen, log)
    stream.show(None, (event(0, stream_id="a"),))
    _, events = Splitter().feed(log.since(-1))
    assert [json.loads(one.data) for one in events] == [{"type": "x", "sequence_number": 0}]
