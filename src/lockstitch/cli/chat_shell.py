"""One command in a shell: its time limit, its end, and as much of its output as a model can use."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

SHELL_SECONDS: Final = 120.0
"""What a command may take: a run of tests does, a server does not."""

MOST_SHELL_BYTES: Final = 64 * 1024
"""About 16,000 tokens are kept of what a command prints. The rest is read and thrown away, so that
the command does not wait for a reader."""

DRAIN_SECONDS: Final = 1.0
"""How long output is waited for when the command has ended: what left its group may hold the pipe
open for ever."""

_CHUNK_BYTES: Final = 65_536


async def shell(command: str, folder: Path, seconds: float) -> str:
    """Run a command. What it printed until it was stopped is told too, and that it was stopped.

    A cancel ends the command, and is answered with an output: nobody has to guess."""
    # A pipe of our own: asyncio's lets nobody know of the end while anything holds it open.
    ours, theirs = os.pipe()
    async with _read(ours) as printed:
        try:
            process = await asyncio.create_subprocess_shell(
                command,
                cwd=folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                # A group of its own, to be ended as a whole; and Ctrl-C is ours to pass on.
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        try:
            async with asyncio.timeout(seconds):
                ended = f"Exit code {await process.wait()}."
        except TimeoutError:
            ended = f"Stopped: it took longer than {seconds:g} seconds."
        except asyncio.CancelledError:
            ended = "Stopped by the user."
        finally:
            _kill(process)
        await process.wait()
    return f"{printed}{ended}"


@asynccontextmanager
async def _read(descriptor: int) -> AsyncIterator[_Printed]:
    """What is printed into a pipe: all of it, or until nobody waits for it any longer."""
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb")
    )
    printed = _Printed()
    reading = asyncio.create_task(printed.read(stream))
    try:
        yield printed
        await asyncio.wait([reading], timeout=DRAIN_SECONDS)
    finally:
        reading.cancel()
        transport.close()


def _kill(process: asyncio.subprocess.Process) -> None:
    """End the command with all that it began and that did not leave its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class _Printed:
    """The first of what was printed, and how much more there was."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._more = 0

    async def read(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(_CHUNK_BYTES):
            room = MOST_SHELL_BYTES - len(self._kept)
            self._kept += chunk[:room]
            self._more += max(0, len(chunk) - room)

    def __str__(self) -> str:
        text = self._kept.decode(errors="replace")
        if text and not text.endswith("\n"):
            text += "\n"
        return f"{text}… and {self._more:,} bytes more.\n" if self._more else text
