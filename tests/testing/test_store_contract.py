"""The shipped checks find what is wrong: each of these stores breaks one promise, and is caught."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec
import pytest

from lockstitch.store.errors import ClaimLost, ConversationBusy, OutOfStep
from lockstitch.store.memory import MemoryStore
from lockstitch.testing.store_contract import CHECKS, LASTING_CHECKS


class ReadsBackwards(MemoryStore):
    async def read(self, conversation, *, after=0):
        for record in reversed([one async for one in super().read(conversation, after=after)]):
            yield record


class LosesEmptyBodies(MemoryStore):
    async def append(self, claim, after, records, **how):
        changed = [msgspec.structs.replace(one, body=one.body or None) for one in records]
        await super().append(claim, after, changed, **how)


class ForgetsNames(MemoryStore):
    async def append(self, claim, after, records, **how):
        changed = [msgspec.structs.replace(one, names=one.names[:1]) for one in records]
        await super().append(claim, after, changed, **how)


class KeepsHalfABatch(MemoryStore):
    async def append(self, claim, after, records, **how):
        try:
            await super().append(claim, after, records, **how)
        except OutOfStep:
            length = len([one async for one in self.read(claim.conversation)])
            fitting = [one for one in records if one.seq == length + 1]
            await super().append(claim, length, fitting, **how)
            raise


class IgnoresTheTime(MemoryStore):
    async def append(self, claim, after, records, **how):
        changed = [msgspec.structs.replace(one, at=None) for one in records]
        await super().append(claim, after, changed, **how)


class LetsEveryoneIn(MemoryStore):
    async def claim(self, conversation, *, owner, seconds, wait=0):
        return await super().claim(conversation, owner=owner, seconds=0, wait=wait)


class NeverWaits(MemoryStore):
    async def claim(self, conversation, *, owner, seconds, wait=0):
        return await super().claim(conversation, owner=owner, seconds=seconds)


class IgnoresFencing(MemoryStore):
    async def append(self, claim, after, records, **how):
        try:
            await super().append(claim, after, records, **how)
        except ClaimLost:
            kept = self._conversations[claim.conversation].claim
            await super().append(kept, after, records, **how)


class CountsTokensByConversation(MemoryStore):
    async def delete(self, conversation):
        self._token = 0
        return await super().delete(conversation)


class RenewsWhatWasLost(MemoryStore):
    async def renew(self, claim, *, seconds):
        with suppress(ClaimLost):
            await super().renew(claim, seconds=seconds)


class BusyWithoutAName(MemoryStore):
    async def claim(self, conversation, *, owner, seconds, wait=0):
        try:
            return await super().claim(conversation, owner=owner, seconds=seconds, wait=wait)
        except ConversationBusy:
            raise ConversationBusy("busy") from None


class FindsTheOldestFirst(MemoryStore):
    async def find(self, name):
        return (await super().find(name))[::-1]


class FindsEveryKind(MemoryStore):
    async def find(self, name):
        kept = [(other, where) for other, where in self._names.items() if other.id == name.id]
        return [one for _, where in kept for one in where][::-1]


class DeletesOnlyRecords(MemoryStore):
    async def delete(self, conversation):
        kept = self._conversations.get(conversation)
        if kept is not None:
            kept.records.clear()
        return kept is not None


class DeletesTheYoung(MemoryStore):
    async def delete_unchanged_since(self, moment):
        return await super().delete_unchanged_since(moment + 1)


class ReplacesNothing(MemoryStore):
    async def replace(self, conversation, records):
        pass


class StaysOpen(MemoryStore):
    async def close(self):
        pass


class WritesLater(MemoryStore):
    """It does not keep the order in which appends were sent."""

    async def append(self, claim, after, records, **how):
        for _ in range(-after % 5):
            await asyncio.sleep(0)
        await super().append(claim, after, records, **how)


class KeepsEveryBody(MemoryStore):
    async def stats(self):
        bodies = [one for kept in self._conversations.values() for one in kept.records if one.body]
        return msgspec.structs.replace(await super().stats(), bodies=len(bodies))


class BeginsAgain(MemoryStore):
    async def begin(self, conversation, records, **how):
        await self.delete(conversation)
        return await super().begin(conversation, records, **how)


class BeginsBeforeItLooks(MemoryStore):
    async def begin(self, conversation, records, **how):
        made = await super().begin(conversation, [], **how)
        if made is not None:
            await super().append(made, 0, records)
        return made


class HoldsWhatItBegins(MemoryStore):
    async def begin(self, conversation, records, *, release=False, **how):
        return await super().begin(conversation, records, **how)


class HoldsOn(MemoryStore):
    async def append(self, claim, after, records, *, release=False):
        await super().append(claim, after, records)


class ReleasesWhatItRefused(MemoryStore):
    async def append(self, claim, after, records, *, release=False):
        try:
            await super().append(claim, after, records)
        finally:
            if release:
                await self.release(claim)


BROKEN: list[tuple[Callable[[], MemoryStore], str]] = [
    (ReadsBackwards, "records_are_read_in_order"),
    (LosesEmptyBodies, "nothing_and_an_empty_body_are_two_things"),
    (ForgetsNames, "names_are_kept_to_the_letter"),
    (KeepsHalfABatch, "a_batch_is_kept_whole_or_not_at_all"),
    (IgnoresTheTime, "the_time_of_a_record_is_filled_in_or_kept"),
    (LetsEveryoneIn, "a_claim_is_respected_and_its_owner_named"),
    (NeverWaits, "who_waits_is_let_in_when_the_claim_is_released"),
    (IgnoresFencing, "who_was_taken_over_can_write_nothing"),
    (CountsTokensByConversation, "tokens_grow_across_a_deletion"),
    (RenewsWhatWasLost, "who_was_taken_over_can_write_nothing"),
    (BusyWithoutAName, "a_claim_is_respected_and_its_owner_named"),
    (FindsTheOldestFirst, "the_newest_is_found_first"),
    (FindsEveryKind, "a_name_is_found_by_its_kind"),
    (DeletesOnlyRecords, "a_deleted_conversation_is_gone_whole"),
    (DeletesTheYoung, "what_was_not_written_to_since_is_forgotten"),
    (ReplacesNothing, "other_bytes_take_the_place_of_a_record"),
    (StaysOpen, "a_closed_store_refuses_everything"),
    (WritesLater, "appends_of_one_claim_may_be_sent_without_waiting"),
    (BeginsAgain, "one_that_is_there_is_not_begun_again"),
    (BeginsBeforeItLooks, "a_beginning_is_whole_or_not_at_all"),
    (HoldsWhatItBegins, "one_that_is_begun_and_released_is_free_at_once"),
    (HoldsOn, "an_append_can_be_the_last_of_its_claim"),
    (ReleasesWhatItRefused, "a_last_append_that_is_refused_releases_nothing"),
    (KeepsEveryBody, "a_large_body_is_kept_once_in_a_conversation"),
]

BY_NAME = {check.__name__: check for check in CHECKS}


@pytest.mark.parametrize(("store", "promise"), BROKEN)
def test_a_broken_promise_is_found(store, promise):
    with pytest.raises((AssertionError, ClaimLost, ConversationBusy, OutOfStep)):
        asyncio.run(BY_NAME[promise](store))


@pytest.mark.parametrize("check", LASTING_CHECKS, ids=lambda check: check.__name__)
def test_a_store_that_does_not_last_is_found(check):
    with pytest.raises((AssertionError, ClaimLost)):
        asyncio.run(check(MemoryStore))


def test_no_two_checks_have_one_name():
    names = [check.__name__ for check in CHECKS + LASTING_CHECKS]
    assert len(set(names)) == len(names)
