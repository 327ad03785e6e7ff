"""The gateway's journal: exchanges kept in a store, each under its tenant and its response's id.

Whoever answers a request writes its exchange, and nobody else does. Reading is for everyone with
the same store: what one process heard, another can go on from."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import quote, unquote

from msgspec.structs import replace

from lockstitch.core import records
from lockstitch.core.facts import AnyFact, ItemAdded, ItemCompleted
from lockstitch.core.items import Part
from lockstitch.core.records import Name, Naming
from lockstitch.dialects.base import Wire
from lockstitch.dialects.likeness import likeness
from lockstitch.dialects.reading import READINGS, decoded
from lockstitch.gateway.keeping.chains import ChainUnknown
from lockstitch.gateway.keeping.exchanges import Kept, kept
from lockstitch.store.contract import Found, Store
from lockstitch.store.errors import ConversationBusy
from lockstitch.store.journal import Journal

PREFIX: Final = "gateway"

LONGEST_ID_CHARACTERS: Final = 256
"""Ids come from outside. Providers' are well below; a longer one is nobody's."""

LONGEST_CHAIN_EXCHANGES: Final = 20_000
"""A chain that is longer is not rebuilt: no model could read it."""

REMEMBERED_BYTES: Final = 8 * 1024 * 1024
"""Of exchanges that were read lately, and stay in memory."""

MOST_PLACES: Final = 50
"""Where one call id is looked for. Ids that are in more places are counted, not made up."""

REMEMBERED_SECONDS: Final = 10.0
"""How long what another process deleted may still be gone on from here."""

LARGEST_REMEMBERED_BYTES: Final = 64 * 1024
"""One that is larger is read again when it is needed."""


class Exchanges:
    """The exchanges of all tenants."""

    def __init__(self, store: Store, took: Callable[[float], None] | None = None) -> None:
        """``took`` is told how many seconds each write of an exchange took."""
        self.store = store
        self.took = took
        self._remembered: OrderedDict[str, tuple[float, Kept]] = OrderedDict()
        self._size = 0

    async def begun(
        self, tenant: str, response: str, facts: Sequence[AnyFact], *, last: bool = False
    ) -> Journal:
        """The journal of a new exchange, with its first facts; ``last``: and all of them.

        An upstream that gives an id again means the newer. Raises `ConversationBusy` if somebody
        still writes the older."""
        name = name_of(tenant, response)
        self._forget(name)
        journal = await Journal.begin(self.store, name, facts, last=last)
        if journal is None:
            async with await Journal.open(self.store, name):
                await self.store.delete(name)
            journal = await Journal.begin(self.store, name, facts, last=last)
        if journal is None:
            raise ConversationBusy(f"{name} was begun by somebody else at the same moment.")
        return journal

    async def reopened(self, tenant: str, response: str, *, wait: float = 0) -> Journal:
        """The journal of an exchange that did not end, to go on with."""
        name = name_of(tenant, response)
        self._forget(name)
        return await Journal.open(self.store, name, wait=wait)

    async def exchange(self, tenant: str, response: str) -> Kept | None:
        """The exchange that gave this response; None if this tenant has none."""
        if not is_id(response):
            return None
        one = await self._kept(name_of(tenant, response))
        if isinstance(one, str):
            one = await self._kept(name_of(tenant, one))
        return one if isinstance(one, Kept) else None

    async def _kept(self, name: str) -> Kept | str | None:
        at, found = self._remembered.get(name, (0.0, None))
        if found is not None and time.monotonic() - at < REMEMBERED_SECONDS:
            self._remembered.move_to_end(name)
            return found
        one = kept(await self._facts(name))
        if isinstance(one, Kept) and one.end_known and _size(one) <= LARGEST_REMEMBERED_BYTES:
            self._forget(name)
            self._remembered[name] = (time.monotonic(), one)
            self._size += _size(one)
            while self._size > REMEMBERED_BYTES:
                self._forget(next(iter(self._remembered)))
        return one

    def _forget(self, name: str) -> None:
        _, one = self._remembered.pop(name, (0.0, None))
        if one is not None:
            self._size -= _size(one)

    async def path(self, tenant: str, response: str) -> list[Kept]:
        """The exchanges up to this response, oldest first. Raises `ChainUnknown`."""
        path: list[Kept] = []
        wanted: str | None = response
        while wanted is not None:
            one = await self.exchange(tenant, wanted)
            if one is None:
                raise ChainUnknown(f"Response {wanted} is not in the journal.")
            if len(path) == LONGEST_CHAIN_EXCHANGES:
                raise ChainUnknown(f"The chain to {response} is too long to be rebuilt.")
            if path and one.id != wanted:
                # It was shown under another id than it was answered under.
                path[-1] = replace(path[-1], asked=replace(path[-1].asked, base=one.id))
            path.append(one)
            wanted = one.asked.base
        return path[::-1]

    async def outputs(
        self, tenant: str, calls: Mapping[str, Wire], anchor: Kept
    ) -> dict[str, bytes]:
        """For each of these calls: the output that was last sent for it on another branch of the
        chain that ends in ``anchor``.

        Call ids are no proof: some servers count their calls, so two chains can have the same id,
        name and arguments. An output counts only if it was sent in answer to a response of this
        very chain, and that response made the call."""
        chain = await self._chain(tenant, anchor)
        found: dict[str, bytes] = {}
        for key, call in calls.items():
            wanted = likeness(call)
            made_by = {
                one.id
                for one in chain
                if any(
                    _is_call(item, key) and likeness(decoded(item)) == wanted for item in one.said
                )
            }
            if not made_by:
                continue
            places = await self.store.find(Name(Naming.CALL, key))
            for place in places[:MOST_PLACES]:
                if not place.conversation.startswith(_prefix(tenant)):
                    continue
                response = unquote(place.conversation.rpartition("/")[2])
                one = await self.exchange(tenant, response)
                base = await self._base_id(tenant, one) if one is not None else None
                if one is None or base not in made_by:
                    continue
                output = next((item for item in reversed(one.items) if _is_output(item, key)), None)
                if output is not None:
                    found[key] = output
                    break
        return found

    async def _chain(self, tenant: str, anchor: Kept) -> list[Kept]:
        """The exchanges up to this one, as far as the journal has them."""
        chain = [anchor]
        while len(chain) < LONGEST_CHAIN_EXCHANGES and chain[-1].asked.base is not None:
            before = await self.exchange(tenant, chain[-1].asked.base)
            if before is None:
                break
            chain.append(before)
        return chain

    async def _base_id(self, tenant: str, one: Kept) -> str | None:
        """The id under which the response is stored that an exchange continued."""
        if one.asked.base is None:
            return None
        base = await self.exchange(tenant, one.asked.base)
        return base.id if base is not None else None

    async def is_anothers(self, tenant: str, name: Name) -> bool:
        """Does another tenant have this, and not this one? An item is whose upstream said it, where
        there is one: anybody can send its id."""
        if not is_id(name.id):
            return False
        places = await self.store.find(name)
        known = [place for place in places if place.conversation.startswith(f"{PREFIX}/")]
        ours = [place for place in known if place.conversation.startswith(_prefix(tenant))]
        theirs = [place for place in known if place not in ours]
        if name.naming is not Naming.ITEM or not ours or not theirs:
            return bool(theirs) and not ours
        return not await self._any_said(ours) and await self._any_said(theirs)

    async def item(self, tenant: str, id: str) -> bytes | None:
        """The item of this id, as it was seen last."""
        for place in await self.store.find(Name(Naming.ITEM, id)):
            if place.conversation.startswith(_prefix(tenant)):
                item = await self._item(place.conversation, place.seq)
                if item is not None and not _is_reference(item):
                    return item
        return None

    async def forget(self, tenant: str, response: str) -> bool:
        """Delete an exchange, under each id that leads to it; was it there?"""
        there = False
        for name in [name_of(tenant, one) for one in await self.ids(tenant, response)]:
            self._forget(name)
            there = await self.store.delete(name) or there
        return there

    async def ids(self, tenant: str, response: str) -> set[str]:
        """The ids that lead to the same exchange. That under which it began does not any more where
        an upstream has given it again."""
        ids = {response}
        one = kept(await self._facts(name_of(tenant, response)))
        if isinstance(one, str):
            ids.add(one)
            one = kept(await self._facts(name_of(tenant, one)))
        if isinstance(one, Kept) and one.answered.began_as is not None:
            began_as = one.answered.began_as
            if kept(await self._facts(name_of(tenant, began_as))) == one.id:
                ids.add(began_as)
        return ids

    async def _facts(self, name: str) -> list[AnyFact]:
        return [records.decoded(record) async for record in self.store.read(name)]

    async def _any_said(self, places: Sequence[Found]) -> bool:
        """Is an item part of an answer at any of these places?"""
        for place in places:
            async for record in self.store.read(place.conversation, after=place.seq - 1):
                if isinstance(records.decoded(record), ItemCompleted):
                    return True
                break
        return False

    async def _item(self, name: str, seq: int) -> bytes | None:
        async for record in self.store.read(name, after=seq - 1):
            fact = records.decoded(record)
            return fact.item if isinstance(fact, ItemAdded | ItemCompleted) else None
        return None


def name_of(tenant: str, *parts: str) -> str:
    """What is kept for a tenant under this: the id of a response, or more words than one. Ids come
    from outside, and must not be able to name another tenant's."""
    words = [part if _is_plain(part) else quote(part, safe="") for part in (tenant, *parts)]
    return "/".join([PREFIX, *words])


_is_plain: Final = re.compile(r"[A-Za-z0-9_.~-]*").fullmatch
"""Is there nothing in it that would be quoted? There never is, in what providers give."""


def _prefix(tenant: str) -> str:
    return f"{name_of(tenant)}/"


def is_id(text: str) -> bool:
    """Can it be the id of a response, or of a conversation?"""
    return 0 < len(text) <= LONGEST_ID_CHARACTERS and text.isprintable()


def _size(one: Kept) -> int:
    """About what it takes in memory."""
    return 1_000 + sum(map(len, one.items)) + sum(map(len, one.said)) + len(one.answered.response)


def _is_output(item: bytes, key: str) -> bool:
    return any(part.part is Part.OUTPUT and part.key == key for part in _parts(item))


def _made(one: Kept, key: str, wanted: bytes) -> bool:
    """Did this response make this very call?"""
    return any(_is_call(item, key) and likeness(decoded(item)) == wanted for item in one.said)


def _is_call(item: bytes, key: str) -> bool:
    return any(part.part is Part.CALL and part.key == key for part in _parts(item))


def _is_reference(item: bytes) -> bool:
    return any(part.part is Part.REFERENCE for part in _parts(item))


_parts = READINGS["responses"].read
