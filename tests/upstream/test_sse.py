"""Server-sent events, however the bytes are cut."""

import pytest

from lockstitch.upstream import sse
from lockstitch.upstream.sse import Events, EventTooLarge

STREAM = (
    'event: a\ndata: {"text": "é"}\n\n: a comment\n\ndata: one\ndata: two\n\n'
    "id: 7\nretry: 10\ndata:tight\n\n\n\nevent: without data\n\ndata: [DONE]\n\ndata: not ended"
)
DATA = ['{"text": "é"}', "one\ntwo", "tight", "[DONE]"]


def fed(stream: bytes, size: int) -> list[str]:
    events = Events()
    pieces = (stream[start : start + size] for start in range(0, len(stream), size))
    return [data.decode() for piece in pieces for data in events.feed(piece)]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_events_are_the_same_however_they_are_cut(ending, mark):
    stream = mark + STREAM.replace("\n", ending).encode()
    for size in range(1, len(stream) + 1):
        assert fed(stream, size) == DATA, size


def test_an_event_that_is_not_ended_was_not_said():
    assert fed(b"data: half", 100) == []
    assert fed(b"data: half\n", 100) == []


def test_an_event_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(sse, "LARGEST_EVENT_BYTES", 100)
    events = Events()
    assert events.feed(b"data: " + b"x" * 90) == []
    with pytest.raises(EventTooLarge, match="100 bytes"):
        events.feed(b"x" * 10)


def test_a_long_event_in_small_pieces_is_looked_at_once():
    events = Events()
    events.feed(b"data: ")
    for _ in range(20_000):
        events.feed(b"x" * 50)
    (data,) = events.feed(b"\n\n")
    assert len(data) == 1_000_000
