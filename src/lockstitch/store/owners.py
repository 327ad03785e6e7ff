"""Names the process that holds a claim, so that others can find out whether it still runs.

Each process that claims conversations locks a small file in the temporary folder. The operating
system releases the lock when the process ends, however it ends, and another process that can take
the lock knows that the owner is gone. This works on Linux and macOS, does not depend on process
ids, and works between containers that share the temporary folder. Where the file cannot be seen,
Linux still has `/proc`. Otherwise, and on Windows, nothing is known, and a claim is respected until
it runs out.

A wrong answer cannot damage a conversation: every write is checked against the claim's token."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import secrets
import socket
import stat
import tempfile
import threading
import time
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK_FILE_DAYS = 1
"""How long the lock file of a process that was killed is kept. Its claims run out long before."""

_PROC = Path("/proc")
_UNKNOWN = "-"
_OWNER: Final = re.compile(
    r"(?P<host>.*):(?P<pid>\d+):(?P<kernel>[^:]*):(?P<started>[^:]*):(?P<lock>[0-9a-f]+)-[0-9a-f]+",
    re.DOTALL,
)

_numbers = count()
_starting = threading.Lock()


class _Process(NamedTuple):
    """This process, as far as all of its claims have it in common."""

    pid: int
    name: str
    lock: str
    held: int | None
    """The descriptor of its lock file, open until it ends. None where there is no lock file."""


_this: _Process | None = None


def new_owner() -> str:
    """Return an owner for one claim of this process."""
    return f"{_this_process().name}-{next(_numbers):x}"


def is_gone(owner: str) -> bool:
    """Has the process that holds a claim certainly ended?"""
    named = _OWNER.fullmatch(owner)
    if named is None or named["host"] != socket.gethostname():
        return False
    if _this is not None and (_this.pid, _this.lock) == (os.getpid(), named["lock"]):
        return False  # opening and closing our own file would release the lock
    free = _is_free(named["lock"])
    if free is not None:
        return free
    return _is_gone_by_proc(int(named["pid"]), named["kernel"], named["started"])


def describe_owner(owner: str) -> str:
    """Name an owner for people: its process id and host."""
    named = _OWNER.fullmatch(owner)
    return owner if named is None else f"process {named['pid']} on {named['host']}"


def _this_process() -> _Process:
    global _this  # noqa: PLW0603
    with _starting:
        pid = os.getpid()
        if _this is None or _this.pid != pid:  # a forked process is another owner
            lock = secrets.token_hex(8)
            name = f"{socket.gethostname()}:{pid}:{_kernel()}:{_started(pid)}:{lock}"
            _this = _Process(pid, name, lock, _hold_lock_file(lock))
        return _this


def _forked() -> None:
    """A fork may have happened while another thread held the lock."""
    global _starting  # noqa: PLW0603
    _starting = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


# Lock files


def _hold_lock_file(lock: str) -> int | None:
    """Make the lock file of this process and lock it until the process ends; None if it cannot."""
    folder = _lock_folder(create=True)
    if fcntl is None or folder is None:
        return None
    _remove_old_lock_files(folder)
    path = folder / lock
    descriptor = None
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        # A record lock, not flock: a forked process does not inherit it, so it ends with this one.
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # the disk is full, or the file system has no locks
        if descriptor is not None:
            os.close(descriptor)
        _remove(path)
        return None
    atexit.register(_remove_own, path, os.getpid())
    return descriptor


def _is_free(lock: str) -> bool | None:
    """Is the lock of another process free? None if its file is not here or cannot be locked."""
    folder = _lock_folder(create=False)
    if fcntl is None or folder is None:
        return None
    try:
        descriptor = os.open(folder / lock, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        # Shared: two processes that ask at the same time do not take each other for the owner.
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return None
    else:
        return True
    finally:
        os.close(descriptor)


def _lock_folder(*, create: bool) -> Path | None:
    """The folder of this user's lock files; None if there is none that nobody else can change."""
    if fcntl is None:
        return None
    folder = Path(tempfile.gettempdir()) / f"lockstitch-{os.getuid()}"
    try:
        if create:
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700)
        found = folder.lstat()
    except OSError:
        return None
    private = found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o022
    return folder if stat.S_ISDIR(found.st_mode) and private else None


def _remove_old_lock_files(folder: Path) -> None:
    """Remove the files of processes that were killed, when their claims must have run out."""
    old = time.time() - LOCK_FILE_DAYS * 86_400
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < old and _is_free(entry.name):
                    _remove(folder / entry.name)


def _remove_own(path: Path, pid: int) -> None:
    if os.getpid() == pid:  # not in a forked process, which runs this too
        _remove(path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


# Linux, where the lock file cannot be seen: a service with a temporary folder of its own


def _is_gone_by_proc(pid: int, kernel: str, started: str) -> bool:
    if _UNKNOWN in (kernel, started) or kernel != _kernel():
        return False
    now = _started(pid)
    return now != started if now != _UNKNOWN else not _runs(pid)


def _kernel() -> str:
    """What process ids mean here: this start of the machine, and this namespace."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()[:8]
        return f"{boot}.{os.stat(_PROC / 'self/ns/pid').st_ino}"
    except OSError:
        return _UNKNOWN


def _started(pid: int) -> str:
    """When a process started, in the kernel's ticks: an id that is used again has another start."""
    try:
        # The name of the program is in brackets, and may contain anything.
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return _UNKNOWN


def _runs(pid: int) -> bool:
    """Does a process run? Also where `/proc` hides the processes of other users."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
