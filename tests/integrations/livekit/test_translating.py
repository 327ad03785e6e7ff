"""What is written without LiveKit's models is what they would have written."""

from __future__ import annotations

import base64

import pytest
from livekit.agents import llm
from livekit.plugins.openai.realtime.utils import livekit_item_to_openai_item

from lockstitch.integrations.livekit.translating import (
    LONGEST_CALL_ID,
    alike,
    fields_of,
    said_by,
    to_wire,
)

PIXEL = f"data:image/png;base64,{base64.b64encode(b'pixel').decode()}"

IMAGE = llm.ImageContent(id="img_1", image=PIXEL)

MESSAGES = [
    llm.ChatMessage(id="m", role=role, content=content)
    for role in ("user", "assistant", "system", "developer")
    for content in ([], [""], ["One."], ["One.", "Two."], ["Look:", IMAGE])
]


def called(call_id="call_1", arguments='{"a": 1}'):
    return llm.FunctionCall(id="f", call_id=call_id, name="look", arguments=arguments)


def answered(call_id):
    return llm.FunctionCallOutput(id="o", call_id=call_id, output="so", is_error=True)


LONG = "c" * (LONGEST_CALL_ID + 1)

ITEMS = [*MESSAGES, called(), called(LONG), answered("call_1"), answered(LONG), answered(LONG[:-1])]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item.type}-{said_by(item)}"[:60])
def test_an_item_of_the_wire_is_the_one_that_livekit_writes(item):
    theirs = livekit_item_to_openai_item(item).model_dump(by_alias=True, exclude_unset=True)
    assert to_wire(item, fields_of(item.type)(item.__dict__)) == theirs


def test_arguments_are_alike_if_they_are_the_same_json():
    one = said_by(called(arguments='{"a": 1}'))
    assert alike(one, said_by(called(arguments='{"a":1}')))
    assert not alike(one, said_by(called(arguments='{"a": 2}')))
    assert not alike(one, said_by(called("call_2")))


def test_words_that_look_like_arguments_are_words():
    one, other = (
        llm.ChatMessage(id="m", role="user", content=[text]) for text in ('{"a": 1}', '{"a":1}')
    )
    assert not alike(said_by(one), said_by(other))
