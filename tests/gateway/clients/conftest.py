"""A gateway in front of an emulator, for each test; both are real servers on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstitch.testing import EmulatorThread
from tests.gateway.clients.gateways import GatewayThread, keeping_nothing, upstream
from tests.store.conftest import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

Make = Callable[..., GatewayThread]


@pytest.fixture
def broken() -> dict[str, int]:
    """The rules that a client itself breaks in this test, and how often: for the test to say."""
    return {}


@pytest.fixture
def emulator(emulator: EmulatorThread, broken: dict[str, int]) -> Iterator[EmulatorThread]:
    """A strict provider: all that the gateway sends is accepted, or the test said what is not."""
    yield emulator
    # Asking for what is not there breaks no rule.
    found = {rule: n for rule, n in emulator.violations().items() if rule != "not-found"}
    assert found == broken


@pytest.fixture
def make_gateway(tmp_path: Path) -> Iterator[Make]:
    """Gateways on one journal; they are stopped when the test ends."""
    running: list[GatewayThread] = []

    def make(*upstreams: Any, store: str = f"sqlite:///{tmp_path}/journal.db", **config: Any):
        made = GatewayThread(store, *upstreams, **config)
        running.append(made)
        return made.start()

    yield make
    for each in running:
        each.stop()


@pytest.fixture
def gateway(make_gateway: Make, emulator: EmulatorThread) -> GatewayThread:
    """With one upstream, which keeps state and speaks both transports."""
    return make_gateway(upstream(emulator))


@pytest.fixture
def stateless(make_gateway: Make, emulator: EmulatorThread) -> GatewayThread:
    """With one upstream that keeps nothing: all state is the gateway's."""
    return make_gateway(upstream(keeping_nothing(emulator), state="gateway"))
