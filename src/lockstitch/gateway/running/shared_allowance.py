"""One allowance for all workers: a table in a file that each of them has in its memory.

A request counts for its key wherever it is served. The file belongs to the parent and is gone with
it. What a worker that died had under way, the parent takes back. The rules are `allowance`."""

from __future__ import annotations

import mmap
import os
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from lockstitch.gateway.access.allowance import Allowance, Bucket, Exhausted
from lockstitch.gateway.config.model import Key

if sys.platform != "win32":  # where there are no workers
    import fcntl

FILE_VARIABLE: Final = "LOCKSTITCH_ALLOWANCE_FILE"
PLACE_VARIABLE: Final = "LOCKSTITCH_WORKER"
"""Which worker it is, and of how many: `0/4`."""

SLOTS: Final = 8192
"""Names of keys in the life of one gateway. A file this size is mostly empty, and then costs
nothing."""

_ID_BYTES: Final = 16
_BUCKET: Final = struct.Struct(f"={_ID_BYTES}sdd")
_COUNT: Final = struct.Struct("=I")


class SharedAllowance(Allowance):
    """The allowance of a gateway, seen from one of its workers. Time must be that of a clock which
    all of them share."""

    def __init__(self, path: str, *, place: int, workers: int) -> None:
        super().__init__()
        self._place = place
        self._workers = workers
        self._size = _BUCKET.size + workers * _COUNT.size
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if os.fstat(self._file).st_size < SLOTS * self._size:
            os.ftruncate(self._file, SLOTS * self._size)
        self._table = mmap.mmap(self._file, SLOTS * self._size)

    def take(self, key: Key, now: float) -> Exhausted | None:
        with self._locked():
            at = self._slot(key.name)
            if at is None:  # no room: better counted here than nowhere
                return super().take(key, now)
            name, filled, moment = _BUCKET.unpack_from(self._table, at)
            bucket = Bucket(filled, moment, self._running(at))
            refused = bucket.take(key, now)
            _BUCKET.pack_into(self._table, at, name, bucket.filled, bucket.at)
            if refused is None:
                self._count(at, 1)
            return refused

    def give_back(self, key: Key) -> None:
        with self._locked():
            at = self._slot(key.name)
            if at is None:
                super().give_back(key)
            else:
                self._count(at, -1)

    def keep_only(self, keys: Iterable[Key]) -> None:
        """Nothing to do: a name costs the same whether it is used or not."""

    def forget_worker(self, place: int) -> None:
        """A worker died: nothing of it is under way."""
        with self._locked():
            for slot in range(SLOTS):
                at = slot * self._size
                if self._table[at : at + _ID_BYTES].strip(b"\0"):
                    _COUNT.pack_into(self._table, self._place_of(at, place), 0)

    def close(self) -> None:
        self._table.close()
        os.close(self._file)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # The system lets go of it if its holder is killed.
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _slot(self, name: str) -> int | None:
        """Where the bucket of that name is, which begins full; None: there is no room."""
        wanted = sha256(name.encode()).digest()[:_ID_BYTES]
        first = int.from_bytes(wanted[:4], "big")
        for step in range(SLOTS):
            at = (first + step) % SLOTS * self._size
            found = self._table[at : at + _ID_BYTES]
            if found == wanted:
                return at
            if not found.strip(b"\0"):
                _BUCKET.pack_into(self._table, at, wanted, float("inf"), 0.0)
                return at
        return None

    def _running(self, at: int) -> int:
        counts = self._place_of(at, 0), self._place_of(at, self._workers)
        return sum(one for (one,) in _COUNT.iter_unpack(self._table[counts[0] : counts[1]]))

    def _count(self, at: int, by: int) -> None:
        place = self._place_of(at, self._place)
        (count,) = _COUNT.unpack_from(self._table, place)
        _COUNT.pack_into(self._table, place, max(0, count + by))

    def _place_of(self, at: int, place: int) -> int:
        return at + _BUCKET.size + place * _COUNT.size


def allowance_here(environment: Mapping[str, str] | None = None) -> Allowance:
    """The allowance of this process: shared, if it is one of several workers."""
    environment = os.environ if environment is None else environment
    path = environment.get(FILE_VARIABLE)
    if not path:
        return Allowance()
    place, _, workers = environment.get(PLACE_VARIABLE, "0/1").partition("/")
    return SharedAllowance(path, place=int(place), workers=int(workers))
