"""Time that a test moves by hand."""

import asyncio

from lockstitch.emulator import RealClock, VirtualClock


def test_a_flowing_clock_moves_by_what_is_slept_and_waits_for_nobody():
    async def sleeps():
        clock = VirtualClock()
        before = clock.now()
        await asyncio.wait_for(clock.sleep(3600), 1)
        return clock.now() - before

    assert asyncio.run(sleeps()) == 3600


def test_a_standing_clock_wakes_sleepers_in_the_order_of_their_times():
    async def woken():
        clock = VirtualClock(flowing=False)
        order = []

        async def sleeper(seconds):
            await clock.sleep(seconds)
            order.append(seconds)

        tasks = [asyncio.create_task(sleeper(seconds)) for seconds in (3, 1, 2, 0)]
        await asyncio.sleep(0.01)
        assert order == [0]
        clock.advance(2)
        await asyncio.sleep(0.01)
        assert order == [0, 1, 2]
        tasks[0].cancel()
        await asyncio.sleep(0.01)
        clock.advance(10)
        await asyncio.sleep(0.01)
        return order

    assert asyncio.run(woken()) == [0, 1, 2]


def test_the_real_clock_goes_on():
    async def slept():
        clock = RealClock()
        before = clock.now()
        await clock.sleep(0.01)
        return clock.now() - before

    assert asyncio.run(slept()) > 0
