"""Fixtures for pytest: `emulator`, a strict provider on loopback for one test.

Imports nothing until a fixture is asked for: pytest loads this in every run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lockstitch.testing.threads import EmulatorThread


@pytest.fixture
def emulator() -> Iterator[EmulatorThread]:
    """A provider with seed 0, on a free port: point a client at `emulator.base_url`."""
    with _thread_class()() as running:
        yield running


@pytest.fixture
def make_emulator() -> Iterator[Callable[..., EmulatorThread]]:
    """Emulators with settings of your own, stopped when the test ends."""
    start = _thread_class()
    running: list[EmulatorThread] = []

    def make(**settings: Any) -> EmulatorThread:
        made = start(**settings).start()
        running.append(made)
        return made

    yield make
    for each in running:
        each.stop()


def _thread_class() -> type[EmulatorThread]:
    try:
        from lockstitch.testing.threads import EmulatorThread  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        pytest.fail(
            f"The emulator needs {missing.name}: pip install 'lockstitch[emulator]'.",
            pytrace=False,
        )
    return EmulatorThread
