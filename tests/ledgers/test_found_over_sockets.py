"""What random conversations over real sockets found, each as small as it gets."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch import Journal, open_store
from lockstitch.core.outcomes import UNKNOWN_TEXT
from lockstitch.dialects.likeness import likeness
from lockstitch.facts import (
    AnchorLost,
    CallStarted,
    Continue,
    Ending,
    ReadBack,
    Replay,
    RequestLost,
    RequestRejected,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
    SettleFirst,
    call_settled,
    call_settled_honestly,
    compacted,
    found,
    item_added,
    item_completed,
    request_prepared,
)
from lockstitch.ledgers import Ledger

THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
WORD = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "A word."}],
}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"}
PROGRAM = {"type": "program", "id": "prog_1", "call_id": "p", "code": "", "fingerprint": "fp"}
NESTED = {**CALL, "caller": {"type": "program", "caller_id": "p"}}
RESULT = {
    "type": "program_output",
    "id": "progo_1",
    "call_id": "p",
    "result": "done",
    "status": "completed",
}
ASKED = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "name": "send",
    "arguments": "{}",
    "server_label": "mail",
}
APPROVED = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}


def begun(*said, ending=Ending.COMPLETED, mode="previous_response_id"):
    """A ledger with one exchange: a user's word, and this answer."""
    ledger = Ledger()
    ledger.append(item_added("Hello."))
    answered(ledger, *said, ending=ending, mode=mode)
    return ledger


def answered(ledger, *said, ending=Ending.COMPLETED, mode="previous_response_id"):
    plan = ledger.plan(mode)
    assert isinstance(plan, Continue | Replay), plan
    ledger.extend(request_prepared(ledger, plan))
    request = ledger.tip
    ledger.append(RequestSent(request=request))
    ledger.append(ResponseOpened(request=request, id=f"resp_{request}"))
    for item in said:
        ledger.append(item_completed(request, item))
    if ending is not None:
        ledger.append(ResponseEnded(request=request, ending=ending))
    return request


def settled(ledger, key, output="Done."):
    ledger.append(call_settled(ledger, ledger.call(key), output))


def keys(items):
    return [item.get("call_id") or item.get("type") or item["role"] for item in items]


def test_two_appends_at_once_are_each_told_their_own_place(tmp_path):
    async def append_two():
        async with (
            open_store(f"sqlite:///{tmp_path / 'store.db'}") as store,
            await Journal.open(store, "c") as journal,
        ):
            facts = item_added("a"), item_added("b")
            return await asyncio.gather(*(journal.append(fact) for fact in facts))

    assert asyncio.run(append_two()) == [2, 3]


def test_what_the_provider_compacted_begins_a_chain_as_it_is():
    ledger = begun(WORD)
    user = {"type": "message", "id": "msg_u", "role": "user", "content": "Hello."}
    window = [user, {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}]
    ledger.extend(compacted(ledger, replaced=window))
    ledger.append(item_added("Go on."))
    assert ledger.items(ledger.plan())[:2] == window


def test_an_approval_and_its_answer_are_sent_anew_under_one_id():
    ledger = begun(THOUGHT, ASKED, mode="full")
    settled(ledger, "mcpr_1", APPROVED)
    items = ledger.items(ledger.plan("full"))
    assert items[-1]["approval_request_id"] == items[-2]["id"]


def test_what_was_left_by_a_compaction_goes_without_its_id_every_time():
    ledger = begun({**WORD, "id": "msg_0"}, mode="full")
    ledger.append(item_added("A."))
    answered(ledger, THOUGHT, WORD, mode="full")
    ledger.extend(compacted(ledger, max_items=3))
    for said in ("B.", "C."):
        ledger.append(item_added(said))
        assert [item for item in ledger.items(ledger.plan("full")) if item.get("id")] == []
        answered(ledger, mode="full")


def test_what_a_filter_left_goes_without_its_id_every_time():
    ledger = begun(THOUGHT, WORD, mode="full")
    ledger.append(item_added("A."))
    plan = ledger.plan("full")
    note = {"role": "developer", "content": "A note."}
    ledger.extend(request_prepared(ledger, plan, items=[note, *ledger.items(plan)]))
    ledger.append(RequestSent(request=ledger.tip))
    ledger.append(ResponseOpened(request=ledger.tip, id="resp_x"))
    ledger.append(ResponseEnded(request=ledger.tip))
    ledger.append(item_added("B."))
    assert [item for item in ledger.items(ledger.plan("full")) if item.get("id")] == []


