"""The four founding cases, at the level of the ledger: each cannot happen, by construction.

The same cases over sockets, and a voice session's mirror, are tested where those live."""

from __future__ import annotations

import pytest

from lockstitch.core.continuation import Why
from lockstitch.core.errors import BrokenPair, CannotTrim
from lockstitch.facts import (
    AnchorAdopted,
    AnchorLost,
    Continue,
    ItemsRemoved,
    Mode,
    Refuse,
    Removal,
    Replay,
    SettleFirst,
    call_settled,
    compacted,
    item_added,
    request_prepared,
)
from tests.ledgers.driving import Driver, mark_in
from tests.ledgers.strict_server import Reply, Shape, StrictServer, kind_of, paired

ONE_CALL = Reply((Shape("calls", ("function_call",)),))
TWO_CALLS = Reply((Shape("calls", ("function_call", "shell_call"), "plain"),))

ROUNDS = 200
"""Enough that a freed dictionary's address is taken again: it happens within the first few."""


def test_case_a_a_reused_address_never_hides_an_output() -> None:
    """Every output is a short-lived dictionary with equal text, made where the last one was freed:
    what was remembered by its address, or by what it says, would be taken for already sent."""
    driver = Driver(StrictServer())
    driver.say()
    addresses: list[int] = []
    held: list[dict[str, str | None]] = [{}]
    for _ in range(ROUNDS):
        driver.turn(ONE_CALL)
        [key] = driver.unanswered()
        call = driver.call(key)
        held[0].update(type="function_call_output", call_id=call.item.key, output="ok")
        addresses.append(id(held[0]))
        driver.append(call_settled(driver.ledger, call, held[0]))
        held.clear()
        held.append({})  # at once, before anything else takes the place of the last one
        plan = driver.plan()
        assert isinstance(plan, Continue)
        assert [item["call_id"] for item in driver.ledger.items(plan)] == [call.item.key]
    driver.turn(Reply())
    assert len(set(addresses)) < ROUNDS, "no address was used again: this proves nothing"
    pairs, waiting = paired(driver.context())
    assert len(pairs) == ROUNDS
    assert not waiting


def test_case_b_nothing_in_flight_is_deleted() -> None:
    """While a call runs, the conversation is compacted, rolled back and filtered: its output still
    has its call. (A voice session's mirror, the other half of this case, is not part of this.)"""
    driver = Driver(StrictServer())
    driver.say()
    driver.turn(Reply())
    driver.say()
    driver.turn(TWO_CALLS)
    first, second = sorted(driver.unanswered())
    driver.start(first)
    driver.start(second)

    with pytest.raises(CannotTrim):
        compacted(driver.ledger)
    driver.append(*compacted(driver.ledger, max_items=4))
    assert {(call.seq, call.slot) for call in driver.ledger.unsettled()} == {first, second}
    tip = driver.tip
    driver.append(ItemsRemoved(by=Removal.ROLLBACK, to=0))
    driver.settle(first, "wire")  # off the path, and kept all the same
    driver.append(ItemsRemoved(by=Removal.ROLLBACK, to=tip))
    assert isinstance(driver.plan(), SettleFirst)
    driver.settle(second, "wire")

    plan = driver.plan()
    assert isinstance(plan, Replay)
    items = driver.ledger.items(plan)
    outputs = [item for item in items if kind_of(item).endswith("_output")]
    before = driver.ledger.state()
    for output in outputs:
        with pytest.raises(BrokenPair):
            request_prepared(
                driver.ledger, plan, items=[item for item in items if item is not output]
            )
    assert driver.ledger.state() == before
    driver.turn(Reply())
    pairs, waiting = paired(driver.context())
    assert not waiting
    assert {mark_in(output) for _, output in pairs} == set(driver.outputs.values())
    assert len(pairs) == 2


@pytest.mark.parametrize("mode", [Mode.CHAIN, Mode.CONVERSATION])
def test_case_c_a_fresh_retry_holds_the_calls_of_its_outputs(mode: Mode) -> None:
    """A delta of outputs is right only behind its anchor. The anchor is lost: what is sent instead
    holds the calls too, and is proven."""
    driver = Driver(StrictServer(), mode)
    if mode is Mode.CONVERSATION:
        driver.conversation = driver.server.new_conversation()
    driver.say()
    driver.turn(TWO_CALLS)
    driver.settle_all()
    delta = driver.plan()
    assert isinstance(delta, Continue)
    assert {kind_of(item) for item in driver.ledger.items(delta)} == {
        "function_call_output",
        "shell_call_output",
    }
    driver.server.forget(delta.anchor)
    assert driver.send(delta, Reply()) == "rejected"

    fresh = driver.plan()
    assert isinstance(fresh, Replay)
    assert fresh.why is Why.ANCHOR_LOST
    pairs, waiting = paired(driver.ledger.items(fresh))
    assert len(pairs) == 2
    assert not waiting
    driver.turn(Reply())
    assert len(paired(driver.context())[0]) == 2


def test_case_c_a_retry_whose_calls_nobody_here_saw_is_refused() -> None:
    driver = Driver(StrictServer())
    ledger = driver.ledger
    ledger.append(AnchorAdopted(mode=Mode.CHAIN, anchor="resp_elsewhere"))
    output = {"type": "function_call_output", "call_id": "call_elsewhere", "output": "x"}
    ledger.append(item_added(output))
    assert isinstance(ledger.plan(Mode.CHAIN), Continue)
    ledger.append(AnchorLost(anchor="resp_elsewhere"))
    assert isinstance(ledger.plan(Mode.CHAIN), Refuse)
    assert isinstance(ledger.plan(Mode.FULL), Refuse)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("settled_first", [True, False])
def test_case_d_an_output_survives_the_stream_that_broke(mode: Mode, settled_first: bool) -> None:
    """The call was heard and started; the stream broke before `response.completed`; the process
    died. What was kept is enough: the next request holds the call and its output, once."""
    driver = Driver(StrictServer(), mode)
    if mode is Mode.CONVERSATION:
        driver.conversation = driver.server.new_conversation()
    driver.say()
    plan = driver.plan()
    assert isinstance(plan, Replay)
    driver.send(plan, Reply((Shape("calls", ("function_call",), "encrypted"), Shape())))
    driver.hear(2)
    [key] = driver.startable()
    driver.start(key)
    if settled_first:
        driver.settle(key, "wire")
    driver.cut(committed=False)
    if not settled_first:
        driver.settle(key, "wire")
    driver.restart()

    plan = driver.plan()
    assert isinstance(plan, Continue | Replay)
    pairs, waiting = paired(driver.ledger.items(plan))
    assert [mark_in(output) for _, output in pairs] == list(driver.outputs.values())
    assert not waiting
    driver.turn(Reply())
    assert len(paired(driver.context())[0]) == 1
    assert driver.effects[key] == 1


def test_case_d_a_call_that_was_started_is_never_told_as_not_run() -> None:
    driver = Driver(StrictServer())
    driver.say()
    plan = driver.plan()
    assert isinstance(plan, Replay)
    driver.send(plan, ONE_CALL)
    driver.hear(1)
    [key] = driver.startable()
    driver.start(key)
    driver.restart()
    driver.settle(key, "honestly")
    plan = driver.plan()
    assert isinstance(plan, Continue | Replay)
    [_, _, output] = driver.ledger.items(plan)
    assert "Outcome unknown" in output["output"]
