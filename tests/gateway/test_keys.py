"""Keys: made at random, kept as hashes, found in constant time."""

from __future__ import annotations

import re

import pytest

from lockstitch.gateway.access import keys as keys_module
from lockstitch.gateway.access.keys import Keyring, hash_of, new_key, presented
from lockstitch.gateway.config import Key


def test_a_new_key_is_long_random_and_says_where_it_belongs():
    made = {new_key() for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch(r"lsk_[A-Za-z0-9_-]{43}", key) for key in made)


def test_the_hash_of_a_key():
    # printf lsk_x | sha256sum
    assert hash_of("lsk_x") == (
        "sha256:f5104ec909fc0302d3fe7e8f3a3b0d658f45f3a1f86cf413ce57d57a882f94af"
    )


def test_a_key_finds_its_holder():
    anna, bert = new_key(), new_key()
    ring = Keyring([Key(name="anna", hash=hash_of(anna)), Key(name="bert", hash=hash_of(bert))])
    assert ring.holder(anna, now=0).name == "anna"
    assert ring.holder(bert, now=0).name == "bert"
    for other in (None, "", new_key(), anna[:-1], anna + "x", "x" * 5000, "\udcff", "ключ"):
        assert ring.holder(other, now=0) is None
    assert ring
    assert not Keyring([])
    assert anna not in repr(ring)


def test_an_expired_key_is_none():
    key = new_key()
    ring = Keyring([Key(name="anna", hash=hash_of(key), expires=100.0)])
    assert ring.holder(key, now=99.9).name == "anna"
    assert ring.holder(key, now=100.0) is None


def test_every_key_is_compared_wherever_the_right_one_stands(monkeypatch):
    every = [new_key() for _ in range(5)]
    ring = Keyring(Key(name=f"n{n}", hash=hash_of(key)) for n, key in enumerate(every))
    compared = []
    real = keys_module.hmac.compare_digest
    monkeypatch.setattr(
        keys_module.hmac, "compare_digest", lambda a, b: compared.append(1) or real(a, b)
    )
    for key in (*every, new_key()):
        compared.clear()
        ring.holder(key, now=0)
        assert len(compared) == 5


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ([("Authorization", "Bearer lsk_a")], "lsk_a"),
        ([("authorization", "bearer  lsk_a ")], "lsk_a"),
        ([("X-Api-Key", "lsk_a")], "lsk_a"),
        ([("Authorization", "Bearer lsk_a"), ("x-api-key", "lsk_b")], "lsk_a"),
        ([("Authorization", "Basic lsk_a")], None),
        ([("Authorization", "Basic x"), ("x-api-key", "lsk_b")], None),
        ([("Authorization", "Bearer ")], None),
        ([("Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.lsk_a,x")], "lsk_a"),
        ([("Sec-WebSocket-Protocol", "realtime,openai-insecure-api-key.")], None),
        ([("Sec-WebSocket-Protocol", "realtime")], None),
        (
            [
                ("Sec-WebSocket-Protocol", "openai-insecure-api-key.lsk_b"),
                ("Authorization", "Bearer lsk_a"),
            ],
            "lsk_a",
        ),
        ([("Authorization", "")], None),
        ([("X-Api-Key", "")], None),
        ([], None),
    ],
)
def test_where_a_request_shows_its_key(headers, key):
    assert presented(headers) == key
