"""What must hold for every known format: a repair makes it valid, and odd values break nothing."""

from __future__ import annotations

import copy
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core.errors import CannotMend, LockstitchError
from lockstitch.sessions.errors import CannotRead, NotASession
from lockstitch.sessions.files import check_file, mended
from lockstitch.sessions.source import Source
from tests.formats import SAMPLES
from tests.generated import examples

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 7.5, 10**30, "", "x", "tool", "tool-call", "assistant", "\x00"),
    *([], {}, [[]], [{}], [None], ["x"], {"type": []}, [{"type": {}}], [{"type": "tool_use"}]),
)

any_sample = settings(
    max_examples=examples(250), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place below a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, inner in inside:
        found.append((*path, key))
        if isinstance(inner, dict | list):
            found += places(inner, (*path, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with another value in one place."""
    copied = copy.deepcopy(value)
    holder = copied
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = new
    return copied


def repaired(path: Path) -> tuple[Path, int]:
    """A repaired copy of a file beside it, and how many changes were made."""
    with mended(Source(path), beside=path.parent) as ready:
        target = path.with_name(path.name + ".repaired")
        shutil.copyfile(ready.path or path, target)
        return target, len(ready.changes)


def findings(path: Path) -> list[str]:
    return [found.finding.code for found in check_file(Source(path)).findings()]


@pytest.mark.parametrize("sample", [one for one in SAMPLES if one.is_repaired], ids=repr)
def test_a_repaired_file_is_valid_and_of_the_same_format_and_stays_as_it_is(sample, tmp_path):
    path = tmp_path / "history"
    sample.write(sample.broken, path)
    before = check_file(Source(path))
    target, changes = repaired(path)
    assert changes
    after = check_file(Source(target))
    assert after.findings() == []
    assert after.format == before.format
    again, changes = repaired(target)
    assert changes == 0
    assert again.read_bytes() == target.read_bytes()


@pytest.mark.parametrize("sample", [one for one in SAMPLES if one.is_list], ids=repr)
def test_a_repaired_list_is_valid_and_keeps_the_items_that_no_repair_touches(sample):
    items = copy.deepcopy(sample.broken)
    result = lockstitch.mend(items)
    assert result.edits
    assert lockstitch.check(result) == []
    assert items == sample.broken
    kept = [one for one in result if any(one is item for item in items)]
    changed = len(items) - len(kept)
    assert changed <= len(result.edits)
    assert list(lockstitch.mend(result)) == list(result)


@any_sample
@given(st.data())
def test_whatever_stands_in_any_place_of_a_file_it_is_repaired_or_refused(tmp_path, data):
    sample = data.draw(st.sampled_from(SAMPLES))
    where = data.draw(st.sampled_from(places(sample.broken)))
    value = replaced(sample.broken, where, data.draw(st.sampled_from(ODD_VALUES)))
    path = tmp_path / "history"
    sample.write(value, path)
    try:
        found = findings(path)
        target, changes = repaired(path)
    except (CannotRead, CannotMend):
        return
    assert bool(found) == bool(changes)
    with suppress(NotASession):  # where only items of no known format are left
        assert findings(target) == []


@any_sample
@given(st.data())
def test_whatever_stands_in_any_place_of_a_list_it_is_repaired_or_refused(data):
    sample = data.draw(st.sampled_from([one for one in SAMPLES if one.is_list]))
    where = data.draw(st.sampled_from(places(sample.broken)))
    items = replaced(sample.broken, where, data.draw(st.sampled_from(ODD_VALUES)))
    try:
        result = lockstitch.mend(items)
    except LockstitchError:
        return
    assert not result or lockstitch.check(result) == []


@any_sample
@given(st.data())
def test_a_damaged_file_is_read_or_refused(tmp_path, data):
    sample = data.draw(st.sampled_from(SAMPLES))
    path = tmp_path / "history"
    sample.write(sample.broken, path)
    if path.is_dir():
        return
    content = path.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:at]
    else:
        content = content[:at] + data.draw(st.binary(max_size=3)) + content[at + 1 :]
    path.write_bytes(content)
    try:
        findings(path)
        repaired(path)
    except (CannotRead, CannotMend):
        pass
