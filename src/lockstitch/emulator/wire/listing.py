"""Pages of items: `after`, `limit` and `order`, as every list of the provider takes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from lockstitch.emulator import refusals
from lockstitch.emulator.limits import LISTED_ITEMS, MOST_LISTED_ITEMS

ORDERS = ("asc", "desc")


def page(items: Sequence[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """One page. `items` are in their own order; the newest come first unless asked otherwise."""
    order = query.get("order", "desc")
    if order not in ORDERS:
        raise refusals.wrong_value("order", order, "'asc' and 'desc'")
    listed = list(items) if order == "asc" else list(reversed(items))
    after = query.get("after")
    if after:
        places = [place for place, item in enumerate(listed) if item.get("id") == after]
        if not places:
            raise refusals.not_found("Item", after, "after")
        listed = listed[places[-1] + 1 :]
    shown = listed[: _end(listed, _limit(query.get("limit")))]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0].get("id", "") if shown else "",
        "last_id": shown[-1].get("id", "") if shown else "",
        "has_more": len(listed) > len(shown),
    }


def _end(listed: Sequence[dict[str, Any]], limit: int) -> int:
    """Where the page ends: after `limit` items, but never between two items of the same id (an
    output may borrow its call's): `after` that id is after both."""
    end = min(limit, len(listed))
    last = {item.get("id"): place for place, item in enumerate(listed)}
    while end and last[listed[end - 1].get("id")] >= end:
        end = last[listed[end - 1].get("id")] + 1
    return end


def _limit(text: str | None) -> int:
    if text is None:
        return LISTED_ITEMS
    if not text.isdecimal() or not text.isascii():
        raise refusals.wrong_type("limit", "an integer", "a string")
    limit = int(text[:9])
    if not 1 <= limit <= MOST_LISTED_ITEMS:
        raise refusals.out_of_range("limit", f"expected a value between 1 and {MOST_LISTED_ITEMS}")
    return limit


def whole_number(name: str, text: str) -> int:
    if not text.isdecimal() or not text.isascii():
        raise refusals.wrong_type(name, "an integer", "a string")
    return int(text[:18])


def flag(name: str, text: str) -> bool:
    if not is_true(text) and text.lower() not in {"false", "0"}:
        raise refusals.wrong_type(name, "a boolean", "a string")
    return is_true(text)


def is_true(text: str) -> bool:
    return text.lower() in {"true", "1"}
