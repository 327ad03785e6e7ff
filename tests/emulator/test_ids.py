"""Ids follow from the seed alone, and look like the provider's."""

import re

from lockstitch.emulator.ids import PREFIXES, Ids


def drawn(ids):
    return [ids.draw("resp"), ids.item("message"), ids.call(), ids.branch().call(), ids.call()]


def test_the_same_seed_gives_the_same_ids_and_another_seed_others():
    assert drawn(Ids(7)) == drawn(Ids(7))
    assert not set(drawn(Ids(7))) & set(drawn(Ids(8)))


def test_no_id_is_drawn_twice_not_even_by_branches():
    ids = Ids(0)
    branches = [ids.branch() for _ in range(20)]
    every = [source.call() for source in (ids, *branches) for _ in range(50)]
    assert len(set(every)) == len(every)


def test_what_a_branch_draws_does_not_depend_on_its_siblings():
    ids, other = Ids(0), Ids(0)
    first, second = ids.branch(), ids.branch()
    alone = other.branch()
    other.branch()
    second.call()
    assert first.call() == alone.call()


def test_a_call_id_is_short_enough_for_realtime():
    assert re.fullmatch(r"call_[A-Za-z0-9]{24}", Ids(0).call())
    assert len(Ids(0).call()) <= 32


def test_an_item_of_a_type_without_a_prefix_has_an_id_all_the_same():
    assert Ids(0).item("something_new").startswith("item_")
    assert len(set(PREFIXES.values())) == len(PREFIXES)


def test_a_reset_gives_the_same_ids_again_to_all_that_last():
    ids = Ids(5)
    first = [drawn(ids), drawn(ids.lasting("a")), drawn(ids.lasting("b"))]
    ids.reset()
    assert [drawn(ids), drawn(ids.lasting("a")), drawn(ids.lasting("b"))] == first
    assert len({str(each) for each in first}) == 3
