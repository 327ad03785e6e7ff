"""The page about the mirror names everything that a caller meets, and every limit as it is."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from lockstitch.mirror import Standing, Why, WhyNot

PAGE = (Path(__file__).parents[2] / "docs" / "mirror.md").read_text()
LIMITS = re.findall(r"^\| `([A-Z_]+)` \| `([a-z]+)` \| ([0-9,]+) \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize("one", [*Standing, *Why, *WhyNot], ids=str)
def test_every_reason_and_standing_has_its_line(one):
    assert f"\n| `{one.name}` | " in PAGE


def test_every_limit_has_its_line():
    modules = {module for _, module, _ in LIMITS}
    named = {name for name, _, _ in LIMITS}
    for module in modules:
        found = vars(import_module(f"lockstitch.mirror.{module}"))
        assert {name for name in found if name.startswith("MOST_")} <= named


@pytest.mark.parametrize(("name", "module", "value"), LIMITS)
def test_every_limit_has_its_value(name, module, value):
    found = vars(import_module(f"lockstitch.mirror.{module}"))
    assert found[name] == int(value.replace(",", ""))
