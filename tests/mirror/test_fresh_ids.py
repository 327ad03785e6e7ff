"""Ids that were never used."""

from __future__ import annotations

from lockstitch.mirror import fresh_ids


def test_no_id_comes_twice_and_each_says_what_for():
    one, other = fresh_ids("a1"), fresh_ids("b2")
    ids = [new_id(what) for new_id in (one, other) for what in ("item", "event", "group") * 50]
    assert len(set(ids)) == len(ids)
    assert ids[0] == "item_a1_1"
    assert ids[-1].startswith("group_b2_")
