"""Kills writers of a SQLite store at random moments, and looks at what they leave behind.

Run as `python -m tests.store.sqlite_killing FOLDER KILLS SEED`. A writer is a fork of this
process, which has everything imported and no thread or connection of its own: a start costs
milliseconds. Each writer first checks what its killed predecessors had been told is written."""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import sys
import time
import traceback
from pathlib import Path

from lockstitch.core.records import Name, Naming, Record
from lockstitch.store.bodies import LARGE_BODY_BYTES
from lockstitch.store.sqlite import SqliteStore
from lockstitch.store.sqlite import checkpoints as sqlite_checkpoints

WRITERS = 8
KILLS_FOR_EACH_FILE = 10
"""So that logs which a kill left behind are opened, written on and killed again."""
LONGEST_LIFE_SECONDS = 0.03
CHECKPOINT_PAGES = 20
"""Checkpoints often enough that some are killed too."""
PATIENCE_SECONDS = 20.0

_WHOLE, _BROKEN = b"whole", b"broken"

Acknowledged = dict[str, int]
"""How many records of each conversation were acknowledged."""


def batch(conversation: str, after: int) -> list[Record]:
    """One append; it follows from where it stands alone. Every third has a large body."""
    size = after % 3 + 1
    body = f"{conversation} {after} ".encode() * (LARGE_BODY_BYTES // 8 if after % 3 == 2 else 20)
    return [
        Record(seq, b"%d of %d" % (seq - after, size), body, (Name(Naming.ITEM, f"item_{seq}"),))
        for seq in range(after + 1, after + size + 1)
    ]


async def check(store: SqliteStore, acknowledged: Acknowledged) -> None:
    """Everything acknowledged is there, every append is whole, and every name is found."""
    for number in range(WRITERS):
        conversation = f"conversation {number}"
        there = [record async for record in store.read(conversation)]
        least = acknowledged.get(conversation, 0)
        assert len(there) >= least, f"{conversation}: {least} acknowledged, {len(there)} there"
        after = 0
        while after < len(there):
            wanted = batch(conversation, after)
            found = there[after : after + len(wanted)]
            assert [(one.seq, one.payload, one.body, one.names) for one in found] == [
                (one.seq, one.payload, one.body, one.names) for one in wanted
            ], f"{conversation}: the append behind {after} is torn"
            after += len(wanted)
        for record in there[-3:]:
            places = [(one.conversation, one.seq) for one in await store.find(record.names[0])]
            assert (conversation, record.seq) in places


async def write(store: SqliteStore, conversation: str, pipe: int) -> None:
    claim = await store.claim(conversation, owner="writer", seconds=0)
    after = claim.length
    while True:
        records = batch(conversation, after)
        await store.append(claim, after, records)
        after += len(records)
        os.write(pipe, f"{conversation}\t{after}\n".encode())


async def live(path: Path, acknowledged: Acknowledged, pipe: int, *, writes: bool) -> None:
    async with await SqliteStore.open(path) as store:
        await check(store, acknowledged)
        os.write(pipe, _WHOLE + b"\n")
        if writes:
            names = [f"conversation {number}" for number in range(WRITERS)]
            await asyncio.gather(*(write(store, name, pipe) for name in names))


def fork(path: Path, acknowledged: Acknowledged, *, writes: bool) -> tuple[int, int]:
    """A writer: its process, and what it says."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    try:
        os.close(reading)
        asyncio.run(live(path, acknowledged, writing, writes=writes))
    except BaseException:
        os.write(writing, _BROKEN + b"\n" + traceback.format_exc().encode())
    os._exit(0)


def said(pipe: int, *, until: bytes | None) -> bytes:
    """What a writer says, up to a word or to its end."""
    text = b""
    while until is None or until not in text:
        if not select.select([pipe], [], [], PATIENCE_SECONDS)[0]:
            raise AssertionError(f"a writer hangs; it said {text!r}")
        some = os.read(pipe, 65_536)
        if not some:
            break
        text += some
    return text


def one_life(
    path: Path, acknowledged: Acknowledged, seconds: float | None, *, opens: bool = True
) -> int:
    """A writer that is killed some time after it has opened the store, or after it was started; or
    one that only looks. How many appends were acknowledged."""
    process, pipe = fork(path, acknowledged, writes=seconds is not None)
    text = said(pipe, until=_WHOLE + b"\n") if opens else b""
    if seconds is not None:
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
    text += said(pipe, until=None)
    os.waitpid(process, 0)
    os.close(pipe)
    if _BROKEN in text or (opens and _WHOLE not in text):
        raise AssertionError(text.decode())
    lines = [line for line in text.decode().splitlines() if "\t" in line]
    for line in lines:
        conversation, after = line.split("\t")
        acknowledged[conversation] = max(acknowledged.get(conversation, 0), int(after))
    return len(lines)


def main(folder: str, kills: str, seed: str) -> None:
    moments = random.Random(int(seed))
    sqlite_checkpoints.CHECKPOINT_PAGES = CHECKPOINT_PAGES
    appends = 0
    acknowledged: Acknowledged = {}
    for number in range(int(kills)):
        path = Path(folder) / f"{number // KILLS_FOR_EACH_FILE}.db"
        if number % KILLS_FOR_EACH_FILE == 0:
            acknowledged = {}
        seconds = moments.uniform(0, LONGEST_LIFE_SECONDS)
        # A third of them is killed while it may still be opening the store.
        appends += one_life(path, acknowledged, seconds, opens=moments.random() > 1 / 3)
        if number % KILLS_FOR_EACH_FILE == KILLS_FOR_EACH_FILE - 1 or number == int(kills) - 1:
            one_life(path, acknowledged, None)
    print(f"{kills} kills, {appends} appends acknowledged")


if __name__ == "__main__":
    main(*sys.argv[1:])
