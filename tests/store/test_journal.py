"""A ledger that is kept: durable before an append returns, stale when a write failed."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager

import pytest

from lockstitch.core.errors import IllegalFact, NotAnItem, UnknownDialect
from lockstitch.core.facts import AnchorLost, CallStarted, ItemAdded, Opened, RequestSent
from lockstitch.core.records import Name, Naming, Record, UnreadableRecord, encoded
from lockstitch.ledgers import Ledger, call_settled, item_added, request_prepared
from lockstitch.store.errors import (
    CannotWrite,
    ClaimLost,
    ConversationBusy,
    StoreError,
)
from lockstitch.store.journal import CLAIM_SECONDS, Journal, JournalStale, kept_ledger
from lockstitch.store.memory import MemoryStore
from lockstitch.store.opening import open_store
from tests.turns import call, ledger_of, said, texts, turn, user

A, B, C = (item_added(user(text)) for text in "abc")


@asynccontextmanager
async def in_memory(tmp_path):
    yield MemoryStore()


@asynccontextmanager
async def in_sqlite(tmp_path):
    from lockstitch.store.sqlite import SqliteStore

    store = await SqliteStore.open(tmp_path / "store.db")
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture(params=[in_memory, in_sqlite], ids=["memory", "sqlite"])
def opened(request, tmp_path):
    """Opens a store of each kind."""
    return lambda: request.param(tmp_path)


async def kept(store, conversation="c"):
    """The facts that a store has, as texts of their items and names of their kinds."""
    ledger = await kept_ledger(store, conversation)
    return [] if ledger is None else list(ledger.facts)


# --- what is appended is kept ------------------------------------------------------------------


def test_what_was_appended_is_in_the_store_when_the_append_returns(opened):
    async def run():
        async with opened() as store, await Journal.open(store, "c") as journal:
            assert await journal.append(A) == 2
            assert await kept(store) == [Opened(dialect="responses"), A]
            assert await journal.append(B, C) == 4
            assert await kept(store) == [Opened(dialect="responses"), A, B, C]

    asyncio.run(run())


def test_a_conversation_goes_on_where_it_was_left(opened):
    async def run():
        async with opened() as store:
            async with await Journal.open(store, "c", dialect="chat") as journal:
                await journal.append(A)
                state = journal.ledger.state()
            async with await Journal.open(store, "c") as journal:
                assert journal.ledger.state() == state
                assert journal.ledger.dialect.name == "chat"
                await journal.append(B)
            assert texts((await kept_ledger(store, "c")).history()) == ["a", "b"]

    asyncio.run(run())


def test_a_whole_turn_is_kept_and_found_by_its_names(opened):
    async def run():
        async with opened() as store, await Journal.open(store, "c") as journal:
            ledger = ledger_of(user())
            turn(ledger, call("call_a", id="fc_1"), id="resp_1")
            ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
            turn(ledger, said("x", id="msg_1"), id="resp_2")
            await journal.append(*ledger.facts[1:])
            assert journal.ledger.state() == ledger.state()
            assert (await kept_ledger(store, "c")).state() == ledger.state()
            for naming, known in (
                (Naming.CALL, "call_a"),
                (Naming.ITEM, "fc_1"),
                (Naming.RESPONSE, "resp_2"),
                (Naming.ITEM, "msg_1"),
            ):
                assert await store.find(Name(naming, known))
            assert len(await store.find(Name(Naming.CALL, "call_a"))) == 2

    asyncio.run(run())


def test_to_append_nothing_writes_nothing_new(opened):
    async def run():
        async with opened() as store, await Journal.open(store, "c") as journal:
            await journal.append(A)
            assert await journal.append() == 2
            assert len(await kept(store)) == 2

    asyncio.run(run())


def test_a_conversation_that_was_only_opened_holds_nothing(opened):
    async def run():
        async with opened() as store:
            async with await Journal.open(store, "c"):
                pass
            assert await kept_ledger(store, "c") is None
            assert await kept_ledger(store, "never") is None

    asyncio.run(run())


def test_appends_at_the_same_time_are_kept_in_the_order_they_were_made(opened):
    async def run():
        async with opened() as store, await Journal.open(store, "c") as journal:
            facts = [item_added(user(str(n))) for n in range(50)]
            places = await asyncio.gather(*(journal.append(fact) for fact in facts))
            assert sorted(places) == list(places)
            assert (await kept(store))[1:] == facts
            assert list(journal.ledger.facts)[1:] == facts

    asyncio.run(run())


# --- illegal facts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("illegal", "error"),
    [
        (RequestSent(request=1), IllegalFact),
        (CallStarted(call=1), IllegalFact),
        (ItemAdded(item=b"[]", by=A.by), NotAnItem),
        (AnchorLost(anchor="\ud800"), IllegalFact),
    ],
)
def test_an_illegal_fact_ends_its_batch_and_those_before_it_are_kept(opened, illegal, error):
    async def run():
        async with opened() as store, await Journal.open(store, "c") as journal:
            with pytest.raises(error):
                await journal.append(A, illegal, B)
            assert (await kept(store))[1:] == [A]
            assert list(journal.ledger.facts)[1:] == [A]
            await journal.append(C)  # it is not stale
            assert (await kept(store))[1:] == [A, C]

    asyncio.run(run())


def test_an_illegal_fact_alone_writes_nothing_of_itself(opened):
    async def run():
        async with opened() as store, await Journal.open(store, "c") as journal:
            with pytest.raises(IllegalFact):
                await journal.append(RequestSent(request=1))
            assert len(await kept(store)) <= 1  # the opening, at most
            await journal.append(A)
            assert (await kept(store))[1:] == [A]

    asyncio.run(run())


# --- writes that fail --------------------------------------------------------------------------


class Failing(MemoryStore):
    """A store whose nth append fails, before it was written or after."""

    def __init__(self, nth, *, written=False, error=None):
        super().__init__()
        self.left = nth
        self._written = written
        self._error = error or CannotWrite("The disk is full.")

    async def append(self, claim, after, records, **how):
        self.left -= 1
        if self.left == 0:
            if self._written:
                await super().append(claim, after, records, **how)
            raise self._error
        await super().append(claim, after, records, **how)


async def appended_each(journal, facts):
    """Append facts one by one until one fails; how many were kept for sure, and the failure."""
    for n, fact in enumerate(facts):
        try:
            await journal.append(fact)
        except StoreError as error:
            return n, error
    return len(facts), None


@pytest.mark.parametrize("written", [False, True])
def test_after_a_failed_write_a_journal_is_stale_until_it_was_reloaded(written):
    async def run(nth):
        store = Failing(nth, written=written)
        facts = [item_added(user(str(n))) for n in range(4)]
        async with await Journal.open(store, "c") as journal:
            sure, error = await appended_each(journal, facts)
            if error is None:
                return False
            with pytest.raises(JournalStale) as raised:
                await journal.append(A)
            assert str(raised.value) == (
                "c is stale (The disk is full.). Reload it, and plan again."
            )
            assert raised.value.__cause__ is error
            there = await kept(store)
            assert there[1:] == facts[: sure + written]
            await journal.reload()
            assert list(journal.ledger.facts)[1:] == facts[: sure + written]
            await journal.append(*facts[sure + written :])
            assert (await kept(store))[1:] == facts
            assert journal.ledger.state() == (await kept_ledger(store, "c")).state()
        return True

    nth = 1
    while asyncio.run(run(nth)):
        nth += 1
    assert nth == 5  # every write failed once


def test_reloading_gives_what_the_store_has_and_no_more():
    async def run():
        store = Failing(2)
        async with await Journal.open(store, "c") as journal:
            await journal.append(A)
            with pytest.raises(CannotWrite):
                await journal.append(B, C)
            assert len(journal.ledger) == 4
            await journal.reload()
            assert len(journal.ledger) == 2
            assert journal.ledger.state() == ledger_of(user("a")).state()

    asyncio.run(run())


def test_a_journal_of_which_the_first_write_failed_reloads_as_it_began():
    async def run():
        store = Failing(1)
        async with await Journal.open(store, "c", dialect="messages") as journal:
            with pytest.raises(CannotWrite):
                await journal.append(A)
            await journal.reload()
            assert journal.ledger.state() == Ledger("messages").state()
            await journal.append(A)
            assert (await kept(store))[0] == Opened(dialect="messages")

    asyncio.run(run())


def test_an_error_that_no_store_promised_makes_a_journal_stale_too():
    async def run():
        store = Failing(2, error=OSError("the cable is out"))
        async with await Journal.open(store, "c") as journal:
            await journal.append(A)
            with pytest.raises(OSError, match="cable"):
                await journal.append(B)
            with pytest.raises(JournalStale, match="the cable is out"):
                await journal.append(C)
            await journal.reload()
            await journal.append(C)
            assert (await kept(store))[1:] == [A, C]

    asyncio.run(run())


def test_the_first_failure_is_the_one_that_is_told():
    class Slow(Failing):
        async def append(self, claim, after, records, **how):
            await asyncio.sleep(0)
            await super().append(claim, after, records, **how)

    async def run():
        store = Slow(1)
        async with await Journal.open(store, "c") as journal:
            results = await asyncio.gather(
                *(journal.append(fact) for fact in (A, B, C)), return_exceptions=True
            )
            told = [type(result) for result in results]
            assert told == [CannotWrite, JournalStale, JournalStale]
            with pytest.raises(JournalStale, match="The disk is full"):
                await journal.append(A)
            await journal.reload()
            assert len(journal.ledger) == 1

    asyncio.run(run())


class Waiting(MemoryStore):
    """A store that waits with its first append until it is told to go on."""

    def __init__(self):
        super().__init__()
        self.entered, self.go_on = asyncio.Event(), asyncio.Event()

    async def append(self, claim, after, records, **how):
        self.entered.set()
        await self.go_on.wait()
        await super().append(claim, after, records, **how)


async def cancelled_append(store, journal):
    """Append, and be cancelled in the middle of the write."""
    writing = asyncio.create_task(journal.append(A))
    await store.entered.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing


def test_an_append_that_is_cancelled_is_kept_all_the_same():
    async def run():
        store = Waiting()
        async with await Journal.open(store, "c") as journal:
            await cancelled_append(store, journal)
            store.go_on.set()
            await journal.append(B)
            assert (await kept(store))[1:] == [A, B] == list(journal.ledger.facts)[1:]

    asyncio.run(run())


def test_closing_waits_for_what_is_being_written():
    async def run():
        store = Waiting()
        journal = await Journal.open(store, "c")
        await cancelled_append(store, journal)
        closing = asyncio.create_task(journal.close())
        await asyncio.sleep(0)
        store.go_on.set()
        await closing
        assert (await kept(store))[1:] == [A]

    asyncio.run(run())


@pytest.mark.parametrize("leave", [Journal.close, Journal.reload])
def test_who_stops_waiting_for_the_end_of_a_journal_takes_no_write_back(leave):
    async def run():
        store = Waiting()
        journal = await Journal.open(store, "c")
        await cancelled_append(store, journal)
        leaving = asyncio.create_task(leave(journal))
        await asyncio.sleep(0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        store.go_on.set()
        await journal.close()
        assert (await kept(store))[1:] == [A]
        # And it is let go: nobody waits until the claim runs out.
        async with await Journal.open(store, "c") as again:
            assert list(again.ledger.facts)[1:] == [A]

    asyncio.run(run())


def test_a_journal_that_is_closed_twice_is_closed_when_either_returns():
    async def run():
        store = Waiting()
        journal = await Journal.open(store, "c")
        await cancelled_append(store, journal)
        first = asyncio.create_task(journal.close())
        await asyncio.sleep(0)
        second = asyncio.create_task(journal.close())
        await asyncio.sleep(0)
        assert not second.done()
        store.go_on.set()
        await second
        assert (await kept(store))[1:] == [A]
        await first

    asyncio.run(run())


def test_reloading_waits_for_what_is_being_written():
    async def run():
        store = Waiting()
        async with await Journal.open(store, "c") as journal:
            await cancelled_append(store, journal)
            reloading = asyncio.create_task(journal.reload())
            await asyncio.sleep(0)
            store.go_on.set()
            await reloading
            assert list(journal.ledger.facts)[1:] == [A]
            await journal.append(B)
            assert (await kept(store))[1:] == [A, B]

    asyncio.run(run())


# --- who may write -----------------------------------------------------------------------------


def test_one_conversation_has_one_journal_at_a_time(opened):
    async def run():
        async with opened() as store:
            async with await Journal.open(store, "c"):
                with pytest.raises(ConversationBusy, match="is held by"):
                    await Journal.open(store, "c")
                async with await Journal.open(store, "d"):
                    pass
            async with await Journal.open(store, "c"):
                pass

    asyncio.run(run())


def test_who_waits_for_a_conversation_gets_it_when_it_is_let_go(opened):
    async def run():
        async with opened() as store:
            first = await Journal.open(store, "c")
            await first.append(A)
            second = asyncio.create_task(Journal.open(store, "c", wait=60))
            await asyncio.sleep(0)
            await first.close()
            async with await asyncio.wait_for(second, 30) as journal:
                assert texts(journal.ledger.history()) == ["a"]

    asyncio.run(run())


def test_a_journal_whose_conversation_was_taken_over_writes_nothing():
    class Clock:
        now = 1000.0

    async def run():
        store = MemoryStore(now=lambda: Clock.now)
        first = await Journal.open(store, "c")
        await first.append(A)
        Clock.now += CLAIM_SECONDS + 1
        second = await Journal.open(store, "c")
        await second.append(B)
        with pytest.raises(ClaimLost, match="was taken over by"):
            await first.append(C)
        with pytest.raises(JournalStale, match="was taken over by"):
            await first.append(C)
        with pytest.raises(ClaimLost):
            await first.reload()
        assert (await kept(store))[1:] == [A, B]
        await first.close()  # and does not let go of what is another's
        await second.append(C)
        assert (await kept(store))[1:] == [A, B, C]
        await second.close()

    asyncio.run(run())


def test_a_journal_whose_conversation_was_deleted_writes_nothing(opened):
    async def run():
        async with opened() as store:
            journal = await Journal.open(store, "c")
            await journal.append(A)
            await store.delete("c")
            with pytest.raises(ClaimLost):
                await journal.append(B)
            assert await kept_ledger(store, "c") is None
            await journal.close()

    asyncio.run(run())


def test_a_journal_that_was_closed_writes_nothing(opened):
    async def run():
        async with opened() as store:
            journal = await Journal.open(store, "c")
            await journal.append(A)
            await journal.close()
            await journal.close()
            with pytest.raises(StoreError):
                await journal.append(B)
            assert (await kept(store))[1:] == [A]

    asyncio.run(run())


# --- renewing ----------------------------------------------------------------------------------


class Renewing(MemoryStore):
    """A store that says when a claim was renewed, and for how long."""

    def __init__(self, *errors):
        super().__init__()
        self.errors = list(errors)
        self.renewed: asyncio.Queue[float] = asyncio.Queue()

    async def renew(self, claim, *, seconds):
        self.renewed.put_nowait(seconds)
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        await super().renew(claim, seconds=seconds)


async def renewals(store, count):
    return [await asyncio.wait_for(store.renewed.get(), 20) for _ in range(count)]


def test_a_claim_is_renewed_for_as_long_as_it_was_made():
    async def run():
        store = Renewing()
        async with await Journal.open(store, "c", seconds=0.06):
            assert await renewals(store, 3) == [0.06] * 3

    asyncio.run(run())


def test_a_renewal_that_failed_is_tried_again():
    async def run():
        store = Renewing(StoreError("no answer"), OSError("no cable"), None)
        async with await Journal.open(store, "c", seconds=0.06) as journal:
            await renewals(store, 4)
            await journal.append(A)
            assert (await kept(store))[1:] == [A]

    asyncio.run(run())


def test_a_journal_that_cannot_renew_its_claim_is_stale():
    async def run():
        store = Renewing(ClaimLost("Somebody else has it."))
        async with await Journal.open(store, "c", seconds=0.06) as journal:
            await renewals(store, 1)
            await asyncio.wait_for(asyncio.wait([journal._renewing]), 20)
            with pytest.raises(JournalStale, match="Somebody else has it"):
                await journal.append(A)
            assert await kept(store) == []

    asyncio.run(run())


def test_reloading_renews_for_as_long_as_the_claim_was_made():
    async def run():
        store = Renewing()
        async with await Journal.open(store, "c", seconds=1234.0) as journal:
            await journal.reload()
            assert await renewals(store, 1) == [1234.0]

    asyncio.run(run())


def test_a_journal_that_was_closed_renews_nothing():
    async def run():
        store = Renewing()
        journal = await Journal.open(store, "c", seconds=0.03)
        await renewals(store, 1)
        renewing = journal._renewing
        await journal.close()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(renewing, 20)
        assert renewing.done()

    asyncio.run(run())


# --- opening what cannot be read ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "error"),
    [
        ([Record(1, b'{"fact":"moon_landed"}')], UnreadableRecord),
        ([encoded(1, A)], IllegalFact),
        ([encoded(1, Opened(dialect="klingon"))], UnknownDialect),
        ([encoded(1, Opened(dialect="chat")), encoded(2, RequestSent(request=1))], IllegalFact),
    ],
)
def test_a_conversation_that_cannot_be_read_is_let_go_and_left_as_it_is(opened, records, error):
    async def run():
        async with opened() as store:
            claim = await store.claim("c", owner="test", seconds=60)
            await store.append(claim, 0, records)
            await store.release(claim)
            for _ in range(2):  # the second time, too: the first let go
                with pytest.raises(error):
                    await Journal.open(store, "c")
            there = [record.payload async for record in store.read("c")]
            assert there == [record.payload for record in records]

    asyncio.run(run())


def test_a_dialect_that_does_not_exist_is_refused_and_the_conversation_let_go(opened):
    async def run():
        async with opened() as store:
            with pytest.raises(UnknownDialect):
                await Journal.open(store, "c", dialect="klingon")
            async with await Journal.open(store, "c", dialect="chat") as journal:
                await journal.append(A)

    asyncio.run(run())


def test_a_journal_is_shown_with_its_conversation_and_its_store():
    async def run():
        async with await Journal.open(MemoryStore(), "c") as journal:
            assert repr(journal) == "<Journal c in memory:, 1 facts>"
            assert journal.conversation == "c"

    asyncio.run(run())


def test_an_output_is_durable_the_moment_its_tool_ended(opened):
    async def run():
        async with opened() as store, await Journal.open(store, "c") as journal:
            ledger = ledger_of(user())
            turn(ledger, call())
            await journal.append(*ledger.facts[1:])
            made = journal.ledger.call("call_a")
            await journal.append(CallStarted(call=made.seq))
            await journal.append(call_settled(journal.ledger, made, "done"))
            # The process dies here; the next one reads what is there.
            again = await kept_ledger(store, "c")
            plan = again.plan()
            assert [wire["output"] for wire in again.items(plan)] == ["done"]
            await journal.append(*request_prepared(again, plan))

    asyncio.run(run())


def test_a_write_that_the_end_of_a_loop_cancels_is_kept_and_leaves_the_journal_usable(tmp_path):
    async def run():
        async with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:
            async with await Journal.open(store, "c") as journal:
                writing = asyncio.create_task(journal.append(A))
                await asyncio.sleep(0)
                for task in asyncio.all_tasks() - {asyncio.current_task()}:
                    task.cancel()  # as asyncio.run does with all that is left
                await asyncio.gather(writing, return_exceptions=True)
                await journal.append(B)
                facts = list(journal.ledger.facts)
            kept = await kept_ledger(store, "c")
            assert list(kept.facts) == facts

    asyncio.run(run())
