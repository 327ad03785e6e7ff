"""Encryption at rest: a store around a store, whose payloads and bodies nobody else can read.

What is kept in the open: conversations, positions, times, lengths and the names that records are
found by. AES-SIV gives equal bytes for an equal body of a conversation, so that a large one is
still kept once. Keys are in `keys`, and the change of keys is in `rotation`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import Final, Self

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from lockstitch.core.records import SEALED, Name, Record
from lockstitch.store.contract import Claim, Found, Stats, Store, Summary
from lockstitch.store.errors import Damaged, WrongKey
from lockstitch.store.keys import KEY_ID_BYTES, Key, Keys

_VERSION: Final = b"\1"
_ID_STARTS = len(SEALED) + len(_VERSION)
_TEXT_STARTS = _ID_STARTS + KEY_ID_BYTES

_TAG_BYTES = 16
"""AES-SIV puts its tag first."""


class Seal:
    """Seals and opens records: the mathematics, without a store."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self._ciphers = {key.id: AESSIV(key.secret) for key in keys}
        self._first = self._ciphers[keys.first.id]
        self._header = SEALED + _VERSION + keys.first.id

    def sealed(self, conversation: str, record: Record) -> Record:
        """The record as it is kept.

        A body is bound to its conversation and to nothing else, or an equal one would not be
        equal bytes. The payload is bound to its position and to the body, so that neither can be
        put in another's place."""
        body = record.body
        if body is not None:
            body = self._first.encrypt(body, _of_body(conversation))
        bound = _of_payload(conversation, record.seq, body)
        payload = self._header + self._first.encrypt(record.payload, bound)
        return msgspec.structs.replace(record, payload=payload, body=body)

    def opened(self, conversation: str, record: Record, url: str) -> Record:
        """The record as it was given; ``url`` is for the messages."""
        kept = record.payload
        if not kept.startswith(SEALED):
            return record
        if kept[len(SEALED) : _ID_STARTS] != _VERSION:
            raise WrongKey(
                f"Entry {record.seq} of {conversation!r} in {url} is sealed in a way that this"
                " version of Lockstitch does not know. Upgrade it."
            )
        key_id = kept[_ID_STARTS:_TEXT_STARTS]
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise WrongKey(
                f"Entry {record.seq} of {conversation!r} in {url} is encrypted with the key"
                f" {key_id.hex()}, but the keys given are {_listed(self.keys)}. Add that key after"
                " the first one."
            )
        body = record.body
        try:
            payload = cipher.decrypt(
                kept[_TEXT_STARTS:], _of_payload(conversation, record.seq, body)
            )
            if body is not None:
                body = cipher.decrypt(body, _of_body(conversation))
        except InvalidTag:
            raise Damaged(
                f"Entry {record.seq} of {conversation!r} in {url} does not open with its own key:"
                " its bytes were changed, or belong elsewhere. Restore the store from a backup."
            ) from None
        return msgspec.structs.replace(record, payload=payload, body=body)

    def is_current(self, record: Record) -> bool:
        """Is it sealed, and with the first key?"""
        return record.payload.startswith(self._header)


def _of_body(conversation: str) -> list[bytes]:
    return [b"body", conversation.encode()]


def _of_payload(conversation: str, seq: int, sealed_body: bytes | None) -> list[bytes]:
    tag = b"none" if sealed_body is None else b"some" + sealed_body[:_TAG_BYTES]
    return [b"payload", conversation.encode(), b"%d" % seq, tag]


def _listed(keys: Iterable[Key]) -> str:
    return ", ".join(key.id.hex() for key in keys)


class Sealed:
    """A store whose records are sealed before they reach the one inside.

    Records that are not sealed are read as they are: a store may become an encrypted one. It is
    closed with the one inside."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self.inner = store
        self.seal = Seal(keys)

    @property
    def url(self) -> str:
        return self.inner.url

    async def begin(
        self,
        conversation: str,
        records: Sequence[Record],
        *,
        owner: str,
        seconds: float,
        release: bool = False,
    ) -> Claim | None:
        sealed = [self.seal.sealed(conversation, one) for one in records]
        return await self.inner.begin(
            conversation, sealed, owner=owner, seconds=seconds, release=release
        )

    async def append(
        self, claim: Claim, after: int, records: Sequence[Record], *, release: bool = False
    ) -> None:
        sealed = [self.seal.sealed(claim.conversation, one) for one in records]
        await self.inner.append(claim, after, sealed, release=release)

    async def read(
        self, conversation: str, *, after: int = 0, limit: int | None = None
    ) -> AsyncIterator[Record]:
        async for record in self.inner.read(conversation, after=after, limit=limit):
            yield self.seal.opened(conversation, record, self.url)

    async def replace(self, conversation: str, records: Sequence[Record]) -> None:
        sealed = [self.seal.sealed(conversation, one) for one in records]
        await self.inner.replace(conversation, sealed)

    # What has nothing to hide

    async def claim(
        self, conversation: str, *, owner: str, seconds: float, wait: float = 0
    ) -> Claim:
        return await self.inner.claim(conversation, owner=owner, seconds=seconds, wait=wait)

    async def renew(self, claim: Claim, *, seconds: float) -> None:
        await self.inner.renew(claim, seconds=seconds)

    async def release(self, claim: Claim) -> None:
        await self.inner.release(claim)

    async def find(self, name: Name) -> list[Found]:
        return await self.inner.find(name)

    def conversations(self) -> AsyncIterator[Summary]:
        return self.inner.conversations()

    async def delete(self, conversation: str) -> bool:
        return await self.inner.delete(conversation)

    async def delete_unchanged_since(self, moment: float) -> int:
        return await self.inner.delete_unchanged_since(moment)

    async def vacuum(self) -> None:
        await self.inner.vacuum()

    async def stats(self) -> Stats:
        return await self.inner.stats()

    async def close(self) -> None:
        await self.inner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Sealed {self.inner!r}>"
