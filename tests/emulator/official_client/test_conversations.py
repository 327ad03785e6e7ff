"""Conversations with the official client: lists, locks, and what is kept."""

from typing import Any

import pytest

from lockstitch.emulator import (
    call,
    text,
)
from lockstitch.emulator.responses import conversations
from tests.emulator.official import (
    MODEL,
    Client,
    as_input,
    invalid,
    refusal_of,
)
from tests.emulator.official_client.shared import USER, output_of, stalled

# Conversations


def texts_in(client: Client, conversation: str) -> list[str]:
    items = client.all(client.conversations.items.list(conversation, order="asc", limit=100))
    return [item.content[0].text for item in items]


def test_a_conversation_is_a_list(either):
    conversation = either.now(
        either.conversations.create(items=[{"role": "user", "content": "zero"}])
    )
    made = either.create("one", conversation=conversation.id)
    assert made.conversation.id == conversation.id
    either.create("one", conversation=conversation.id)
    assert texts_in(either, conversation.id) == [
        "zero",
        "one",
        "You said: one",
        "one",
        "You said: one",
    ]


def test_the_same_output_sent_twice_to_a_conversation_answers_nothing(client, emulator):
    emulator.say(call("f", call_id="call_1"))
    conversation = client.conversations.create()
    made = client.create(conversation=conversation.id)
    client.create([output_of(made)], conversation=conversation.id)
    assert refusal_of(
        lambda: client.create([output_of(made)], conversation=conversation.id)
    ) == invalid("No tool call found for function call output with call_id call_1.")


def test_an_open_call_of_a_conversation_must_be_answered(client, emulator):
    emulator.say(call("f", call_id="call_1"))
    conversation = client.conversations.create()
    made = client.create(conversation=conversation.id)
    assert refusal_of(lambda: client.create("next", conversation=conversation.id)) == invalid(
        "No tool output found for function call call_1."
    )
    client.conversations.items.create(conversation.id, items=[output_of(made)])
    assert client.create("next", conversation=conversation.id).status == "completed"


LOCKED = invalid(
    "Another process is currently operating on this conversation. Please retry in a few seconds.",
    "conversation",
    "conversation_locked",
)


def test_a_conversation_is_locked_while_a_response_runs(either, emulator):
    conversation = either.now(either.conversations.create()).id
    emulator.say("At last.", **stalled(after=4))
    stream = either.create("slow", conversation=conversation, stream=True)
    either.first(stream, 5)
    items = either.conversations.items
    assert refusal_of(lambda: either.create("now", conversation=conversation)) == LOCKED
    assert refusal_of(lambda: either.now(items.create(conversation, items=[USER]))) == LOCKED
    assert refusal_of(lambda: either.now(either.conversations.delete(conversation))) == LOCKED
    # The items come with the end of the response, not before.
    assert texts_in(either, conversation) == []
    emulator.advance(9)
    assert either.all(stream)[-1].type == "response.completed"
    assert texts_in(either, conversation) == ["slow", "At last."]
    assert either.create("now", conversation=conversation).status == "completed"


@pytest.mark.parametrize("how", ["reset", "half-frame"])
def test_a_response_that_is_lost_leaves_no_trace_in_its_conversation(client, emulator, how):
    conversation = client.conversations.create().id
    emulator.fault(f"cut after=4 how={how}")
    with pytest.raises(Exception, match=r".*"):
        client.all(client.create("lost", conversation=conversation, stream=True))
    assert texts_in(client, conversation) == []
    assert client.create("now", conversation=conversation).status == "completed"
    assert texts_in(client, conversation) == ["now", "You said: now"]


def test_a_failed_response_leaves_no_trace_in_its_conversation(client, emulator):
    conversation = client.conversations.create().id
    emulator.say("Half", ends="failed")
    assert client.create("bad", conversation=conversation).status == "failed"
    assert texts_in(client, conversation) == []


