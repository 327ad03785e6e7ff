"""The two servers that `bench.emulator` compares, each run as `python -m bench.servers NAME …`.

Prints its port, then answers every line on standard input with its CPU seconds so far."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from pathlib import Path

from aiohttp import web

from lockstitch.emulator import ALWAYS, Emulator, Script, Turn, reply


async def emulator(words: str) -> int:
    running = Emulator(script=Script([Turn(reply(words), times=ALWAYS)]))
    await running.start()
    return int(running.url.rpartition(":")[2])


async def bare(file: str) -> int:
    chunks = [event.encode() for event in json.loads(Path(file).read_text())]

    async def handle(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        await response.write_eof()
        return response

    application = web.Application()
    application.router.add_post("/v1/responses", handle)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return int(runner.addresses[0][1])


def _tell_cpu() -> None:
    for _ in sys.stdin:
        print(time.process_time(), flush=True)


async def main() -> None:
    name, argument = sys.argv[1:]
    port = await {"emulator": emulator, "bare": bare}[name](argument)
    print(port, flush=True)
    threading.Thread(target=_tell_cpu, daemon=True).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
