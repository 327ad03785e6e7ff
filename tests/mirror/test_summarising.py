"""A summary stands for the oldest items, and no pair is torn."""

from __future__ import annotations

import pytest

from lockstitch.mirror import summarised
from tests.mirror.building import session_with
from tests.mirror.provider import call, message, output


def test_a_summary_stands_for_the_oldest_half():
    session = session_with("a", "b", "c", "d")
    base = session.mirror.snapshot()
    session.sync(summarised(base.items, message("s", "in short"), fraction=0.5), base)
    assert session.ids() == ["s", "c", "d"]


def test_nothing_is_lost_when_the_summary_is_refused():
    session = session_with("a", "b", "c", "d")
    base = session.mirror.snapshot()
    session.provider.refuse_next = 1
    session.sync(summarised(base.items, message("s", "in short"), fraction=0.5), base)
    assert session.ids() == ["a", "b", "c", "d"]


def test_a_summary_tears_no_pair():
    items = [message("a", "a"), call("f", "c1"), message("b", "b"), output("o", "c1")]
    items += [call("g", "c2"), message("z", "z")]
    target = summarised(items, message("s", "s"), count=3)
    assert [item["id"] for item in target] == ["s", "f", "o", "g", "z"]
    target = summarised(items, message("s", "s"), count=5)
    assert [item["id"] for item in target] == ["s", "g", "z"]
    target = summarised(items, message("s", "s"), count=1, leading=1)
    assert target == items


@pytest.mark.parametrize(
    "asked",
    [
        {"count": -1},
        {"fraction": -0.1},
        {"fraction": 2},
        {"fraction": float("nan")},
        {"count": 1, "leading": -1},
        {"count": 1, "fraction": 0.5},
        {},
    ],
)
def test_what_cannot_be_summed_up_is_refused(asked):
    with pytest.raises(ValueError, match=r"count|fraction|leading"):
        summarised([message("a", "a")], message("s", "s"), **asked)
