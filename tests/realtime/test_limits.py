"""The bounds of a session, as its page tells them."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from lockstitch.realtime import Patience

PAGE = Path(__file__).parents[2] / "docs" / "realtime.md"


def test_the_page_has_every_patience_with_its_default():
    section = PAGE.read_text().split("| of a `Patience` |")[1].split("\n\n")[0]
    shown = dict(re.findall(r"^\| `(\w+)` \| .* \| ([\d.]+) \|$", section, re.MULTILINE))
    assert shown == {
        name: f"{value:g}" for name, value in msgspec.structs.asdict(Patience()).items()
    }


def test_an_old_connection_is_renewed_before_the_provider_ends_it():
    patience, lives = Patience(), 60 * 60  # "A session lives 60 minutes"
    assert patience.renew_after_seconds < patience.renew_by_seconds
    assert patience.renew_by_seconds + patience.connect_seconds <= lives
