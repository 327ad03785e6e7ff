"""What is heard becomes facts, in the order of the response, and durable when it says so."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from lockstitch.core.facts import Ending
from lockstitch.gateway.events import body_of
from lockstitch.gateway.keeping.journal import Exchanges
from lockstitch.gateway.keeping.notes import AskedNote
from lockstitch.gateway.keeping.recording import NotDurable
from lockstitch.gateway.keeping.recordings import Recording
from lockstitch.store.errors import CannotWrite
from tests.gateway.building import (
    EACH_SECONDS,
    Faulty,
    call,
    encoded,
    message,
    response,
    run,
    user,
)
from tests.generated import examples


class Kept:
    def __init__(self, items=None):
        self.store = Faulty()
        self.exchanges = Exchanges(self.store)
        note = AskedNote(upstream="up")
        self.recording = Recording(
            self.exchanges, "t", note, [encoded(item) for item in items or [user()]]
        )

    async def found(self, id="resp_1"):
        return await self.exchanges.exchange("t", id)


def ended(recording, *items, type="response.completed", number=9):
    recording.ended(type, number, Raw(encoded(response("resp_1", *items))))


@settings(max_examples=examples(25))
@given(st.permutations(range(4)), st.integers(0, 4), st.booleans())
def test_items_are_kept_in_the_order_of_the_response(order, heard, indexed):
    items = [message("a", "m0"), call("c1", "f1"), message("b", "m2"), call("c2", "f3")]

    async def main():
        kept = Kept()
        recording = kept.recording
        recording.opened("resp_1")
        at = order[:heard] if indexed else range(heard)
        promises = []
        for n in at:
            recording.done(encoded(items[n]), n if indexed else None, n)
            promises.append(recording.durable())
        ended(recording, *items)
        promises.append(recording.durable())
        await asyncio.gather(*promises)
        await recording.close()
        found = await kept.found()
        assert [json.loads(item) for item in found.said] == items
        assert kept.store.claimed == {}

    run(main(), collect=False)


def test_only_calls_must_be_durable_before_they_are_seen():
    async def main():
        kept = Kept()
        assert kept.recording.done(encoded(call()), 0, 0) is False  # nothing has begun
        kept.recording.opened("resp_1")
        assert kept.recording.done(encoded(message()), 0, 0) is False
        assert kept.recording.done(encoded(call()), 1, 1) is True
        assert kept.recording.done(encoded({"type": "web_search_call", "id": "w"}), 2, 2) is False
        kept.recording.cut()
        await kept.recording.close()
        assert (await kept.found()).ending is Ending.CUT

    run(main())


def test_a_call_before_its_turn_is_durable_when_it_is_its_turn():
    async def main():
        kept = Kept()
        recording = kept.recording
        recording.opened("resp_1")
        recording.done(encoded(call()), 1, 1)
        future = recording.durable()
        await asyncio.sleep(0.01)
        assert not future.done()
        recording.done(encoded(message()), 0, 2)
        await future
        recording.cut()
        await recording.close()
        assert len((await kept.found()).said) == 2

    run(main())


@pytest.mark.parametrize("end", ["cut", "ended", "told"])
def test_nobody_waits_for_ever_for_an_item_that_never_came(end):
    async def main():
        kept = Kept()
        recording = kept.recording
        recording.opened("resp_1")
        recording.done(encoded(call()), 7, 1)
        future = recording.durable()
        if end == "cut":
            recording.cut()
        elif end == "ended":
            ended(recording, call())
        else:
            body = encoded(response("resp_1", call()))
            recording.told(body, body_of(body))
        async with asyncio.timeout(EACH_SECONDS):
            await future
        await recording.close()
        assert len((await kept.found()).said) == 1

    run(main())


@pytest.mark.parametrize("end", ["left", "given up"])
def test_nobody_waits_for_ever_where_nothing_more_is_recorded(end):
    async def main():
        kept = Kept()
        recording = kept.recording
        recording.opened("resp_1")
        recording.done(encoded(call()), 1, 1)
        future = recording.durable()
        if end == "left":
            recording.left()
        else:
            recording.done(b"[]", 0, 0)
            ended(recording)
        async with asyncio.timeout(EACH_SECONDS):
            await asyncio.gather(future, return_exceptions=True)
        await recording.close()

    run(main())


def test_what_is_no_item_is_given_up_and_said_to_be_so():
    async def main():
        kept = Kept()
        kept.recording.opened("resp_1")
        assert kept.recording.done(b"5", 0, 0) is False
        assert kept.recording.unrecorded
        assert kept.recording.durable() is None
        ended(kept.recording)
        await kept.recording.close()
        found = await kept.found()
        assert found is None or not found.continues
        assert kept.store.claimed == {}

    run(main())


def test_an_input_that_is_no_item_is_given_up_at_once():
    async def main():
        kept = Kept(items=[5])
        kept.recording.opened("resp_1")
        assert kept.recording.unrecorded
        ended(kept.recording, message())
        await kept.recording.close()
        assert await kept.found() is None
        assert kept.store.calls == ["read"]

    run(main())


def test_a_whole_response_is_kept_with_its_end_or_left_open():
    async def main():
        for status, ending in [
            ("completed", Ending.COMPLETED),
            ("incomplete", Ending.INCOMPLETE),
            ("failed", Ending.FAILED),
            ("in_progress", None),
            ("queued", None),
            ("unheard_of", None),
        ]:
            kept = Kept()
            body = encoded(response("resp_1", message(), status=status))
            kept.recording.told(body, body_of(body))
            kept.recording.left()
            await kept.recording.durable()
            await kept.recording.close()
            found = await kept.found()
            assert found.ending is ending, status
            assert kept.store.claimed == {}

    run(main())


def test_a_body_without_an_id_is_no_response():
    async def main():
        kept = Kept()
        for body in (b"{}", b"[]", b"x", b'{"id":5,"status":"completed"}'):
            kept.recording.told(body, body_of(body))
            kept.recording.left()
            kept.recording.cut()
        assert kept.recording.durable() is None
        await kept.recording.close()
        assert kept.store.calls == []

    run(main())


def test_what_must_be_done_beside_the_end_is_waited_for():
    async def main():
        for fails in (False, True):
            kept = Kept()
            beside = asyncio.get_running_loop().create_future()
            begun = []

            async def written(beside=beside, begun=begun):
                begun.append(True)
                await beside

            kept.recording.when_ended = lambda _, written=written: written
            kept.recording.opened("resp_1")
            ended(kept.recording, message())
            assert begun == []
            durable = kept.recording.durable()
            assert kept.recording.durable() is durable
            await asyncio.sleep(0.01)
            assert not durable.done()
            assert begun == [True]
            if fails:
                beside.set_exception(CannotWrite("no"))
                with pytest.raises(NotDurable):
                    await durable
            else:
                beside.set_result(None)
                await durable
            await kept.recording.close()

    run(main())


def test_an_end_is_written_down_once():
    async def main():
        kept = Kept()
        kept.recording.opened("resp_1")
        kept.recording.opened("resp_2")
        ended(kept.recording, message())
        ended(kept.recording, message("other", "m2"))
        kept.recording.cut()
        kept.recording.left()
        await kept.recording.close()
        found = await kept.found()
        assert found.ending is Ending.COMPLETED
        assert [json.loads(item) for item in found.said] == [message()]
        assert await kept.found("resp_2") is None

    run(main())
