"""Wire items as bytes: how a ledger reads them in each dialect."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core.errors import NotAnItem, UnknownDialect
from lockstitch.core.items import Part
from lockstitch.dialects.detection import DIALECTS
from lockstitch.dialects.reading import READINGS, decoded, reading
from tests.generated import HISTORIES, examples, hostile_items
from tests.turns import DIALECTS as NAMES
from tests.turns import Words

NOT_ITEMS = {
    "nothing at all": b"",
    "null": b"null",
    "a list": b'[{"role":"user"}]',
    "a text": b'"hi"',
    "a number": b"1",
    "torn": b'{"role":"us',
    "two": b"{} {}",
    "not a number": b'{"x":NaN}',
    "infinite": b'{"x":Infinity}',
    "beyond all floats": b'{"x":1e999}',
    "no text": b'{"x":"\xff"}',
    "no text in a name": b'{"\xff":1}',
    "half a surrogate pair": rb'{"x":"\ud800"}',
    "the wrong half of a pair": rb'{"x":"\udc00 "}',
    "a control character": b'{"x":"\x00"}',
    "a bad escape": rb'{"x":"\q"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "deep": b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep and torn": b'{"x":' * 100_000,
    "a number without end": b'{"x":' + b"9" * 10_000 + b"}",
}

every_dialect = pytest.mark.parametrize("name", NAMES)


@every_dialect
def test_every_dialect_can_be_read_from_bytes(name):
    assert reading(name).dialect == name
    assert reading(name).order is DIALECTS[name].order
    assert set(READINGS) == set(DIALECTS)
    assert set(NAMES) <= set(READINGS)


def test_a_dialect_that_does_not_exist_cannot_be_read():
    with pytest.raises(UnknownDialect, match="There is no dialect 'klingon'"):
        reading("klingon")


@settings(max_examples=examples(100))
@given(
    st.sampled_from(NAMES).flatmap(lambda name: st.tuples(st.just(name), HISTORIES[name])),
    st.lists(hostile_items, max_size=3),
)
def test_bytes_are_read_as_the_dialect_reads_the_item_in_them(named, hostile):
    name, history = named
    for wire in [*history, *hostile]:
        item = msgspec.json.encode(wire)
        assert list(reading(name).read(item)) == list(DIALECTS[name].read(wire))
        assert decoded(item) == wire


@every_dialect
@pytest.mark.parametrize("kind", NOT_ITEMS)
def test_what_is_no_item_is_refused_with_its_beginning_and_what_to_do(name, kind):
    for read in (reading(name).read, decoded):
        with pytest.raises(NotAnItem) as raised:
            read(NOT_ITEMS[kind])
        said = str(raised.value)
        assert said.startswith("Not a wire item (")
        assert said.endswith("Pass the bytes of one JSON object.")
        assert len(said) < 300
        assert said.isprintable()


@every_dialect
@pytest.mark.parametrize("thing", ["{}", None, {}, 7, bytearray(b"{}"), memoryview(b"{}")])
def test_what_is_not_bytes_is_no_item(name, thing):
    with pytest.raises(NotAnItem, match="Pass the bytes of one JSON object"):
        reading(name).read(thing)


@every_dialect
def test_every_item_plays_at_least_one_part(name):
    words = Words(name)
    wires = [{}, words.user(), words.said(), *words.calls("call_a"), words.output("call_a")]
    parts = [reading(name).read(msgspec.json.encode(wire)) for wire in wires]
    assert [read[0].part for read in parts] == [
        Part.OTHER,
        Part.INPUT,
        Part.MODEL,
        Part.CALL,
        Part.OUTPUT,
    ]


@pytest.mark.parametrize(
    ("content", "carried"), [("secret", True), ("", False), (None, False), (7, True)]
)
def test_reasoning_is_carried_where_its_content_is_there(content, carried):
    wire = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": content}
    (item,) = reading("responses").read(msgspec.json.encode(wire))
    assert item.carried is carried


CANNOT_BE_GIVEN_BACK = {
    "half a surrogate pair": b'"\\ud800"',
    "a number that is too large": b"1e999999",
    "no UTF-8": b'"\xff"',
    "nothing": b"",
    "nested too deep": b"[" * 5000 + b"]" * 5000,
}


@pytest.mark.parametrize("strange", CANNOT_BE_GIVEN_BACK)
@pytest.mark.parametrize("field", ["arguments", "content", "a field that nobody knows"])
def test_what_could_not_be_given_back_is_not_read(field, strange):
    head = b'{"type":"function_call","call_id":"call_1","name":"book",'
    item = b'%s"%s":%s}' % (head, field.encode(), CANNOT_BE_GIVEN_BACK[strange])
    for read in (decoded, reading("responses").read):
        with pytest.raises(NotAnItem):
            read(item)


def test_integers_beyond_64_bits_come_back_as_they_were():
    wire = {"role": "user", "content": "x", "n": 2**80, "m": -(2**70)}
    assert decoded(msgspec.json.encode(wire)) == wire


def test_of_a_field_that_stands_twice_the_last_one_counts_everywhere():
    item = b'{"type":"function_call","call_id":"a","call_id":"b"}'
    (read,) = reading("responses").read(item)
    assert read.key == decoded(item)["call_id"] == "b"
    item = b'{"type":"message","role":"user","type":"reasoning","id":"rs_1"}'
    (read,) = reading("responses").read(item)
    assert (read.part, decoded(item)["type"]) == (Part.REASONING, "reasoning")


COMMON = {
    "function_call": {"call_id": "call_1", "name": "book", "arguments": "{}"},
    "function_call_output": {"call_id": "call_1", "output": "booked"},
    "message": {"role": "user", "content": "Book it."},
    "reasoning": {"summary": [], "encrypted_content": "secret"},
}
STRANGE = (None, "", "x" * 700, 7, 1.5, True, [], ["a"], {}, {"a": 1}, "incomplete", "assistant")


@pytest.mark.parametrize("kind", COMMON)
@pytest.mark.parametrize("field", ["type", "id", "status", "unknown", "*"])
def test_a_common_item_with_anything_in_a_field_is_read_as_the_dialect_reads_it(kind, field):
    """The items that most conversations are made of are read by a shorter way."""
    usual = {"type": kind, "id": "it_1", **COMMON[kind]}
    for name in COMMON[kind] if field == "*" else [field]:
        less = {key: value for key, value in usual.items() if key != name}
        for wire in [usual, less, *({**usual, name: strange} for strange in STRANGE)]:
            (expected,) = DIALECTS["responses"].read(wire)
            broke_off = wire.get("status") == "incomplete" and expected.part is Part.CALL
            (read,) = reading("responses").read(msgspec.json.encode(wire))
            kept = msgspec.structs.replace(
                expected, lone=expected.lone or broke_off, partial=False, arguments=None
            )
            assert read == kept, wire
