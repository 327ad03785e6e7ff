"""What is told of a response from the journal alone: well formed, whatever the journal has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from openai.types.responses import Response

from lockstitch.core.facts import Ending, ItemCompleted, Noted
from lockstitch.gateway.keeping import exchanges, telling
from lockstitch.gateway.keeping.exchanges import Kept
from lockstitch.gateway.keeping.finishing import finished
from lockstitch.gateway.keeping.notes import AnsweredNote, AskedNote, answered_note

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_values = st.none() | st.booleans() | st.integers(-5, 5) | _texts | st.lists(_texts, max_size=2)
_objects = st.dictionaries(_texts, _values, max_size=3)


@st.composite
def items(draw: st.DrawFn) -> bytes:
    item = draw(_objects) | {"type": draw(st.sampled_from(["message", "function_call", "new"]))}
    item["id"] = f"item_{draw(st.integers(0, 10**9))}"
    # Some servers set their JSON out in lines.
    written = json.dumps(
        item, ensure_ascii=draw(st.booleans()), indent=draw(st.none() | st.just(1))
    )
    return written.encode()


@st.composite
def anything_kept(draw: st.DrawFn) -> Kept:
    said = draw(st.lists(items(), max_size=5))
    response = draw(
        st.sampled_from([b"null", b"[]", b"1", b'"a"'])
        | _objects.map(msgspec.json.encode)
        | st.fixed_dictionaries(
            {"id": st.just("resp_0"), "status": _texts, "output": st.just([]), "error": st.none()}
        ).map(msgspec.json.encode)
    )
    types = ["", "response.completed", "response.failed", "response.cancelled", "odd\nevent: x"]
    return Kept(
        id="resp_1",
        asked=AskedNote(
            upstream="one",
            model=draw(_texts),
            base=draw(st.none() | st.just("resp_0")),
            anchored=draw(st.booleans()),
            conversation=draw(st.none() | st.just("conv_1")),
            created=draw(st.floats(0, 2e9)),
        ),
        items=draw(st.lists(items(), max_size=3)),
        said=said,
        ending=draw(st.none() | st.sampled_from(list(Ending))),
        answered=AnsweredNote(
            numbers=draw(st.lists(st.none() | st.integers(-3, 12), max_size=7)),
            last=draw(st.none() | st.integers(-3, 15)),
            ended_by=draw(st.sampled_from(types)),
            response=Raw(response),
        ),
    )


def read(block: bytes) -> dict[str, Any]:
    head, data, rest = block.decode().split("\n", 2)
    assert rest == "\n"
    event = json.loads(data.removeprefix("data: "))
    assert head == f"event: {event['type']}"
    return event


TERMINAL = {"completed", "incomplete", "failed", "cancelled"}


@given(anything_kept(), st.integers(-1, 18))
def test_a_stream_is_well_formed_and_ends(kept: Kept, after: int) -> None:
    events = [read(block) for block in telling.events(kept, "resp_9", after)]
    numbers = [event["sequence_number"] for event in events]
    assert numbers == sorted(set(numbers))
    assert all(number > after for number in numbers)
    if not events:
        # Who has seen the event that ended it has seen everything.
        assert kept.answered.last is not None
        assert after >= kept.answered.last
        return
    *before, last = events
    response = last["response"]
    assert last["type"] == f"response.{response['status']}"
    assert response["status"] in TERMINAL
    assert response["id"] == "resp_9"
    assert response["output"] == [json.loads(item) for item in kept.said]
    if kept.ending in (None, Ending.CUT):
        assert response["status"] == "failed"
        assert response["error"]["message"]
    if after < 0 and before:
        assert before[0]["type"] in ("response.created", "response.output_item.done")
    for event in before:
        if event["type"] == "response.output_item.done":
            assert event["item"] == json.loads(kept.said[event["output_index"]])
        else:
            assert event["type"] == "response.created"
            assert event["response"]["status"] == "in_progress"
            assert event["response"]["output"] == []


@given(anything_kept(), st.integers(0, 18))
def test_a_stream_that_is_gone_on_with_has_no_gap_and_nothing_twice(kept: Kept, after: int) -> None:
    every = telling.events(kept, "resp_1")
    rest = telling.events(kept, "resp_1", after)
    behind = [block for block in every if read(block)["sequence_number"] > after]
    # Behind an end that has no number of its own there is always another, for who missed it.
    assert rest[: len(behind)] == behind
    assert len(rest) <= max(len(behind), 1)


@given(anything_kept(), st.booleans())
def test_a_response_is_one_to_the_official_client(kept: Kept, under_way: bool) -> None:
    told = json.loads(telling.response(kept, "resp_9", under_way=under_way))
    assert told["id"] == "resp_9"
    assert told["object"] == "response"
    assert told["output"] == [json.loads(item) for item in kept.said]
    runs = under_way and not kept.end_known
    assert (told["status"] == "in_progress") == runs
    if told["status"] == "failed":
        assert told["error"] is not None
    known = Response.model_construct(**told)
    for name in Response.model_fields:
        if Response.model_fields[name].is_required():
            assert hasattr(known, name), name
    if kept.asked.anchored:
        assert told["previous_response_id"] == kept.asked.base


@given(st.lists(anything_kept(), min_size=1, max_size=3))
def test_input_items_are_all_that_was_seen_each_with_an_id(path: list[Kept]) -> None:
    listed = telling.input_items(path)
    expected = [item for one in path[:-1] for item in (*one.items, *one.said)] + path[-1].items
    assert [one.id for one in listed] == [json.loads(item)["id"] for item in expected]
    for one, item in zip(listed, expected, strict=True):
        given = {name: value for name, value in json.loads(item).items() if name != "status"}
        assert json.loads(one.item).items() >= given.items()


def kept(**fields: Any) -> Kept:
    asked = AskedNote(upstream="one", model="gpt-5.5", created=1_700_000_000.5)
    return Kept(**{"id": "resp_1", "asked": asked, "items": [], "said": []} | fields)


MESSAGE = b'{"type":"message","id":"msg_1","role":"assistant","content":[]}'
CALL = b'{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}"}'


def test_items_are_told_under_the_numbers_they_had() -> None:
    one = kept(
        said=[MESSAGE, CALL],
        ending=Ending.COMPLETED,
        answered=AnsweredNote(
            numbers=[8, 12],
            last=13,
            ended_by="response.completed",
            response=Raw(b'{"id":"resp_1","status":"completed","usage":{"total_tokens":3}}'),
        ),
    )
    events = [read(block) for block in telling.events(one, "resp_1", 8)]
    assert [(event["type"], event["sequence_number"]) for event in events] == [
        ("response.output_item.done", 12),
        ("response.completed", 13),
    ]
    assert events[0]["output_index"] == 1
    assert events[1]["response"]["usage"] == {"total_tokens": 3}
    assert telling.events(one, "resp_1", 13) == []


def test_an_item_that_came_with_the_end_is_told_before_it() -> None:
    one = kept(
        said=[MESSAGE, CALL],
        ending=Ending.COMPLETED,
        answered=AnsweredNote(numbers=[8, None], last=10, ended_by="response.completed"),
    )
    numbers = [read(block)["sequence_number"] for block in telling.events(one, "resp_1")]
    assert numbers == [0, 8, 9, 10]


def test_one_that_came_whole_is_numbered_from_the_start() -> None:
    one = kept(said=[MESSAGE, CALL], ending=Ending.INCOMPLETE)
    events = [read(block) for block in telling.events(one, "resp_1")]
    assert [event["sequence_number"] for event in events] == [0, 1, 2, 3]
    assert events[-1]["type"] == "response.incomplete"


@pytest.mark.parametrize("ending", [None, Ending.CUT])
def test_one_that_never_ended_failed_with_what_it_had_said(ending: Ending | None) -> None:
    one = kept(said=[MESSAGE], ending=ending)
    last = read(telling.events(one, "resp_1", 40)[-1])
    assert (last["type"], last["sequence_number"]) == ("response.failed", 41)
    assert last["response"]["output"] == [json.loads(MESSAGE)]
    assert last["response"]["created_at"] == 1_700_000_000
    assert json.loads(telling.response(one, "resp_1"))["status"] == "failed"


def test_a_cancelled_one_is_told_so() -> None:
    one = kept(ending=Ending.FAILED, answered=AnsweredNote(ended_by="response.cancelled"))
    assert json.loads(telling.response(one, "resp_1"))["status"] == "cancelled"
    assert read(telling.events(one, "resp_1")[-1])["type"] == "response.cancelled"


def test_an_end_is_written_down_once_and_only_if_it_is_one() -> None:
    one = kept(said=[MESSAGE], request=5)
    output = [json.loads(MESSAGE), json.loads(CALL)]
    done = {"id": "resp_1", "status": "completed", "output": output, "tools": [1]}
    facts = finished(one, json.dumps(done).encode(), last=9)
    assert [type(fact).__name__ for fact in facts] == ["ItemCompleted", "ResponseEnded", "Noted"]
    assert json.loads(facts[0].item) == json.loads(CALL)
    for other in (
        done | {"status": "in_progress"},
        done | {"status": "queued"},
        done | {"id": "resp_2"},
        {"error": {}},
    ):
        assert finished(one, json.dumps(other).encode()) == []
    assert finished(one, b"<html>") == []
    ended = msgspec.structs.replace(one, ending=Ending.COMPLETED)
    assert finished(ended, json.dumps(done).encode()) == []


def test_items_that_came_before_their_turn_are_put_in_their_order() -> None:
    first, second, third = [
        {"type": "message", "id": f"msg_{n}", "role": "assistant", "content": []} for n in range(3)
    ]
    everything = [first, second, third]

    def found(*said: dict[str, Any], listed: Sequence[Any] = everything, **heard: Any) -> list[Any]:
        """The whole of it, and of that what was missing."""
        beginning = exchanges.begun(AskedNote(upstream="up"), [], "resp_1")
        wrote = [
            *beginning.facts,
            *(
                ItemCompleted(request=beginning.request, item=json.dumps(item).encode())
                for item in said
            ),
        ]
        one = exchanges.kept(wrote)
        assert isinstance(one, Kept)
        done = {"id": "resp_1", "status": "completed", "output": listed}
        facts = finished(one, json.dumps(done).encode(), **heard)
        whole = exchanges.kept([*wrote, *facts])
        assert isinstance(whole, Kept)
        assert whole.continues
        if heard:
            assert [n for n in whole.answered.numbers if n] == [5]
        return [json.loads(item) for item in whole.said]

    assert found() == everything
    assert found(first) == everything
    assert found(second) == everything
    assert found(third, first) == everything
    assert found(third, second, first) == everything
    # An item that has another id in the end, or none, is the one in its place.
    other = first | {"id": "other"}
    assert found(other) == [other, second, third]
    nameless = {name: first[name] for name in first if name != "id"}
    assert found(nameless, second) == [nameless, second, third]
    # The second of an id is a second item.
    twin = first | {"status": "completed"}
    assert found(first, listed=[first, twin]) == [first, twin]
    assert found(first, twin, listed=[first, twin, third]) == [first, twin, third]
    # Some tell of their items only as they are said.
    heard = {json.dumps(item).encode(): n for item, n in ((first, None), (second, 5))}
    assert found(first, listed=[], heard=heard) == [first, second]


def test_items_keep_their_numbers_when_an_end_that_was_lost_is_found() -> None:
    cut = msgspec.structs.replace(
        kept(said=[MESSAGE], request=5, answered=AnsweredNote(numbers=[4])), ending=Ending.CUT
    )
    output = [json.loads(MESSAGE), json.loads(CALL)]
    done = json.dumps({"id": "resp_1", "status": "completed", "output": output}).encode()

    def numbers(heard: dict[bytes, int | None]) -> list[int | None]:
        last = finished(cut, done, heard=heard)[-1]
        assert isinstance(last, Noted)
        return answered_note(last.note).numbers

    assert numbers({}) == numbers({MESSAGE: None}) == [4, None]
    assert numbers({json.dumps(output[1]).encode(): 7}) == [4, 7]


def test_an_end_that_was_lost_and_is_found_follows_the_cut() -> None:
    cut = msgspec.structs.replace(kept(said=[MESSAGE], request=5), ending=Ending.CUT)
    done = {"id": "resp_1", "status": "completed", "output": [json.loads(MESSAGE)]}
    facts = finished(cut, json.dumps(done).encode())
    assert [type(fact).__name__ for fact in facts] == ["ResponseOpened", "ResponseEnded", "Noted"]
    assert facts[1].ending is Ending.COMPLETED
