"""The fault loop: the connection is lost at the first thing the store asks for, the second, …

After each, what had been acknowledged is there, nothing is torn, and the store goes on alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstitch.core.records import Record
from lockstitch.store.contract import Claim
from lockstitch.store.errors import CannotOpen, CannotWrite, ClaimLost, OutOfStep
from lockstitch.store.postgres import PostgresStore
from tests.store.postgres_parts import all_of, full_record, with_store
from tests.store.postgres_proxy import Proxy

BATCHES = [1, 3, 1, 2]
"""How many records each append has."""


class Session:
    """Somebody who writes four batches, and does what the errors say when something fails."""

    def __init__(self, url: str, conversation: str) -> None:
        self.url = url
        self.conversation = conversation
        self.acknowledged = 0
        self.failures: list[str] = []

    async def run(self) -> None:
        store = await self._again(lambda: PostgresStore.open(self.url))
        async with store:
            claim = await self._again(
                lambda: store.claim(self.conversation, owner="test", seconds=0)
            )
            for number in range(len(BATCHES)):
                await self._again(lambda number=number: self._append(store, claim, number))
                self.acknowledged = sum(BATCHES[: number + 1])
                await self._again(lambda: store.renew(claim, seconds=0))
            assert len(await self._again(lambda: all_of(store, self.conversation))) == sum(BATCHES)
            await self._again(lambda: store.find(full_record(1, self.conversation).names[0]))
            await self._again(store.stats)
            await self._again(lambda: store.release(claim))
            brief = await self._again(lambda: self._begin(store))
            await self._again(lambda: self._end(store, brief))

    async def _again(self, work):
        """Once more, after it failed. The fault comes once."""
        try:
            return await work()
        except (CannotOpen, CannotWrite) as error:
            self.failures.append(str(error))
            return await work()

    async def _append(self, store, claim, number: int) -> None:
        after = sum(BATCHES[:number])
        try:
            await store.append(claim, after, self.batch(number))
        except OutOfStep:
            # The one before had happened, and only its answer was lost.
            assert self.failures
            assert len(await all_of(store, self.conversation)) == after + BATCHES[number]

    @property
    def brief(self) -> str:
        """A conversation that is begun, and ended, in one write each."""
        return f"{self.conversation}-brief"

    async def _begin(self, store: PostgresStore) -> Claim:
        records = [full_record(1, self.brief)]
        claim = await store.begin(self.brief, records, owner="test", seconds=0)
        if claim is None:
            assert self.failures  # it had begun, and only the answer was lost
            claim = await store.claim(self.brief, owner="test", seconds=0)
        return claim

    async def _end(self, store: PostgresStore, claim: Claim) -> None:
        try:
            await store.append(claim, 1, [full_record(2, self.brief)], release=True)
        except ClaimLost:
            assert self.failures  # it was the last, and only the answer was lost

    def batch(self, number: int) -> list[Record]:
        after = sum(BATCHES[:number])
        return [full_record(after + 1 + at, self.conversation) for at in range(BATCHES[number])]


async def lose_the_connection(
    sockets: Path, store: PostgresStore, *, nth: int, when_answered: bool
) -> bool:
    """One run with one fault; was there one? ``store`` has a connection that is not lost."""
    database = store.url.partition("?")[0].rpartition("/")[2]
    async with Proxy(sockets, nth=nth, when_answered=when_answered) as proxy:
        session = Session(proxy.url(database), f"run-{nth}")
        await session.run()
        # Where nobody waited for the answer nobody need be told.
        assert len(session.failures) <= proxy.has_cut
    expected = [one for number in range(len(BATCHES)) for one in session.batch(number)]
    assert await all_of(store, session.conversation) == expected
    assert session.acknowledged == len(expected)
    brief = [full_record(seq, session.brief) for seq in (1, 2)]
    assert await all_of(store, session.brief) == brief
    await store.claim(session.brief, owner="next", seconds=0)
    for one in (*expected, *brief):
        for name in one.names:
            assert [found.seq for found in await store.find(name)] == [one.seq]
    return proxy.has_cut


@pytest.mark.parametrize("when_answered", [False, True], ids=["question", "answer"])
def test_a_connection_that_is_lost_anywhere_loses_nothing(
    postgres_server, postgres_url, when_answered
):
    async def work(store: PostgresStore) -> int:
        nth = 1
        while await lose_the_connection(
            postgres_server.sockets, store, nth=nth, when_answered=when_answered
        ):
            nth += 1
        return nth

    # So many things are asked for in a run, at least; or it saw none.
    assert with_store(postgres_url, work) > 20
