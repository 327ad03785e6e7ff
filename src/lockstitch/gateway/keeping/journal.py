"""The gateway's journal: exchanges kept in a store, each under its tenant and its response's id.

Whoever answers a request writes its exchange, and nobody else does. Reading is for everyone with
the same store: what one process heard, another can go on from. An output that was sent for a call
on another branch is found only behind the response that is proven to have made the call."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from lockstitch.core import records
from lockstitch.core.facts import AnyFact, ItemAdded, ItemCompleted
from lockstitch.core.items import Part
from lockstitch.core.records import Name, Naming
from lockstitch.dialects import by_name
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

MOST_PLACES: Final = 100
"""Of one tenant, where one call id is looked for. An id that is in more places is counted, not made
up, and proves nothing. Also how many continuations of one response are read."""

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

    async def outputs_behind(self, tenant: str, anchor: Kept, keys: Collection[str]) -> list[bytes]:
        """The outputs that were sent on other branches for the calls with these keys, which the
        client's anchor made and which are open there; the newest first."""
        found: list[bytes] = []
        for key in keys:
            sole: bool | None = None
            for child in await self._children(tenant, anchor) if _makes(anchor, key) else ():
                output = _first_output(child, key)
                if output is None:
                    continue
                if not child.asked.anchored:
                    # The gateway found its base, and took the newest response with that context.
                    if sole is None:
                        sole = await self._is_sole(tenant, anchor, key)
                    if not sole:
                        continue
                found.append(output)
        return found

    async def outputs_within(
        self, tenant: str, items: Sequence[Wire], keys: Collection[str]
    ) -> list[bytes]:
        """The outputs that were sent on other branches for the calls with these keys, in a history
        that was sent in full; the newest first.

        Call ids are no proof: some servers count their calls, so unrelated chains can have the same
        id, name and arguments. What proves that a stored response made the call is everything up to
        the call, if it is the context of that response and of no other."""
        found: list[bytes] = []
        for key in keys:
            at = next((n for n, item in enumerate(items) if _calls(item, key)), None)
            if at is None:
                continue
            makers = await self._makers(tenant, key, _context(items[: at + 1]))
            item_id = items[at].get("id")
            mine = [one for one in makers if not _contradicts(one, key, item_id)]
            if len(mine) != 1 or not mine[0].proven:
                continue
            for child in await self._children(tenant, mine[0].kept):
                output = _first_output(child, key)
                if output is not None and (child.asked.anchored or len(makers) == 1):
                    found.append(output)
        return found

    async def _children(self, tenant: str, one: Kept) -> list[Kept]:
        """The exchanges that continue this response, the newest first."""
        children: dict[str, Kept] = {}
        for base in await self.ids(tenant, one.id):
            places = await self._places(tenant, Name(Naming.RESPONSE, base))
            for place in places[:MOST_PLACES]:
                child = await self.exchange(tenant, unquote(place.rpartition("/")[2]))
                # A server may give an id again: what continued the older response is older, too.
                if (
                    child is not None
                    and child.asked.base == base
                    and child.asked.created >= one.asked.created
                ):
                    children.setdefault(child.id, child)
        return sorted(children.values(), key=lambda child: -child.asked.created)

    async def _is_sole(self, tenant: str, one: Kept, key: str) -> bool:
        """Is this the only response which made that call in its context?"""
        try:
            path = await self.path(tenant, one.id)
        except ChainUnknown:
            return False
        items = [item for each in path[:-1] for item in (*each.items, *each.said)]
        items += [*one.items, *_to_call(one, key)]
        makers = await self._makers(tenant, key, _context(map(decoded, items)))
        return len(makers) == 1 and makers[0].proven

    async def _makers(self, tenant: str, key: str, context: Sequence[bytes]) -> list[_Maker]:
        """The responses that made a call with this key at the end of this context, or that may
        have. None at all if there are too many to read."""
        places = await self._places(tenant, Name(Naming.CALL, key))
        if len(places) > MOST_PLACES:
            return []
        makers: dict[str, _Maker] = {}
        for place in places:
            one = await self.exchange(tenant, unquote(place.rpartition("/")[2]))
            if one is None or one.id in makers or not _makes(one, key):
                continue
            proven = await self._has_context(tenant, one, key, context)
            if proven is not False:
                makers[one.id] = _Maker(one, proven is True)
        return list(makers.values())

    async def _has_context(
        self, tenant: str, one: Kept, key: str, context: Sequence[bytes]
    ) -> bool | None:
        """Did this response make its call at the end of this context? None if not all of what
        comes before it is known."""
        left = len(context)
        now, said = one, _to_call(one, key)
        for _ in range(LONGEST_CHAIN_EXCHANGES):
            own = _context(map(decoded, (*now.items, *said)))
            if list(context[max(left - len(own), 0) : left]) != own:
                return False
            left -= len(own)
            if now.asked.conversation is not None:
                return None
            if now.asked.base is None:
                return left == 0
            before = await self.exchange(tenant, now.asked.base)
            if before is None:
                return None
            now, said = before, before.said
        return None

    async def _places(self, tenant: str, name: Name) -> list[str]:
        """The stored conversations of this tenant in which a name stands, each once."""
        found = await self.store.find(name)
        mine = [one.conversation for one in found if one.conversation.startswith(_prefix(tenant))]
        return list(dict.fromkeys(mine))

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


class _Maker(Struct, frozen=True):
    """A response that made a call."""

    kept: Kept
    proven: bool
    """All of its context is known, and is the one that was asked about."""


def _makes(one: Kept, key: str) -> bool:
    return any(_is_call(item, key) for item in one.said)


def _to_call(one: Kept, key: str) -> list[bytes]:
    """What a response said up to the first call with this key, and that call."""
    at = next(n for n, item in enumerate(one.said) if _is_call(item, key))
    return one.said[: at + 1]


def _context(items: Iterable[Wire]) -> list[bytes]:
    """The likeness of each item. Reasoning is passed over: clients drop it."""
    return [likeness(item) for item in items if item.get("type") != "reasoning"]


def _contradicts(maker: _Maker, key: str, item_id: object) -> bool:
    """Has the client's call another item id than this response gave its own?"""
    own = decoded(_to_call(maker.kept, key)[-1]).get("id")
    return bool(item_id and own) and item_id != own


def _first_output(one: Kept, key: str) -> bytes | None:
    """The output with which a request answers the call with this key that its base made."""
    for item in one.items:
        for part in _parts(item):
            if part.key == key and part.part in (Part.CALL, Part.OUTPUT):
                # Behind another call with that key an output belongs to that one.
                return item if part.part is Part.OUTPUT else None
    return None


def _is_call(item: bytes, key: str) -> bool:
    return any(part.part is Part.CALL and part.key == key for part in _parts(item))


def _calls(item: Wire, key: str) -> bool:
    return any(part.part is Part.CALL and part.key == key for part in _RESPONSES.read(item))


def _is_reference(item: bytes) -> bool:
    return any(part.part is Part.REFERENCE for part in _parts(item))


_parts = READINGS["responses"].read
_RESPONSES = by_name("responses")
