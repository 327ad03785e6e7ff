from __future__ import annotations

import gzip
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.gateway.wire import unpacking as module
from lockstitch.gateway.wire.unpacking import CannotUnpack, unpacking


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKERS = {
    "gzip": ("gzip", gzip.compress),
    "gzip by another name": (" X-GZIP ", gzip.compress),
    "gzip in two members": ("gzip", lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
    "gzip, filled up": ("gzip", lambda data: gzip.compress(data) + b"\0\0\0"),
    "deflate": ("deflate", zlib.compress),
    "deflate without its wrapper": ("deflate", bare),
}


@pytest.mark.parametrize("how", sorted(PACKERS))
@given(data=st.binary(max_size=300), cuts=st.lists(st.integers(0, 400), max_size=8))
def test_a_body_is_the_same_however_it_was_packed_and_is_cut(how, data, cuts):
    coding, packer = PACKERS[how]
    packed = packer(data)
    body = unpacking([("Content-Encoding", coding)])
    assert body is not None
    assert not body.breaks_off
    places = sorted({0, len(packed), *(cut for cut in cuts if cut < len(packed))})
    found = b"".join(body.add(packed[start:end]) for start, end in pairwise(places))
    assert found == data
    assert not body.breaks_off


@pytest.mark.parametrize("coding", [None, "identity", "br", "zstd", "gzip, gzip", ""])
def test_what_is_not_packed_or_not_known_is_left_alone(coding):
    assert unpacking([] if coding is None else [("content-encoding", coding)]) is None


@pytest.mark.parametrize("how", sorted(PACKERS))
def test_a_body_that_breaks_off_is_known_to(how):
    coding, packer = PACKERS[how]
    body = unpacking([("content-encoding", coding)])
    assert body is not None
    body.add(packer(b"nine byte" * 50)[:-12])
    assert body.breaks_off


def test_what_is_not_packed_as_it_says_is_told():
    body = unpacking([("content-encoding", "gzip")])
    assert body is not None
    with pytest.raises(CannotUnpack):
        body.add(b"{}")


def test_what_becomes_too_large_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_UNPACKED_BYTES", 1000)
    body = unpacking([("content-encoding", "gzip")])
    assert body is not None
    with pytest.raises(CannotUnpack):
        body.add(gzip.compress(b"x" * 1001))
