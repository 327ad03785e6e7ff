"""The example programs run, without a key."""

from __future__ import annotations

import asyncio
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from lockstitch import check
from lockstitch.store.journal import kept_ledger
from lockstitch.store.opening import open_store

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """Runs the example, and gives what it printed and the thread that it leaves."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    example = runpy.run_path(str(EXAMPLES / "watch.py"))

    def run(*arguments):
        file = tmp_path / "watch.db"
        asyncio.run(example["main"](example["parsed"](["--store", str(file), *arguments])))
        return asyncio.run(_history(file))

    return run


async def _history(file):
    async with open_store(f"sqlite:///{file}", create=False) as store:
        return (await kept_ledger(store, "trip")).history()


def test_the_watch_example_shows_a_cut_stream_and_one_booking(watch, capsys):
    history = watch("--watch")
    printed = capsys.readouterr().out
    for shown in ("find_flights", '{"flight":"LS 740"}', "attempt 2: lost", "It leaves at 07:40."):
        assert shown in printed
    assert check(history) == []
    assert [item["name"] for item in history if "name" in item] == ["find_flights", "book"]


def test_the_watch_example_run_again_goes_on_where_it_was_and_books_nothing_more(watch, capsys):
    history = watch()
    assert "CallEnded(" in capsys.readouterr().out
    assert watch() == history
    (ended,) = capsys.readouterr().out.splitlines()
    assert ended.startswith("TurnEnded(text='LS 740 is booked.")


@pytest.mark.parametrize("library", ["aiohttp", "yaml"])
def test_the_watch_example_says_in_one_line_that_the_emulator_is_not_installed(tmp_path, library):
    program = f"import sys, runpy; sys.modules['{library}'] = None; runpy.run_path(sys.argv[1],"
    ran = subprocess.run(
        [sys.executable, "-c", f"{program} run_name='__main__')", EXAMPLES / "watch.py"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"},
        check=False,
    )
    assert ran.returncode == 1
    (said,) = ran.stderr.splitlines()
    assert f"the emulator needs {library}, which is not installed. Run: pip install" in said
    assert list(tmp_path.iterdir()) == []
