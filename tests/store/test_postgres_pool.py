"""Connections are lent, come back, and are made again when they are lost."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from lockstitch.store.postgres import pool as pools
from lockstitch.store.postgres.pool import Pool


class Line:
    """A connection that goes nowhere."""

    def __init__(self) -> None:
        self.closed = False
        self.in_transaction = False
        self.said_goodbye = False

    def is_closed(self) -> bool:
        return self.closed

    def is_in_transaction(self) -> bool:
        return self.in_transaction

    def terminate(self) -> None:
        self.closed = True

    async def close(self) -> None:
        self.said_goodbye = self.closed = True


def made(connections: int) -> tuple[Pool, list[Line]]:
    """A pool, and every connection it makes."""
    lines: list[Line] = []

    async def connect() -> Line:
        lines.append(Line())
        return lines[-1]

    return Pool(connect, connections=connections), lines


def test_a_connection_that_came_back_is_lent_again():
    async def work():
        pool, lines = made(3)
        for _ in range(5):
            async with pool.acquire() as connection:
                assert connection is lines[0]
        assert len(lines) == 1

    asyncio.run(work())


def test_whoever_finds_none_free_waits_for_one():
    async def work():
        pool, lines = made(1)
        async with pool.acquire():
            other = asyncio.create_task(pool.acquire().__aenter__())
            await asyncio.sleep(0)
            assert not other.done()
        assert await other is lines[0]

    asyncio.run(work())


@pytest.mark.parametrize("state", ["closed", "in_transaction"])
def test_one_that_was_lost_or_left_half_way_is_made_again(state):
    async def work():
        pool, lines = made(1)
        async with pool.acquire() as connection:
            setattr(connection, state, True)
        assert lines[0].closed
        async with pool.acquire() as connection:
            assert connection is lines[1]

    asyncio.run(work())


def test_one_that_was_lost_while_nobody_had_it_is_made_again():
    async def work():
        pool, lines = made(1)
        async with pool.acquire():
            pass
        lines[0].closed = True
        async with pool.acquire() as connection:
            assert connection is lines[1]

    asyncio.run(work())


def test_a_connection_that_could_not_be_made_leaves_room_for_the_next():
    async def work():
        failures = [OSError("no"), OSError("no")]

        async def connect() -> Line:
            if failures:
                raise failures.pop()
            return Line()

        pool = Pool(connect, connections=1)
        for _ in range(2):
            with pytest.raises(OSError, match="no"):
                async with pool.acquire():
                    pass
        async with asyncio.timeout(5), pool.acquire():
            pass

    asyncio.run(work())


def test_those_that_nobody_needs_for_long_are_let_go(monkeypatch):
    async def work():
        pool, lines = made(2)
        async with pool.acquire(), pool.acquire():
            pass
        monkeypatch.setattr(pools, "IDLE_SECONDS", -1)
        async with pool.acquire():
            pass
        assert [line.closed for line in lines] == [True, True]

    asyncio.run(work())


def test_closing_waits_for_those_that_are_out_and_says_goodbye():
    async def work():
        pool, lines = made(2)
        async with pool.acquire():
            closing = asyncio.create_task(pool.close())
            await asyncio.sleep(0)
            assert not closing.done()
        await closing
        assert lines[0].said_goodbye
        await pool.close()
        with pytest.raises(asyncpg.InterfaceError, match="closed"):
            async with pool.acquire():
                pass

    asyncio.run(work())


def test_closing_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(pools, "CLOSE_SECONDS", 0.01)

    async def work():
        pool, lines = made(1)
        async with pool.acquire():
            await pool.close()
            assert lines[0].closed
            assert not lines[0].said_goodbye

    asyncio.run(work())
