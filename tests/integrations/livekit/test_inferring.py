"""The rule by which it is inferred what a caller had seen, and the places of what it had not."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.integrations.livekit.inferring import Stay, seen, unmoved, with_unseen
from tests.generated import examples


def at(moment):
    """It was pushed then: exactly."""
    return Stay(moment, moment)


def by(look):
    """It was new at this look, and not there at the one before."""
    return Stay(2 * look - 1, 2 * look)


PUSHED = {"a": at(0), "b": at(0), "c": at(0)}


def test_what_was_pushed_together_was_seen_together():
    assert seen(PUSHED, ["summary", "c"], PUSHED) == {"a", "b", "c"}


def test_what_came_before_the_last_shared_item_was_seen():
    held = PUSHED | {"d": by(1), "e": by(2)}
    assert seen(held, ["summary", "e"], held) == {"a", "b", "c", "d"}


def test_what_came_after_the_last_shared_item_is_in_doubt():
    held = PUSHED | {"d": by(1), "e": by(2)}
    assert seen(held, ["summary", "d"], held) == {"a", "b", "c"}


def test_two_that_came_between_the_same_looks_are_in_doubt_of_each_other():
    held = PUSHED | {"d": by(1), "e": by(1)}
    assert "e" not in seen(held, ["summary", "d"], held)
    assert "d" not in seen(held, ["summary", "e"], held)


def test_items_that_never_leave_the_agent_count_as_shared():
    """A change of instructions is not at the provider, and tells as well when a copy was taken."""
    held = PUSHED | {"d": by(1), "config": by(2)}
    assert "d" in seen(held, ["summary", "config"], held)


def test_a_context_that_shares_nothing_was_copied_nobody_knows_when():
    assert seen(PUSHED, ["summary"], PUSHED) == frozenset()


def test_an_empty_context_clears_what_the_agent_holds():
    assert seen(PUSHED, [], PUSHED) == set(PUSHED)


def test_the_founding_case():
    """The call is at the provider, and the agent's context does not have it so far."""
    remote = ["a", "b", "c", "user", "call"]
    held = PUSHED | {"user": by(1)}
    target = ["summary", "c", "user"]
    assert with_unseen(target, remote, seen(held, target, held)) == ["summary", "c", "user", "call"]


def test_the_founding_case_with_an_item_at_the_tail_that_never_leaves_the_agent():
    remote = ["a", "b", "c", "user", "call"]
    held = PUSHED | {"user": by(1), "config": by(2)}
    target = ["summary", "c", "user", "config"]
    wanted = [one for one in target if one != "config"]
    assert with_unseen(wanted, remote, seen(held, target, held)) == ["summary", "c", "user", "call"]


def test_what_the_caller_appends_goes_behind_what_it_had_not_seen():
    assert with_unseen(["a", "new"], ["a", "late"], {"a"}) == ["a", "late", "new"]


def test_a_summary_stands_before_what_it_does_not_sum_up():
    target, remote = ["summary", "d"], ["a", "b", "unheard", "d", "late"]
    assert with_unseen(target, remote, {"a", "b", "d"}) == ["summary", "unheard", "d", "late"]


def test_where_nothing_is_left_the_unseen_stands_behind_the_summary():
    assert with_unseen(["summary"], ["a", "late"], {"a"}) == ["summary", "late"]
    assert with_unseen([], ["a", "late"], {"a"}) == ["late"]


def test_an_order_that_is_only_the_agents_own_moves_nothing():
    assert unmoved(["a", "c", "b"], ["a", "b", "c"], ["a", "c", "b"]) == ["a", "b", "c"]


def test_what_is_appended_stands_last_whatever_the_orders():
    target, remote = ["a", "c", "b", "new"], ["a", "b", "c"]
    assert unmoved(target, remote, target[:3]) == ["a", "b", "c", "new"]


def test_a_summary_stays_behind_what_it_follows():
    target = ["a", "summary", "c", "b"]
    assert unmoved(target, ["a", "b", "c"], ["a", "c", "b"]) == ["a", "summary", "b", "c"]


def test_what_the_caller_moved_is_moved():
    assert unmoved(["b", "a", "c"], ["a", "b", "c"], ["a", "b", "c"]) == ["b", "a", "c"]


names = st.lists(st.sampled_from("abcdefgh"), unique=True)


@settings(max_examples=examples(300))
@given(names, names, st.frozensets(st.sampled_from("abcdefgh")))
def test_nothing_unseen_is_missing_and_nothing_wanted_moves(target, remote, known):
    merged = with_unseen(target, remote, known)
    assert len(set(merged)) == len(merged)
    assert set(merged) == set(target) | (set(remote) - known)
    assert [one for one in merged if one in target] == target
    unseen = [one for one in remote if one not in known and one not in target]
    in_order = [one for one in target if one in remote]
    if in_order == [one for one in remote if one in target]:
        assert [one for one in merged if one in remote] == [
            one for one in remote if one in target or one in unseen
        ]


@settings(max_examples=examples(300))
@given(names, names, names)
def test_whatever_the_orders_no_item_is_lost_or_added(target, remote, copied):
    assert sorted(unmoved(target, remote, copied)) == sorted(target)


@st.composite
def histories(draw):
    """A context that grows, looked at now and then; copied once, and edited."""
    entered, held, since, look, copied = [], {}, [], 0, None
    for name in "abcdefgh":
        entered.append(name)
        since.append(name)
        if draw(st.booleans()):
            look += 1
            held.update(dict.fromkeys(since, by(look)))
            since = []
        if copied is None and draw(st.booleans()):
            copied = list(entered)
    copied = copied if copied is not None else list(entered)
    kept = [name for name in copied if draw(st.booleans())]
    return copied, kept, held


@settings(max_examples=examples(300))
@given(histories())
def test_whatever_the_looks_nothing_counts_as_seen_that_was_not_in_the_copy(history):
    copied, kept, held = history
    assert seen(held, [*kept, "summary"], held) <= set(copied)
