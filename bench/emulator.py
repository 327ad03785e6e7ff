"""The emulator's CPU for a streamed response, against a bare handler that writes the same bytes.

Each server is a process of its own that tells its CPU time when asked; the client is this one.
Both answer the same request with the same events, one write for each."""

from __future__ import annotations

import http.client
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.harness import REPEATS, Result

EVENTS = 200
TARGET = 1.5
RESPONSES_A_REPEAT = 150
STREAMS = 100
# created, in_progress, item added, part added, …, text done, part done, item done, completed
_EVENTS_AROUND_THE_TEXT = 8
REQUEST = json.dumps({"model": "gpt-5.5", "input": "go", "stream": True, "store": False}).encode()


class Server:
    """A server in a process of its own (`bench.servers`)."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.servers", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self._line())

    def cpu(self) -> float:
        """CPU seconds it has used so far."""
        assert self._process.stdin is not None
        print("cpu", file=self._process.stdin, flush=True)
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate()


def words_for(events: int) -> str:
    """A text that is streamed in so many events, those around it included."""
    return " ".join(f"word{number}" for number in range(events - _EVENTS_AROUND_THE_TEXT))


def run() -> Iterator[Result]:
    emulator = Server("emulator", words_for(EVENTS))
    said = _ask(http.client.HTTPConnection("127.0.0.1", emulator.port))
    events = [event + b"\n\n" for event in said.split(b"\n\n")[:-1]]
    assert len(events) == EVENTS, len(events)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "events.json")
        file.write_text(json.dumps([event.decode() for event in events]))
        bare = Server("bare", str(file))
        try:
            yield from _compared(emulator, bare)
        finally:
            emulator.stop()
            bare.stop()


def _compared(emulator: Server, bare: Server) -> Iterator[Result]:
    peer = "bare aiohttp handler, same bytes"
    yield _side_by_side(f"emulate, {EVENTS} events", emulator, bare, peer, _one_after_another)
    yield _side_by_side(f"emulate, {STREAMS} at once", emulator, bare, peer, _all_at_once)


def _side_by_side(name: str, ours: Server, peer: Server, peer_is: str, load: object) -> Result:
    assert callable(load)
    times: dict[Server, list[float]] = {ours: [], peer: []}
    for repeat in range(REPEATS + 1):
        for server in (peer, ours):
            before = server.cpu()
            responses = load(server.port)
            spent = server.cpu() - before
            if repeat:  # the first is a warm-up
                times[server].append(spent / responses * 1000)
    return Result(
        name,
        ours=statistics.median(times[ours]),
        peer=statistics.median(times[peer]),
        target=TARGET,
        unit="ms",
        peer_is=peer_is,
    )


def _one_after_another(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for _ in range(RESPONSES_A_REPEAT):
        _ask(connection)
    connection.close()
    return RESPONSES_A_REPEAT


def _all_at_once(port: int) -> int:
    """As many streams as the emulator must serve at the same time; each must be whole."""
    with ThreadPoolExecutor(STREAMS) as pool:
        connections = [http.client.HTTPConnection("127.0.0.1", port) for _ in range(STREAMS)]
        for said in pool.map(_ask, connections):
            assert len(re.findall(rb"^event: ", said, re.MULTILINE)) == EVENTS
    return STREAMS


def _ask(connection: http.client.HTTPConnection) -> bytes:
    headers = {"Authorization": "Bearer any", "Content-Type": "application/json"}
    connection.request("POST", "/v1/responses", REQUEST, headers)
    return connection.getresponse().read()
