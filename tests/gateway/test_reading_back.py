"""What a conversation lists, and what that proves of a request that was lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.gateway.deciding.reading_back import can_be_found, is_absent
from tests.gateway.building import call, message, output, user
from tests.generated import examples

CALLS = [message(), call("a"), call("b", "fc_2")]


def test_an_output_is_absent_where_its_call_is_listed_without_it():
    assert is_absent([output("a")], CALLS, more=False)
    assert is_absent([output("a"), output("b")], CALLS, more=False)
    assert is_absent([output("a"), user("And?")], CALLS, more=False)


@pytest.mark.parametrize(
    "listed",
    [
        [],
        [user("a"), message()],
        [call("a")],
        [*CALLS, output("a")],
        [*CALLS, output("b"), output("a")],
    ],
    ids=["nothing", "no calls", "one of the calls", "one of the outputs", "both"],
)
def test_what_does_not_prove_it_is_doubt(listed):
    assert not is_absent([output("a"), output("b")], listed, more=False)


OLDEST_FIRST = [user("Hi."), call("x"), output("x"), user("And?"), call("a")]


def test_a_listing_with_more_proves_it_only_if_it_begins_with_the_newest():
    assert is_absent([output("a")], OLDEST_FIRST, more=False)
    assert not is_absent([output("a")], OLDEST_FIRST, more=True)  # what follows may be its output
    assert is_absent([output("a")], OLDEST_FIRST[::-1], more=True)
    # Nothing in it tells in which order it is.
    assert not is_absent([output("a")], [call("a"), user("And?")], more=True)


def test_a_call_id_that_was_used_twice_tells_nothing_wrong_of_the_order():
    twice = [call("x"), output("x"), call("x"), output("x"), call("a")]
    assert not is_absent([output("a")], twice, more=True)
    assert is_absent([output("a")], twice[::-1], more=True)


def test_what_a_user_says_can_be_said_again_and_is_never_proven():
    assert not can_be_found([user("Yes.")])
    assert not is_absent([user("Yes.")], [], more=False)
    assert not is_absent([user("Yes.")], [message(), user("No.")], more=False)
    assert can_be_found([user("Yes."), output("a")])


_items = st.lists(
    st.one_of(
        st.builds(user, st.sampled_from(["x", "y"])),
        st.builds(call, st.sampled_from("abc")),
        st.builds(output, st.sampled_from("abc")),
    ),
    max_size=6,
)


@settings(max_examples=examples(300))
@given(sent=_items, listed=_items, said=_items)
def test_a_request_that_is_listed_is_never_taken_for_absent(sent, listed, said):
    for more in (False, True):
        assert not is_absent(sent, [*listed, *sent, *said], more=more)
        assert not is_absent(sent, [*listed, *sent, *said][::-1], more=more)
