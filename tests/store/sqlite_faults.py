"""A disk that fails when it is told to: a VFS of SQLite under every connection that is opened."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from enum import Enum

import apsw


class Fault(Enum):
    """How the disk fails, and in which calls it can."""

    IO = (apsw.SQLITE_IOERR, ("write", "sync", "truncate", "open"))
    FULL = (apsw.SQLITE_FULL, ("write",))
    READ_ONLY = (apsw.SQLITE_READONLY, ("write",))
    READ = (apsw.SQLITE_IOERR, ("read",))

    def __init__(self, code: int, calls: tuple[str, ...]) -> None:
        self.code = code
        self.calls = calls


class Disk:
    """Counts the calls that could fail; fails the nth, or all, or none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fault = Fault.IO
        self._fails: Callable[[int], bool] = lambda _: False
        self._counted = 0
        self._works = False
        self.injected = 0
        self.calls: list[str] = []
        """Every call, in order; but readings."""

    def fail_nth(self, fault: Fault, nth: int) -> None:
        """Fail one call, the nth from now."""
        self._fault, self._fails = fault, lambda call: call == nth

    def fail_all(self, fault: Fault) -> None:
        self._fault, self._fails = fault, lambda _: True
        self._works = False

    def work(self) -> None:
        """Fail and count nothing, for now."""
        self._works = True

    def go_on(self) -> None:
        """Fail again what it was told to fail."""
        self._works = False

    def called(self, call: str) -> None:
        with self._lock:
            if call != "read":
                self.calls.append(call)
            if self._works or call not in self._fault.calls:
                return
            self._counted += 1
            if not self._fails(self._counted):
                return
            self.injected += 1
        raise apsw.exception_for(self._fault.code)


class _Vfs(apsw.VFS):
    def __init__(self, name: str, disk: Disk) -> None:
        self._disk = disk
        super().__init__(name, base="", makedefault=True, maxpathname=0)

    def xOpen(self, name, flags):  # noqa: N802
        self._disk.called("open")
        return _File(self._disk, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name, flags) -> None:
        self._disk = disk
        super().__init__("unix", name, flags)

    def xRead(self, amount, offset):  # noqa: N802
        self._disk.called("read")
        return super().xRead(amount, offset)

    def xWrite(self, data, offset):  # noqa: N802
        self._disk.called("write")
        super().xWrite(data, offset)

    def xSync(self, flags):  # noqa: N802
        self._disk.called("sync")
        super().xSync(flags)

    def xTruncate(self, size):  # noqa: N802
        self._disk.called("truncate")
        super().xTruncate(size)


@contextlib.contextmanager
def faulty_disk() -> Iterator[Disk]:
    """Every connection that is opened meanwhile is on a disk that can fail."""
    disk = Disk()
    vfs = _Vfs("faulty", disk)
    try:
        yield disk
    finally:
        vfs.unregister()
