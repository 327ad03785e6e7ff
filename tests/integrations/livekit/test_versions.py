"""Another LiveKit is refused when it is imported, and the refusal says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest
from livekit.plugins.openai.realtime import RealtimeSession

from lockstitch.integrations.livekit import versions


def test_the_one_that_is_installed_is_supported():
    versions.check()


def test_a_hook_that_is_gone_is_named(monkeypatch):
    monkeypatch.delattr(RealtimeSession, "_handle_error")
    with pytest.raises(
        versions.UnsupportedLiveKit, match=r"RealtimeSession\._handle_error"
    ) as refused:
        versions.check()
    assert versions.SUPPORTED in str(refused.value)
    assert "pip install 'lockstitch[livekit]'" in str(refused.value)


def test_a_hook_with_other_parameters_is_named(monkeypatch):
    monkeypatch.setattr(RealtimeSession, "update_chat_ctx", lambda self, chat_ctx, base: None)
    with pytest.raises(versions.UnsupportedLiveKit, match=r"RealtimeSession\.update_chat_ctx"):
        versions.check()


def test_without_livekit_the_import_says_what_is_missing():
    program = (
        "import sys\n"
        "sys.modules['livekit.plugins.openai.realtime'] = None\n"
        "import lockstitch.integrations.livekit"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert "Install it: pip install 'lockstitch[livekit]'" in run.stderr