def test_items_of_a_conversation_are_added_read_and_removed_one_by_one(either):
    conversations = either.conversations
    made = either.now(conversations.create(metadata={"a": "b"}))
    assert either.now(conversations.retrieve(made.id)) == made
    changed = either.now(conversations.update(made.id, metadata={"c": "d"}))
    assert changed.metadata == {"c": "d"}
    added = either.now(conversations.items.create(made.id, items=[USER, USER]))
    one = either.now(conversations.items.retrieve(added.data[0].id, conversation_id=made.id))
    assert one == added.data[0]
    either.now(conversations.items.delete(one.id, conversation_id=made.id))
    assert [item.id for item in either.all(conversations.items.list(made.id))] == [added.data[1].id]
    deleted = either.now(conversations.delete(made.id))
    assert deleted.deleted
    assert refusal_of(lambda: either.now(conversations.retrieve(made.id)))[0] == 404


def test_one_id_is_in_a_conversation_once(client):
    message = {"id": "msg_1", "type": "message", "role": "user", "content": "hi"}
    twice = invalid(
        "Duplicate item found with id msg_1. Remove duplicate items from your input and try again."
    )
    conversation = client.conversations.create().id
    items = client.conversations.items
    assert refusal_of(lambda: items.create(conversation, items=[message, message])) == twice
    assert texts_in(client, conversation) == []
    items.create(conversation, items=[message])
    assert refusal_of(lambda: items.create(conversation, items=[message])) == twice
    assert texts_in(client, conversation) == ["hi"]


def test_a_conversation_takes_twenty_items_at_once(client):
    many = [USER] * 21
    conversation = client.conversations.create(items=many[:20]).id
    status, error = refusal_of(lambda: client.conversations.items.create(conversation, items=many))
    assert (status, error["code"]) == (400, "array_above_max_length")
    assert refusal_of(lambda: client.conversations.create(items=many))[0] == 400


@pytest.mark.parametrize("streams", [False, True])
def test_an_id_that_a_script_gives_twice_is_given_once(client, emulator, streams):
    conversation = client.conversations.create().id
    for _ in range(2):
        emulator.say(text("Hi.", id="msg_1"), text("Ho.", id="msg_2"), text("He.", id="msg_2"))
        made = client.create("go", conversation=conversation, stream=streams)
        if streams:
            assert client.all(made)[-1].type == "response.completed"
        else:
            assert made.status == "completed"
    assert texts_in(client, conversation) == ["go", "Hi.", "Ho.", "He."] * 2
    items = client.all(client.conversations.items.list(conversation, order="asc"))
    assert [items[1].id, items[2].id] == ["msg_1", "msg_2"]
    assert len({item.id for item in items}) == len(items)


def test_an_id_that_a_script_gives_twice_is_given_once_in_a_tree(client, emulator):
    for _ in range(2):
        emulator.say(text("Hi.", id="msg_1"))
    first = client.create()
    second = client.create(previous_response_id=first.id)
    assert first.output[0].id == "msg_1" != second.output[0].id


def test_a_full_conversation_takes_no_response(client, emulator, monkeypatch):
    monkeypatch.setattr(conversations, "MOST_ITEMS_IN_CONVERSATION", 4)
    conversation = client.conversations.create(items=[USER, USER]).id
    emulator.say("Hi.")
    assert client.create(conversation=conversation).output_text == "Hi."
    emulator.say("Not said yet.")
    status, error = refusal_of(lambda: client.create(conversation=conversation))
    assert (status, error["code"]) == (400, "array_above_max_length")
    assert client.create().output_text == "Not said yet."


TRIGGER = {"type": "compaction_trigger"}


def test_a_conversation_is_seen_from_its_last_compaction(client):
    conversation = client.conversations.create(items=[USER]).id
    client.create("one", conversation=conversation)
    compacted = client.create(
        [{"role": "user", "content": "two"}, TRIGGER], conversation=conversation
    )
    assert [item.type for item in compacted.output] == ["compaction"]
    items = client.conversations.items
    kinds = ["message"] * 4 + ["compaction"]
    listed = client.all(items.list(conversation, order="asc"))
    assert [item.type for item in listed] == kinds

    def seen() -> list[str]:
        made = client.create("next", conversation=conversation)
        return [
            item.type
            for item in client.all(client.responses.input_items.list(made.id, order="asc"))
        ]

    assert seen() == ["compaction", "message"]
    # An edit changes what is there, and not where it begins.
    items.delete(listed[0].id, conversation_id=conversation)
    assert seen() == ["compaction", *["message"] * 3]
    items.delete(compacted.output[0].id, conversation_id=conversation)
    assert seen() == ["message"] * 8


