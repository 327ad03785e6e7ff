from __future__ import annotations

import asyncio
import gc
import weakref

from lockstitch.gateway.wire.flow import Flow
from lockstitch.gateway.wire.outlet import Outlet
from tests.gateway.building import until
from tests.gateway.wire.playing import Paused


class Transport(asyncio.Transport):
    """A client that takes what the test lets it take."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0
        self.is_closed = False
        self.drained = asyncio.Event()

    def set_write_buffer_limits(self, high=None, low=None) -> None:
        self.low = low

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def is_closing(self) -> bool:
        return self.is_closed

    def write(self, data) -> None:
        self.waiting += len(data)

    def take(self, count: int) -> None:
        self.waiting -= count
        if self.waiting <= self.low:
            self.drained.set()

    def abort(self) -> None:
        self.is_closed = True
        self.waiting = 0
        self.drained.set()

    async def drain(self) -> None:
        self.drained.clear()
        await self.drained.wait()
        if self.is_closed:
            raise ConnectionResetError


def joined(**options) -> tuple[Transport, Outlet, Flow, Paused, list[str]]:
    transport, line, lost = Transport(), Paused(), []
    outlet = Outlet(transport, transport.drain, high_water=100, low_water=20)
    flow = Flow(outlet, lambda: lost.append("lost"), watch_seconds=0.01, **options)
    flow.follow(line)
    return transport, outlet, flow, line, lost


def test_a_line_is_held_between_the_high_and_the_low_water_mark(run):
    async def go():
        transport, outlet, _, line, lost = joined()
        outlet.put(b"x" * 100)
        assert not line.is_paused
        outlet.put(b"x")
        assert line.is_paused
        await asyncio.sleep(0.02)
        transport.take(50)
        await asyncio.sleep(0.02)
        assert line.is_paused
        transport.take(31)
        await asyncio.sleep(0.02)
        assert not line.is_paused
        outlet.put(b"x" * 100)
        assert line.is_paused
        transport.abort()
        await asyncio.sleep(0.03)
        assert lost == ["lost"]

    run(go())


def test_a_line_that_is_followed_while_the_client_does_not_read_is_held_at_once(run):
    async def go():
        transport, outlet, flow, line, _ = joined()
        outlet.put(b"x" * 101)
        second = Paused()
        flow.follow(second)
        assert second.is_paused
        flow.forget(line)
        assert not line.is_paused
        await asyncio.sleep(0)
        transport.take(101)
        await asyncio.sleep(0.01)
        assert not second.is_paused
        transport.abort()

    run(go())


def test_a_client_that_takes_little_by_little_is_not_given_up(run):
    async def go():
        transport, outlet, _, _, lost = joined(patience_seconds=0.08)
        outlet.put(b"x" * 101)
        for _ in range(10):
            await asyncio.sleep(0.03)
            transport.take(1)
        assert not transport.is_closed
        assert lost == []
        await until(lambda: lost)
        assert transport.is_closed
        assert lost == ["lost"]

    run(go())


def test_a_client_that_has_taken_everything_may_be_silent_for_long(run):
    async def go():
        transport, outlet, _, _, lost = joined(patience_seconds=0.1)
        outlet.put(b"x" * 50)
        await asyncio.sleep(0.01)
        transport.take(50)
        await asyncio.sleep(0.3)
        assert not transport.is_closed
        outlet.put(b"x")
        await asyncio.sleep(0.02)
        assert not transport.is_closed
        assert lost == []
        transport.abort()

    run(go())


def test_a_client_that_went_away_is_told_once_and_not_after_the_end(run):
    async def go():
        for ended in (False, True):
            transport, outlet, flow, _, lost = joined()
            outlet.ended = ended
            transport.abort()
            await asyncio.sleep(0.05)
            assert lost == ([] if ended else ["lost"])
            assert flow._timer is None

    run(go())


def test_nothing_is_watched_once_everything_was_taken(run):
    async def go():
        transport, outlet, flow, _, lost = joined()
        outlet.put(b"x" * 50)
        outlet.ended = True
        await asyncio.sleep(0.03)
        assert flow._timer is not None
        transport.take(50)
        await asyncio.sleep(0.03)
        assert flow._timer is None
        assert lost == []

    run(go())


def test_a_flow_and_its_outlet_are_free_as_soon_as_nothing_is_watched(run):
    async def go():
        transport, outlet, flow, _, _ = joined()
        known = weakref.ref(transport)
        outlet.ended = True
        flow.stop()
        assert flow._timer is None
        del transport, outlet, flow
        assert known() is None  # without the garbage collector

    gc.disable()
    try:
        run(go())
    finally:
        gc.enable()
