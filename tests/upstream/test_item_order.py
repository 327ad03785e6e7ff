"""Items are told in the order of the response, each once."""

import itertools

from lockstitch.upstream.item_order import ItemOrder

A, B, C = (b'{"id":"%b"}' % name for name in (b"a", b"b", b"c"))
NAMELESS = b'{"type":"unknown"}'


def test_items_in_order_are_told_at_once():
    order = ItemOrder()
    assert [list(order.done(index, item)) for index, item in enumerate((A, B, C))] == [
        [A],
        [B],
        [C],
    ]
    assert order.rest([A, B, C]) == []


def test_items_come_in_any_order_and_are_told_in_one():
    for arrival in itertools.permutations(enumerate((A, B, C))):
        order = ItemOrder()
        told = [item for index, item in arrival for item in order.done(index, item)]
        assert told == [A, B, C]


def test_an_item_that_comes_twice_is_told_once():
    order = ItemOrder()
    assert list(order.done(0, A)) == [A]
    assert list(order.done(0, A)) == []
    assert list(order.done(1, NAMELESS)) == [NAMELESS]
    assert list(order.done(1, NAMELESS)) == []
    assert order.rest([A, NAMELESS]) == []


def test_an_item_whose_id_is_no_text_has_no_name():
    odd = b'{"id":"\xff"}'
    order = ItemOrder()
    assert list(order.done(0, odd)) == [odd]
    assert order.rest([odd]) == []


def test_an_item_that_waits_is_told_when_nothing_more_comes():
    order = ItemOrder()
    assert list(order.done(2, C)) == []
    assert list(order.done(1, B)) == []
    assert order.rest() == [B, C]
    assert order.rest() == []


def test_items_that_were_never_announced_are_told_from_the_whole():
    order = ItemOrder()
    order.done(1, B)
    assert order.rest([A, B, C]) == [A, B, C]


def test_a_whole_that_names_no_items_loses_none():
    order = ItemOrder()
    assert list(order.done(0, A)) == [A]
    order.done(2, C)
    assert order.rest([]) == [C]


def test_a_server_that_tells_no_places_is_taken_at_its_word():
    order = ItemOrder()
    told = [item for item in (A, B, A, C) for item in order.done(None, item)]
    assert told == [A, B, C]
    assert order.rest([A, B, C]) == []


def test_a_server_that_gives_all_items_one_place_loses_none():
    order = ItemOrder()
    told = [item for item in (A, B, C) for item in order.done(0, item)]
    assert told == [A, B, C]
    assert order.rest([A, B, C]) == []


def test_a_server_that_names_items_anew_in_the_whole_tells_none_twice():
    order = ItemOrder()
    order.done(0, A)
    order.done(1, B)
    assert order.rest([b'{"id":"x"}', b'{"id":"y"}']) == []


def test_what_is_no_item_passes():
    order = ItemOrder()
    assert list(order.done(0, b"null")) == [b"null"]
    assert list(order.done(1, b'{"id":7}')) == [b'{"id":7}']
