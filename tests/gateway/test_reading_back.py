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
    assert is_absent([output("a")], CALLS)
    assert is_absent([output("a"), output("b")], CALLS)
    assert is_absent([output("a"), user("And?")], CALLS)


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
    assert not is_absent([output("a"), output("b")], listed)


def test_what_a_user_says_can_be_said_again_and_is_never_proven():
    assert not can_be_found([user("Yes.")])
    assert not is_absent([user("Yes.")], [])
    assert not is_absent([user("Yes.")], [message(), user("No.")])
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
    assert not is_absent(sent, [*listed, *sent, *said])
    assert not is_absent(sent, [*listed, *sent, *said][::-1])
