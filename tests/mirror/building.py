"""Events and sessions for the tests of a mirror."""

from __future__ import annotations

from lockstitch.mirror import Mirror
from tests.mirror.provider import Session, call, message


def added(item, previous=None, type="conversation.item.added", **fields):
    return {"type": type, "item": item, "previous_item_id": previous, **fields}


def deleted(id):
    return {"type": "conversation.item.deleted", "item_id": id}


def ids(mirror):
    return [item["id"] for item in mirror.items]


def heard(*events, **options):
    mirror = Mirror(**options)
    for event in events:
        mirror.apply(event)
    return mirror


def chain(*names):
    return [
        added(message(name, name), previous)
        for name, previous in zip(names, (None, *names), strict=False)
    ]


def session_with(*names, **options):
    session = Session(**options)
    for name in names:
        session.provider.hears(message(name, name))
    session.drain()
    return session


def in_flight():
    session = session_with("a")
    session.provider.hears(call("f", "c1"))
    session.provider.hears(message("b", "b"))
    session.drain()
    return session


def kinds(plan):
    return [(type(edit).__name__, edit.item_id) for edit in plan.edits]
