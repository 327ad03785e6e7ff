"""Calls that ask first: the turn pauses on disk, and any process takes it up with the answer."""

from __future__ import annotations

import pytest

from lockstitch.core.outcomes import NEVER_STARTED_TEXT, Outcome
from lockstitch.emulator import call, item
from lockstitch.runner import (
    CallBegan,
    CallEnded,
    ItemSaid,
    NoSuchCall,
    TurnEnded,
    Waiting,
    backoff,
    tool,
)
from tests.runner.stage import THREAD, of, outputs_in, played, staged, text_of, within

KINDS = ("responses", "chat", "messages")
SMALL = 100


class Bank:
    """A tool that asks before it pays, and what it paid."""

    def __init__(self, needs_approval=True):
        self.paid = []

        @tool(needs_approval=needs_approval)
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        def balance() -> int:
            """What is left."""
            return 7

        self.tools = (pay, balance)


def paying(amount, key):
    return call("pay", {"amount": amount}, call_id=key)


def is_much(arguments):
    return arguments["amount"] > SMALL


async def waiting_for(events):
    """The ids of the calls that a turn ended with, waiting for an approval."""
    assert isinstance(events[-1], Waiting)
    assert of(TurnEnded, events) == []
    return [pending.call_id for pending in events[-1].for_approval]


@pytest.mark.parametrize("kind", KINDS)
def test_a_turn_pauses_for_an_approval_and_another_process_goes_on(kind):
    async def run():
        async with staged() as stage:
            bank = Bank()
            stage.emulator.say(call("balance", call_id="call_1"), paying(5, "call_2"))
            stage.emulator.say("Paid.")
            events = await played(stage.runner(*bank.tools, kind=kind).turn(THREAD, "Pay."))
            assert await waiting_for(events) == ["call_2"]
            (pending,) = events[-1].for_approval
            assert (pending.name, pending.arguments.replace(" ", "")) == ("pay", '{"amount":5}')
            # What need not wait did not.
            assert [ended.call_id for ended in of(CallEnded, events)] == ["call_1"]
            assert bank.paid == []

            runner = stage.runner(*bank.tools, kind=kind)
            resumed = await played(runner.turn(THREAD, approve={"call_2": True}))
            assert [began.call_id for began in of(CallBegan, resumed)] == ["call_2"]
            assert text_of(resumed) == "Paid."
            assert bank.paid == [5]
            await stage.whole()
            assert stage.broken() == {}

    within(run)


def test_a_pause_is_on_disk(tmp_path):
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    bank = Bank()

    async def pauses():
        async with staged() as stage:
            stage.emulator.say(paying(5, "call_1"))
            async with stage.runner(*bank.tools, store=url) as runner:
                assert await waiting_for(await played(runner.turn(THREAD, "Pay."))) == ["call_1"]

    async def goes_on():
        # Hours later, and the provider has forgotten everything.
        async with staged() as stage:
            stage.emulator.say("Paid.")
            async with stage.runner(*bank.tools, store=url) as runner:
                events = await played(runner.turn(THREAD, approve={"call_1": True}))
                assert text_of(events) == "Paid."
            assert stage.broken() == {"anchor-not-found": 1}

    within(pauses)
    within(goes_on)
    assert bank.paid == [5]


def test_a_call_that_is_refused_never_starts_and_the_model_is_told():
    async def run():
        async with staged() as stage:
            bank = Bank()
            stage.emulator.say(paying(5, "call_1"))
            stage.emulator.say("Very well.")
            await played(stage.runner(*bank.tools).turn(THREAD, "Pay."))
            runner = stage.runner(*bank.tools)
            events = await played(runner.turn(THREAD, approve={"call_1": False}))
            assert bank.paid == []
            assert of(CallBegan, events) == []
            assert of(CallEnded, events)[0].outcome is Outcome.NEVER_STARTED
            (item,) = stage.sent()[-1]["input"]
            assert item["output"] == f"{NEVER_STARTED_TEXT} It was not approved."
            assert text_of(events) == "Very well."
            await stage.whole()

    within(run)


