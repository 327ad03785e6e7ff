"""Who holds a claim, in words that say whether that process still lives.

Only a process of the same machine, since its last start, in the same namespace can be judged;
of every other nothing is known, and its claim is respected until it runs out."""

from __future__ import annotations

import os
import secrets
import socket
from functools import lru_cache
from itertools import count
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_UNKNOWN = "-"
_numbers = count()


def new_owner() -> str:
    """This process, as the owner of one claim."""
    return f"{_process(os.getpid())}{next(_numbers):x}"


@lru_cache(maxsize=1)
def _process(pid: int) -> str:
    """What is the same for all claims of a process; one that was forked has another id."""
    return f"{socket.gethostname()}:{pid}:{_world()}:{_started(pid)}:{secrets.token_hex(4)}-"


def is_gone(owner: str) -> bool:
    """Is it certain that the process which this owner names has ended?"""
    host, _, rest = owner.rpartition(":")[0].partition(":")
    pid, _, rest = rest.partition(":")
    world, _, started = rest.rpartition(":")
    if host != socket.gethostname() or not pid.isdigit() or not started.isdigit():
        return False
    if world != _world() or _UNKNOWN in world:
        return False
    now = _started(int(pid))
    return now != started if now != _UNKNOWN else not _is_there(int(pid))


def _world() -> str:
    """What process ids mean here: since when the machine runs, and in which namespace we are."""
    try:
        return f"{_BOOT.read_text().strip()[:8]}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return _UNKNOWN


def _is_there(pid: int) -> bool:
    """Where what is known of other users' processes is hidden, at least that they live is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _started(pid: int) -> str:
    """When a process started, in the kernel's ticks: an id that is used again has another start."""
    try:
        # The name of the program stands in brackets, and may hold anything.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return _UNKNOWN
