"""The two official clients, on an emulator whose clock stands still."""

from collections.abc import Iterator
from typing import Any

import pytest

from lockstitch.emulator import (
    VirtualClock,
)
from lockstitch.testing import EmulatorThread
from tests.emulator.official import (
    KINDS,
    Client,
    client_of,
)


@pytest.fixture
def emulator() -> Iterator[EmulatorThread]:
    with EmulatorThread(clock=VirtualClock(flowing=False)) as running:
        yield running


@pytest.fixture(params=KINDS)
def either(request: Any, emulator: EmulatorThread) -> Iterator[Client]:
    """Each of the two clients."""
    with client_of(request.param, emulator) as client:
        yield client


@pytest.fixture
def client(emulator: EmulatorThread) -> Iterator[Client]:
    with client_of("sync", emulator) as client:
        yield client
