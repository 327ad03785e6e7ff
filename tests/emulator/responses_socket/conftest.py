"""Sockets of either official client and of a raw one, on an emulator whose clock stands still."""

from collections.abc import Iterator
from typing import Any

import pytest

from lockstitch.emulator import (
    VirtualClock,
)
from lockstitch.testing import EmulatorThread
from tests.emulator.official import KINDS, Client, Connection, client_of, connected
from tests.emulator.wire import Socket, Wire


@pytest.fixture
def emulator() -> Iterator[EmulatorThread]:
    with EmulatorThread(clock=VirtualClock(flowing=False)) as running:
        yield running


@pytest.fixture(params=KINDS)
def kind(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def either(kind: str, emulator: EmulatorThread) -> Iterator[Connection]:
    """A connection of each of the two clients."""
    with connected(kind, emulator) as connection:
        yield connection


@pytest.fixture
def client(emulator: EmulatorThread) -> Iterator[Client]:
    with client_of("sync", emulator) as client:
        yield client


@pytest.fixture
def wire(emulator: EmulatorThread) -> Wire:
    return Wire(emulator)


@pytest.fixture
def socket(wire: Wire) -> Iterator[Socket]:
    with wire.socket() as socket:
        yield socket
