"""Splitting: pieces joined are the document again, in bounded memory."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.sessions import splitting
from lockstitch.sessions.errors import CannotRead
from lockstitch.sessions.splitting import Element, Field, Splitter, Text

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


def split(text: str, read: int = 7):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitting, "READ_CHARACTERS", read)
        return list(Splitter(io.BytesIO(text.encode()), "x").pieces())


def joined(pieces) -> str:
    return "".join(
        piece.text if isinstance(piece, Text) else piece.lead + piece.text
        for piece in pieces
        if isinstance(piece, Text | Element)
    )


@given(
    st.lists(values, max_size=5),
    st.dictionaries(st.text(max_size=4), values, max_size=3),
    st.sampled_from([None, 0, 2]),
    st.integers(1, 40),
    st.booleans(),
)
def test_pieces_joined_are_the_document_again(elements, fields, indent, read, ascii_only):
    fields.pop("input", None), fields.pop("messages", None), fields.pop("items", None)
    for document in (elements, {**fields, "input": elements}):
        text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
        pieces = split(text, read)
        assert joined(pieces) == text
        assert [json.loads(p.text) for p in pieces if isinstance(p, Element)] == elements
        if isinstance(document, dict):
            assert {p.name: p.value for p in pieces if isinstance(p, Field)} == fields


@pytest.mark.parametrize("read", [1, 7, 1 << 20])
@pytest.mark.parametrize("item", [f'"{98 * "x"}"', f'"{49 * "é"}"', f'{{"a":"{92 * "x"}"}}'])
def test_an_item_may_have_as_many_bytes_as_a_line_and_no_more(read, item, monkeypatch):
    monkeypatch.setattr(splitting, "LONGEST_LINE_BYTES", 100)
    text = f"[1, {item}, 2]"
    assert joined(split(text, read)) == text
    with pytest.raises(CannotRead, match="has an item longer than 0 MiB"):
        split(text.replace(item, item.replace('"', '"x', 1)), read)


def test_elements_know_their_line():
    text = json.dumps({"a": "x\ny", "input": [1, {"b": 2}, 3]}, indent=1)
    lines = [piece.line for piece in split(text) if isinstance(piece, Element)]
    assert lines == [4, 5, 8]


def test_memory_does_not_grow_with_the_document():
    text = "[" + ",".join(['{"role": "user"}'] * 50_000) + "]"
    splitter = Splitter(io.BytesIO(text.encode()), "x")
    largest = 0
    for piece in splitter.pieces():
        largest = max(largest, len(splitter._buffer))
        assert isinstance(piece, Text | Element)
    assert largest <= 2 * splitting.READ_CHARACTERS
