"""Screenshots of nothing: pictures that say what a synthetic output says in words."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest

from lockstitch.core.outcomes import Outcome
from lockstitch.dialects.screenshots import SCREENSHOT


def chunks(png: bytes):
    """The chunks of a PNG file; raises if a checksum is wrong."""
    at = 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        (checksum,) = struct.unpack(">I", png[at + 8 + size : at + 12 + size])
        assert checksum == zlib.crc32(kind + data)
        yield kind, data
        at += 12 + size


@pytest.mark.parametrize("outcome", Outcome)
def test_there_is_a_whole_picture_for_every_outcome(outcome):
    head, _, data = SCREENSHOT[outcome].partition(",")
    png = base64.b64decode(data, validate=True)
    assert head == "data:image/png;base64"
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    kinds = dict(chunks(png))
    width, height = struct.unpack(">II", kinds[b"IHDR"][:8])
    assert (width, height) == (232, 40)
    assert zlib.decompress(kinds[b"IDAT"])
    assert b"IEND" in kinds


def test_no_two_outcomes_look_alike():
    assert len(set(SCREENSHOT.values())) == len(Outcome)
