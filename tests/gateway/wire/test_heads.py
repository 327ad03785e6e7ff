from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.gateway.wire.heads import NotABase, Unwritable, base_of, own_target, request_head
from tests.gateway.wire.playing import asking

BASE = base_of("http://upstream:8000/api/v1/")


def lines_of(**changes) -> list[str]:
    head = request_head(BASE, asking(**changes)).decode("utf-8", "surrogateescape")
    assert head.endswith("\r\n\r\n")
    assert head.count("\r\n\r\n") == 1
    return head[:-4].split("\r\n")


def test_a_target_stands_behind_the_path_of_its_base():
    assert lines_of(target="/responses?include=x")[0] == (
        "POST /api/v1/responses?include=x HTTP/1.1"
    )


def test_a_query_of_the_base_goes_with_every_target():
    base = base_of("https://x.example/openai/v1/?api-version=preview")
    line = request_head(base, asking(target="/responses?a=b")).decode().split("\r\n")[0]
    assert line == "POST /openai/v1/responses?api-version=preview&a=b HTTP/1.1"
    assert own_target(base) == "/openai/v1?api-version=preview"


@pytest.mark.parametrize(
    ("url", "host", "port", "authority"),
    [
        ("http://a", "a", 80, "a"),
        ("https://a/v1", "a", 443, "a"),
        ("https://a:443", "a", 443, "a"),
        ("http://a:8000", "a", 8000, "a:8000"),
        ("http://[::1]:8000/v1", "::1", 8000, "[::1]:8000"),
        ("https://[fe80::1]", "fe80::1", 443, "[fe80::1]"),
    ],
)
def test_an_address_says_where_to_connect_and_what_the_host_is_called(url, host, port, authority):
    base = base_of(url)
    assert (base.host, base.port, base.authority) == (host, port, authority)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "upstream:8000",
        "ftp://a",
        "http://",
        "http://user:pass@a",
        "http://a:99999",
        "http://a:b",
        "http://[::1",
        "http://a/\r\nx: y",
        "http://a\r\nx",
        "http://a/ b",
        "http://ä",
        "http://a/ä",
    ],
)
def test_an_address_that_cannot_be_asked_is_refused(url):
    with pytest.raises(NotABase):
        base_of(url)


def test_what_is_about_one_connection_stays_there():
    lines = lines_of(
        headers=[
            ("Connection", "keep-alive, X-Hop"),
            ("X-Hop", "1"),
            ("Transfer-Encoding", "chunked"),
            ("Content-Length", "999"),
            ("Host", "elsewhere"),
            ("Accept-Encoding", "gzip"),
            ("Expect", "100-continue"),
            ("Authorization", "Bearer k"),
            ("x-twice", "1"),
            ("x-twice", "2"),
        ],
        body=b"four",
    )
    assert lines[1:] == [
        "host: upstream:8000",
        "accept-encoding: identity",
        "content-length: 4",
        "Authorization: Bearer k",
        "x-twice: 1",
        "x-twice: 2",
    ]


def test_a_request_without_a_body_has_a_length_only_where_one_is_expected():
    assert "content-length: 0" in lines_of(method="POST", body=b"")
    assert not any("content-length" in line for line in lines_of(method="GET", body=b""))


HOSTILE = st.text(
    st.one_of(
        st.sampled_from("\r\n\0\t :ab\x7f\x85\u2028\ud800\udc0d\udc8d\u010a\u560d\u560a"),
        st.characters(),
    ),
    max_size=12,
)


@given(method=HOSTILE, target=HOSTILE, name=HOSTILE, value=HOSTILE)
def test_nothing_from_outside_adds_a_line_to_a_head(method, target, name, value):
    for changes in (
        {"method": method},
        {"target": "/" + target},
        {"headers": [(name, "v")]},
        {"headers": [("x-name", value)]},
    ):
        try:
            head = request_head(BASE, asking(**({"body": b""} | changes)))
        except Unwritable:
            continue
        lines = head.split(b"\r\n")
        assert lines[-2:] == [b"", b""]
        assert len(lines) <= 4 + 1 + 2
        assert all(line for line in lines[:-2])
        assert not any(byte in line for line in lines for byte in b"\r\n\0")
        assert head.count(b"\n") == head.count(b"\r\n") == len(lines) - 1


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "GET /x HTTP/1.1\r\nx: y"},
        {"target": "/a b"},
        {"target": "/a\r\nx: y"},
        {"target": "/a\0"},
        {"target": "//a\n"},
        {"target": "http://elsewhere/"},
        {"headers": [("x", "y\r\nz: 1")]},
        {"headers": [("x", "y\nz: 1")]},
        {"headers": [("x", "\0")]},
        {"headers": [("x: y\r\nz", "1")]},
        {"headers": [("", "1")]},
        {"headers": [("x", "\ud800")]},
    ],
)
def test_a_head_that_would_be_two_is_refused(changes):
    with pytest.raises(Unwritable) as raised:
        request_head(BASE, asking(**changes))
    assert not raised.value.sent


def test_a_value_that_is_no_text_goes_on_as_the_bytes_it_came_in():
    value = b"caf\xe9 \xc3\xa9".decode("utf-8", "surrogateescape")
    assert b"x-a: caf\xe9 \xc3\xa9\r\n" in request_head(BASE, asking(headers=[("x-a", value)]))


def test_a_refused_value_is_not_in_the_message():
    with pytest.raises(Unwritable) as raised:
        request_head(BASE, asking(headers=[("authorization", "Bearer secret\n")]))
    assert "secret" not in str(raised.value)
