"""One emulator for all tests of a file: as new for each of them."""

from collections.abc import Iterator

import pytest

from lockstitch.testing import EmulatorThread


@pytest.fixture(scope="module")
def running() -> Iterator[EmulatorThread]:
    with EmulatorThread() as emulator:
        yield emulator


@pytest.fixture
def emulator(running: EmulatorThread) -> EmulatorThread:
    running.reset()
    return running
