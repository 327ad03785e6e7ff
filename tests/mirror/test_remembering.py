"""The oldest is forgotten first."""

from __future__ import annotations

from lockstitch.mirror.remembering import Recent


def test_the_last_ids_are_remembered_and_the_oldest_is_given_back():
    recent = Recent(2)
    assert [recent.add(one) for one in "abc"] == [None, None, "a"]
    assert "a" not in recent
    assert "b" in recent
    assert len(recent) == 2


def test_an_id_that_is_added_again_takes_nobodys_place():
    recent = Recent(2)
    assert [recent.add(one) for one in "aab"] == [None, None, None]
    assert "a" in recent
