"""`lockstitch check --explain CODE`."""

from __future__ import annotations

import pytest

from lockstitch.core.rules import RULES
from tests.cli.commands import lockstitch


@pytest.mark.parametrize("code", RULES)
def test_every_rule_is_explained(code):
    ran = lockstitch("check", "--explain", code.lower())
    assert ran.code == 0
    assert ran.out.startswith(f"# {code} {RULES[code].name}")


def test_a_code_that_is_none_gets_the_list_of_those_that_are():
    ran = lockstitch("check", "--explain", "LS999")
    assert ran.code == 2
    assert "LS001, LS002" in ran.err


def test_on_a_terminal_the_page_is_laid_out(capsys, monkeypatch):
    from lockstitch.cli.explaining import explain

    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    explain("LS001")
    assert "LS001 no-output" in capsys.readouterr().out
