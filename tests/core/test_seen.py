"""What has been seen: exact answers in memory that does not grow."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core import seen
from lockstitch.core.seen import SeenIds, SeenKeys
from tests.generated import examples

MANY = [f"item_{n}" for n in range(60)]

id_lists = st.lists(st.sampled_from(MANY), max_size=120)


@pytest.fixture
def small(monkeypatch):
    """A filter after four ids, of so few words that wrong suspicions are common."""
    monkeypatch.setattr(seen, "EXACT_IDS", 4)
    monkeypatch.setattr(seen, "FILTER_WORDS", 2)


def reading(ids, watch=None):
    """One reading: the positions of ids that were certainly seen before, and the suspects."""
    remembered = SeenIds(watch)
    found = []
    for at, one in enumerate(ids):
        before = remembered.add(one, at)
        if before is not None:
            found.append((at, before))
    return found, remembered.to_watch() or set()


def exactly(ids):
    """What a plain dictionary finds: each repeated id, and where it stood first."""
    first: dict[str, int] = {}
    return [(at, first[one]) for at, one in enumerate(ids) if first.setdefault(one, at) != at]


# --- ids ---------------------------------------------------------------------------------------


def test_a_small_history_is_remembered_exactly():
    found, suspects = reading(["a", "b", "a", "c", "a"])
    assert found == [(2, 0), (4, 0)]
    assert suspects == set()


@pytest.mark.usefixtures("small")
def test_past_the_limit_a_repeated_id_becomes_a_suspect():
    _, suspects = reading([*MANY[:30], MANY[29]])
    assert MANY[29] in suspects


@pytest.mark.usefixtures("small")
def test_the_filter_never_forgets_what_was_seen_before_it_took_over():
    _, suspects = reading([*MANY[:30], MANY[0]])
    assert MANY[0] in suspects


def test_the_switch_to_the_filter_suspects_nobody(monkeypatch):
    monkeypatch.setattr(seen, "EXACT_IDS", 8)
    monkeypatch.setattr(seen, "FILTER_WORDS", 1)  # everything collides
    found, suspects = reading(MANY[:9])
    assert found == []
    assert suspects == set()


@pytest.mark.usefixtures("small")
def test_a_watching_reading_remembers_the_suspects_and_nothing_else():
    found, suspects = reading([*MANY, *MANY], watch={MANY[3]})
    assert found == [(63, 3)]
    assert suspects == set()


@pytest.mark.usefixtures("small")
def test_watching_stays_exact_however_many_are_watched():
    found, suspects = reading([*MANY, *MANY], watch=MANY)
    assert found == [(60 + n, n) for n in range(60)]
    assert suspects == set()


@pytest.mark.usefixtures("small")
def test_a_repetition_from_before_the_filter_took_over_is_found_by_the_second_reading_too():
    ids = ["early", "early", *MANY[:20], MANY[19]]
    _, suspects = reading(ids)
    found, _ = reading(ids, watch=suspects)
    assert found == [(1, 0), (22, 21)]


def test_a_wrong_suspicion_is_rare_at_the_size_of_a_long_history():
    _, suspects = reading([f"msg_{n:08x}" for n in range(20_000)])
    assert len(suspects) <= 3


@pytest.mark.parametrize(
    ("ids", "watch", "how"),
    [(MANY[:2], None, "exact"), (MANY, None, "filter"), (MANY, MANY[:1], "watching")],
)
@pytest.mark.usefixtures("small")
def test_its_repr_says_how_ids_are_remembered(ids, watch, how):
    remembered = SeenIds(watch)
    for at, one in enumerate(ids):
        remembered.add(one, at)
    assert how in repr(remembered)


@settings(max_examples=examples(200))
@given(id_lists, st.integers(1, 8), st.sampled_from([1, 2, 4, 64]))
def test_the_filter_misses_no_repetition(ids, exact, words):
    with (
        mock.patch.object(seen, "EXACT_IDS", exact),
        mock.patch.object(seen, "FILTER_WORDS", words),
    ):
        found, suspects = reading(ids)
    certain = {ids[at] for at, _ in found}
    assert {ids[at] for at, _ in exactly(ids)} <= certain | suspects


@settings(max_examples=examples(200))
@given(id_lists, st.integers(1, 8), st.sampled_from([1, 2, 4, 64]))
def test_a_second_reading_that_watches_the_suspects_finds_what_a_set_finds(ids, exact, words):
    with (
        mock.patch.object(seen, "EXACT_IDS", exact),
        mock.patch.object(seen, "FILTER_WORDS", words),
    ):
        found, suspects = reading(ids)
        if suspects:
            found, more = reading(ids, watch=suspects)
            assert more == set()
    assert found == exactly(ids)


# --- keys --------------------------------------------------------------------------------------


def test_the_last_call_of_a_key_is_the_one_that_is_known():
    keys: SeenKeys[str] = SeenKeys()
    keys.close("a", "first round")
    keys.close("a", "second round")
    assert keys.find("a") == "second round"
    assert keys.find("b") is None
    assert keys.suspects == set()


@pytest.mark.usefixtures("small")
def test_past_the_limit_every_key_that_is_asked_about_is_a_suspect():
    keys: SeenKeys[int] = SeenKeys()
    for n, key in enumerate(MANY):
        keys.close(key, n)
    assert keys.find(MANY[7]) is None
    assert keys.find("never seen") is None
    assert keys.suspects == {MANY[7], "never seen"}


@pytest.mark.usefixtures("small")
def test_a_reading_that_watches_keys_knows_them_and_no_others():
    keys: SeenKeys[int] = SeenKeys({MANY[7]})
    for n, key in enumerate(MANY):
        keys.close(key, n)
    assert keys.find(MANY[7]) == 7
    assert keys.find(MANY[8]) is None
    assert keys.suspects == set()


@pytest.mark.usefixtures("small")
def test_keys_that_are_closed_again_and_again_take_no_room():
    keys: SeenKeys[int] = SeenKeys()
    for n in range(100):
        keys.close(MANY[n % 3], n)
    assert keys.find(MANY[0]) == 99
    assert keys.suspects == set()


@pytest.mark.parametrize(
    ("closed", "watch", "how"),
    [(MANY[:2], None, "exact"), (MANY, None, "forgetful"), (MANY, MANY[:1], "watching")],
)
@pytest.mark.usefixtures("small")
def test_its_repr_says_how_keys_are_remembered(closed, watch, how):
    keys: SeenKeys[int] = SeenKeys(watch)
    for n, key in enumerate(closed):
        keys.close(key, n)
    assert how in repr(keys)


def test_keys_are_remembered_exactly_from_the_start():
    assert "exact" in repr(SeenKeys())
