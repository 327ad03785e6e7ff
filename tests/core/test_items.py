"""Core items: the part an item plays, and where it stands."""

from __future__ import annotations

import pytest

from lockstitch.core import families
from lockstitch.core.items import Item, Part, Place


def test_the_parts_are_the_eight_that_are_told_apart():
    assert {part.value for part in Part} == {
        "call",
        "output",
        "reasoning",
        "model",
        "input",
        "reference",
        "compaction",
        "other",
    }


def test_an_item_of_an_unknown_type_claims_nothing():
    item = Item(Part.OTHER)
    assert (item.family, item.key, item.alias, item.id, item.name, item.note) == (None,) * 6
    assert item.slot == 0
    assert item.lone is False
    assert item.carried is False


def test_an_item_cannot_be_changed():
    item = Item(Part.CALL, families.FUNCTION, "call_a")
    with pytest.raises(AttributeError):
        item.key = "call_b"
    assert item.key == "call_a"


def test_places_sort_by_position_and_then_by_slot():
    places = [Place(2), Place(10), Place(1, 3), Place(1, 20), Place(1)]
    assert sorted(places) == [Place(1), Place(1, 3), Place(1, 20), Place(2), Place(10)]


def test_a_place_is_the_same_place_whoever_names_it():
    assert Place(3) == Place(3, 0)
    assert len({Place(3), Place(3, 0), Place(3, 1)}) == 2


@pytest.mark.parametrize(
    ("place", "said"), [(Place(7), "7"), (Place(7, 2), "7.2"), (Place(0), "0")]
)
def test_a_place_names_its_slot_only_where_there_is_one(place, said):
    assert str(place) == said
