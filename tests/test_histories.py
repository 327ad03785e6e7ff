"""The front door: check, mend and trim on lists of wire items."""

from __future__ import annotations

import copy
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.dialects import DIALECTS
from tests.generated import HISTORIES, dialects_and_histories, examples, hostile_items


def call(key="call_a", name="get_weather", **more):
    return {"type": "function_call", "call_id": key, "name": name, "arguments": "{}", **more}


def output(key="call_a", text="21 °C", **more):
    return {"type": "function_call_output", "call_id": key, "output": text, **more}


USER = {"role": "user", "content": "hello"}


# --- properties --------------------------------------------------------------------------------


@settings(max_examples=examples(1500))
@given(dialects_and_histories)
def test_a_mended_history_checks_clean_and_is_a_fixed_point(pair):
    dialect, history = pair
    mended = lockstitch.mend(history, dialect=dialect)
    assert lockstitch.check(mended, dialect=dialect) == []
    again = lockstitch.mend(mended, dialect=dialect)
    assert list(again) == list(mended)
    assert again.edits == []


@settings(max_examples=examples(300))
@given(dialects_and_histories)
def test_a_mended_history_keeps_the_last_output_too_when_told_so(pair):
    dialect, history = pair
    policy = lockstitch.Policy(keep="last")
    assert (
        lockstitch.check(lockstitch.mend(history, dialect=dialect, policy=policy), dialect=dialect)
        == []
    )


@settings(max_examples=examples(300))
@given(dialects_and_histories)
def test_mending_is_deterministic_and_leaves_its_input_alone(pair):
    dialect, history = pair
    before = copy.deepcopy(history)
    assert list(lockstitch.mend(history, dialect=dialect)) == list(
        lockstitch.mend(copy.deepcopy(history), dialect=dialect)
    )
    assert history == before


@settings(max_examples=examples(300))
@given(dialects_and_histories)
def test_mending_never_removes_a_call(pair):
    dialect, history = pair

    def calls(items):
        read = DIALECTS[dialect].read
        return sum(item.part.value == "call" for wire in items for item in read(wire))

    assert calls(lockstitch.mend(history, dialect=dialect)) == calls(history)


@settings(max_examples=examples(300))
@given(dialects_and_histories)
def test_mending_loses_nothing_that_is_not_in_its_report(pair):
    dialect, history = pair
    mended = lockstitch.mend(history, dialect=dialect)
    kept = Counter(text for wire in mended for text in _texts(wire))
    kept += Counter(text for wire in mended.removed for text in _texts(wire))
    before = Counter(text for wire in history for text in _texts(wire))
    assert not before - kept


def _texts(value):
    """Every text that a tool or a person wrote, wherever it stands."""
    if isinstance(value, dict):
        for name in ("output", "content", "text"):
            if isinstance(value.get(name), str) and value[name]:
                yield value[name]
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


@settings(max_examples=examples(1500))
@given(dialects_and_histories, st.integers(0, 12), st.booleans())
def test_trimming_never_yields_a_finding_that_was_not_there(pair, most, keep_leading):
    dialect, history = pair
    try:
        trimmed = lockstitch.trim(
            history, max_items=most, keep_leading=keep_leading, dialect=dialect
        )
    except lockstitch.CannotTrim:
        assert keep_leading
        return
    assert len(trimmed) <= most
    before = Counter((f.code, f.key) for f in lockstitch.check(history, dialect=dialect))
    after = Counter((f.code, f.key) for f in lockstitch.check(trimmed, dialect=dialect))
    assert not after - before


@settings(max_examples=examples(500))
@given(st.lists(hostile_items, max_size=8), st.sampled_from([None, *HISTORIES]))
def test_no_items_make_check_raise(items, dialect):
    for finding in lockstitch.check(items, dialect=dialect):
        assert finding.message
        assert finding.code.startswith("LS")


@settings(max_examples=examples(300))
@given(st.lists(hostile_items, max_size=8), st.sampled_from([None, *HISTORIES]))
def test_no_items_make_mend_raise(items, dialect):
    mended = lockstitch.mend(items, dialect=dialect)
    assert lockstitch.check(mended, dialect=dialect) == [] or mended.edits == []
