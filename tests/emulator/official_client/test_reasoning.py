"""Reasoning and ids with the official client: what belongs together, what may not come twice."""

from typing import Any

import pytest

from lockstitch.emulator import (
    Settings,
    call,
    reasoning,
    text,
)
from lockstitch.testing import EmulatorThread
from tests.emulator.official import (
    Client,
    as_input,
    client_of,
    invalid,
    refusal_of,
)
from tests.emulator.official_client.shared import SEALED, USER, output_of

# Reasoning


@pytest.fixture
def thought(client: Client, emulator: EmulatorThread) -> tuple[Any, ...]:
    """Reasoning, the call it led to, and its output."""
    emulator.say(reasoning("I think."), call("f", call_id="call_1"))
    made = client.create(include=SEALED)
    return (*as_input(*made.output), output_of(made))


def test_reasoning_with_what_follows_it_is_taken_back(client, thought):
    assert client.create([USER, *thought]).status == "completed"
    assert client.create([USER, *thought], store=False).status == "completed"


def test_reasoning_without_what_followed_it_is_refused(client, thought):
    rs, fc, output = thought
    alone = invalid(
        f"Item '{rs['id']}' of type 'reasoning' was provided without its required following item."
    )
    for sent in ([USER, rs], [rs, USER], [rs, USER, fc, output]):
        assert refusal_of(lambda sent=sent: client.create(sent)) == alone


def test_a_call_without_its_reasoning_is_refused(client, thought):
    rs, fc, output = thought
    assert refusal_of(lambda: client.create([USER, fc, output])) == invalid(
        f"Item '{fc['id']}' of type 'function_call' was provided without its required "
        f"'reasoning' item: '{rs['id']}'."
    )
    # Without its id nobody knows that it was made with reasoning.
    nameless = {name: value for name, value in fc.items() if name != "id"}
    assert client.create([USER, nameless, output]).status == "completed"


def test_reasoning_that_another_provider_sealed_is_refused(client):
    with (
        EmulatorThread(settings=Settings(seed=1)) as other,
        client_of("sync", other) as stranger,
    ):
        other.say(reasoning("I think."), text("So."))
        made = stranger.create(include=SEALED, store=False)
    sealed = made.output[0]
    assert refusal_of(lambda: client.create([USER, *as_input(*made.output)])) == invalid(
        f"The encrypted content for item {sealed.id} could not be verified.",
        code="invalid_encrypted_content",
    )


def test_reasoning_that_was_changed_is_refused(client, thought):
    rs, fc, output = thought
    sealed = rs["encrypted_content"]
    changed = rs | {"encrypted_content": sealed[:-6] + "AAAA" + sealed[-2:]}
    status, error = refusal_of(lambda: client.create([USER, changed, fc, output]))
    assert (status, error["code"]) == (400, "invalid_encrypted_content")


def test_reasoning_that_is_neither_stored_nor_sealed_is_not_there(client, emulator):
    emulator.say(reasoning("I think."), text("So."))
    made = client.create(store=False)
    assert made.output[0].encrypted_content is None
    status, error = refusal_of(lambda: client.create([USER, *as_input(*made.output)]))
    assert status == 404
    assert error["message"] == (
        f"Item with id '{made.output[0].id}' not found. Items are not persisted when `store` is "
        "set to false. Try again with `store` set to true, or remove this item from your input."
    )


# Ids


def test_an_item_that_is_there_already_is_refused(client):
    made = client.create()
    message = as_input(*made.output)
    twice = invalid(
        f"Duplicate item found with id {made.output[0].id}. "
        "Remove duplicate items from your input and try again."
    )
    assert refusal_of(lambda: client.create(message, previous_response_id=made.id)) == twice
    assert refusal_of(lambda: client.create([*message, *message])) == twice
    reference = {"type": "item_reference", "id": made.output[0].id}
    assert refusal_of(lambda: client.create([*message, reference])) == twice
    assert refusal_of(lambda: client.create([reference, reference])) == twice
    assert refusal_of(lambda: client.create([reference], previous_response_id=made.id)) == twice


def test_an_id_begins_as_its_type_wants(client):
    wrong = {
        "type": "custom_tool_call",
        "id": "call_1",
        "call_id": "call_1",
        "name": "g",
        "input": "x",
    }
    assert refusal_of(lambda: client.create([USER, wrong])) == invalid(
        "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'ctc'.",
        "input[1].id",
        "invalid_value",
    )


def test_an_item_is_referred_to_by_its_id(client, emulator):
    emulator.say(reasoning("I think."), call("f", call_id="call_1"))
    made = client.create()
    rs, fc = ({"type": "item_reference", "id": item.id} for item in made.output)
    following = client.create([USER, rs, fc, output_of(made)])
    assert following.output_text == "f returned: done"
    items = client.all(client.responses.input_items.list(following.id, order="asc"))
    assert [item.type for item in items[1:3]] == ["reasoning", "function_call"]
    assert items[2].id == made.output[1].id
    # A reference stands for the item, with all that the item needs.
    status, error = refusal_of(lambda: client.create([USER, fc, output_of(made)]))
    assert error["message"].startswith(f"Item '{fc['id']}' of type 'function_call' was provided")
    status, error = refusal_of(lambda: client.create([USER, rs]))
    assert error["message"].endswith("was provided without its required following item.")
    status, error = refusal_of(lambda: client.create([{"type": "item_reference", "id": "msg_0"}]))
    assert status == 404
