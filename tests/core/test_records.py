"""Records: how a fact is kept, and found by its names."""

from __future__ import annotations

import typing

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields

from lockstitch.core.errors import LockstitchError
from lockstitch.core.facts import (
    AnchorAdopted,
    AnchorLost,
    AnyFact,
    By,
    CallSettled,
    CallStarted,
    Ending,
    ItemAdded,
    ItemCompleted,
    ItemsRemoved,
    Mode,
    Noted,
    Opened,
    Removal,
    RequestPrepared,
    RequestRejected,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
)
from lockstitch.core.outcomes import Outcome
from lockstitch.core.records import (
    SEALED,
    Name,
    Naming,
    Record,
    UnreadableRecord,
    decoded,
    encoded,
)
from lockstitch.ledgers import Ledger, item_added
from tests.generated import examples
from tests.played import Play, dialects, plays
from tests.turns import call, ledger_of, output, said, turn, user

KINDS = typing.get_args(AnyFact)

seqs = st.integers(0, 2**53)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
values = {
    "dialect": texts,
    "item": st.binary(max_size=40),
    "kind": texts,
    "note": st.binary(max_size=40),
    "by": st.sampled_from(By),
    "after": st.none() | seqs,
    "call": seqs,
    "slot": st.integers(0, 9),
    "outcome": st.sampled_from(Outcome),
    "mode": st.sampled_from(Mode),
    "base": seqs,
    "covers": seqs,
    "sent": st.lists(seqs, max_size=4).map(tuple),
    "anchor": texts,
    "request": seqs,
    "reason": texts,
    "id": st.none() | texts,
    "ending": st.sampled_from(Ending),
    "to": seqs,
    "replaced": st.lists(seqs, max_size=4).map(tuple),
    "last_item": st.none() | texts,
}


def facts_of(kind):
    strategies = {field.name: values[field.name] for field in fields(kind)}
    if kind is RequestPrepared:
        strategies["anchor"] = st.none() | texts
    if kind is ItemsRemoved:
        strategies["by"] = st.sampled_from(Removal)
    return st.builds(kind, **strategies)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=examples(40))
@given(data=st.data(), seq=seqs)
def test_every_fact_comes_back_as_it_was_and_always_as_the_same_bytes(kind, data, seq):
    fact = data.draw(facts_of(kind))
    record = encoded(seq, fact)
    assert decoded(record) == fact
    assert type(decoded(record)) is kind
    assert encoded(seq, fact) == record
    assert encoded(seq, decoded(record)) == record
    assert record.seq == seq
    assert msgspec.json.decode(record.payload)["fact"] == kind.__struct_config__.tag


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_the_item_or_note_is_kept_apart_as_the_bytes_that_came(kind, data):
    fact = data.draw(facts_of(kind))
    record = encoded(1, fact)
    assert record.body == getattr(fact, "note", getattr(fact, "item", None))
    if kind in (ItemAdded, CallSettled, ItemCompleted):
        assert msgspec.json.decode(record.payload)["item"] == ""


@settings(max_examples=examples(60))
@given(dialects, plays, st.sampled_from([Mode.FULL, Mode.CHAIN]))
def test_a_ledger_that_was_kept_is_the_ledger_that_it_was(dialect, moves, mode):
    ledger = Play(dialect, mode).all(moves).ledger
    kept = [
        encoded(seq, fact, ledger.parts.get(seq, ())) for seq, fact in enumerate(ledger.facts, 1)
    ]
    again = Ledger.rebuilt(decoded(record) for record in kept)
    assert again.state() == ledger.state()
    assert again.facts == ledger.facts


# --- names -------------------------------------------------------------------------------------


def names_of(ledger, seq):
    return encoded(seq, ledger.fact(seq), ledger.parts.get(seq, ())).names


def test_a_record_is_found_by_the_ids_of_its_item():
    ledger = ledger_of(user("a", id="msg_1"), call("call_a", id="fc_1"), output("call_a"))
    assert names_of(ledger, 2) == (Name(Naming.ITEM, "msg_1"),)
    assert names_of(ledger, 3) == (Name(Naming.CALL, "call_a"), Name(Naming.ITEM, "fc_1"))
    assert names_of(ledger, 4) == (Name(Naming.CALL, "call_a"),)


