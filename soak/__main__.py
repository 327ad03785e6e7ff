"""`python -m soak`: runs one, and says what is wrong; 1 if anything is."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from pathlib import Path

from soak.running import Options, Soak, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of faults and of what clients do")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--think", type=float, default=6.0, help="seconds between two turns")
    parser.add_argument("--keep", type=Path, help="a folder for logs and journal, which stay")
    parser.add_argument("--progress", action="store_true", help="a line each 10 s, also in a file")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = Options(
        chosen.minutes,
        chosen.connections,
        chosen.seed,
        chosen.store,
        chosen.workers,
        chosen.think,
        chosen.progress or sys.stdout.isatty(),
        chosen.keep,
    )
    began = time.monotonic()
    soak = asyncio.run(run(options))
    _tell(soak, time.monotonic() - began)
    return 1 if soak.findings.wrong else 0


def _tell(soak: Soak, seconds: float) -> None:
    findings, storm, options = soak.findings, soak.storm, soak.options
    print(
        f"\n{options.connections} connections, {options.minutes:g} minutes, seed {options.seed},"
        f" {options.store}, {options.workers} workers; {seconds:.0f} s in all"
    )
    for name, value in sorted(findings.counts.items()):
        print(f"  {value:>9,}  {name}")
    print(f"  {storm.struck:>9,}  faults struck; upstreams killed {storm.kills} times")
    for name in ("replays_total", "retries_total", "clients_gone_total", "events_total"):
        print(f"  {soak.metrics.get(name, 0):>9,.0f}  {name} of the gateway")
    print(f"  rules broken at the upstreams: {dict(storm.broken)}")
    if soak.growth is not None and soak.base is not None:
        growth, base = soak.growth, soak.base
        print(
            f"  memory {base.resident_bytes / 2**20:.0f} MiB at the start, {growth.first_mib:.0f}"
            f" after the warm-up, {growth.last_mib:.0f} at the end:"
            f" {growth.mib_per_minute:+.2f} MiB a minute"
            f"{'' if growth.full else ', of which some is kept on purpose'}"
        )
        print(
            f"  files {growth.files_per_minute:+.1f} a minute; threads {growth.first_threads} to"
            f" {growth.last_threads}; store {soak.store_bytes / 2**20:.0f} MiB for"
            f" {findings.kept_bytes / 2**20:.0f} MiB of items"
        )
    if not findings.wrong:
        print("Nothing is wrong.")
        return
    print("WRONG:")
    for kind, told in findings.wrong.items():
        print(f"  {kind}: {findings.wrong_counts[kind]} times")
        for line in told:
            print(f"    {line}")


if __name__ == "__main__":
    sys.exit(main())
