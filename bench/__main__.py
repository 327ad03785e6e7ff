"""`make bench`: measure, print a table, write bench/results.json."""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path

from bench.harness import Result

PARTS = ("check", "emulator", "ledger", "stores", "runner", "mirror", "livekit", "gateway")
"""A module of each name has `run`. They are imported when they are run: some need a lot."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--only", choices=PARTS, help="one part")
    chosen = parser.parse_args().only
    print(f"{'':28}{'ours':>12}{'peer':>12}{'ratio':>8}{'target':>9}")
    results: list[Result] = []
    for name in PARTS:
        if chosen in (None, name):
            for result in import_module(f"bench.{name}").run():
                results.append(result)
                show(result)
    _write(results)
    return 0 if all(result.ok for result in results) else 1


def show(result: Result) -> None:
    verdict = "ok" if result.ok else "MISSED"
    print(
        f"{result.name:28}{result.ours:>9.3f} {result.unit:<3}{result.peer:>8.3f} {result.unit:<3}"
        f"{_short(result.ratio):>8}{'≤ ' + _short(result.target):>9}  {verdict}  "
        f"(peer: {result.peer_is})",
        flush=True,
    )


def _short(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.4f}"


def _write(results: list[Result]) -> None:
    rows = [
        {
            "name": result.name,
            "ours": result.ours,
            "peer": result.peer,
            "unit": result.unit,
            "peer_is": result.peer_is,
            "ratio": round(result.ratio, 3),
            "target": result.target,
            "ok": result.ok,
        }
        for result in results
    ]
    Path(__file__).with_name("results.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