def test_each_call_is_decided_on_its_own():
    async def run():
        async with staged() as stage:
            bank = Bank()
            stage.emulator.say(paying(1, "call_1"), paying(2, "call_2"), paying(3, "call_3"))
            stage.emulator.say("So be it.")
            events = await played(stage.runner(*bank.tools).turn(THREAD, "Pay."))
            assert await waiting_for(events) == ["call_1", "call_2", "call_3"]

            decided = {"call_1": False, "call_3": True}
            events = await played(stage.runner(*bank.tools).turn(THREAD, approve=decided))
            assert await waiting_for(events) == ["call_2"]
            assert bank.paid == [3]

            events = await played(stage.runner(*bank.tools).turn(THREAD, approve={"call_2": True}))
            assert text_of(events) == "So be it."
            assert bank.paid == [3, 2]
            assert outputs_in(stage.sent()[-1]["input"]) == ["call_1", "call_2", "call_3"]
            assert stage.broken() == {}

    within(run)


def test_only_calls_with_such_arguments_ask():
    async def run():
        async with staged() as stage:
            bank = Bank(needs_approval=is_much)
            stage.emulator.say(paying(SMALL, "call_1"), paying(SMALL + 1, "call_2"))
            events = await played(stage.runner(*bank.tools).turn(THREAD, "Pay."))
            assert await waiting_for(events) == ["call_2"]
            assert bank.paid == [SMALL]

    within(run)


@pytest.mark.parametrize("kind", KINDS)
def test_a_decision_about_an_unknown_call_is_an_error_that_names_it(kind):
    async def run():
        async with staged() as stage:
            bank = Bank()
            stage.emulator.say(paying(5, "call_1"))
            stage.emulator.say("Paid.")
            runner = stage.runner(*bank.tools, kind=kind)
            with pytest.raises(NoSuchCall, match="call_1"):
                await played(runner.turn(THREAD, "Pay.", approve={"call_1": True}))
            assert stage.sent() == []
            await played(runner.turn(THREAD, "Pay."))
            before = (await stage.ledger()).history()
            decided = {"call_1": True, "call_7": False, "call_8": True}
            with pytest.raises(NoSuchCall, match="call_7, call_8"):
                await played(runner.turn(THREAD, "Go on.", approve=decided))
            assert (await stage.ledger()).history() == before
            assert bank.paid == []
            events = await played(runner.turn(THREAD, approve={"call_1": True}))
            assert text_of(events) == "Paid."
            assert bank.paid == [5]
            assert stage.broken() == {}

    within(run)


def test_a_call_that_is_brought_along_can_be_approved_in_the_same_turn():
    async def run():
        async with staged() as stage:
            bank = Bank()
            stage.emulator.say("Paid.")
            history = [
                {"role": "user", "content": "Pay."},
                {
                    "type": "function_call",
                    "call_id": "call_1",
                    "name": "pay",
                    "arguments": '{"amount": 5}',
                },
            ]
            turn = stage.runner(*bank.tools).turn(THREAD, history, approve={"call_1": True})
            assert text_of(await played(turn)) == "Paid."
            assert bank.paid == [5]

    within(run)


def test_a_decision_said_again_is_none_about_a_later_call_of_the_same_id():
    async def run():
        async with staged() as stage:
            bank = Bank()
            stage.emulator.say(paying(5, "call_0"))
            stage.emulator.say("Paid.")
            stage.emulator.say(paying(5000, "call_0"))
            runner = stage.runner(*bank.tools)
            await played(runner.turn(THREAD, "Pay."))
            await played(runner.turn(THREAD, approve={"call_0": True}))
            # As after a crash of the caller, who does not know that it was heard.
            events = await played(runner.turn(THREAD, "And now?", approve={"call_0": True}))
            assert await waiting_for(events) == ["call_0"]
            assert bank.paid == [5]

    within(run)


def test_a_message_does_not_stand_in_for_an_approval():
    async def run():
        async with staged() as stage:
            bank = Bank()
            stage.emulator.say(paying(5, "call_1"))
            stage.emulator.say("Paid, and noted.")
            await played(stage.runner(*bank.tools).turn(THREAD, "Pay."))
            events = await played(stage.runner(*bank.tools).turn(THREAD, "Make it quick."))
            assert await waiting_for(events) == ["call_1"]
            assert len(stage.sent()) == 1
            events = await played(stage.runner(*bank.tools).turn(THREAD, approve={"call_1": True}))
            assert text_of(events) == "Paid, and noted."
            assert "Make it quick." in str(stage.sent()[-1]["input"])
            assert stage.broken() == {}
            await stage.whole()

    within(run)


