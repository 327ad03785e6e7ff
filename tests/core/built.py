"""Core items to test with, and the findings of a history made of them."""

from __future__ import annotations

from lockstitch.core.families import FUNCTION
from lockstitch.core.items import Item, Part
from lockstitch.core.pairing import Order, Pairing

USER = Item(Part.INPUT)
SAID = Item(Part.MODEL)


def call(key="a", family=FUNCTION, **more):
    return Item(Part.CALL, family, key, **more)


def output(key="a", family=FUNCTION, **more):
    return Item(Part.OUTPUT, family, key, **more)


def reasoning(id="rs_1"):
    return Item(Part.REASONING, id=id)


def pair(items, order=Order.ANYWHERE, *, anchored=False):
    """What is wrong with a whole history, given as core items with their positions."""
    pairing = Pairing(order)
    for item, at in items:
        pairing.add(item, at)
    return pairing.finish(anchored=anchored)
