"""The conversations of clients, in the store: whose each is, which upstream has it, and all of it
where the gateway is the one that keeps it.

One at a time may change a conversation, whichever process it is in: who is second is told that it
is locked. What was added is durable when `add` returns. How facts become one is elsewhere
(`conversation_facts`)."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from lockstitch.core import records
from lockstitch.core.facts import AnyFact
from lockstitch.dialects.base import Wire
from lockstitch.gateway.deciding.listing import with_id
from lockstitch.gateway.deciding.refusals import Refusal, RequestRefused, conversation_not_found
from lockstitch.gateway.keeping.conversation_facts import (
    Conversation,
    MadeNote,
    added,
    begun,
    conversation_of,
    made_in,
    metadata_set,
    removed,
)
from lockstitch.gateway.keeping.journal import is_id, name_of
from lockstitch.gateway.watching.logs import careful
from lockstitch.store.contract import Store
from lockstitch.store.errors import ConversationBusy, StoreError
from lockstitch.store.journal import Journal

EDIT_PATIENCE_SECONDS: Final = 1.0
"""For another edit, which is over at once. A response takes longer, and is not waited for."""


class ConversationLocked(RequestRefused):
    """Another response, or another edit, is at work on it."""

    def __init__(self) -> None:
        super().__init__(
            Refusal(
                status=400,
                message="Another process is currently operating on this conversation. "
                "Please retry in a few seconds.",
                param="conversation",
                code="conversation_locked",
            )
        )


class ConversationUnknown(RequestRefused):
    """This tenant has no conversation of that id."""

    def __init__(self, id: str) -> None:
        super().__init__(conversation_not_found(id))


class Held:
    """A conversation that nobody else can change meanwhile."""

    def __init__(self, journal: Journal, conversation: Conversation) -> None:
        self._journal = journal
        self.conversation = conversation

    @property
    def items(self) -> list[Wire]:
        return self.conversation.items

    @property
    def raw_items(self) -> list[bytes]:
        return self.conversation.raw_items

    async def add(self, items: Sequence[bytes]) -> None:
        """Add items at the end, each with an id: all of them, or none. Raises `NotAnItem`."""
        await self._append(added([with_id(item, new_digits()) for item in items]))

    async def set_metadata(self, metadata: Mapping[str, str]) -> None:
        await self._append([metadata_set(metadata)])

    async def remove(self, item: str) -> None:
        """Take the item of this id away. Raises `NoSuchItem`."""
        await self._append([removed(self.conversation.find(item))])

    async def _append(self, facts: Sequence[AnyFact]) -> None:
        if facts:
            await self._journal.append(*facts)
            now = conversation_of(self.conversation.id, facts_of(self._journal))
            assert now is not None
            self.conversation = now


class Conversations:
    """The conversations of all tenants."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(
        self,
        tenant: str,
        id: str | None = None,
        *,
        upstream: str = "",
        created: float,
        metadata: Mapping[str, str] | None = None,
        items: Sequence[bytes] = (),
    ) -> Conversation:
        """A new conversation, or one that an upstream has just made under this id."""
        named = id or f"conv_{new_digits()}"
        kept = [with_id(item, new_digits()) for item in items]
        note = MadeNote(upstream=upstream, created=created)
        facts = begun(named, note, metadata or {}, kept)
        name = _named(tenant, named)
        journal = await Journal.begin(self._store, name, facts, last=True)
        if journal is None:
            # An upstream that gives an id again means the newer.
            await self._store.delete(name)
            journal = await Journal.begin(self._store, name, facts, last=True)
        if journal is None:
            raise ConversationLocked  # somebody else was told the same id at the same moment
        made = conversation_of(named, facts_of(journal))
        assert made is not None
        return made

    async def read(self, tenant: str, id: str) -> Conversation | None:
        """A conversation as it is now; None if this tenant has none of that id."""
        if not is_id(id):
            return None
        found = self._store.read(_named(tenant, id))
        return conversation_of(id, [records.decoded(record) async for record in found])

    async def made(self, tenant: str, id: str) -> MadeNote | None:
        """Where a conversation is, without the rest of it; None if this tenant has none."""
        if not is_id(id):
            return None
        async for record in self._store.read(_named(tenant, id)):
            made = made_in(records.decoded(record))
            if made is not None:
                return made
        return None

    @asynccontextmanager
    async def held(self, tenant: str, id: str, *, wait: float = 0) -> AsyncIterator[Held]:
        """Hold a conversation that was there: it is read once it is held. Raises
        `ConversationLocked` if somebody else holds it for longer than ``wait`` seconds,
        `ConversationUnknown` if there is none.

        Who held it and died does not hold it any more."""
        if not is_id(id):
            raise ConversationUnknown(id)
        journal = await self._opened(tenant, id, wait)
        try:
            conversation = conversation_of(id, facts_of(journal))
            if conversation is None:
                # It was deleted in between: holding it has begun another, with nothing in it.
                await self._store.delete(_named(tenant, id))
                raise ConversationUnknown(id)
            yield Held(journal, conversation)
        finally:
            await _let_go(journal)

    async def delete(self, tenant: str, id: str) -> None:
        """Forget a conversation; nothing of it can be read any more. Raises as `held` does."""
        async with self.held(tenant, id, wait=EDIT_PATIENCE_SECONDS):
            await self._store.delete(_named(tenant, id))

    async def _opened(self, tenant: str, id: str, wait: float) -> Journal:
        try:
            return await Journal.open(self._store, _named(tenant, id), wait=wait)
        except ConversationBusy:
            raise ConversationLocked from None


async def _let_go(journal: Journal) -> None:
    """What was done is durable, and stays; a claim that is not released ends by itself."""
    try:
        await journal.close()
    except StoreError as error:
        careful("a claim was not released", why=str(error))


def _named(tenant: str, id: str) -> str:
    return name_of(tenant, "conversation", id)


def facts_of(journal: Journal) -> list[AnyFact]:
    ledger = journal.ledger
    return [ledger.fact(seq) for seq in range(1, len(ledger) + 1)]


def new_digits() -> str:
    """48 hexadecimal digits that nobody else has."""
    return secrets.token_hex(24)
