"""In which form a request is sent, before anything was tried."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.gateway.deciding.sending import (
    Form,
    Going,
    first_forms,
    other_forms,
    why_replayed,
)
from tests.generated import examples

_goings = st.builds(Going, **{name: st.booleans() for name in Going.__struct_fields__})


def test_what_its_upstream_has_goes_as_it_came():
    assert first_forms(Going()) == (Form.AS_IT_IS,)
    assert first_forms(Going(anchored=True)) == (Form.AS_IT_IS,)
    assert first_forms(Going(store=False)) == (Form.AS_IT_IS,)


def test_an_anchor_that_is_known_to_be_gone_is_replaced_where_that_can_be():
    gone = Going(anchored=True, anchor_gone=True)
    assert first_forms(gone) == (Form.REPLAYED, Form.AS_IT_IS)


def test_what_only_the_gateway_has_is_never_left_to_the_upstream():
    assert first_forms(Going(anchored=True, local=True)) == (Form.REPLAYED,)
    assert first_forms(Going(anchored=True, keeps_state=False)) == (Form.REPLAYED,)
    assert first_forms(Going(anchored=True, at_home=False)) == (Form.REPLAYED,)
    assert first_forms(Going(held=True)) == (Form.CONVERSATION,)


def test_an_upstream_that_keeps_nothing_is_not_asked_to():
    assert first_forms(Going(keeps_state=False)) == (Form.UNSTORED,)
    assert first_forms(Going(keeps_state=False, store=False)) == (Form.AS_IT_IS,)
    names = Going(keeps_state=False, names_kept=True)
    assert first_forms(names) == (Form.ALONE, Form.UNSTORED)


def test_what_another_upstream_said_is_left_out():
    assert first_forms(Going(foreign=True)) == (Form.STRIPPED, Form.AS_IT_IS)
    assert first_forms(Going(at_home=False)) == (Form.STRIPPED,)
    assert other_forms(Going(first=False)) == (Form.STRIPPED,)


@settings(max_examples=examples(500))
@given(_goings)
def test_the_rules_hold_for_every_request(going):
    elsewhere = other_forms(going)
    for forms in (first_forms(going), elsewhere):
        assert forms
        assert len(set(forms)) == len(forms)
        if going.held or (going.anchored and not going.keeps_state):
            assert forms in ((Form.REPLAYED,), (Form.CONVERSATION,))
    # Who has nothing of what it goes on from never gets the bare end of it.
    if going.anchored or going.held:
        assert Form.AS_IT_IS not in elsewhere
    if not going.keeps_state and going.store:
        assert Form.AS_IT_IS not in first_forms(going)


@pytest.mark.parametrize(
    ("going", "why"),
    [
        # The ordinary turn of an upstream without state, over HTTP and over a WebSocket.
        (Going(anchored=True, keeps_state=False, anchor_gone=True), "kept_here"),
        (Going(anchored=True, keeps_state=False), "kept_here"),
        # Behind a warm-up that the gateway gave.
        (Going(anchored=True, local=True, anchor_gone=True), "kept_here"),
        # It was on a connection that is closed.
        (Going(anchored=True, anchor_gone=True), "anchor_gone"),
        # Another upstream said it, which cannot be asked now.
        (Going(anchored=True, at_home=False), "no_anchor_there"),
        (Going(anchored=True, at_home=False, keeps_state=False), "no_anchor_there"),
    ],
)
def test_what_the_gateway_keeps_anyway_is_no_repair(going, why):
    assert why_replayed(going) == why
