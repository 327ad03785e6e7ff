"""A session in a process that is killed at an exact point.

Run as `python -m tests.realtime.killing URL FOLDER WHERE NTH`. The points, the store that has them
and the tools are those of the runner's own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from lockstitch.realtime import Session
from lockstitch.realtime.websocket import websocket
from tests.realtime.hearing import come_to, user
from tests.runner.killing_points import Here, Point, PointedStore, book, note

THREAD = "voice"
FINAL = "It is booked."
TOOLS = [book, note]
CONFIGURED = {"output_modalities": ["text"]}


async def live(url, folder):
    async with await PointedStore.open(folder / "voice.db") as store:
        session = await Session.open(
            websocket(url, key="any"),
            session=CONFIGURED,
            tools=TOOLS,
            thread=THREAD,
            store=store,
        )
        async with session:
            await session.change(added=[user("Book it.", "first")])
            await session.respond()
            await come_to(session, FINAL)


if __name__ == "__main__":
    url, folder, where, nth = sys.argv[1:]
    Here.folder, Here.ends = Path(folder), Point(where, int(nth))
    asyncio.run(live(url, Path(folder)))
