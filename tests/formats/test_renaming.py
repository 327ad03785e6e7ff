"""Never a false "All clean": a broken history in which one name was changed is still not clean.

A format changes, or we read it wrongly: then the call that has no result may not be seen. So for
every known format, any one key or type tag of a broken history is renamed. The answer must be a
finding, or a refusal to judge."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.sessions.errors import CannotRead
from lockstitch.sessions.files import check_file
from lockstitch.sessions.source import Source
from tests.formats import SAMPLES
from tests.formats.sample import Sample
from tests.generated import examples

NEW_NAMES = ("zzz", "input", "text", "type", "data")

TAGS = ("type", "kind", "role", "part_kind", "object", "state", "status", "finish_reason")
"""Fields whose text says what an object is."""


def names(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Every key, and every type tag: where it is, and which of the two."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key), "key"
            if key in TAGS and isinstance(inner, str):
                yield (*path, key), "tag"
            yield from names(inner, (*path, key))
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            yield from names(inner, (*path, n))


def renamed(value: Any, path: tuple[Any, ...], what: str, new: str) -> Any:
    """A copy with one key or tag renamed. Keys keep their order. A key that is there already is
    not taken twice."""
    copied = copy.deepcopy(value)
    holder = copied
    for step in path[:-1]:
        holder = holder[step]
    if what == "tag":
        holder[path[-1]] = new
        return copied
    items = list(holder.items())
    new = new if new not in holder else f"{new}_"
    holder.clear()
    holder.update((new if key == path[-1] else key, inner) for key, inner in items)
    return copied


def is_not_clean(sample: Sample, value: Any, path: Path) -> bool:
    """Is the answer a finding or a refusal, for the file and for the list?"""
    sample.write(value, path)
    try:
        scan = check_file(Source(path))
    except CannotRead:
        pass
    else:
        if not any(conversation.findings for conversation in scan.conversations):
            return False
    if not sample.is_list:
        return True
    try:
        return bool(lockstitch.check(value))
    except lockstitch.NotAHistory:
        return True


@pytest.mark.parametrize("sample", SAMPLES, ids=repr)
def test_a_sample_is_read_as_its_format_and_is_broken(sample, tmp_path):
    path = tmp_path / "history"
    sample.write(sample.broken, path)
    scan = check_file(Source(path))
    assert any(conversation.findings for conversation in scan.conversations)
    if sample.is_list:
        assert lockstitch.check(sample.broken)


@pytest.mark.parametrize("sample", SAMPLES, ids=repr)
def test_no_renamed_key_or_tag_makes_a_broken_history_clean(sample, tmp_path):
    clean = [
        (path, what, new)
        for path, what in names(sample.broken)
        for new in NEW_NAMES
        if not is_not_clean(sample, renamed(sample.broken, path, what, new), tmp_path / "history")
    ]
    assert clean == []


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_name_whatever_makes_a_broken_history_clean(tmp_path, data):
    sample = data.draw(st.sampled_from(SAMPLES))
    path, what = data.draw(st.sampled_from(list(names(sample.broken))))
    new = data.draw(st.text(min_size=1, max_size=8))
    assert is_not_clean(sample, renamed(sample.broken, path, what, new), tmp_path / "history")