def test_a_compaction_that_a_client_brings_hides_nothing(client):
    """What `compact` gives is the user's messages and the compaction: all of it is seen."""
    brought = client.responses.compact(model=MODEL, input="First.").output
    conversation = client.conversations.create(items=as_input(*brought)).id
    made = client.create("next", conversation=conversation)
    items = client.all(client.responses.input_items.list(made.id, order="asc"))
    assert [item.type for item in items] == ["message", "compaction", "message"]


def test_a_trigger_is_kept_nowhere(client, emulator):
    emulator.fault("incomplete before=response.output_item.added")
    made = client.create([USER, TRIGGER])
    assert made.status == "incomplete"
    following = client.create("next", previous_response_id=made.id)
    for response in (made, following):
        items = client.all(client.responses.input_items.list(response.id))
        assert {item.type for item in items} == {"message"}
    assert following.output_text == "You said: next"


def test_items_of_a_conversation_are_referred_to_also_when_it_is_deleted(client, emulator):
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": "So."}
    conversation = client.conversations.create(items=[USER]).id
    client.conversations.items.create(conversation, items=[thought, said])
    referred = [{"type": "item_reference", "id": named} for named in ("rs_1", "msg_1")]
    listed = client.all(client.conversations.items.list(conversation, order="asc"))
    first = {"type": "item_reference", "id": listed[0].id}
    assert client.create([first, *referred]).output_text == "You said: hello"
    assert client.create([USER, thought, said]).status == "completed"
    emulator.say("Made here.")
    made = client.create("more", conversation=conversation)
    client.conversations.delete(conversation)
    last = {"type": "item_reference", "id": made.output[0].id}
    following = client.create([first, *referred, last, USER])
    seen = client.all(client.responses.input_items.list(following.id, order="asc"))
    assert [item.id for item in seen[:-1]] == [listed[0].id, "rs_1", "msg_1", made.output[0].id]


def shell(*ids: str) -> list[Any]:
    """Calls of the local shell, all with a call id that is their own, then their outputs."""
    action = {"type": "exec", "command": ["ls"], "env": {}}
    calls = [
        {
            "type": "local_shell_call",
            "id": named,
            "call_id": named,
            "action": action,
            "status": "completed",
        }
        for named in ids
    ]
    return calls + [
        {"type": "local_shell_call_output", "id": named, "output": "x"} for named in ids
    ]


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_go_on_where_two_items_have_one_id(either, order, limit):
    sent = [USER, *shell("lsh_1"), USER, *shell("lsh_2", "lsh_3"), USER]
    conversation = either.now(either.conversations.create(items=sent)).id
    listing = either.conversations.items.list(conversation, order=order, limit=limit)
    types = [item.get("type", "message") for item in sent]
    assert [item.type for item in either.all(listing)] == types[:: 1 if order == "asc" else -1]
    made = either.create(conversation=conversation)
    listing = either.responses.input_items.list(made.id, order=order, limit=limit)
    assert sorted(item.type for item in either.all(listing)) == sorted([*types, "message"])


def test_an_output_with_the_id_of_its_call_is_read_and_removed_after_it(client):
    conversation = client.conversations.create(items=shell("lsh_1")).id
    items = client.conversations.items
    for kind in ("local_shell_call", "local_shell_call_output"):
        assert items.retrieve("lsh_1", conversation_id=conversation).type == kind
        items.delete("lsh_1", conversation_id=conversation)
    assert refusal_of(lambda: items.retrieve("lsh_1", conversation_id=conversation))[0] == 404
    assert refusal_of(lambda: items.delete("lsh_1", conversation_id=conversation))[0] == 404


def test_a_reference_to_an_id_that_was_borrowed_is_to_its_owner(client):
    client.conversations.create(items=shell("lsh_1"))
    reference = {"type": "item_reference", "id": "lsh_1"}
    made = client.create([USER, reference, shell("lsh_1")[1]])
    items = client.all(client.responses.input_items.list(made.id, order="asc"))
    assert [item.type for item in items[1:]] == ["local_shell_call", "local_shell_call_output"]
