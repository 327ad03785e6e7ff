"""The last net: whatever looks like a key is hidden."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.gateway.config.secrets import redacted, redactor


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("key sk-proj-abcd1234 is", "key [hidden] is"),
        ("lsk_abcdefgh", "[hidden]"),
        ("Authorization: Bearer abc.def/g==", "Authorization: [hidden]"),
        ("bearer\tx, and", "[hidden], and"),
        ("a task-force of ask-me", "a task-force of ask-me"),
        ("/v1/responses/resp_123", "/v1/responses/resp_123"),
    ],
)
def test_what_looks_like_a_key_is_hidden(text, shown):
    assert redacted(text) == shown


KEYS = st.from_regex(r"(sk-|sk-proj-|lsk_)[A-Za-z0-9_-]{16,48}", fullmatch=True)


@given(st.text(), KEYS, st.text())
def test_a_key_is_hidden_in_any_text(before, key, behind):
    assert key not in redacted(before + key + behind)


@given(st.text(), st.text(min_size=8).filter(lambda text: text not in "[hidden]"), st.text())
def test_a_known_secret_is_hidden_whatever_it_looks_like(before, secret, behind):
    said = redactor([secret])(before + secret + behind)
    assert secret not in said.replace("[hidden]", "\0") or secret in before + behind
