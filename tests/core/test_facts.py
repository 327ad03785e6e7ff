"""Facts: what every kind of them has in common."""

from __future__ import annotations

import inspect
import typing

import pytest
from msgspec.structs import fields

import lockstitch.facts
from lockstitch.core import facts
from lockstitch.core.errors import IllegalFact
from lockstitch.core.facts import START, AnchorLost, AnyFact, CallStarted, Fact, ItemAdded
from lockstitch.ledgers import Ledger

KINDS = typing.get_args(AnyFact)

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def test_every_fact_of_the_module_is_a_fact_that_a_ledger_may_take():
    defined = {value for value in vars(facts).values() if isinstance(value, type)}
    assert {kind for kind in defined if issubclass(kind, Fact)} == {Fact, *KINDS}


@every_kind
def test_a_fact_is_named_by_its_class_in_small_letters(kind):
    small = "".join(f"_{c.lower()}" if c.isupper() else c for c in kind.__name__).lstrip("_")
    assert kind.__struct_config__.tag == small
    assert kind.__struct_config__.tag_field == "fact"


@every_kind
def test_a_fact_is_frozen_and_takes_only_names(kind):
    assert kind.__struct_config__.frozen
    kinds = {parameter.kind for parameter in inspect.signature(kind).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}


@every_kind
def test_a_fact_says_in_one_sentence_what_happened(kind):
    assert kind.__doc__
    assert kind.__doc__.splitlines()[0].endswith((".", ":"))


@every_kind
def test_a_fact_holds_at_most_one_item_or_note_as_bytes(kind):
    holding = [field.name for field in fields(kind) if field.type in (bytes, "bytes")]
    assert holding in ([], ["item"], ["note"])


@every_kind
def test_those_who_write_facts_find_every_kind_in_one_place(kind):
    assert getattr(lockstitch.facts, kind.__name__) is kind
    assert kind.__name__ in lockstitch.facts.__all__


def test_equal_facts_are_equal_and_another_kind_is_not():
    assert AnchorLost(anchor="resp_1") == AnchorLost(anchor="resp_1")
    assert AnchorLost(anchor="resp_1") != AnchorLost(anchor="resp_2")
    assert CallStarted(call=1) != ItemAdded(item=b"{}", by=facts.By.USER)


def test_the_start_is_before_the_first_fact():
    assert START == 0
    assert len(Ledger()) == START + 1


def test_what_is_no_fact_is_refused_by_name():
    ledger = Ledger()
    before = ledger.state()
    for thing in (None, "opened", {"fact": "anchor_lost"}, object, Fact()):
        with pytest.raises(IllegalFact, match="is no fact that a ledger takes"):
            ledger.append(thing)
    assert ledger.state() == before
    assert len(ledger) == 1