def test_a_call_that_is_joined_by_its_own_id_is_found_as_both():
    ledger = ledger_of(
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "t"},
        {"type": "local_shell_call", "call_id": "call_a", "id": "lsh_1"},
    )
    assert names_of(ledger, 2) == (Name(Naming.CALL, "mcpr_1"), Name(Naming.ITEM, "mcpr_1"))
    assert set(names_of(ledger, 3)) == {
        Name(Naming.CALL, "call_a"),
        Name(Naming.CALL, "lsh_1"),
        Name(Naming.ITEM, "lsh_1"),
    }


def test_every_call_of_a_chat_message_is_a_name_once():
    made = [{"id": key, "type": "function", "function": {}} for key in ("a", "b", "a")]
    ledger = ledger_of({"role": "assistant", "tool_calls": made}, dialect="chat")
    assert names_of(ledger, 2) == (Name(Naming.CALL, "a"), Name(Naming.CALL, "b"))


@pytest.mark.parametrize(
    ("fact", "names"),
    [
        (ResponseOpened(request=3, id="resp_1"), (Name(Naming.RESPONSE, "resp_1"),)),
        (ResponseOpened(request=3), ()),
        (
            RequestPrepared(mode=Mode.CONVERSATION, base=0, covers=2, sent=(), anchor="conv_1"),
            (Name(Naming.CONVERSATION, "conv_1"),),
        ),
        (RequestPrepared(mode=Mode.CHAIN, base=0, covers=2, sent=(), anchor="resp_1"), ()),
        (RequestPrepared(mode=Mode.FULL, base=0, covers=2, sent=()), ()),
        (AnchorAdopted(mode=Mode.CHAIN, anchor="resp_0"), (Name(Naming.RESPONSE, "resp_0"),)),
        (
            AnchorAdopted(mode=Mode.CONVERSATION, anchor="conv_0"),
            (Name(Naming.CONVERSATION, "conv_0"),),
        ),
        (AnchorLost(anchor="resp_0"), ()),
        (Noted(kind="asked", note=b"{}"), ()),
        (CallStarted(call=2), ()),
        (RequestSent(request=3), ()),
        (ResponseEnded(request=3), ()),
        (Opened(dialect="chat"), ()),
    ],
)
def test_a_fact_without_an_item_is_found_by_what_it_names_at_the_provider(fact, names):
    assert encoded(1, fact).names == names


# --- what cannot be read -----------------------------------------------------------------------

UNREADABLE = {
    "nothing": b"",
    "no JSON": b"{",
    "no object": b"[]",
    "no fact": b"{}",
    "a fact of a later version": b'{"fact":"moon_landed"}',
    "a field missing": b'{"fact":"anchor_lost"}',
    "a field of another type": b'{"fact":"anchor_lost","anchor":7}',
    "a value of a later version": b'{"fact":"response_ended","request":1,"ending":"tired"}',
    "no text": b'{"fact":"anchor_lost","anchor":"\xff"}',
    "too deep": b'{"fact":"anchor_lost","x":' + b"[" * 100_000,
    "half a surrogate pair": rb'{"fact":"anchor_lost","anchor":"\ud800"}',
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_this_version_did_not_write_is_refused_with_what_to_do(kind):
    with pytest.raises(UnreadableRecord) as raised:
        decoded(Record(7, UNREADABLE[kind]))
    assert str(raised.value).startswith("Entry 7 cannot be read: ")
    assert str(raised.value).endswith("Upgrade, or restore a backup.")
    assert len(str(raised.value)) < 400
    assert isinstance(raised.value, LockstitchError)


def test_an_encrypted_record_is_told_from_a_damaged_one():
    with pytest.raises(UnreadableRecord, match="is encrypted, and the store was opened without"):
        decoded(Record(7, SEALED + b"\x01\x02"))


def test_a_record_that_lost_its_item_is_refused():
    payload = encoded(7, item_added(user())).payload
    with pytest.raises(UnreadableRecord, match="Entry 7 has lost its item"):
        decoded(Record(7, payload, None))


def test_no_payload_looks_encrypted():
    ledger = ledger_of(user())
    turn(ledger, said())
    for seq, fact in enumerate(ledger.facts, 1):
        assert not encoded(seq, fact).payload.startswith(SEALED)


def test_the_reason_of_a_refusal_can_always_be_kept():
    fact = RequestRejected(request=3, reason="bad \ud800 text é")
    assert decoded(encoded(4, fact)) == fact
    assert "é" in fact.reason
