"""A URL is shown without its passwords, and they are known wherever they stand."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.store.urls import passwords_in, public_url
from tests.generated import examples


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cret@db:5432/x", "postgresql://ann@db:5432/x"),
        ("postgresql://:s3cret@db/x", "postgresql://@db/x"),
        ("postgresql://ann:s3/cr@et@db/x", "postgresql://ann@db/x"),
        ("postgresql://ann@/x?host=/run&password=s3cret", "postgresql://ann@/x?host=/run"),
        ("postgresql://ann@/x?password=s3cret&host=/run", "postgresql://ann@/x?host=/run"),
        ("postgresql://ann@db/x?sslpassword=s3cret", "postgresql://ann@db/x"),
        ("postgresql://ann@db/x?SSLPassword=s3cret", "postgresql://ann@db/x"),
    ],
)
def test_a_url_is_shown_without_its_password(url, shown):
    assert public_url(url) == shown
    assert passwords_in(url) == ("s3/cr@et" if "@et" in url else "s3cret",)


@pytest.mark.parametrize(
    "url",
    ["postgresql://db/x", "postgresql://ann@db:5432/x", "sqlite:////a/b.db", "memory:", "a b", ""],
)
def test_a_url_without_a_password_is_shown_as_it_is(url):
    assert public_url(url) == url
    assert passwords_in(url) == ()


def test_a_password_is_known_as_it_is_written_and_as_it_is_meant():
    assert passwords_in("postgresql://a:b%40c@db/x") == ("b%40c", "b@c")


@settings(max_examples=examples(100))
@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_no_password_is_shown_and_each_is_known(first, second, third):
    one, two, three = (quote(f"<{text}>", safe="") for text in (first, second, third))
    url = f"postgresql://ann:{one}@db/x?password={two}&host=/run&sslpassword={three}"
    assert public_url(url) == "postgresql://ann@db/x?host=/run"
    assert {one, two, three} <= set(passwords_in(url))
    assert {f"<{text}>" for text in (first, second, third)} <= set(passwords_in(url))
