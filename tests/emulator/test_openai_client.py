"""Responses and Conversations with the official client: what it can do, and what it is told.

What either client does is tried with both; the rules of the provider with the sync one alone.
A clock that stands still and a stalled reply stand for a response that takes its time."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from lockstitch.emulator import (
    Script,
    Settings,
    Turn,
    VirtualClock,
    call,
    custom_call,
    item,
    reasoning,
    text,
)
from lockstitch.emulator.responses import conversations
from lockstitch.testing import EmulatorThread
from tests.emulator.official import (
    KINDS,
    MODEL,
    Client,
    as_input,
    client_of,
    invalid,
    refusal_of,
    sync_client,
)
from tests.emulator.wire import Wire

SEALED = ["reasoning.encrypted_content"]
USER = {"role": "user", "content": "hello"}


@pytest.fixture
def emulator() -> Iterator[EmulatorThread]:
    with EmulatorThread(clock=VirtualClock(flowing=False)) as running:
        yield running


@pytest.fixture(params=KINDS)
def either(request: Any, emulator: EmulatorThread) -> Iterator[Client]:
    """Each of the two clients."""
    with client_of(request.param, emulator) as client:
        yield client


@pytest.fixture
def client(emulator: EmulatorThread) -> Iterator[Client]:
    with client_of("sync", emulator) as client:
        yield client


def stalled(after: int = 1) -> dict[str, Any]:
    """A reply that waits after this event until the clock is moved by nine seconds."""
    return {"faults": (f"stall after={after} seconds=9",)}


def output_of(made: Any, output: Any = "done") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": made.output[-1].call_id, "output": output}


# Making responses


def test_a_response_is_made_and_read(either):
    made = either.create("Hello, you.")
    assert made.output_text == "You said: Hello, you."
    assert made.status == "completed"
    assert made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens
    assert either.now(either.responses.retrieve(made.id)) == made


def test_a_stream_tells_the_whole_response(either):
    events = either.all(either.create("Hello, you.", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [events[0].type, events[-1].type] == ["response.created", "response.completed"]
    said = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert said == "You said: Hello, you." == events[-1].response.output_text
    assert either.now(either.responses.retrieve(events[-1].response.id)) == events[-1].response


def test_the_clients_own_helper_follows_a_stream(either, emulator):
    emulator.say(reasoning("I think."), text("Two words."), call("weather", {"city": "Lund"}))
    events, final = either.helped(input="hi")
    assert events[-1].type == "response.completed"
    assert final.output_text == "Two words."
    assert final.output[-1].arguments == '{"city":"Lund"}'


class Person(BaseModel):
    name: str
    age: int


def test_an_answer_is_parsed_into_a_model(either, emulator):
    emulator.say('{"name": "Ada", "age": 36}')
    parsed = either.now(either.responses.parse(model=MODEL, input="who?", text_format=Person))
    assert parsed.output_parsed == Person(name="Ada", age=36)
    emulator.say('{"name": "Ada", "age": 36}')
    _, final = either.helped(input="who?", text_format=Person)
    assert final.output_parsed == Person(name="Ada", age=36)


# Reading them again


@pytest.mark.parametrize("seen", [0, 1, 4, 7])
def test_a_stream_is_taken_up_exactly_after_the_last_event_seen(either, emulator, seen):
    emulator.say("One two three.", call("f"))
    events = either.all(either.create(stream=True))
    made = events[-1].response.id
    rest = either.all(either.responses.retrieve(made, stream=True, starting_after=seen))
    assert rest == events[seen + 1 :]


def test_a_stream_is_read_again_from_its_beginning_to_its_end(either):
    events = either.all(either.create(stream=True))
    made = events[-1].response.id
    assert either.all(either.responses.retrieve(made, stream=True)) == events
    last = events[-1].sequence_number
    assert either.all(either.responses.retrieve(made, stream=True, starting_after=last)) == []


def test_a_deleted_response_is_gone(either):
    made = either.create()
    either.now(either.responses.delete(made.id))
    status, error = refusal_of(lambda: either.now(either.responses.retrieve(made.id)))
    assert status == 404
    assert error["message"] == f"Response with id '{made.id}' not found."
    assert refusal_of(lambda: either.create(previous_response_id=made.id)) == anchor_lost(made.id)


def anchor_lost(anchor: str) -> tuple[int, Any]:
    return invalid(
        f"Previous response with id '{anchor}' not found.",
        "previous_response_id",
        "previous_response_not_found",
    )


def test_the_items_a_response_saw_are_listed_in_pages(either):
    said = [{"role": "user", "content": f"number {number}"} for number in range(25)]
    made = either.create(said)
    listing = either.responses.input_items.list

    def texts(page: Any) -> list[str]:
        return [item.content[0].text for item in page]

    expected = [item["content"] for item in said]
    first = either.now(listing(made.id))
    assert texts(first.data) == expected[:4:-1]
    assert first.has_more
    assert (first.first_id, first.last_id) == (first.data[0].id, first.data[-1].id)
    assert texts(either.all(listing(made.id))) == expected[::-1]
    assert texts(either.all(listing(made.id, order="asc", limit=10))) == expected
    after = either.now(listing(made.id, order="asc", after=first.data[3].id, limit=2))
    assert texts(after.data) == expected[22:24]
    assert after.has_more
    last = either.now(listing(made.id, after=first.last_id, limit=5))
    assert texts(last.data) == expected[4::-1]
    assert not last.has_more


# In the background


def test_a_response_in_the_background_is_asked_for_until_it_is_done(either, emulator):
    emulator.say("Done at last.", **stalled(after=3))
    made = either.create(background=True)
    assert made.status == "queued"
    done = asked_until_over(either, emulator, made.id)
    assert done.status == "completed"
    assert done.output_text == "Done at last."
    assert either.create(previous_response_id=done.id).status == "completed"


def asked_until_over(client: Client, emulator: EmulatorThread, response: str) -> Any:
    """The response when it is over; time passes between two questions."""
    seen = client.now(client.responses.retrieve(response))
    while seen.status in {"queued", "in_progress"}:
        emulator.advance(9)
        seen = client.now(client.responses.retrieve(response))
    return seen


def test_a_running_response_cannot_be_continued_yet(client, emulator):
    emulator.say("Done at last.", **stalled())
    made = client.create(background=True)
    assert refusal_of(lambda: client.create(previous_response_id=made.id)) == anchor_lost(made.id)
    asked_until_over(client, emulator, made.id)
    assert client.create(previous_response_id=made.id).status == "completed"


def test_a_running_response_is_followed_to_its_end(either, emulator):
    emulator.say("Done at last.", **stalled(after=3))
    made = either.create(background=True)
    stream = either.now(either.responses.retrieve(made.id, stream=True))
    events = either.first(stream, 4)
    assert [event.type for event in events[:3]] == [
        "response.created",
        "response.queued",
        "response.in_progress",
    ]
    late = either.now(either.responses.retrieve(made.id, stream=True, starting_after=2))
    assert either.first(late, 1) == events[3:]
    emulator.advance(9)
    rest = either.all(stream)
    assert rest[-1].response.output_text == "Done at last."
    assert either.all(late) == rest
    assert either.all(either.responses.retrieve(made.id, stream=True)) == events + rest


def test_a_background_stream_that_is_left_runs_to_its_end(either, emulator):
    emulator.say("Done at last.", **stalled(after=3))
    stream = either.create(background=True, stream=True)
    seen = either.first(stream, 4)
    either.now(stream.close())
    emulator.advance(9)
    rest = either.all(either.responses.retrieve(seen[0].response.id, stream=True, starting_after=1))
    assert rest[0].sequence_number == 2
    assert rest[-1].type == "response.completed"


@pytest.mark.parametrize("after", [0, 3, 6])
def test_a_cancelled_response_stays_cancelled(either, emulator, after):
    emulator.say("Done at last.", call("f"), **stalled(after))
    made = either.create(background=True)
    stream = either.now(either.responses.retrieve(made.id, stream=True))
    either.first(stream, after + 1)
    cancelled = either.now(either.responses.cancel(made.id))
    assert cancelled.status == "cancelled"
    assert either.all(stream) == []
    emulator.advance(9)
    assert either.now(either.responses.retrieve(made.id)) == cancelled
    assert either.now(either.responses.cancel(made.id)) == cancelled
    assert refusal_of(lambda: either.create(previous_response_id=made.id)) == anchor_lost(made.id)


def test_only_a_background_response_is_cancelled(client):
    made = client.create()
    status, error = refusal_of(lambda: client.responses.cancel(made.id))
    assert status == 400
    assert "only a background response" in error["message"]


# Beside responses


def test_a_compacted_context_is_continued_from_its_output(either, emulator):
    emulator.say("First answer.")
    first = either.create("First question.")
    compacted = either.now(
        either.responses.compact(model=MODEL, previous_response_id=first.id, input="More.")
    )
    kinds = [(item.type, getattr(item, "role", None)) for item in compacted.output]
    assert kinds == [("message", "user"), ("message", "user"), ("compaction", None)]
    following = either.create([*as_input(*compacted.output), USER])
    assert following.status == "completed"
    items = either.all(either.responses.input_items.list(following.id, order="asc"))
    assert [item.type for item in items] == ["message", "message", "compaction", "message"]


def test_a_compaction_of_another_provider_is_refused(client):
    with (
        EmulatorThread(settings=Settings(seed=1)) as other,
        client_of("sync", other) as stranger,
    ):
        compacted = stranger.responses.compact(model=MODEL, input="hi")
    status, error = refusal_of(lambda: client.create(as_input(*compacted.output)))
    assert (status, error["code"]) == (400, "invalid_encrypted_content")


def test_compacting_needs_every_call_to_have_its_output(client, emulator):
    emulator.say(call("f", call_id="call_1"))
    made = client.create()
    assert refusal_of(
        lambda: client.responses.compact(model=MODEL, previous_response_id=made.id)
    ) == invalid("No tool output found for function call call_1.")


def test_the_tokens_of_an_input_are_counted_with_its_anchor(either):
    counted = either.responses.input_tokens.count
    short = either.now(counted(model=MODEL, input="hello"))
    long = either.now(counted(model=MODEL, input="hello " * 50))
    assert 0 < short.input_tokens < long.input_tokens
    made = either.create("hello")
    assert made.usage.input_tokens == short.input_tokens
    after = either.now(counted(model=MODEL, input="hello", previous_response_id=made.id))
    assert after.input_tokens > short.input_tokens


# Continuing


def test_what_is_not_stored_is_no_anchor_and_cannot_be_read(either):
    made = either.create(store=False)
    assert refusal_of(lambda: either.create(previous_response_id=made.id)) == anchor_lost(made.id)
    status, _ = refusal_of(lambda: either.now(either.responses.retrieve(made.id)))
    assert status == 404


def test_a_forgotten_response_is_no_anchor(client, emulator):
    made = client.create()
    emulator.forget(made.id)
    assert refusal_of(lambda: client.create(previous_response_id=made.id)) == anchor_lost(made.id)


def test_a_malformed_anchor_is_told_in_other_words(client):
    assert refusal_of(lambda: client.create(previous_response_id="msg_1")) == invalid(
        "Invalid `previous_response_id`.", None, "invalid_request_error"
    )


def test_responses_are_a_tree(client, emulator):
    emulator.say(call("f", call_id="call_1"))
    parent = client.create("root")
    siblings = [
        client.create([output_of(parent, said)], previous_response_id=parent.id)
        for said in ("left", "right", "right")
    ]
    told = [sibling.output_text for sibling in siblings]
    assert told == ["f returned: left", "f returned: right", "f returned: right"]
    for sibling in siblings:
        items = client.all(client.responses.input_items.list(sibling.id))
        assert [item.type for item in items] == [
            "function_call_output",
            "function_call",
            "message",
        ]
    below = client.create("and now?", previous_response_id=siblings[0].id)
    outputs = client.all(client.responses.input_items.list(below.id))
    assert [item.output for item in outputs if item.type == "function_call_output"] == ["left"]
    assert emulator.violations() == {}


def test_instructions_are_not_carried_over():
    script = Script([Turn(decide=lambda asked: asked.instructions or "no instructions", times=9)])
    with EmulatorThread(script=script) as emulator, client_of("sync", emulator) as client:
        first = client.create(instructions="Be brief.")
        second = client.create(previous_response_id=first.id)
    assert (first.output_text, first.instructions) == ("Be brief.", "Be brief.")
    assert (second.output_text, second.instructions) == ("no instructions", None)


def test_there_is_one_anchor_at_most(client):
    made = client.create()
    conversation = client.conversations.create()
    assert refusal_of(
        lambda: client.create(previous_response_id=made.id, conversation=conversation.id)
    ) == invalid(
        "Mutually exclusive parameters: 'conversation' and 'previous_response_id'. "
        "Ensure you are only providing one of: 'conversation' or 'previous_response_id'.",
        "previous_response_id",
        "mutually_exclusive_parameters",
    )


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


# Tools


def test_a_function_of_a_namespace_is_called_with_it(client):
    tools = [
        {
            "type": "namespace",
            "name": "crm",
            "description": "Customers.",
            "tools": [
                {"type": "function", "name": "find", "parameters": {}},
                {"type": "custom", "name": "note"},
            ],
        }
    ]
    made = client.create("find and note", tools=tools)
    assert [(item.name, item.namespace) for item in made.output] == [
        ("find", "crm"),
        ("note", "crm"),
    ]
    assert [item.type for item in made.output] == ["function_call", "custom_tool_call"]


@pytest.mark.parametrize(
    ("inside", "param"),
    [
        ({}, "tools[0].tools"),
        ({"tools": 1}, "tools[0].tools"),
        ({"tools": [1]}, "tools[0].tools[0]"),
        ({"tools": [{}]}, "tools[0].tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].tools[0].name"),
        ({"tools": [{"type": "namespace", "tools": []}]}, "tools[0].tools[0].type"),
        ({"tools": [], "name": 1}, "tools[0].name"),
    ],
)
def test_a_namespace_holds_functions_and_custom_tools(client, inside, param):
    tool = {"type": "namespace", "name": "crm", "description": ""} | inside
    status, error = refusal_of(lambda: client.create(tools=[tool]))
    assert (status, error["param"]) == (400, param)


# The nine families: what is called, what answers it, and what errors call it.
FAMILIES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "function_call": (
        call("f", call_id="call_1"),
        {"type": "function_call_output", "call_id": "call_1", "output": "x"},
        "function call",
    ),
    "custom_tool_call": (
        custom_call("g", "x", call_id="call_1"),
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "x"},
        "custom tool call",
    ),
    "computer_call": (
        item("computer_call", call_id="call_1"),
        {
            "type": "computer_call_output",
            "call_id": "call_1",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="},
        },
        "computer call",
    ),
    "shell_call": (
        item("shell_call", call_id="call_1"),
        {"type": "shell_call_output", "call_id": "call_1", "output": []},
        "shell call",
    ),
    "local_shell_call": (
        item("local_shell_call", call_id="call_1"),
        {"type": "local_shell_call_output", "id": "call_1", "output": "{}"},
        "local shell call",
    ),
    "apply_patch_call": (
        item("apply_patch_call", call_id="call_1"),
        # Nothing was printed: there is no `output`.
        {"type": "apply_patch_call_output", "call_id": "call_1", "status": "completed"},
        "apply patch call",
    ),
    "tool_search_call": (
        item("tool_search_call", call_id="call_1"),
        {"type": "tool_search_output", "call_id": "call_1", "tools": []},
        "tool search call",
    ),
    "program": (
        item("program", call_id="call_1"),
        {
            "type": "program_output",
            "id": "progo_1",
            "call_id": "call_1",
            "result": "x",
            "status": "completed",
        },
        "program",
    ),
    "mcp_approval_request": (
        item("mcp_approval_request", id="mcpr_1"),
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        "MCP approval request",
    ),
}
families = pytest.mark.parametrize("family", FAMILIES)


def no_output(family: str) -> tuple[int, Any]:
    """The refusal of a call that has no output."""
    key = "mcpr_1" if family == "mcp_approval_request" else "call_1"
    return invalid(f"No tool output found for {FAMILIES[family][2]} {key}.")


def no_call(family: str) -> tuple[int, Any]:
    """The refusal of an output that has no call."""
    answer, words = FAMILIES[family][1:]
    name = next(name for name in ("call_id", "approval_request_id", "id") if name in answer)
    return invalid(f"No tool call found for {words} output with {name} {answer[name]}.")


@families
def test_a_call_is_answered_by_its_output(client, emulator, family):
    draft, answer, _ = FAMILIES[family]
    emulator.say(draft)
    made = client.create()
    assert made.output[0].type == family
    assert client.create([answer], previous_response_id=made.id).status == "completed"
    whole = [USER, *as_input(*made.output), answer]
    assert client.create(whole, store=False).status == "completed"
    assert emulator.violations() == {}


@families
def test_a_call_without_its_output_is_refused(client, emulator, family):
    emulator.say(FAMILIES[family][0])
    made = client.create()
    asked = [
        lambda: client.create(previous_response_id=made.id),
        lambda: client.create([USER, *as_input(*made.output)]),
        lambda: client.create([USER, *as_input(*made.output), USER]),
    ]
    assert [refusal_of(ask) for ask in asked] == [no_output(family)] * 3
    assert emulator.violations() == {"call-without-output": 3}


@families
def test_an_output_without_its_call_is_refused(client, emulator, family):
    draft, answer, _ = FAMILIES[family]
    emulator.say(draft)
    made = client.create()
    second = answer | ({"id": "progo_2"} if family == "program" else {})
    asked = [
        # No call at all; twice for one call; before its call.
        lambda: client.create([answer]),
        lambda: client.create([answer, second], previous_response_id=made.id),
        lambda: client.create([USER, answer, *as_input(*made.output)]),
    ]
    assert [refusal_of(ask) for ask in asked] == [no_call(family)] * 3
    following = client.create([answer], previous_response_id=made.id)
    assert refusal_of(
        lambda: client.create([second], previous_response_id=following.id)
    ) == no_call(family)


@families
def test_an_output_of_another_family_answers_nothing(client, emulator, family):
    emulator.say(FAMILIES[family][0])
    made = client.create()
    for other, (_, answer, _) in FAMILIES.items():
        legal = family == "local_shell_call" and other == "function_call"
        if other == family or legal:
            continue
        assert refusal_of(
            lambda answer=answer: client.create([answer], previous_response_id=made.id)
        ) == no_call(other)


def test_a_local_shell_call_is_answered_in_either_of_two_ways(client, emulator):
    emulator.say(FAMILIES["local_shell_call"][0])
    made = client.create()
    for answer in (FAMILIES["local_shell_call"][1], FAMILIES["function_call"][1]):
        assert client.create([answer], previous_response_id=made.id).status == "completed"
    both = [FAMILIES["local_shell_call"][1], FAMILIES["function_call"][1]]
    assert refusal_of(lambda: client.create(both, previous_response_id=made.id)) == no_call(
        "function_call"
    )


def test_the_outputs_of_many_calls_come_in_any_order_and_all_at_once(client, emulator):
    emulator.say(*(call("f", call_id=f"call_{number}") for number in range(3)))
    made = client.create()
    outputs = [
        {"type": "function_call_output", "call_id": f"call_{number}", "output": "x"}
        for number in (2, 0, 1)
    ]
    assert refusal_of(lambda: client.create(outputs[:2], previous_response_id=made.id)) == invalid(
        "No tool output found for function call call_1."
    )
    assert client.create(outputs, previous_response_id=made.id).status == "completed"


def test_a_named_event_needs_no_call(client, emulator):
    event = {"type": "function_call_output", "name": "alarm", "output": "it rings"}
    assert client.create([event]).status == "completed"
    assert client.create([event, event], store=False).status == "completed"
    assert emulator.violations() == {}


def test_a_search_of_the_server_needs_no_answer(client, emulator):
    emulator.say(
        item("tool_search_call", execution="server"),
        item("tool_search_output"),
        call("f", call_id="call_1"),
    )
    made = client.create()
    assert made.output[0].call_id is None
    assert client.create([output_of(made)], previous_response_id=made.id).status == "completed"


def test_a_call_id_is_used_again_in_a_later_round(client, emulator):
    history: list[dict[str, Any]] = [USER]
    anchor = None
    for _ in range(3):
        emulator.say(call("f", call_id="call_1"))
        made = client.create([USER], previous_response_id=anchor)
        anchor = client.create([output_of(made)], previous_response_id=made.id).id
        history += [*as_input(*made.output), output_of(made)]
    assert client.create(history, store=False).status == "completed"
    emulator.say(call("f", call_id="call_1"))
    made = client.create([USER], previous_response_id=anchor)
    assert refusal_of(lambda: client.create(previous_response_id=made.id)) == invalid(
        "No tool output found for function call call_1."
    )


def test_a_call_id_is_used_again_in_a_conversation_and_by_a_borrowed_id(client, emulator):
    conversation = client.conversations.create().id
    for _ in range(3):
        emulator.say(item("local_shell_call", call_id="call_1"))
        client.create(conversation=conversation)
        answer = {"type": "local_shell_call_output", "id": "call_1", "output": "{}"}
        client.create([answer], conversation=conversation)
    items = client.all(client.conversations.items.list(conversation))
    assert [item.type for item in items].count("local_shell_call_output") == 3


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


# The same seed


def everything(emulator: EmulatorThread) -> list[bytes]:
    """The bytes of a few requests that use all there is."""
    wire = Wire(emulator)
    emulator.say(reasoning("I think."), text("So."), call("f"), delay=3.0, pace=0.5)
    made = wire.create(include=SEALED)
    conversation = wire.post("/conversations", items=[USER])
    path = f"/conversations/{conversation.body['id']}"
    answers = [
        made,
        wire.create([answer_to(made.body)], previous_response_id=made.body["id"], stream=True),
        wire.get(f"/responses/{made.body['id']}"),
        wire.get(f"/responses/{made.body['id']}", stream="true", starting_after=3),
        wire.get(f"/responses/{made.body['id']}/input_items"),
        wire.post("/responses/compact", model=MODEL, input="hi"),
        conversation,
        wire.create(conversation=conversation.body["id"], stream=True),
        wire.get(f"{path}/items"),
        wire.create("refused", previous_response_id=made.body["id"]),
    ]
    with wire.socket() as socket:
        socket.create(store=False)
        frames = [repr(frame).encode() for frame in socket.until("response.completed")]
    return [answer.raw for answer in answers] + frames


def answer_to(made: dict[str, Any]) -> dict[str, Any]:
    call_id = made["output"][-1]["call_id"]
    return {"type": "function_call_output", "call_id": call_id, "output": "x"}


def run_with(seed: int) -> list[bytes]:
    with EmulatorThread(clock=VirtualClock(), settings=Settings(seed=seed)) as emulator:
        return everything(emulator)


def test_the_same_seed_and_clock_give_the_same_bytes():
    first, again, other = run_with(7), run_with(7), run_with(8)
    assert first == again
    assert all(one != another for one, another in zip(first, other, strict=True))


def test_the_ids_do_not_depend_on_who_else_is_served():
    """Two streams at once: each response has the ids it would have had alone."""
    with EmulatorThread(clock=VirtualClock(flowing=False)) as emulator:
        client = sync_client(emulator)
        emulator.say("Slow.", call("f"), **stalled())
        emulator.say("Quick.", call("f"))
        slow = client.responses.create(model=MODEL, input="hi", stream=True)
        next(slow)
        quick = client.responses.create(model=MODEL, input="hi")
        emulator.advance(9)
        slow = list(slow)[-1].response
    with EmulatorThread(clock=VirtualClock(flowing=False)) as emulator:
        client = sync_client(emulator)
        emulator.say("Slow.", call("f"))
        emulator.say("Quick.", call("f"))
        assert client.responses.create(model=MODEL, input="hi").output == slow.output
        assert client.responses.create(model=MODEL, input="hi").output == quick.output