def test_what_was_sent_anew_without_its_id_goes_without_it_when_the_chain_is_lost_again():
    ledger = begun(THOUGHT, WORD)
    for said in ("A.", "B."):
        ledger.append(item_added(said))
        ledger.append(AnchorLost(anchor=ledger.plan().anchor))
        assert [item for item in ledger.items(ledger.plan()) if item.get("id")] == []
        answered(ledger)


def test_a_request_that_was_never_sent_does_not_stop_a_compaction():
    ledger = begun(WORD)
    ledger.append(item_added("Go on."))
    ledger.extend(request_prepared(ledger, ledger.plan()))
    answered(ledger, {**WORD, "id": "msg_2"})
    assert compacted(ledger, max_items=1)


@pytest.mark.parametrize("mode", ["full", "previous_response_id"])
def test_a_plan_that_is_not_rewritten_is_not_refused(mode):
    ledger = begun(PROGRAM, NESTED, mode=mode)
    settled(ledger, "call_1")
    ledger.append(item_added("Go on."))
    plan = ledger.plan(mode)
    if isinstance(plan, SettleFirst):
        ledger.extend([call_settled_honestly(ledger, call) for call in plan.calls])
        plan = ledger.plan(mode)
    assert request_prepared(ledger, plan, items=ledger.items(plan))


def test_a_second_note_like_the_first_does_not_hide_what_stands_between():
    note = {"role": "developer", "content": "A note."}
    ledger = begun(PROGRAM, NESTED, mode="full")
    settled(ledger, "call_1")
    ledger.append(item_added("Go on."))
    plan = ledger.plan("full")
    ledger.extend(request_prepared(ledger, plan, items=[*ledger.items(plan), note]))
    request = ledger.tip
    ledger.append(RequestSent(request=request))
    ledger.append(ResponseOpened(request=request, id="resp_x"))
    ledger.append(item_completed(request, WORD))
    ledger.append(ResponseEnded(request=request))
    ledger.append(item_added("Go on."))
    plan = ledger.plan("full")
    assert request_prepared(ledger, plan, items=[note, *ledger.items(plan)])


def test_what_an_answer_that_ended_early_left_running_is_nobodys():
    ledger = begun(PROGRAM, ending=Ending.INCOMPLETE)
    ledger.append(item_added("Go on."))
    plan = ledger.plan()
    assert isinstance(plan, SettleFirst), plan


def test_a_program_that_ended_early_beside_a_call_is_settled_with_it():
    ledger = begun(CALL, PROGRAM, ending=Ending.INCOMPLETE)
    settled(ledger, "call_1")
    plan = ledger.plan()
    assert isinstance(plan, SettleFirst), plan
    ledger.extend([call_settled_honestly(ledger, call) for call in plan.calls])
    assert keys(ledger.items(ledger.plan())) == ["call_1", "p"]


def test_a_result_in_an_answer_that_was_forgotten_is_not_sent():
    ledger = begun(PROGRAM, NESTED)
    settled(ledger, "call_1")
    answered(ledger, RESULT, ending=Ending.CUT)
    assert keys(ledger.items(ledger.plan())) == ["call_1"]


def test_a_result_in_an_answer_that_is_kept_is_sent_once():
    ledger = begun(PROGRAM, NESTED)
    settled(ledger, "call_1")
    answered(ledger, RESULT, {**CALL, "id": "fc_2", "call_id": "call_2"}, ending=Ending.CUT)
    settled(ledger, "call_2")
    plan = ledger.plan()
    assert isinstance(plan, Continue), plan
    assert keys(ledger.items(plan)) == ["call_1", "p", "call_2", "call_2"]


def test_a_result_that_was_sent_on_ends_its_program():
    ledger = begun(PROGRAM, NESTED)
    settled(ledger, "call_1")
    answered(ledger, RESULT, {**CALL, "id": "fc_2", "call_id": "call_2"}, ending=Ending.CUT)
    settled(ledger, "call_2")
    answered(ledger, WORD)
    ledger.append(item_added("Go on."))
    plan = ledger.plan()
    assert isinstance(plan, Continue), plan
    assert keys(ledger.items(plan)) == ["user"]


