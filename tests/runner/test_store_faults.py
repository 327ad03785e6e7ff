"""A store that fails in the middle of a turn: at its first write, its second, … until none fails.

The turn ends with the store's error, and another process goes on from what is on disk. No tool has
its effect twice."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from lockstitch.core.outcomes import UNKNOWN_TEXT
from lockstitch.emulator import call, reply
from lockstitch.runner import backoff
from lockstitch.store.errors import CannotWrite, StoreError
from lockstitch.store.memory import MemoryStore
from tests.runner.stage import MODES, THREAD, outputs_in, played, staged, text_of, within
from tests.runner.stage_three import FINAL, KEYS, LATER, NAMES, THREE_CALLS, USER, Counting

CASE_SECONDS = 10.0
"""A turn takes some hundredths of a second; one that takes this long hangs."""


class Failing(MemoryStore):
    """A store whose nth write fails; the write itself may have been made all the same."""

    def __init__(self):
        super().__init__()
        self.writes = 0
        self.fails_at = None
        self.written = False

    async def append(self, claim, after, records, **how):
        self.writes += 1
        if self.writes != self.fails_at:
            return await super().append(claim, after, records, **how)
        if self.written:
            await super().append(claim, after, records, **how)
        raise CannotWrite("The disk is full.")


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch):
    monkeypatch.setattr(backoff, "FIRST_DELAY_SECONDS", 0.001)


@pytest.mark.parametrize("written", [False, True], ids=["not written", "written all the same"])
@pytest.mark.parametrize("mode", MODES)
def test_a_turn_whose_store_fails_ends_with_its_error_and_another_goes_on(mode, written):
    async def run():
        async with staged(THREE_CALLS) as stage:
            for number in count(1):
                try:
                    async with asyncio.timeout(CASE_SECONDS):
                        if not await _goes_on(stage, number, mode, written):
                            break
                except BaseException as error:
                    error.add_note(f"write {number}")
                    raise
            assert number > 10

    asyncio.run(run())


async def _goes_on(stage, number, mode, written):
    """Fail at this write, then go on; False if there was none."""
    stage.emulator.reset()
    store = stage.store = Failing()
    store.fails_at, store.written = number, written
    counting = Counting()
    first = stage.runner(*counting.tools, mode=mode)
    thread = f"thread-{number}"
    try:
        told = text_of(await played(first.turn(thread, USER)))
    except StoreError:
        told = None
    failed = store.writes >= number
    assert told == (None if failed else FINAL)
    store.fails_at = None
    second = stage.runner(*counting.tools, mode=mode)
    asked = USER in str(await second.history(thread))
    events = await played(second.turn(thread, None if asked else USER))
    assert text_of(events) == FINAL
    assert text_of(await played(second.turn(thread, "Thanks."))) == LATER
    history = await stage.whole(thread)
    assert outputs_in(history) == KEYS
    # Once; or not at all, and then the model was told that nobody knows.
    assert set(counting.effects.values()) <= {1}
    unknown = [item["call_id"] for item in history if item.get("output") == UNKNOWN_TEXT]
    assert {f"call_{name}" for name in NAMES if name not in counting.effects} <= set(unknown)
    assert stage.broken() == {}
    return failed


def test_an_output_that_cannot_be_written_ends_the_turn_though_another_tool_still_runs():
    async def work():
        two = reply(call("quick", {}, call_id="call_quick"), call("slow", {}, call_id="call_slow"))
        async with staged(two) as stage:
            store = stage.store = Failing()
            begun, left = asyncio.Event(), asyncio.Event()

            async def slow() -> str:
                begun.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    left.set()
                return "never"

            async def quick() -> str:
                await begun.wait()
                store.fails_at = store.writes + 1
                return "done"

            with pytest.raises(StoreError):
                await played(stage.runner(quick, slow).turn(THREAD, USER))
            assert left.is_set()

    within(work)
