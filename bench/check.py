"""`check` and `mend` on a large session, against merely decoding every line of it."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

import lockstitch
from bench.formats import FORMATS, conversation
from bench.harness import Result, compare
from bench.sessions import rollout
from lockstitch.dialects import detect
from lockstitch.sessions.files import check_file, mended
from lockstitch.sessions.source import Source

LARGE_BYTES = 200_000_000
SMALL_BYTES = 20_000_000
DATA = Path(tempfile.gettempdir(), "lockstitch-bench")

CHECK_TARGET = 1.5
MEND_TARGET = 2.5
FORMAT_TARGET = 2.0
"""No format of messages is checked at less than half the speed of Chat Completions."""
CALLS = 20_000
FLAT_TARGET = 1.1
"""Peak memory on ten times the file, compared with the file: noise of the allocator allowed."""
START_LIMIT_SECONDS = 0.150


def run() -> Iterator[Result]:
    large = rollout(DATA / "large.jsonl", LARGE_BYTES)
    small = rollout(DATA / "small.jsonl", SMALL_BYTES)

    def decode() -> None:
        decoder = msgspec.json.Decoder()
        with large.open("rb") as lines:
            for line in lines:
                decoder.decode(line)

    def mend() -> None:
        with mended(Source(large), beside=DATA) as ready:
            assert ready.path is not None

    peer = "msgspec decoding every line"
    yield compare(
        "check 200 MB",
        ours=lambda: check_file(Source(large)),
        peer=decode,
        target=CHECK_TARGET,
        peer_is=peer,
    )
    yield compare("mend 200 MB", ours=mend, peer=decode, target=MEND_TARGET, peer_is=peer)
    chat = conversation("chat", CALLS)
    for name in FORMATS:
        if name == "chat":
            continue
        items = conversation(name, CALLS)
        assert detect(items).name == name
        assert lockstitch.check(items) == lockstitch.check(chat) == []
        yield compare(
            f"check a list, {name}",
            ours=partial(lockstitch.check, items),
            peer=partial(lockstitch.check, chat),
            target=FORMAT_TARGET,
            peer_is="the same conversation in chat",
        )
    yield Result(
        "check, peak memory",
        ours=_peak_mib(large),
        peer=_peak_mib(small),
        target=FLAT_TARGET,
        unit="MiB",
        peer_is="the same on 20 MB",
    )
    yield Result(
        "lockstitch --help",
        ours=_start_seconds(),
        peer=START_LIMIT_SECONDS,
        target=1.0,
        peer_is="the limit",
    )


def _peak_mib(path: Path) -> float:
    """Peak resident memory of a process that checks one file."""
    code = (
        "import resource, sys; from pathlib import Path;"
        "from lockstitch.sessions.files import check_file;"
        "from lockstitch.sessions.source import Source;"
        "check_file(Source(Path(sys.argv[1])));"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    return int(done.stdout) / 1024


def _start_seconds(repeats: int = 15) -> float:
    """The wall clock here, because a person waits for it; the median of many."""
    program = Path(sys.executable).with_name("lockstitch")
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([program, "--help"], stdout=subprocess.DEVNULL, env=os.environ, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)
