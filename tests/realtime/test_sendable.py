"""What a caller gives: plain JSON, or refused before anything is done with it."""

from __future__ import annotations

import asyncio
import datetime
import enum
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.emulator import call, reply
from lockstitch.realtime import NotSendable
from lockstitch.realtime.sendable import sendable, sendable_item
from lockstitch.runner import Waiting
from tests.generated import examples
from tests.realtime.hearing import saying, texts_of, until, user
from tests.realtime.stage import staged, within


class Colour(enum.StrEnum):
    RED = "red"


texts = st.text(max_size=4)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["role", "content", "output"]), values))
@settings(max_examples=examples(50), deadline=None)
def test_what_json_can_say_is_sent_as_it_is(given_item):
    plain = sendable_item(given_item)
    assert plain == given_item == json.loads(json.dumps(plain))


def test_it_is_a_copy_and_plain():
    inner = {"colour": Colour.RED, "parts": ({"n": True},)}
    plain = sendable({"inner": inner}, "It")
    inner["colour"] = object()
    assert plain == {"inner": {"colour": "red", "parts": [{"n": True}]}}
    assert type(plain["inner"]["colour"]) is str


def nested():
    deep = []
    deep.append(deep)
    return deep


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (b"pcm", r"at content\[1\]\.audio: it is of type bytes; give it as text, in base64"),
        (datetime.date(2026, 1, 1), "it is of type date, and JSON has no such thing"),
        (float("nan"), "nan is no number of JSON"),
        ({1: 2}, "its key 1 is no text"),
        ({"x": {1, 2}}, r"at content\[1\]\.audio\.x: it is of type set"),
        ("half \ud800", "a lone surrogate"),
        (nested(), "it holds itself"),
    ],
)
def test_what_it_cannot_say_is_refused_with_its_place(value, told):
    wire = user("a", "n1")
    wire["content"].append({"type": "input_audio", "audio": value})
    with pytest.raises(NotSendable, match=told) as refused:
        sendable_item(wire)
    assert str(refused.value).startswith("The item n1 cannot be sent")


def test_an_id_is_a_text():
    with pytest.raises(NotSendable, match="at id: it is of type int, and a text is wanted"):
        sendable_item({"id": 7})


def test_what_is_no_item_at_all_is_refused():
    with pytest.raises(NotSendable, match="An item cannot be sent: it is of type str"):
        sendable_item("Hello.")


def bad(id=None):
    wire = user("bad", id)
    wire["content"][0]["text"] = b"bytes"
    return wire


EDITS = {
    "added": lambda session, seen: session.change(added=[user("b", "b"), bad()]),
    "inserted": lambda session, seen: session.change(inserted={"root": [bad("n")]}),
    "changed": lambda session, seen: session.change(changed=[bad("a")]),
    "a target": lambda session, seen: session.edit([*seen.items, bad("n")], base=seen),
    "a target that changes": lambda session, seen: session.edit([bad("a")], base=seen),
    "a summary": lambda session, seen: session.summarise(bad(), base=seen, count=1),
    "by hand": lambda session, seen: session.send(
        {"type": "conversation.item.create", "item": bad("n")}
    ),
    "a response": lambda session, seen: session.respond({"metadata": {"a": object()}}),
    "a configuration": lambda session, seen: session.configure({"instructions": b"Be brief."}),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_nothing_is_sent_of_what_cannot_be_and_the_session_goes_on(edit):
    async def scene():
        async with staged("Hello.") as stage, stage.session() as session:
            await session.change(added=[user("a", "a")])
            passed, seen = stage.what_passed(), session.snapshot()
            with pytest.raises(NotSendable):
                await edit(session, seen)
            assert stage.what_passed() == passed
            assert session.items == list(seen.items)
            assert await session.change(added=[user("c", "c")])
            await session.respond()
            await until(session, saying("Hello."))
            assert stage.in_step(session)[:2] == ["a", "c"]

    within(scene)


def test_a_configuration_that_cannot_be_sent_opens_nothing():
    async def scene():
        async with staged() as stage:
            with pytest.raises(NotSendable, match="at instructions"):
                async with stage.session(configured={"instructions": b"Be brief."}):
                    raise AssertionError("it was not refused")
            assert stage.what_passed() == []

    within(scene)


def test_an_answer_that_cannot_be_sent_leaves_its_call_waiting():
    async def scene():
        async with (
            staged(call("book", {}, call_id="c1"), "Done.") as stage,
            stage.session() as session,
        ):
            await session.respond()
            await until(session, Waiting)
            with pytest.raises(NotSendable, match=r"The output of c1 cannot be sent at output\.x"):
                await session.answer("c1", {"x": object()})
            await session.answer("c1", "It is booked.")
            await until(session, saying("Done."))
            stage.in_step(session)

    within(scene)


def test_what_a_caller_does_to_its_item_later_changes_nothing():
    async def scene():
        async with staged(reply("One two.", pace=0.02)) as stage, stage.session() as session:
            await session.respond()
            mine = user("as it was", "a")
            adding = asyncio.create_task(session.change(added=[mine]))  # waits for the response
            await asyncio.sleep(0)
            mine["content"][0]["text"] = b"as it is"
            assert await adding
            assert ["as it was"] in [texts_of(wire) for wire in stage.provider.items()]

    within(scene)
