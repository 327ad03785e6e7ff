"""The configuration as data: what it tells, and what it never shows."""

from __future__ import annotations

import msgspec
import pytest

from lockstitch.gateway.config import Config, Limits, Secret, Server, Upstream

SECRET = "not-like-a-key-at-all"
UPSTREAM = Upstream(
    name="a", url="http://h/v1", key=Secret(SECRET), headers=(("x", "hidden-header"),)
)
CONFIG = Config(store="postgresql://anna:hidden-password@db/x", upstreams=(UPSTREAM,))


def test_nothing_shows_a_secret():
    shown = f"{CONFIG!r} {CONFIG} {UPSTREAM!r} {UPSTREAM.key!r} {UPSTREAM.key} {[UPSTREAM.key]}"
    assert SECRET not in shown
    assert "hidden-" not in shown
    assert f"{UPSTREAM.key}" == "[hidden]"
    assert UPSTREAM.key.reveal() == SECRET


def test_it_knows_all_of_its_secrets():
    assert set(CONFIG.secrets()) == {SECRET, "hidden-header", "hidden-password"}
    asked = Config(store="postgresql://anna@db/x?password=hidden-password")
    assert asked.secrets() == ("hidden-password",)


def test_it_is_the_same_in_another_process():
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(CONFIG), type=Config) == CONFIG


@pytest.mark.parametrize(
    ("server", "url"),
    [
        (Server(), "http://127.0.0.1:8770"),
        (Server(host="::1", port=1), "http://[::1]:1"),
        (Server(host="0.0.0.0", port=1), "http://127.0.0.1:1"),
        (Server(host="::", port=1), "http://[::1]:1"),
        (Server(host="a.b", port=1, tls_certificate="c", tls_key="k"), "https://a.b:1"),
    ],
)
def test_where_a_client_reaches_it(server, url):
    assert server.url == url


def test_an_upstream_serves_models_by_pattern():
    upstream = Upstream(name="a", url="http://h", models=("gpt-*", "o3"))
    assert upstream.serves("gpt-5.5")
    assert upstream.serves("o3")
    assert not upstream.serves("o3-mini")
    assert not upstream.serves("GPT-5")


@pytest.mark.parametrize("unread_bytes", [1024, Limits().unread_bytes, 1 << 40])
def test_a_client_that_did_not_read_is_neither_full_nor_dry_when_its_upstream_is_read_again(
    unread_bytes,
):
    assert 0 < Limits(unread_bytes=unread_bytes).drained_bytes < unread_bytes
