"""Which format is this file? (codex only so far)"""

from __future__ import annotations

from lockstitch.sessions.codex import CodexRollout
from lockstitch.sessions.model import Format
from lockstitch.sessions.source import Source


def detect_format(source: Source) -> Format:
    return CodexRollout()
