"""Responses with the official client: making them, reading them again, continuing them.

What either client does is tried with both; the rules of the provider with the sync one alone.
A clock that stands still and a stalled reply stand for a response that takes its time."""

from typing import Any

import pytest
from pydantic import BaseModel

from lockstitch.emulator import (
    Script,
    Settings,
    Turn,
    VirtualClock,
    call,
    reasoning,
    text,
)
from lockstitch.testing import EmulatorThread
from tests.emulator.official import (
    MODEL,
    Client,
    as_input,
    client_of,
    invalid,
    refusal_of,
    sync_client,
)
from tests.emulator.official_client.shared import SEALED, USER, output_of, stalled
from tests.emulator.wire import Wire

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