def test_what_was_sent_under_another_id_is_found_again():
    ledger = begun(THOUGHT, ASKED)
    settled(ledger, "mcpr_1", APPROVED)
    plan = ledger.plan("conversation", conversation="conv_1")
    sent = ledger.items(plan)
    ledger.extend(request_prepared(ledger, plan))
    ledger.append(RequestSent(request=ledger.tip))
    ledger.append(RequestLost(request=ledger.tip))
    asked = ledger.plan("conversation", conversation="conv_1")
    assert isinstance(asked, ReadBack)
    ledger.extend(found(ledger, asked, [*sent, WORD]))
    ledger.append(item_added("Go on."))
    assert isinstance(ledger.plan("conversation", conversation="conv_1"), Continue)


def test_what_was_settled_after_a_program_was_left_running_is_sent_anew_once():
    ledger = begun(PROGRAM, NESTED)
    settled(ledger, "call_1")
    answered(ledger, ending=Ending.INCOMPLETE)
    plan = ledger.plan()
    assert isinstance(plan, SettleFirst), plan
    ledger.extend([call_settled_honestly(ledger, call) for call in plan.calls])
    answered(ledger, WORD)
    assert keys(ledger.history()).count("p") == 2
    ledger.append(item_added("Go on."))
    ledger.append(AnchorLost(anchor=ledger.plan().anchor))
    assert keys(ledger.items(ledger.plan())).count("p") == 2


@pytest.mark.parametrize("thinks", [False, True])
@pytest.mark.parametrize("at", [0, 100])
def test_a_note_may_be_added_while_a_program_runs(thinks, at):
    ledger = begun(*[THOUGHT] * thinks, PROGRAM, NESTED, mode="full")
    ledger.append(call_settled_honestly(ledger, ledger.call("call_1")))
    plan = ledger.plan("full")
    items = ledger.items(plan)
    items.insert(at, {"role": "developer", "content": "A note."})
    assert request_prepared(ledger, plan, items=items)


def test_a_result_on_one_branch_is_not_sent_on_another():
    ledger = begun(PROGRAM, NESTED)
    first = ledger.tip
    settled(ledger, "call_1")
    answered(ledger, RESULT, WORD)
    ledger.append(item_added("Something else.", after=first))
    plan = ledger.plan()
    if isinstance(plan, SettleFirst):
        assert [call.item.key for call in plan.calls] == ["p"]
    else:
        assert RESULT not in ledger.items(plan)


def test_a_program_of_an_answer_that_broke_off_is_nobodys_and_gets_an_output():
    ledger = begun(CALL, PROGRAM, ending=Ending.CUT)
    settled(ledger, "call_1")
    plan = ledger.plan()
    if isinstance(plan, SettleFirst):
        ledger.extend([call_settled_honestly(ledger, call) for call in plan.calls])
        plan = ledger.plan()
    sent = keys(ledger.items(plan))
    assert sent.count("p") in {0, 2}


def test_a_program_is_never_told_as_never_started():
    ledger = begun(PROGRAM, NESTED)
    fact = call_settled_honestly(ledger, ledger.call("p"))
    assert UNKNOWN_TEXT.encode() in fact.item


def test_a_call_that_broke_off_wants_no_output():
    ledger = begun({**CALL, "status": "incomplete", "arguments": "{"}, ending=Ending.INCOMPLETE)
    assert ledger.unsettled() == []
    ledger.append(item_added("Go on."))
    plan = ledger.plan()
    assert isinstance(plan, Continue), plan
    assert keys(ledger.items(plan)) == ["user"]


def test_a_status_that_the_provider_adds_makes_no_other_item():
    output = {"type": "local_shell_call_output", "id": "call_1", "output": "x"}
    assert likeness(output) == likeness({**output, "status": "completed"})


def test_a_started_call_of_an_answer_that_broke_off_keeps_it():
    ledger = begun(CALL, ending=Ending.CUT)
    ledger.append(CallStarted(call=ledger.call("call_1").seq))
    assert isinstance(ledger.plan(), SettleFirst)


def test_a_rejected_replay_is_planned_again_as_it_was():
    ledger = begun(THOUGHT, WORD)
    ledger.append(item_added("Go on."))
    ledger.append(AnchorLost(anchor=ledger.plan().anchor))
    first = ledger.items(ledger.plan())
    ledger.extend(request_prepared(ledger, ledger.plan()))
    ledger.append(RequestSent(request=ledger.tip))
    ledger.append(RequestRejected(request=ledger.tip, reason="429"))
    assert ledger.items(ledger.plan()) == first
