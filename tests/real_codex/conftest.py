from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstitch.testing import EmulatorThread
from tests.real_codex.codex_cli import CodexCli


@pytest.fixture
def broken() -> dict[str, int]:
    """The rules that Codex breaks in this test, and how often: for the test to say."""
    return {}


@pytest.fixture
def emulator(emulator: EmulatorThread, broken: dict[str, int]) -> Iterator[EmulatorThread]:
    """A strict provider: what Codex sends is accepted, or the test said that it is not."""
    yield emulator
    assert emulator.violations() == broken


@pytest.fixture
def codex(tmp_path: Path, emulator: EmulatorThread) -> CodexCli:
    """Codex as it is without patience: what fails is not tried again."""
    return CodexCli(tmp_path, emulator.base_url, request_max_retries=0, stream_max_retries=0)
