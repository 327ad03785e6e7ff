"""Libraries from npm, where they are installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.formats import ai_sdk

PACKAGES = Path(__file__).parents[2] / ".npm-packages"


@pytest.fixture(scope="session")
def npm_packages() -> Path:
    """The folder that `make test` installs packages from npm into."""
    if shutil.which("node") is None:
        pytest.skip("node was not found")
    if not (PACKAGES / "node_modules").is_dir():
        pytest.skip(f"{PACKAGES.name} is missing: `make test` installs it if npm is there")
    return PACKAGES


@pytest.fixture(scope="module", params=ai_sdk.VERSIONS)
def judge(request: pytest.FixtureRequest, npm_packages: Path) -> Iterator[ai_sdk.Judge]:
    """The Vercel AI SDK, in each version that is installed."""
    if not (npm_packages / "node_modules" / request.param).is_dir():
        pytest.skip(f"{request.param} is missing in {PACKAGES.name}: run `make test`")
    yield from ai_sdk.judges(npm_packages, request.param)
