"""A response that came whole, as events."""

from __future__ import annotations

import json

import pytest

from lockstitch.gateway.deciding.condensing import condensed
from tests.gateway.building import call, encoded, message, response


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed", "cancelled"])
def test_a_response_is_told_from_its_beginning_over_its_items_to_its_end(status):
    whole = response("resp_1", call(), message("hi"), status=status, usage={"total_tokens": 3})
    events = [json.loads(heard.data) for heard in condensed(encoded(whole))]
    begun, first, second, ended = events
    assert begun["type"] == "response.created"
    assert begun["response"] == whole | {"status": "in_progress", "output": [], "usage": None}
    assert [one["type"] for one in (first, second)] == ["response.output_item.done"] * 2
    assert [(one["output_index"], one["item"]) for one in (first, second)] == [
        (0, call()),
        (1, message("hi")),
    ]
    assert ended["type"] == f"response.{status}"
    assert ended["response"] == whole
    assert [one["sequence_number"] for one in events] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"<html>", b"[]", b"{}", b'{"status":"completed"}', b'{"error":{"message":"no"}}'),
        *(encoded(response("resp_1", status=status)) for status in ("queued", "in_progress")),
    ],
)
def test_what_is_no_response_that_has_ended_is_not_told(body):
    assert condensed(body) == ()
