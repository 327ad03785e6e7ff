"""Facts on their way into the journal: in order, in groups, and no promise is broken."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core import records
from lockstitch.core.facts import Ending, ItemCompleted
from lockstitch.gateway.keeping.exchanges import begun, ended, kept
from lockstitch.gateway.keeping.journal import Exchanges
from lockstitch.gateway.keeping.notes import AnsweredNote, AskedNote
from lockstitch.gateway.keeping.recording import NotDurable, Recorder
from tests.gateway.building import EACH_SECONDS, WRITES, Faulty, call, encoded, message, run, user
from tests.generated import examples

BEGINNING = begun(AskedNote(upstream="up"), [encoded(user())], "resp_1")
REQUEST = BEGINNING.request
END = ended(REQUEST, Ending.COMPLETED, AnsweredNote())


def said(*items):
    return [ItemCompleted(request=REQUEST, item=encoded(item)) for item in items]


def recorder(store, name="resp_1"):
    exchanges = Exchanges(store)
    return Recorder(lambda facts, last: exchanges.begun("local", name, facts, last=last))


async def exchange(store, name="resp_1"):
    facts = [records.decoded(record) async for record in store.read(f"gateway/local/{name}")]
    return kept(facts)


async def recorded(one):
    """An exchange as it is recorded: each promise, kept or not."""
    promises = []
    one.record(BEGINNING.facts)
    await asyncio.sleep(0)
    one.record(said(message()))
    one.record(said(call()))
    promises.append(one.durable())
    await asyncio.sleep(0.001)
    one.record(END, last=True)
    promises.append(one.durable())
    found = await asyncio.gather(*promises, return_exceptions=True)
    await one.close()
    return found


def test_what_was_recorded_is_there_when_its_promise_is_kept():
    async def main():
        store = Faulty()
        assert await recorded(recorder(store)) == [None, None]
        found = await exchange(store)
        assert found.ending is Ending.COMPLETED
        assert len(found.said) == 2
        assert store.claimed == {}

    run(main())


def test_what_happens_while_the_disk_is_busy_goes_with_the_next_write():
    async def main():
        store = Faulty()
        busy, go = asyncio.Event(), asyncio.Event()

        async def delay(kind, name):
            busy.set()
            await go.wait()

        store.delay = delay
        one = recorder(store)
        one.record(BEGINNING.facts)
        await busy.wait()
        for n in range(200):
            one.record(said(message(id=f"msg_{n}")))
        one.record(END, last=True)
        go.set()
        await one.durable()
        await one.close()
        assert store.calls == ["begin", "append"]
        assert len((await exchange(store)).said) == 200

    run(main())


@pytest.mark.parametrize("n", range(12))
def test_whichever_call_of_the_store_fails_no_promise_is_broken_and_no_claim_kept(n):
    async def main():
        store = Faulty()
        store.fail_nth(n)
        one = recorder(store)
        promises = await recorded(one)
        struck = len(store.calls) > n
        failed_call = store.calls[n] if struck else None
        store.fails = lambda *_: False
        found = await exchange(store)
        assert all(promise is None or isinstance(promise, NotDurable) for promise in promises)
        if promises[0] is None:
            assert len(found.said) == 2
        if promises[1] is None:
            assert found.ending is Ending.COMPLETED
        if failed_call in WRITES:
            assert NotDurable in map(type, promises)
            assert one.given_up is None
        if failed_call != "release":
            assert store.claimed == {}

    run(main())


def test_after_a_failure_nothing_more_is_written_and_nothing_more_promised():
    async def main():
        store = Faulty()
        store.fail_nth(0)
        one = recorder(store)
        one.record(BEGINNING.facts)
        with pytest.raises(NotDurable):
            await one.durable()
        one.record(said(call()))
        with pytest.raises(NotDurable):
            await one.durable()
        one.record(END, last=True)
        with pytest.raises(NotDurable):
            await one.durable()
        await one.close()
        assert one.given_up is None
        assert await exchange(store) is None
        assert store.claimed == {}

    run(main())


def test_a_mistake_in_the_store_is_no_silence():
    """Whatever it raises: who waits is told."""

    async def main():
        async def begun(facts, last):
            raise RuntimeError("nobody thought of this")

        one = Recorder(begun)
        one.record(BEGINNING.facts)
        with pytest.raises(NotDurable):
            async with asyncio.timeout(EACH_SECONDS):
                await one.durable()
        await asyncio.wait_for(one.close(), EACH_SECONDS)

    run(main(), quiet=False)


def test_what_cannot_have_happened_is_given_up_and_nobody_waits():
    async def main():
        store = Faulty()
        one = recorder(store)
        one.record(BEGINNING.facts)
        one.record([ItemCompleted(request=99, item=encoded(call()))])
        await one.durable()
        assert one.given_up
        one.record(END, last=True)
        await one.durable()
        await one.close()
        assert store.claimed == {}
        found = await exchange(store)
        assert not getattr(found, "continues", False)

    run(main())


def test_an_exchange_that_was_given_up_at_once_touches_no_store():
    async def main():
        store = Faulty()
        one = recorder(store)
        one.give_up("not an item")
        one.record(END, last=True)
        await one.durable()
        await one.close()
        assert store.calls == []

    run(main())


@settings(max_examples=examples(20))
@given(st.lists(st.sampled_from(["item", "durable", "turn", "close"]), max_size=14), st.booleans())
def test_facts_are_written_in_order_however_they_come(steps, fails):
    async def main():
        store = Faulty()
        one = recorder(store)
        one.record(BEGINNING.facts)
        count, promises = 0, []
        for step in steps:
            if step == "item":
                one.record(said(message(str(count), f"msg_{count}")))
                count += 1
            elif step == "durable":
                promises.append((count, one.durable()))
            elif step == "turn":
                await asyncio.sleep(0)
            else:
                await one.close()
        if fails:
            store.fails = lambda kind, _: kind in WRITES
        one.record(END, last=True)
        promises.append((count, one.durable()))
        results = await asyncio.gather(*(p for _, p in promises), return_exceptions=True)
        await one.close()
        store.fails = lambda *_: False
        found = await exchange(store)
        length = len(found.said) if found is not None else 0
        for (had, _), result in zip(promises, results, strict=True):
            if result is None:
                assert length >= had
        if not fails:
            texts = [message(str(n), f"msg_{n}") for n in range(count)]
            assert found.said == [encoded(text) for text in texts]
        assert store.claimed == {}

    run(main(), collect=False)


def test_whoever_waits_may_be_cancelled_and_the_write_is_not():
    async def main():
        store = Faulty()
        go = asyncio.Event()

        async def delay(kind, name):
            if kind in WRITES:
                await go.wait()

        store.delay = delay
        one = recorder(store)
        one.record(BEGINNING.facts)
        one.record(END, last=True)

        async def waits():
            await one.durable()

        waiting = asyncio.create_task(waits())
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        go.set()
        await one.close()
        assert (await exchange(store)).ending is Ending.COMPLETED
        assert store.claimed == {}

    run(main())


def test_the_same_id_given_again_means_the_newer():
    async def main():
        store = Faulty()
        await recorded(recorder(store))
        one = recorder(store)
        one.record(BEGINNING.facts)
        one.record(END, last=True)
        await one.durable()
        await one.close()
        found = await exchange(store)
        assert found.said == []
        assert found.ending is Ending.COMPLETED
        assert store.claimed == {}

    run(main())


@pytest.mark.parametrize("found_out_by", ["write", "renewal"])
def test_what_is_deleted_while_it_is_recorded_is_given_up_and_keeps_nobody_waiting(found_out_by):
    async def main():
        store = Faulty()
        one = recorder(store)
        one.record(BEGINNING.facts)
        await one.durable()
        await store.delete("gateway/local/resp_1")
        if found_out_by == "renewal":
            await one._journal._renew()
        one.record(END, last=True)
        await one.durable()
        await one.close()
        assert one.given_up
        assert one.failure is None
        assert store.claimed == {}

    run(main())
