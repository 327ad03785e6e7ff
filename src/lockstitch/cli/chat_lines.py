"""What somebody types, line by line, without keeping an event loop waiting."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from typing import Final

_CHUNK_BYTES: Final = 65_536


class Lines:
    """Lines of an open file, as they come, in order."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._over = False
        # It may wait for a line that never comes, and must not keep the program from ending. So it
        # reads the file itself: Python's own object has a lock, which a program cannot end with.
        threading.Thread(target=self._read, name="lines", daemon=True).start()

    async def next(self) -> str | None:
        """The next line; None when there are no more, again and again."""
        if self._over:
            return None
        line = await self._queue.get()
        self._over = line is None
        return line

    def end(self) -> None:
        """Say to whoever waits that no more lines come."""
        self.drop()
        self._queue.put_nowait(None)

    def drop(self) -> None:
        """Forget what was typed and not read yet: it cannot be an answer to what comes now."""
        while not self._queue.empty():
            if self._queue.get_nowait() is None:
                self._queue.put_nowait(None)
                return

    def _read(self) -> None:
        rest = b""
        with suppress(OSError):
            while chunk := os.read(self._descriptor, _CHUNK_BYTES):
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    self._give(line.decode(errors="replace"))
        if rest:
            self._give(rest.decode(errors="replace"))
        self._give(None)

    def _give(self, line: str | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._queue.put_nowait, line)