def test_a_call_that_waits_can_be_answered_from_outside():
    async def run():
        async with staged() as stage:
            bank = Bank()
            stage.emulator.say(paying(5, "call_1"))
            stage.emulator.say("Thank you.")
            await played(stage.runner(*bank.tools).turn(THREAD, "Pay."))
            await stage.runner(*bank.tools).answer(THREAD, "call_1", "I paid it by hand.")
            events = await played(stage.runner(*bank.tools).turn(THREAD))
            assert text_of(events) == "Thank you."
            assert bank.paid == []
            (item,) = stage.sent()[-1]["input"]
            assert item["output"] == "I paid it by hand."

    within(run)


def test_a_call_of_an_answer_that_broke_off_is_not_asked_about():
    async def run():
        async with staged() as stage:
            bank = Bank()
            stage.emulator.say(paying(5, "call_1"))
            stage.emulator.say(paying(6, "call_2"))
            stage.emulator.fault("cut after=response.output_item.done")
            events = await played(stage.runner(*bank.tools).turn(THREAD, "Pay."))
            assert [said.item["call_id"] for said in of(ItemSaid, events)] == ["call_1", "call_2"]
            assert await waiting_for(events) == ["call_2"]
            assert outputs_in((await stage.ledger()).history()) == []

    within(run)


def test_a_call_that_waits_beside_one_that_ran_is_not_lost_when_the_answer_breaks_off():
    async def run():
        async with staged() as stage:
            bank = Bank()

            def note() -> str:
                """Note it."""
                return "noted"

            stage.emulator.say(call("note", call_id="call_1"), paying(5, "call_2"))
            stage.emulator.fault("cut after=response.output_item.done nth=2")
            stage.emulator.say("Paid.")
            tools = (*bank.tools, note)
            events = await played(stage.runner(*tools).turn(THREAD, "Pay."))
            assert await waiting_for(events) == ["call_2"]
            events = await played(stage.runner(*tools).turn(THREAD, approve={"call_2": True}))
            assert text_of(events) == "Paid."
            assert bank.paid == [5]
            assert outputs_in(await stage.whole()) == ["call_1", "call_2"]
            assert stage.broken() == {}

    within(run)


def test_an_approval_is_for_one_call_though_a_later_one_has_the_same_id():
    # Some servers begin to count anew in every answer.
    async def run():
        async with staged() as stage:
            bank = Bank()
            stage.emulator.say(paying(5, "call_0"))
            stage.emulator.say(paying(5000, "call_0"))
            stage.emulator.say("Paid.")
            await played(stage.runner(*bank.tools).turn(THREAD, "Pay."))
            events = await played(stage.runner(*bank.tools).turn(THREAD, approve={"call_0": True}))
            assert await waiting_for(events) == ["call_0"]
            assert bank.paid == [5]
            events = await played(stage.runner(*bank.tools).turn(THREAD, approve={"call_0": True}))
            assert text_of(events) == "Paid."
            assert bank.paid == [5, 5000]

    within(run)


def test_a_call_that_gets_a_recorded_output_asks_nobody(monkeypatch):
    monkeypatch.setattr(backoff, "FIRST_DELAY_SECONDS", 0.001)

    async def run():
        async with staged() as stage:
            bank = Bank(needs_approval=lambda arguments: bool(bank.paid))  # from the second on
            stage.emulator.say(paying(5, "call_1"))
            stage.emulator.fault("cut before=end")
            stage.emulator.say(paying(5, "call_1"))
            stage.emulator.say("Paid.")
            turn = stage.runner(*bank.tools).turn(THREAD, "Pay.")
            assert text_of(await played(turn)) == "Paid."
            assert bank.paid == [5]

    within(run)


# --- what the provider asks before it runs something itself ------------------------------------

REQUEST = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "name": "pay",
    "arguments": '{"amount": 5}',
    "server_label": "bank",
}


@pytest.mark.parametrize("approved", [True, False])
def test_a_request_of_the_provider_for_an_approval_waits_for_one(approved):
    async def run():
        async with staged() as stage:
            bank = Bank(needs_approval=False)  # of the same name, and not the one that is asked for
            stage.emulator.say(item(**REQUEST))
            stage.emulator.say("So be it.")
            events = await played(stage.runner(*bank.tools).turn(THREAD, "Pay."))
            assert await waiting_for(events) == ["mcpr_1"]
            runner = stage.runner(*bank.tools)
            events = await played(runner.turn(THREAD, approve={"mcpr_1": approved}))
            assert text_of(events) == "So be it."
            (said,) = stage.sent()[-1]["input"]
            assert said["type"] == "mcp_approval_response"
            assert said["approval_request_id"] == "mcpr_1"
            assert said["approve"] is approved
            assert bank.paid == []
            assert stage.broken() == {}
            await stage.whole()

    within(run)
