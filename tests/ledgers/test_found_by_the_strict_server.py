"""What the machine in `test_against_a_strict_server` found, each as small as it goes."""

from __future__ import annotations

import pytest

from lockstitch.facts import (
    AnchorAdopted,
    Mode,
    Refuse,
    compacted,
    item_added,
    resent,
)
from lockstitch.ledgers import Follower, Ledger
from tests.ledgers.driving import Driver, Fault
from tests.ledgers.strict_server import Reply, Shape, StrictServer, kind_of, paired


def _call(*families: str, reasoning: str | None = None) -> Shape:
    return Shape("calls", families, reasoning)


def test_a_compaction_in_a_cut_answer_leaves_the_output_that_its_base_waits_for() -> None:
    driver = Driver(StrictServer())
    driver.say()
    driver.turn(Reply((_call("function_call"),)))
    driver.settle_all()
    driver.send(driver.plan(), Reply((Shape("compaction"), _call("function_call"))))
    driver.hear(2)
    [key] = driver.startable()
    driver.start(key)
    driver.cut(committed=False)
    driver.settle(key, "wire")
    driver.turn(Reply())
    assert len(paired(driver.context())[0]) == 2


@pytest.mark.parametrize("family", ["local_shell_call", "mcp_approval_request"])
def test_a_call_whose_id_joins_it_travels_without_its_reasoning(family: str) -> None:
    driver = Driver(StrictServer(), Mode.FULL)
    driver.say()
    driver.turn(Reply((_call(family, reasoning="plain"),)))
    driver.settle_all()
    driver.turn(Reply())
    assert len(paired(driver.context())[0]) == 1


def test_what_was_said_behind_a_search_goes_without_its_id_where_its_reasoning_stays() -> None:
    driver = Driver(StrictServer(), Mode.FULL)
    driver.say()
    driver.turn(Reply((Shape("search", (), "plain"), Shape())))
    driver.say()
    driver.turn(Reply())
    assert [kind_of(item) for item in driver.context()].count("message") == 4


def test_a_request_that_was_rekeyed_is_found_again_in_its_conversation() -> None:
    driver = Driver(StrictServer(), Mode.CONVERSATION)
    driver.conversation = driver.server.new_conversation()
    driver.say()
    driver.send(driver.plan(), Reply((_call("local_shell_call", reasoning="plain"),), "failed"))
    driver.hear()
    [key] = driver.startable()
    driver.settle(key, "wire")
    driver.send(driver.plan(), Reply())
    driver.cut(committed=True)
    plan = driver.plan()
    assert isinstance(plan, Refuse), "it was found, with its answer: there is nothing to send"


def test_everything_goes_also_behind_another_compaction() -> None:
    ledger = Ledger()
    ledger.extend([item_added("a"), item_added("b")])
    ledger.extend(compacted(ledger, max_items=1))
    ledger.extend(compacted(ledger))
    assert ledger.history() == []


def test_a_follower_that_was_given_nothing_is_at_no_place() -> None:
    ledger = Ledger()
    ledger.append(item_added("a"))
    ledger.extend(compacted(ledger))
    ledger.append(item_added("b"))
    assert Follower(ledger).resent(ledger.history()) == []


def test_an_adopted_conversation_is_not_empty() -> None:
    ledger = Ledger()
    ledger.append(AnchorAdopted(mode=Mode.CONVERSATION, anchor="conv_1"))
    ledger.append(item_added("a"))
    ledger.extend(compacted(ledger, replaced=[{"role": "user", "content": "sum"}]))
    plan = ledger.plan(Mode.CONVERSATION, conversation="conv_1")
    assert getattr(plan, "anchor", None) is None


def test_an_adopted_conversation_that_went_on_cannot_be_continued_from_before() -> None:
    driver = Driver(StrictServer(), Mode.CONVERSATION)
    driver.conversation = driver.server.new_conversation()
    driver.append(AnchorAdopted(mode=Mode.CONVERSATION, anchor=driver.conversation))
    driver.say()
    said = driver.tip
    driver.turn(Reply())
    driver.say(after=said)
    assert isinstance(driver.plan(), Refuse)


def test_an_output_that_a_found_answer_holds_stands_before_the_one_that_was_guessed() -> None:
    driver = Driver(StrictServer())
    driver.say()
    answer = Reply((Shape("program", ("local_shell_call",)), Shape()))
    driver.send(driver.plan(), answer)
    driver.hear(2)
    [key] = driver.startable()
    driver.start(key)
    driver.cut(committed=True)
    driver.settle(key, "wire")
    [program] = driver.nodes[driver.request].programs
    driver.settle(program, "honestly")
    assert driver.retrieve()
    driver.turn(Reply())
    assert len(paired(driver.context())[0]) == 2


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_history_cut_short_is_rolled_back_behind_several_compactions(count: int) -> None:
    ledger = Ledger()
    ledger.extend(item_added(text) for text in "abcdef")
    ledger.extend(compacted(ledger, max_items=5))
    ledger.extend(compacted(ledger, max_items=3, replaced=[{"role": "user", "content": "sum"}]))
    ledger.extend(compacted(ledger, max_items=3))
    history = ledger.history()[:count]
    ledger.extend(resent(ledger, history))
    assert ledger.history() == history


def test_a_follower_does_not_double_an_answer_that_was_found_later() -> None:
    driver = Driver(StrictServer())
    driver.say()
    driver.send(driver.plan(), Reply())
    driver.cut(committed=True)
    assert driver.follower.resent(driver.ledger.history()) == []
    assert driver.retrieve()
    assert driver.follower.resent(driver.ledger.history()) == []


def test_an_output_of_a_program_that_was_compacted_away_does_not_travel() -> None:
    driver = Driver(StrictServer())
    driver.say()
    driver.turn(Reply((Shape("program", ("function_call",)),)))
    driver.settle_all()
    driver.say()
    driver.send(driver.plan(), Reply((_call("function_call"),)))
    driver.hear(2)
    driver.cut(committed=False)
    driver.append(*compacted(driver.ledger, max_items=1))
    [key] = driver.startable()
    driver.settle(key, "wire")
    driver.turn(Reply())


def test_an_answer_found_after_the_conversation_went_on_opens_no_call_behind_it() -> None:
    driver = Driver(StrictServer(), Mode.CONVERSATION)
    driver.conversation = driver.server.new_conversation()
    driver.say()
    driver.send(driver.plan(), Reply((_call("function_call"),)), fault=Fault.LOST_AFTER)
    driver.mode = Mode.FULL
    driver.turn(Reply())
    driver.mode = Mode.CONVERSATION
    driver.say()
    driver.plan()
    _, waiting = paired(driver.ledger.history())
    assert len(waiting) == len(driver.ledger.unsettled())
