"""Opens a store by its URL. The driver of a store is imported when one of its kind is opened.

What a URL may look like is the table at the end; the keys of an encrypted store are in `keys`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

from lockstitch.store.contract import Store
from lockstitch.store.errors import CannotOpen, NotAKey, UnknownStore
from lockstitch.store.keys import Keys, keys_from_environment
from lockstitch.store.memory import MemoryStore

FORMS: Final = (
    "sqlite:///relative/path.db",
    "sqlite:////absolute/path.db",
    "postgresql://user@host/database",
    "memory:",
)
"""What a URL may look like, for messages."""


def open_store(
    url: str, *, keys: Keys | None = None, migrate: bool = False, create: bool = True
) -> Opening:
    """The store at a URL: `await open_store(url)`, or `async with open_store(url) as store`.

    ``keys`` make it an encrypted one; without them those of the environment are used, and where
    it names none, nothing is encrypted. ``migrate``: bring a store of an older version up to date,
    instead of refusing it. ``create=False``: a file that is not there is not begun.

    Raises `UnknownStore`, `CannotOpen`, `SchemaTooOld`, `SchemaTooNew`, `Damaged`, `NotAKey`."""
    return Opening(url, keys, _How(migrate, create))


class _How(NamedTuple):
    migrate: bool
    create: bool


class Opening:
    """A store that is about to be opened: await it, or enter it."""

    def __init__(self, url: str, keys: Keys | None, how: _How) -> None:
        self._url = url
        self._keys = keys
        self._how = how
        self._store: Store | None = None

    def __await__(self) -> Generator[Any, None, Store]:
        return self._open().__await__()

    async def __aenter__(self) -> Store:
        self._store = await self._open()
        return self._store

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._store is not None:
            await self._store.close()

    async def _open(self) -> Store:
        opener = _opener(self._url)
        # Before the store is opened: with a wrong key nothing should have been made.
        keys = self._keys if self._keys is not None else keys_from_environment()
        if keys is not None and not isinstance(keys, Keys):
            raise NotAKey(f"keys is no Keys but {type(keys).__name__}. Pass Keys.from_text(TEXT).")
        sealed = None if keys is None else _part("lockstitch.store.sealing", "encryption").Sealed
        store = await opener(self._url, self._how)
        return store if sealed is None else sealed(store, keys)


async def _memory(url: str, how: _How) -> Store:
    return MemoryStore()


async def _sqlite(url: str, how: _How) -> Store:
    path = url.removeprefix("sqlite:///")
    if path == url or not path:
        raise _unknown(url)
    if not how.create and not _is_there(path, url):
        raise CannotOpen(f"There is no store at {url}. Is the path right?")
    opened: Store = await _part("lockstitch.store.sqlite", "sqlite").SqliteStore.open(path)
    return opened


def _is_there(path: str, url: str) -> bool:
    try:
        return Path(path).exists()
    except OSError as error:
        raise CannotOpen(
            f"{url} cannot be opened: {error.strerror}. Look at the path, and who may read it."
        ) from None


async def _postgres(url: str, how: _How) -> Store:
    postgres = _part("lockstitch.store.postgres", "postgres").PostgresStore
    opened: Store = await postgres.open(url, migrate=how.migrate)
    return opened


_DRIVERS = {"sqlite": "apsw", "postgres": "asyncpg", "encryption": "cryptography"}
"""What each extra brings."""


def _part(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != _DRIVERS[extra]:
            raise
        raise UnknownStore(
            f"This store needs {_DRIVERS[extra]}, which is not installed."
            f" Run: pip install 'lockstitch[{extra}]'"
        ) from None


_Opener = Callable[[str, _How], Awaitable[Store]]

_OPENERS: Final[dict[str, _Opener]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "postgres": _postgres,
}


def _opener(url: str) -> _Opener:
    if not isinstance(url, str):
        raise UnknownStore(f"{url!r:.80} is not a store URL. Use one of: {', '.join(FORMS)}")
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in _OPENERS:
        raise _unknown(url)
    return _OPENERS[scheme]


_PATH: Final = re.compile(r"[\w./-]+")
"""What can only be the path of a file: nothing in it can part a password from a name."""


def _unknown(url: str) -> UnknownStore:
    if _PATH.fullmatch(url):
        return UnknownStore(
            f"{url} is not a store URL. For a SQLite file, write sqlite:///{url}; other forms:"
            f" {', '.join(FORMS[1:])}"
        )
    # A URL may hold a password, so it is not shown; its scheme cannot.
    scheme, colon, _ = url.partition(":")
    named = f"{scheme}:…" if colon and scheme.isalnum() else "This"
    return UnknownStore(f"{named} is not a store URL. Use one of: {', '.join(FORMS)}")
