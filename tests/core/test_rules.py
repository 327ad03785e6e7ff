"""The rules: codes and names that people and scripts rely on."""

from __future__ import annotations

import re

import pytest

from lockstitch.core import rules
from lockstitch.core.rules import RULES, Rule

NAMES = {
    "LS001": "no-output",
    "LS002": "orphan-output",
    "LS003": "output-before-call",
    "LS004": "second-output",
    "LS005": "id-reused-while-open",
    "LS006": "wrong-family",
    "LS007": "reasoning-parted",
    "LS008": "duplicate-item-id",
    "LS009": "not-adjacent",
    "LS010": "group-incomplete",
    "LS011": "half-pair-left",
    "LS012": "contradicted",
    "LS101": "undecodable",
    "LS102": "ordinal",
    "LS103": "no-header",
}


def test_codes_and_names_stay_what_they_are():
    assert {code: RULES[code].name for code in NAMES} == NAMES


def test_every_rule_of_the_module_is_in_the_table_under_its_own_code():
    defined = [value for value in vars(rules).values() if isinstance(value, Rule)]
    assert sorted(rule.code for rule in defined) == sorted(RULES)
    assert all(RULES[rule.code] is rule for rule in defined)


def test_no_two_rules_share_a_name():
    names = [rule.name for rule in RULES.values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("rule", RULES.values(), ids=str)
def test_a_rule_has_a_code_a_name_and_one_sentence(rule):
    assert re.fullmatch(r"LS[01]\d\d", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert re.fullmatch(r"[A-Z][^.]*\.", rule.summary)


def test_a_rule_prints_as_its_code():
    assert str(rules.NO_OUTPUT) == "LS001"
    assert f"{rules.NO_HEADER}" == "LS103"
