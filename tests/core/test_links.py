"""Links: the way back from a tip, across forks, rollbacks and compactions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core.facts import START, ItemsRemoved, Removal
from lockstitch.core.links import Beginning, Compaction, Said, back
from lockstitch.ledgers import Ledger, compacted, item_added
from tests.generated import examples
from tests.turns import ledger_of, prepare, said, texts, turn, user


def way_back(ledger, tip=None):
    return [(link.seq, new) for link, new in back(ledger.links, ledger.tip if tip is None else tip)]


def test_before_anything_was_said_there_is_no_way_back():
    ledger = Ledger()
    assert way_back(ledger) == []
    assert isinstance(ledger.links[START], Beginning)


def test_the_way_back_is_the_newest_first_and_one_chain():
    ledger = ledger_of(user("a"), user("b"), user("c"))
    assert way_back(ledger) == [(4, False), (3, False), (2, False)]


def test_a_fork_shares_what_is_before_it_and_nothing_else():
    ledger = ledger_of(user("a"), user("b"), user("c"))
    fork = ledger.append(item_added(user("d"), after=3))
    assert way_back(ledger, fork) == [(5, False), (3, False), (2, False)]
    assert way_back(ledger, 4) == [(4, False), (3, False), (2, False)]


def test_a_compaction_comes_last_where_what_it_replaced_would_stand():
    ledger = ledger_of(user("a"), user("b"), user("c"))
    ledger.extend(compacted(ledger, max_items=1, replaced=[user("sum")]))
    compaction = ledger.tip
    ledger.append(item_added(user("d")))
    assert way_back(ledger) == [(7, False), (4, True), (compaction, True)]
    assert texts(ledger.history()) == ["sum", "c", "d"]


def test_what_was_said_since_a_compaction_belongs_to_the_new_chain_and_what_stayed_does_not():
    ledger = ledger_of(user("a"))
    turn(ledger, said("b"))
    ledger.extend(compacted(ledger, max_items=1))
    ledger.append(item_added(user("c")))
    assert [new for _, new in way_back(ledger)] == [False, True, True]


def test_a_rollback_before_a_compaction_brings_back_what_it_took():
    ledger = ledger_of(user("a"), user("b"))
    ledger.extend(compacted(ledger))
    assert ledger.history() == []
    ledger.append(ItemsRemoved(by=Removal.ROLLBACK, to=3))
    assert texts(ledger.history()) == ["a", "b"]


def test_a_compaction_of_a_compaction_takes_its_summary_too():
    ledger = ledger_of(user("a"), user("b"))
    ledger.extend(compacted(ledger, replaced=[user("first")]))
    ledger.extend(compacted(ledger, replaced=[user("second")]))
    assert texts(ledger.history()) == ["second"]


def test_a_later_compaction_may_keep_less_of_what_an_earlier_one_kept():
    ledger = ledger_of(*(user(text) for text in "abcd"))
    ledger.extend(compacted(ledger, max_items=2, replaced=[user("sum")]))
    ledger.append(item_added(user("e")))
    ledger.extend(compacted(ledger, max_items=2))
    assert texts(ledger.history()) == ["d", "e"]


def test_a_later_compaction_may_take_the_summary_of_an_earlier_one_and_nothing_else():
    ledger = ledger_of(*(user(text) for text in "abcd"))
    ledger.extend(compacted(ledger, max_items=2, replaced=[user("sum")]))
    assert texts(ledger.history()) == ["sum", "c", "d"]
    ledger.append(item_added(user("e")))
    ledger.extend(compacted(ledger, max_items=3))
    assert texts(ledger.history()) == ["c", "d", "e"]


def test_a_request_is_a_link_that_the_next_item_follows():
    ledger = ledger_of(user("a"))
    request = prepare(ledger)
    item = ledger.append(item_added(user("b")))
    assert ledger.links[item].parent == request


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=14))
def test_depth_counts_the_links_before_and_a_path_is_its_own_way_back(moves):
    ledger = Ledger()
    for again, number in moves:
        links = list(ledger.links)
        after = links[number % len(links)]
        if again:
            ledger.append(ItemsRemoved(by=Removal.ROLLBACK, to=after))
        else:
            ledger.append(item_added(user(str(number)), after=after))
    for seq, link in ledger.links.items():
        path = [each.seq for each, _ in back(ledger.links, seq)]
        assert len(path) == link.depth
        for other in ledger.links:
            assert ledger.on_path(other, seq) is (other in {*path, START})
        assert isinstance(link, Said | Beginning | Compaction)
