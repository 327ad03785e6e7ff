"""What a client asked: read once, and written again without touching the rest."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.gateway.deciding import asked
from lockstitch.gateway.deciding.asked import Api, NotARequest, read, rebuilt
from tests.generated import examples


def body(**fields):
    return json.dumps(fields).encode()


def test_what_is_decided_by_is_read():
    one = read(
        b'{"model": "m", "stream": true, "previous_response_id": "resp_1", "store": false,'
        b' "background": true, "input": "hi"}'
    )
    assert (one.model, one.stream, one.previous_response_id) == ("m", True, "resp_1")
    assert (one.store, one.background, one.anchored) == (False, True, True)
    assert one.items() == [{"role": "user", "content": "hi"}]


def test_what_is_left_out_or_null_is_the_providers_default():
    for sent in (b"{}", b'{"store": null, "stream": null, "conversation": null, "input": null}'):
        one = read(sent)
        assert (one.store, one.stream, one.conversation, one.anchored) == (True, False, None, False)
        assert one.items() == []
    assert read(b"{}", Api.CHAT).store is False


def test_a_conversation_is_named_by_an_id_or_an_object_with_one():
    assert read(body(conversation="conv_1")).conversation == "conv_1"
    assert read(body(conversation={"id": "conv_1"})).conversation == "conv_1"
    with pytest.raises(NotARequest, match="'conversation'"):
        read(body(conversation={"name": "conv_1"}))


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "not valid JSON"),
        (b"[]", "not a JSON object"),
        (b'"hi"', "not a JSON object"),
        (b'{"model": "m"', "not valid JSON"),
        (b'{"model": "m"} {"model": "n"}', "not valid JSON"),
        (b'{"model": "\xff"}', "not UTF-8"),
        (b'{"input": [{"content": "\xed\xa0\x80"}]}', "not UTF-8"),
        (b'{"input": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too deeply"),
        (b'{"model": "m", "model": "n"}', "'model' twice"),
        (b'{"model": "m", "mode\\u006c": "n"}', "'model' twice"),
        (b'{"a": 1, "b": 2, "a": {"b": 2}}', "'a' twice"),
        (b'{"a": "b", "a": 1, "b": "x"}', "twice"),
        (b"{" + b",".join(b'"k%d":1' % n for n in range(2000)) + b"}", "more than 1000 fields"),
        (b'{"' + b"k" * 2000 + b'":1}', "1000 characters"),
        (b'{"store": "yes"}', "'store': expected true or false"),
        (b'{"model": 5}', "'model': expected a text"),
    ],
)
def test_what_nobody_can_answer_is_refused_in_words(sent, words):
    with pytest.raises(NotARequest, match=words) as caught:
        read(sent)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("given", [5, {"a": 1}, ["text"], [None]])
def test_items_that_are_none_are_refused_when_somebody_looks(given):
    one = read(body(input=given))
    with pytest.raises(NotARequest, match="input"):
        one.items()


_names = st.sampled_from(["model", "input", "a", "b", "ü", 'q"', "x\\y", ""])
_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(_names, _values), max_size=6), st.booleans(), st.sampled_from([None, 2]))
def test_a_field_that_comes_twice_is_always_seen_and_one_that_does_not_never(pairs, ascii, indent):
    fields = [
        f"{json.dumps(name, ensure_ascii=ascii)} : "
        f"{json.dumps(value, ensure_ascii=ascii, indent=indent)}"
        for name, value in pairs
    ]
    sent = (" {" + " , ".join(fields) + "\n} ").encode("utf-8", "surrogatepass")
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        with pytest.raises(NotARequest, match="twice"):
            asked._read_fields(sent)
    else:
        assert list(asked._read_fields(sent)) == names


def test_a_rebuilt_body_keeps_the_bytes_and_the_order_of_what_nobody_changed():
    sent = b'{"z": 1.50, "input": [ ], "previous_response_id": "resp_1", "new": {"a":  [1e2]}}'
    one = read(sent)
    made = rebuilt(one, items=[{"role": "user", "content": "hi"}], previous_response_id=None)
    assert made == b'{"z":1.50,"input":[{"role":"user","content":"hi"}],"new":{"a":  [1e2]}}'


def test_an_item_that_was_not_touched_keeps_its_bytes():
    sent = b'{"input": [{"role":"user",  "content":"\\u00e9", "n": 1.50}, {"type":"x"}]}'
    one = read(sent)
    items = [*one.items(), {"type": "new"}]
    made = rebuilt(one, items=items, origins=[0, 1, None])
    assert b'{"role":"user",  "content":"\\u00e9", "n": 1.50},{"type":"x"},{"type":"new"}' in made


def test_a_text_alone_can_be_kept_as_an_item():
    one = read(b'{"input": "hi"}')
    made = rebuilt(one, items=[*one.items(), {"type": "new"}], origins=[0, None])
    assert made == b'{"input":[{"role":"user","content":"hi"},{"type":"new"}]}'


def test_fields_that_were_not_there_are_added_and_others_taken_away():
    one = read(b'{"conversation": {"id": "c"}, "stream": true, "input": "hi"}')
    made = msgspec.json.decode(
        rebuilt(one, conversation=None, store=False, previous_response_id="r", drop=["stream"])
    )
    assert made == {"input": "hi", "store": False, "previous_response_id": "r"}


@settings(max_examples=examples(200))
@given(st.dictionaries(_names.filter(lambda name: name != "model"), _values, max_size=6))
def test_a_body_rebuilt_without_a_change_says_the_same(fields):
    one = read(json.dumps(fields).encode())
    assert json.loads(rebuilt(one)) == fields
    assert list(json.loads(rebuilt(one))) == list(fields)


def test_a_frame_is_read_as_a_body_and_turned_into_one_and_back():
    frame = (
        b'{"type":"response.create","stream_id":"s1","model":"m","input":[],'
        b'"previous_response_id":"resp_1"}'
    )
    one = read(frame)
    assert (one.previous_response_id, one.generate) == ("resp_1", True)
    http = asked.http_body(frame)
    assert http == b'{"model":"m","input":[],"previous_response_id":"resp_1","stream":true}'
    assert asked.frame(http) == frame.replace(b'"stream_id":"s1",', b"")


def test_a_warm_up_has_no_form_over_http_and_the_background_none_over_a_websocket():
    warm = b'{"type":"response.create","generate":false,"model":"m"}'
    assert read(warm).generate is False
    with pytest.raises(NotARequest, match="warm-up"):
        asked.http_body(warm)
    with pytest.raises(NotARequest, match="background"):
        asked.frame(b'{"background": true}')


def test_fields_of_frames_mean_nothing_in_a_body():
    one = read(b'{"generate": false, "stream_id": "s", "type": "other"}')
    assert one.generate is True


def test_messages_are_the_items_of_the_other_apis():
    messages = [{"role": "user", "content": "hi"}]
    for api in (Api.CHAT, Api.MESSAGES):
        one = read(body(messages=messages, input="no"), api)
        assert one.items() == messages
        assert json.loads(rebuilt(one, items=[]))["messages"] == []


@pytest.mark.parametrize(
    ("tools", "acts"),
    [
        (None, False),
        ([{"type": "function"}, {"type": "web_search"}], False),
        ([{"type": "mcp"}], False),
        ([{"type": "mcp", "require_approval": "always"}], False),
        ([{"type": "mcp", "require_approval": "never"}], True),
        ([{"type": "mcp", "require_approval": {"never": {"tool_names": ["a"]}}}], True),
    ],
)
def test_a_provider_acts_where_nobody_is_asked_about_its_tools(tools, acts):
    assert read(body(tools=tools)).provider_acts() is acts


@pytest.mark.parametrize("body", [rb'{"input":"\ud83d"}', rb'{"input":"\ude00 cut"}'])
def test_half_a_character_is_refused_by_its_name(body):
    with pytest.raises(NotARequest, match="half of a character"):
        read(body)
