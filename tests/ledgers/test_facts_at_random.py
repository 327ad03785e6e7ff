"""Facts in any order, most of which cannot have happened: each is taken whole, or not at all."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core import records
from lockstitch.core.errors import LockstitchError
from lockstitch.core.outcomes import Outcome
from lockstitch.facts import (
    AnchorAdopted,
    AnchorLost,
    AnyFact,
    By,
    CallSettled,
    CallStarted,
    Continue,
    Ending,
    ItemAdded,
    ItemCompleted,
    ItemsRemoved,
    Mode,
    Removal,
    Replay,
    RequestAccepted,
    RequestLost,
    RequestPrepared,
    RequestRejected,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
)
from lockstitch.ledgers import Ledger
from tests.generated import examples
from tests.ledgers.driving import kept

SOME_ITEMS = [
    b'{"role":"user","content":"hm"}',
    b'{"type":"reasoning","id":"rs_1","summary":[]}',
    b'{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"x"}',
    b'{"type":"function_call","id":"fc_1","call_id":"call_a","name":"t","arguments":"{}"}',
    b'{"type":"function_call","id":"fc_2","call_id":"call_b","name":"t","arguments":"{}"}',
    b'{"type":"function_call_output","call_id":"call_a","output":"ok"}',
    b'{"type":"function_call_output","call_id":"call_b","output":"ok"}',
    b'{"type":"shell_call","id":"sh_1","call_id":"call_a"}',
    b'{"type":"shell_call_output","call_id":"call_a","output":[]}',
    b'{"type":"local_shell_call","id":"call_b","call_id":"call_a"}',
    b'{"type":"local_shell_call_output","id":"call_b","output":"ok"}',
    b'{"type":"mcp_approval_request","id":"call_a"}',
    b'{"type":"mcp_approval_response","approval_request_id":"call_a","approve":true}',
    b'{"type":"program","id":"prog_1","call_id":"call_p"}',
    b'{"type":"program_output","id":"po_1","call_id":"call_p"}',
    b'{"type":"compaction","id":"cmp_1","encrypted_content":"x"}',
    b'{"type":"item_reference","id":"fc_1"}',
    b'{"type":"message","role":"assistant","id":"msg_1","content":"hm"}',
    b"{}",
    b"[]",
    b"",
]
"""Few ids and few keys, so that every kind of collision happens."""

seqs = st.integers(0, 12)
items = st.sampled_from(SOME_ITEMS)
anchors = st.sampled_from(["resp_1", "resp_2", "conv_1", "conv_2"])
any_facts = st.one_of(
    st.builds(
        ItemAdded, item=items, by=st.sampled_from(By), after=st.one_of(st.none(), st.none(), seqs)
    ),
    st.builds(CallStarted, call=seqs),
    st.builds(CallSettled, call=seqs, item=items, outcome=st.sampled_from(Outcome)),
    st.builds(
        RequestPrepared,
        mode=st.sampled_from(Mode),
        base=seqs,
        covers=seqs,
        sent=st.lists(seqs, max_size=3).map(tuple),
        anchor=st.one_of(st.none(), anchors),
    ),
    st.builds(RequestSent, request=seqs),
    st.builds(RequestAccepted, request=seqs),
    st.builds(RequestRejected, request=seqs),
    st.builds(RequestLost, request=seqs),
    st.builds(ResponseOpened, request=seqs, id=st.one_of(st.none(), anchors)),
    st.builds(ItemCompleted, request=seqs, item=items),
    st.builds(ResponseEnded, request=seqs, ending=st.sampled_from(Ending)),
    st.builds(
        ItemsRemoved,
        by=st.sampled_from(Removal),
        to=seqs,
        replaced=st.lists(seqs, max_size=2).map(tuple),
    ),
    st.builds(AnchorAdopted, mode=st.sampled_from(Mode), anchor=anchors),
    st.builds(AnchorLost, anchor=anchors),
)


@settings(max_examples=examples(300))
@given(st.lists(any_facts, min_size=5, max_size=40))
def test_any_fact_is_taken_whole_or_not_at_all_and_a_plan_is_always_found(
    facts: list[AnyFact],
) -> None:
    ledger = Ledger()
    for fact in facts:
        before = ledger.state()
        try:
            ledger.append(fact)
        except LockstitchError:
            assert ledger.state() == before
    again = Ledger.rebuilt(records.decoded(record) for record in kept(ledger))
    assert again.state() == ledger.state()
    for mode in Mode:
        plan = ledger.plan(mode, conversation="conv_1" if mode is Mode.CONVERSATION else None)
        if isinstance(plan, Continue | Replay):
            ledger.items(plan)
    assert ledger.state() == again.state(), "planning changes nothing"
