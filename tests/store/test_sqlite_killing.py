"""Writers of a SQLite store that are killed: `kill -9`, at random moments, two hundred times."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

KILLS = 200
PATIENCE_SECONDS = 200


def test_killing_writers_loses_no_append_that_had_returned_and_tears_none(tmp_path):
    seed = random.randrange(1_000_000)
    command = ["-m", "tests.store.sqlite_killing", str(tmp_path), str(KILLS), str(seed)]
    run = subprocess.run(
        [sys.executable, *command],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    print("seed", seed, run.stdout)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(f"{KILLS} kills, ")
