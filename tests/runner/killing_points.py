"""The points at which a life can end: every write to the store, and the edges of every tool.

The tools leave their effects in a file outside the store. Lives themselves are in `killing`."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
from msgspec import Struct

from lockstitch.core.records import Record, decoded
from lockstitch.runner import CallContext, tool
from lockstitch.store.contract import Claim
from lockstitch.store.sqlite import SqliteStore

PATIENCE_SECONDS = 20
"""A life that takes longer hangs; it is ended, and its test fails."""


class Point(Struct, frozen=True):
    """Where a life ends."""

    where: str
    """A write (`before append`), a fact (`after CallSettled`), the effect of a tool (`before book`)
    or an event (`after CallBegan`)."""
    nth: int = 1
    signal: int = signal.SIGKILL

    def __str__(self) -> str:
        return f"{signal.Signals(self.signal).name} {self.where} {self.nth}"


class Effect(Struct, frozen=True):
    """What a tool did to the world."""

    tool: str
    key: str
    process: int
    attempt: int


class Here:
    """This life; the tools and the store below pass its points."""

    folder: Path
    ends: Point | None = None
    passed: ClassVar[Counter[str]] = Counter()
    was_there = False


def passing(where: str) -> bool:
    """Nobody passes the point at which this life ends. True for one who was only interrupted."""
    Here.passed[where] += 1
    ends = Here.ends
    if ends is None or (ends.where, ends.nth) != (where, Here.passed[where]):
        return False
    Here.was_there = True
    os.kill(os.getpid(), ends.signal)
    return True


def written_down(name: str, line: object) -> None:
    """Add a line to a file in the folder of this life, outside the store, and sync it."""
    file = os.open(Here.folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, msgspec.json.encode(line) + b"\n")
        os.fsync(file)
    finally:
        os.close(file)


class PointedStore(SqliteStore):
    """A store of which every write is two points, and every fact, too."""

    async def append(
        self, claim: Claim, after: int, records: Sequence[Record], *, release: bool = False
    ) -> None:
        written = ["append", *(type(decoded(record)).__name__ for record in records)]
        for what in written:
            passing(f"before {what}")
        await super().append(claim, after, records, release=release)
        for what in written:
            passing(f"after {what}")


# --- tools -------------------------------------------------------------------------------------


def _effect(name: str, context: CallContext) -> str:
    effect = Effect(name, context.key, os.getpid(), context.attempt)
    written_down("effects", effect)
    return f"{name} by {effect.process}"


@tool
def book(flight: str, context: CallContext) -> str:
    """Book a flight. Interrupted, it ends all the same."""
    passing("before book")
    said = _effect("book", context)
    passing("after book")
    return said


@tool(effect="idempotent")
async def note(text: str, context: CallContext) -> str:
    """Note something. Interrupted, it hangs until it is cancelled."""
    if passing("before note"):
        await asyncio.Event().wait()
    said = _effect("note", context)
    if passing("after note"):
        await asyncio.Event().wait()
    return said


@tool(effect="read")
def look(context: CallContext) -> str:
    """Look. Interrupted, it ends when it is asked to."""
    if passing("before look"):
        context.wait(PATIENCE_SECONDS)
    said = _effect("look", context)
    if passing("after look"):
        context.wait(PATIENCE_SECONDS)
    return said


@tool
def exec_command(cmd: str) -> str:
    """Run a command."""
    ran = subprocess.run(cmd, shell=True, cwd=Here.folder, capture_output=True, check=False)
    passing("after exec_command")
    return f"exit code {ran.returncode}\n{ran.stdout.decode()}"


TOOLS = [book, note, look, exec_command]
