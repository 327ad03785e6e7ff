"""Events are split from any pieces, peeked at, and handed on as they came."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lockstitch.gateway.events import (
    WATCHED,
    Splitter,
    as_sse,
    body_of,
    changed,
    number_of,
    peeked,
    with_response,
    with_stream_id,
    without_stream_id,
)
from lockstitch.upstream.sse import LARGEST_EVENT_BYTES, Events, EventTooLarge
from tests.gateway.building import message, sse, told_by
from tests.generated import examples
from tests.timing import least_seconds

BREAKS = (b"\n", b"\r\n", b"\r")

texts = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="\r\n"), max_size=12
)


@st.composite
def streams(draw):
    """A stream, and the data of its events, by the rules of the format itself."""
    stream, said = b"", []
    ends = draw(st.sampled_from([(b"\n",), (b"\r\n",), (b"\n", b"\r\n")]))
    end = st.sampled_from(ends)
    for _ in range(draw(st.integers(0, 5))):
        lines = []
        for _ in range(draw(st.integers(0, 4))):
            kind = draw(st.sampled_from(["data", "data", "event", "comment", "id", "bare", "odd"]))
            text = draw(texts).encode()
            if kind == "data":
                value = json.dumps({"type": "x", "t": text.decode()}).encode()
                space = draw(st.sampled_from([b"", b" "]))
                stream += b"data:" + space + value
                lines.append(value)
            else:
                prefix = {"event": b"event: ", "comment": b":", "id": b"id:", "odd": b"database:"}
                stream += prefix.get(kind, b"x") + text
            stream += draw(end)
        stream += draw(end)
        if lines:
            said.append(b"\n".join(lines))
    return stream, said


@st.composite
def cut(draw, stream):
    at = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    return [stream[a:b] for a, b in zip([0, *at], [*at, len(stream)], strict=True)]


@settings(max_examples=examples(60))
@given(streams().flatmap(lambda one: st.tuples(st.just(one), cut(one[0]))))
def test_events_are_the_same_however_they_are_cut(given_):
    (stream, said), pieces = given_
    splitter = Splitter()
    blocks, heard = [], []
    for piece in pieces:
        block, events = splitter.feed(piece)
        for event in events:
            assert event.data in block.replace(b"\r\n", b"\n") or b"\n" in event.data
        blocks.append(block)
        heard += [event.data for event in events]
    assert heard == said
    # Whatever was said whole is in the blocks, byte for byte; only the rest is not.
    passed = b"".join(blocks)
    assert stream.startswith(passed)
    other = Events()
    assert [one for piece in pieces for one in other.feed(piece)] == said


TYPES = st.sampled_from(
    [*sorted(WATCHED), "response.output_text.delta", "response.output_text.done", "x", 'a"b']
)


@st.composite
def bursts(draw):
    """Events that begin alike, among others, and among what only looks alike."""
    parts = []
    for number in range(draw(st.integers(1, 12))):
        kind = draw(TYPES)
        event = {"type": kind, "sequence_number": number, "delta": draw(st.text(max_size=5))}
        if draw(st.integers(0, 5)) == 0:
            event = dict(reversed(event.items()))
        data = json.dumps(event, separators=draw(st.sampled_from([(",", ":"), (", ", ": ")])))
        name = draw(st.sampled_from([f"event: {kind}\n", "", ": x\n", "event: other\n"]))
        behind = draw(st.sampled_from(["", "", "", "\nid: 1", '\ndata: {"type":"error"}']))
        end = draw(st.sampled_from(["\n\n", "\n\n", "\n\n", "\n\n\n", "\n\n\n\n"]))
        parts.append(f"{name}data: {data}{behind}{end}")
    return "".join(parts).encode()


@settings(max_examples=examples(200))
@given(bursts())
def test_what_is_read_briefly_is_read_as_well(stream):
    block, events = Splitter().feed(stream)
    splitter = Splitter(briefly=True)
    told, briefly = splitter.feed(stream)
    assert told == block
    assert [(one.data, one.start) for one in briefly] == [(one.data, one.start) for one in events]
    assert [one.event.type for one in briefly] == [one.event.type for one in events]
    assert [number_of(one) for one in briefly] == [number_of(one) for one in events]
    watched = [one for one in briefly if one.event.type in WATCHED]
    assert watched == [one for one in events if one.event.type in WATCHED]
    assert watched == [briefly[n] for n in splitter.watched]


@settings(max_examples=examples(60))
@given(streams().flatmap(lambda one: st.tuples(st.just(one), cut(one[0]))))
def test_an_event_begins_where_it_says_in_its_block(given_):
    (_, _), pieces = given_
    splitter = Splitter()
    for piece in pieces:
        block, events = splitter.feed(piece)
        starts = [event.start for event in events]
        assert starts == sorted(starts)
        for event, end in zip(events, [*starts[1:], len(block)], strict=False):
            alone = Splitter().feed(block[event.start : end])[1]
            assert [one.data for one in alone] == [event.data]


@pytest.mark.parametrize("first", BREAKS)
@pytest.mark.parametrize("second", BREAKS)
def test_an_event_ends_with_an_empty_line_however_lines_end(first, second):
    if first == b"\r" and second == b"\n":
        return  # that is one line end
    stream = b'data: {"type":"a"}' + first + second
    splitter = Splitter()
    heard = []
    for n in range(len(stream)):
        heard += splitter.feed(stream[n : n + 1])[1]
    # A lone CR at the very end may still become CR LF; the next byte decides.
    heard += splitter.feed(b":")[1]
    assert [one.event.type for one in heard] == ["a"]


def test_a_byte_order_mark_hides_nothing():
    _, heard = Splitter().feed(b'\xef\xbb\xbfdata: {"type":"response.created"}\n\n')
    assert [one.event.type for one in heard] == ["response.created"]


def test_comments_pass_and_are_no_events():
    assert Splitter().feed(b": ping\n\n") == (b": ping\n\n", [])


def test_an_event_without_an_end_is_refused_at_the_limit():
    splitter = Splitter()
    for _ in range(64):
        splitter.feed(b"x" * (LARGEST_EVENT_BYTES // 64))
    with pytest.raises(EventTooLarge):
        splitter.feed(b"x")


@pytest.mark.parametrize("line", [b"x" * 16, b"data: 12\n", b"data: 12\r\n"])
def test_a_huge_event_in_tiny_pieces_costs_no_more_than_its_bytes(line):
    """Twice the bytes take about twice the time: not four times."""

    def seconds(count: int) -> float:
        def work() -> None:
            splitter = Splitter()
            for _ in range(count):
                splitter.feed(line)

        return least_seconds(work)

    # Quadratic work takes some sixty times as long; the limit is far from both.
    assert seconds(24_000) < 24 * max(seconds(3_000), 0.001)


# --- what is peeked ----------------------------------------------------------------------------

json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
hostile = st.dictionaries(
    st.sampled_from(["type", "sequence_number", "output_index", "stream_id", "item", "response"]),
    json_values,
    max_size=6,
)


@settings(max_examples=examples(60))
@given(hostile)
def test_fields_of_any_type_are_peeked_at_without_an_error(event):
    data = json.dumps(event).encode()
    found = peeked(data)
    if isinstance(event.get("type", ""), str):
        assert found.type == event.get("type", "")
    body_of(found.response)
    body_of(found.item)


@settings(max_examples=examples(60))
@given(st.binary(max_size=60))
@example(b'{"type":"\xff"}')
@example(b'{"type":"\\ud800"}')
@example(b"[" * 5_000)
@example(b'{"type":"response.completed","response":' + b"[" * 100_000)
@example(b'{"type":"a","type":"b"}')
def test_bytes_of_any_kind_are_peeked_at_without_an_error(data):
    peeked(data)
    body_of(data)


# --- what is changed ---------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4))
def test_a_lane_is_named_and_unnamed_without_another_change(event):
    event.pop("stream_id", None)
    data = json.dumps(event).encode()
    named = with_stream_id(data, "lane-1")
    assert json.loads(named) == {"stream_id": "lane-1", **event}
    assert json.loads(without_stream_id(named)) == event


def test_an_event_that_has_another_lane_gets_the_right_one():
    found = with_stream_id(b'{"type":"x","stream_id":"other"}', "mine")
    pairs = json.loads(found, object_pairs_hook=list)
    assert [value for name, value in pairs if name == "stream_id"] == ["mine"]


def test_what_is_no_object_is_still_json_on_a_lane():
    """`[DONE]` and the like come from servers that speak SSE."""
    for data in (b"[1]", b"3", b'"x"', b"null"):
        json.loads(with_stream_id(data, "a"))


def test_a_field_is_changed_and_the_bytes_of_others_stay():
    data = b'{"a": 1.50, "b":{"c" : "\\u00e9"}}'
    assert changed(data, {"n": None}) == b'{"a":1.50,"b":{"c" : "\\u00e9"},"n":null}'
    with pytest.raises(msgspec.DecodeError):
        changed(b"[]", {"a": 1})


def test_a_response_inside_of_an_event_is_changed():
    data = b'{"type":"response.created","response":{"id":"r", "x" : 1}}'
    found = json.loads(with_response(data, {"previous_response_id": "p"}))
    assert found["response"] == {"id": "r", "x": 1, "previous_response_id": "p"}
    assert with_response(b'{"type":"error"}', {"a": 1}) == b'{"type":"error"}'


def test_an_event_in_lines_is_one_event_whatever_its_type_holds():
    """A type comes from outside: it must not end a line."""
    block = as_sse("x\n\ndata: {}\n\n", b'{"type":"y",\n"a":1}')
    assert len(Events().feed(block)) == 1
    assert block.count(b"\n\n") == 1
    assert block.endswith(b"\n\n")


def test_what_is_written_as_lines_is_read_as_it_was():
    events = told_by("resp_1", message("é"))
    _, heard = Splitter().feed(sse(events))
    again = b"".join(as_sse(one.event.type, one.data) for one in heard)
    assert again == sse(events)


# --- halves of characters ----------------------------------------------------------------------

HALF = "\ud83d"


def test_an_event_with_half_a_character_is_read_like_any_other():
    said = {"type": "response.completed", "response": {"id": "resp_1", "status": "completed"}}
    said["response"]["output"] = [{"type": "message", "content": HALF}]
    data = json.dumps(said | {"sequence_number": 7}).encode()
    event = peeked(data)
    assert (event.type, event.sequence_number) == ("response.completed", 7)
    assert body_of(event.response).id == "resp_1"
    assert body_of(data[data.index(b'{"id"') :].rpartition(b",")[0]).id == "resp_1"
    for splitter in (Splitter(), Splitter(briefly=True)):
        _, (heard,) = splitter.feed(b"data: " + data + b"\n\n")
        assert heard.event.type == "response.completed"
        assert heard.data == data
    lane = with_stream_id(data, "a")
    assert peeked(lane).stream_id == "a"
    assert HALF in json.loads(lane)["response"]["output"][0]["content"]
    assert "stream_id" not in json.loads(without_stream_id(lane))
