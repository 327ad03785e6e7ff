"""A timer that is exact to microseconds, for uvloop on Linux.

Event loops' own timers tick in milliseconds; in one, six events of 128 streams fall together, and a
relay has them all for one wake-up, which is most of what an event costs. Upstreams do
not speak in chorus. Python has `os.timerfd_create` from 3.13 on; this is the same call."""

from __future__ import annotations

import asyncio
import ctypes
import heapq
import os
import time
from collections.abc import Callable
from itertools import count

_C = ctypes.CDLL(None, use_errno=True)


class _Setting(ctypes.Structure):
    """`struct itimerspec`."""

    _fields_ = (
        ("interval_seconds", ctypes.c_long),
        ("interval_nanoseconds", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
    )


class Timer:
    """Calls are made when they are due, by `time.monotonic_ns`."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()
        self._setting = _Setting()
        self._file: int = _C.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        asyncio.get_running_loop().add_reader(self._file, self._ring)

    def call_at(self, when_ns: int, call: Callable[[], None]) -> None:
        heapq.heappush(self._due, (when_ns, next(self._numbers), call))
        if self._due[0][0] == when_ns:
            self._arm()

    def _ring(self) -> None:
        try:
            os.read(self._file, 8)
        except BlockingIOError:
            return
        due = self._due
        while due and due[0][0] <= time.monotonic_ns():
            heapq.heappop(due)[2]()
        if due:
            self._arm()

    def _arm(self) -> None:
        setting = self._setting
        setting.seconds, setting.nanoseconds = divmod(self._due[0][0], 1_000_000_000)
        _C.timerfd_settime(self._file, 1, ctypes.byref(setting), None)  # 1: TFD_TIMER_ABSTIME
