"""Which upstream a request goes to."""

from __future__ import annotations

from fnmatch import fnmatchcase

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.gateway.deciding.asked import Api
from lockstitch.gateway.deciding.routing import (
    COOLING_SECONDS,
    LONGEST_COOLING_SECONDS,
    cooling_until,
    next_upstream,
    route,
)
from tests.generated import examples


class One(msgspec.Struct, frozen=True):
    name: str
    models: tuple[str, ...] = ("*",)
    apis: tuple[str, ...] = ("responses", "chat", "messages")

    def serves(self, model: str) -> bool:
        return any(fnmatchcase(model, pattern) for pattern in self.models)


A, B, C = One("a"), One("b", ("gpt-*", "o?")), One("c", apis=("chat",))


def names(**given):
    found = {"api": Api.RESPONSES, "model": "gpt-5", "now": 100.0, **given}
    return route([A, B, C], **found)


def test_the_order_is_that_of_the_file():
    assert names() == ("a", "b")
    assert names(api=Api.CHAT) == ("a", "b", "c")
    assert names(model="llama") == ("a",)
    assert names(model="o3") == ("a", "b")


def test_compacting_and_counting_go_where_responses_go():
    assert names(api=Api.COMPACT) == names(api=Api.INPUT_TOKENS) == names()


def test_a_request_without_a_model_may_go_anywhere():
    assert names(model=None) == ("a", "b")


def test_a_key_uses_only_what_it_may():
    assert names(allowed=["b"]) == ("b",)
    assert names(allowed=[]) == ()
    assert names(home="a", allowed=["b"]) == ("b",)


def test_those_that_cool_down_come_last_and_the_first_to_be_back_before_the_others():
    assert names(cooling={"a": 101.0}) == ("b", "a")
    assert names(cooling={"a": 100.0}) == ("a", "b")
    assert names(cooling={"a": 105.0, "b": 101.0}) == ("b", "a")


def test_a_chain_stays_where_it_is_also_while_that_cools_down():
    assert names(home="b") == ("b", "a")
    assert names(home="b", cooling={"b": 200.0}) == ("b", "a")
    assert names(home="gone") == ("a", "b")


def test_what_lives_at_one_upstream_goes_nowhere_else():
    assert names(home="b", bound=True) == ("b",)
    assert names(home="gone", bound=True) == ()


def test_the_next_is_the_first_that_was_not_tried():
    assert next_upstream(("a", "b", "c"), {"a"}) == "b"
    assert next_upstream(("a",), ["a"]) is None


def test_an_upstream_cools_down_as_long_as_it_asks_within_a_limit():
    assert cooling_until(10.0) == 10.0 + COOLING_SECONDS
    assert cooling_until(10.0, 2.0) == 12.0
    assert cooling_until(10.0, 1e9) == 10.0 + LONGEST_COOLING_SECONDS


@settings(max_examples=examples(200))
@given(
    st.dictionaries(st.sampled_from("abc"), st.floats(0, 200)),
    st.sampled_from(["a", "b", "c", "gone", None]),
    st.booleans(),
)
def test_cooling_and_homes_change_the_order_and_never_who_is_asked(cooling, home, bound):
    found = names(cooling=cooling, home=home, bound=bound, api=Api.CHAT)
    assert len(set(found)) == len(found)
    if bound:
        assert set(found) <= {home}
    else:
        assert set(found) == {"a", "b", "c"}
