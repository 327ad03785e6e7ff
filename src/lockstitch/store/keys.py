"""Keys of an encrypted store: 64 bytes each, from the environment, a file, or the caller.

The first key seals; all of them open. What they seal, and how, is in `sealing`. A key is never
shown: messages name it by its id, which tells nothing of it."""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Self

from lockstitch.core.records import SEALED, Record
from lockstitch.store.errors import NotAKey, WrongKey

KEY_BYTES = 64
"""Two keys of 256 bits: AES-SIV has one for the tag and one for the text."""
KEY_ID_BYTES = 8
"""Enough to tell the keys of one store apart; the tag proves which it was."""

KEY_VARIABLE = "LOCKSTITCH_STORE_KEY"
KEY_FILE_VARIABLE = "LOCKSTITCH_STORE_KEY_FILE"

_HEX = re.compile(rf"[0-9a-fA-F]{{{2 * KEY_BYTES}}}")


class Key:
    """One key."""

    __slots__ = ("id", "secret")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise NotAKey(
                f"A key has {KEY_BYTES} bytes; this one has {len(secret)}."
                " Make one with: lockstitch store key"
            )
        self.secret = secret
        self.id = sha256(b"lockstitch key id\0" + secret).digest()[:KEY_ID_BYTES]

    @classmethod
    def from_text(cls, text: str, *, where: str = "The key") -> Self:
        """A key as base64 or hex; ``where`` is what a message calls it."""
        if _HEX.fullmatch(text):
            return cls(bytes.fromhex(text))
        try:
            plain = text.replace("-", "+").replace("_", "/")
            secret = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        except (binascii.Error, ValueError):
            secret = b""
        if len(secret) != KEY_BYTES:
            raise NotAKey(
                f"{where} is not {KEY_BYTES} bytes as base64 or hex."
                " Make one with: lockstitch store key"
            )
        return cls(secret)

    def __repr__(self) -> str:
        return f"<Key {self.id.hex()}>"


class Keys:
    """The keys of a store: the first seals, all of them open."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys = {key.id: key for key in keys}
        if not self._keys:
            raise NotAKey("No key was given. Make one with: lockstitch store key")

    @classmethod
    def from_text(cls, text: str, *, where: str = "The key") -> Self:
        """Keys as text: one in each line; what is behind a # is a comment."""
        lines = (line.partition("#")[0].strip() for line in text.splitlines())
        found = [
            Key.from_text(line, where=f"{where}, line {number},")
            for number, line in enumerate(lines, start=1)
            if line
        ]
        if not found:
            raise NotAKey(f"{where} holds no key. Make one with: lockstitch store key")
        return cls(found)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as problem:
            raise NotAKey(
                f"The file of keys {os.fspath(path)} cannot be read: {problem.strerror}."
                " Check the path; a new key is made with: lockstitch store key"
            ) from None
        except UnicodeDecodeError:
            raise NotAKey(
                f"The file of keys {os.fspath(path)} is not text."
                " It holds one key in each line, as base64 or hex."
            ) from None
        return cls.from_text(text, where=f"The file of keys {os.fspath(path)}")

    @property
    def first(self) -> Key:
        """The one that seals."""
        return next(iter(self._keys.values()))

    def get(self, id: bytes) -> Key | None:
        return self._keys.get(id)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys.values())

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"<Keys {', '.join(key.id.hex() for key in self)}>"


def new_key() -> str:
    """A new key, as text."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def keys_from_environment(environment: Mapping[str, str] | None = None) -> Keys | None:
    """The keys that the environment names, itself or by a file; None if it names none."""
    given = os.environ if environment is None else environment
    text, path = given.get(KEY_VARIABLE), given.get(KEY_FILE_VARIABLE)
    if text and path:
        raise NotAKey(
            f"{KEY_VARIABLE} and {KEY_FILE_VARIABLE} are both set, and only one key can be the"
            " first. Unset one of them; a file may hold several keys."
        )
    if text:
        return Keys.from_text(text, where=KEY_VARIABLE)
    return Keys.from_file(path) if path else None


def checked_plain(record: Record, conversation: str, url: str) -> Record:
    """A record of a store that was opened without keys, if it needs none."""
    if record.payload.startswith(SEALED):
        raise WrongKey(
            f"Entry {record.seq} of {conversation!r} in {url} is encrypted, and no key was given."
            f" Set {KEY_VARIABLE} or {KEY_FILE_VARIABLE}, or pass keys."
        )
    return record
