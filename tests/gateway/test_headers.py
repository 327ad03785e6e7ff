"""Which headers go on: a key only to whom it is for."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.gateway.headers import (
    KEYS,
    LONGEST_REPAIRED_CHARACTERS,
    REPAIRED,
    REQUEST_ID,
    repaired_value,
    to_client,
    to_upstream,
)
from lockstitch.gateway.lines import Asking
from lockstitch.gateway.wire.heads import HOP_BY_HOP, base_of, request_head, written
from tests.generated import examples

SECRET = "lsk_secret"
UPSTREAM = "sk-upstream"

names = st.sampled_from(
    [
        *("Authorization", "X-Api-Key", "api-key", "Cookie", "X", "Connection"),
        *("anthropic-version", "Sec-WebSocket-Protocol"),
    ]
)
values = st.sampled_from(
    [
        *(f"Bearer {SECRET}", SECRET, "plain", "authorization", "x-own, x-api-key"),
        f"realtime, openai-insecure-api-key.{SECRET}",
    ]
)
headers = st.lists(st.tuples(names, values), max_size=6)


def sent(found):
    """What a line writes of it."""
    head = request_head(
        base_of("http://up/v1"), Asking(method="POST", target="/x", headers=found)
    ).decode()
    lines = [line.partition(": ") for line in head.split("\r\n")[1:] if line]
    return [(name.lower(), value) for name, _, value in lines]


@settings(max_examples=examples(80))
@given(headers, st.booleans(), st.booleans())
def test_a_key_of_ours_never_leaves_and_that_of_the_upstream_always_does(given_, with_key, own):
    mine = [("X-Own", "operator")] if own else []
    found = to_upstream(given_, key=UPSTREAM if with_key else None, own=mine, keyed=True)
    on_the_wire = sent(found)
    for name, value in on_the_wire:
        if name in KEYS:
            assert SECRET not in value
    keys_sent = [value for name, value in on_the_wire if name in KEYS]
    assert len(keys_sent) == int(with_key)
    assert all(UPSTREAM in value for value in keys_sent)
    # What the operator sets is set, whatever a client says of its connection.
    assert [value for name, value in on_the_wire if name == "x-own"] == ["operator"] * own


def test_without_keys_of_ours_a_clients_key_goes_on():
    given_ = [("Authorization", "Bearer sk-mine"), ("Cookie", "a=b")]
    assert to_upstream(given_, key=None, keyed=False) == given_


def test_without_keys_of_ours_a_key_in_a_subprotocol_goes_on_as_one():
    given_ = [("Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.sk-mine")]
    bearer = [("authorization", "Bearer sk-mine")]
    assert to_upstream(given_, key=None, keyed=False) == bearer
    assert to_upstream(given_, key=None, keyed=True) == []
    assert to_upstream(given_, key=UPSTREAM, keyed=False) == [
        ("authorization", f"Bearer {UPSTREAM}")
    ]
    others = [("api-key", "sk-other")]
    assert to_upstream([*given_, *others], key=None, keyed=False) == others
    assert to_upstream(given_, key=None, own=others, keyed=False) == others


def test_a_client_of_anthropic_is_known_by_its_version():
    found = to_upstream([("anthropic-version", "1")], key=UPSTREAM, keyed=False)
    assert ("x-api-key", UPSTREAM) in found
    assert ("authorization", f"Bearer {UPSTREAM}") in to_upstream([], key=UPSTREAM, keyed=False)


def test_what_the_operator_set_takes_the_place_of_what_the_client_sent():
    given_ = [("X-Own", "client"), ("x-own", "twice")]
    found = to_upstream(given_, key=None, own=[("x-Own", "operator")], keyed=False)
    assert found == [("x-Own", "operator")]


def test_the_handshake_of_a_client_is_its_own():
    given_ = [
        ("Sec-WebSocket-Key", "k"),
        ("Sec-WebSocket-Protocol", f"openai-insecure-api-key.{SECRET}"),
        ("Content-Encoding", "gzip"),
        ("X-Other", "a"),
        ("X-Other", "b"),
    ]
    assert to_upstream(given_, key=None, keyed=True) == [("X-Other", "a"), ("X-Other", "b")]


def test_what_is_about_one_connection_goes_nowhere():
    given_ = [(name, "x") for name in HOP_BY_HOP] + [("x-a", "1"), ("Connection", "x-a")]
    assert [name for name, _ in sent(to_upstream(given_, key=None, keyed=False))] == [
        "host",
        "accept-encoding",
        "content-length",
    ]
    assert [name for name, _ in to_client(given_, [(REQUEST_ID, "req_1")])] in (
        ["x-a", REQUEST_ID],
        [REQUEST_ID],
    )


def test_a_client_is_told_the_request_id_once():
    found = to_client(
        [("Lockstitch-Request-Id", "spoofed"), ("x", "1"), ("x", "2")], [(REQUEST_ID, "req_1")]
    )
    assert found == [("x", "1"), ("x", "2"), (REQUEST_ID, "req_1")]


def test_answers_keep_headers_that_come_twice():
    found = to_client(
        [("set-cookie", "a=1"), ("set-cookie", "b=2"), ("server", "x")], [(REQUEST_ID, "req_1")]
    )
    assert found[:2] == [("set-cookie", "a=1"), ("set-cookie", "b=2")]
    assert written(found, without=frozenset())


def test_an_upstream_cannot_claim_a_repair_of_the_gateway():
    assert to_client([("X-Lockstitch-Repaired", "LS001 a")], []) == []
    assert to_client([], [(REPAIRED, "LS001 a")]) == [(REPAIRED, "LS001 a")]


def test_repairs_are_named_by_rule_and_call():
    assert repaired_value([("LS001", "call_1"), ("LS002", None)]) == "LS001 call_1; LS002"


def test_a_call_id_can_break_no_header_and_many_do_not_make_it_long():
    value = repaired_value([("LS001", 'a\r\nset-cookie: x="1"; é\x00')])
    assert value == 'LS001 a??set-cookie:?x="1"????'
    many = repaired_value([("LS001", "c" * 500)] * 100)
    assert len(many) <= LONGEST_REPAIRED_CHARACTERS + 20
    assert many.endswith("and 91 more")
