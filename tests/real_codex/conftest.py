from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real_codex.codex_cli import CodexCli
from tests.real_codex.scripted_provider import ScriptedProvider


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as serving:
        yield serving


@pytest.fixture
def codex(tmp_path: Path, provider: ScriptedProvider) -> CodexCli:
    return CodexCli(tmp_path, provider.base_url)
