"""Builders and checks that the tests of the Realtime emulator share."""

import base64
from collections.abc import Iterable, Sequence
from typing import Any

from openai.types.realtime import RealtimeServerEvent
from openai.types.realtime.realtime_session_create_response import RealtimeSessionCreateResponse

from lockstitch.emulator.ids import Ids
from lockstitch.emulator.model.replies import Draft, reply
from lockstitch.emulator.realtime.session import Outcome, RealtimeSession
from lockstitch.emulator.realtime.speaking import Speaking
from tests.emulator.strictly import strictly

Fields = dict[str, Any]

# Two tenths of a second, in base64.
AUDIO = base64.b64encode(bytes(48 * 200)).decode()


def session_of(**update: Any) -> RealtimeSession:
    """A session that answers in text, and whatever else is asked for."""
    session = RealtimeSession(Ids("test"), "gpt-realtime", expires_at=1_800_000_000.0)
    settings = {"type": "realtime", "output_modalities": ["text"], **update}
    assert session.receive({"type": "session.update", "session": settings}).broke is None
    return session


def with_items(*ids: str) -> RealtimeSession:
    session = session_of()
    for name in ids:
        received(session, create(user(name, id=name)))
    return session


def user(text: str, **fields: Any) -> Fields:
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content, **fields}


def create(item: Fields, **fields: Any) -> Fields:
    return {"type": "conversation.item.create", "item": item, **fields}


def function_call(call_id: str = "call_1", **fields: Any) -> Fields:
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": "get_weather",
        "arguments": "{}",
        **fields,
    }


def function_call_output(call_id: str = "call_1", output: str = "sunny", **fields: Any) -> Fields:
    return {"type": "function_call_output", "call_id": call_id, "output": output, **fields}


def turn_detection(**fields: Any) -> Fields:
    return {"input": {"turn_detection": {"type": "server_vad", **fields}}}


def names(events: Iterable[Fields]) -> list[str]:
    return [event["type"] for event in events]


def ids_of(session: RealtimeSession) -> list[str]:
    return [item["id"] for item in session.items()]


def only(events: Sequence[Fields], name: str) -> Fields:
    (found,) = [event for event in events if event["type"] == name]
    return found


def error_of(outcome: Outcome) -> Fields:
    (event,) = outcome.events
    assert event["type"] == "error"
    assert outcome.broke
    assert not outcome.started
    check(event)
    error: Fields = event["error"]
    return error


def received(session: RealtimeSession, frame: Fields) -> list[Fields]:
    """The events that answer a frame that broke no rule."""
    outcome = session.receive(frame)
    assert outcome.broke is None, outcome.events
    for event in outcome.events:
        check(event)
    return outcome.events


def started(session: RealtimeSession, *drafts: Draft | str, **settings: Any) -> Speaking:
    """A response that was asked for, and will say this."""
    outcome = session.receive({"type": "response.create", "response": settings})
    assert outcome.broke is None, outcome.events
    (speaking,) = outcome.started
    speaking.answer(reply(*drafts))
    return speaking


def until(session: RealtimeSession, speaking: Speaking, name: str, nth: int = 1) -> list[Fields]:
    """The events of a response through the n-th one of this name."""
    said = []
    for event in session.rest_of(speaking):
        said.append(event)
        nth -= event["type"] == name
        if not nth:
            return said
    raise AssertionError(f"{name} was not said, but {names(said)}")


def rest(session: RealtimeSession, speaking: Speaking) -> list[Fields]:
    events = list(session.rest_of(speaking))
    for event in events:
        check(event)
    return events


def check(event: Fields) -> None:
    """A server event is exactly what the official types say.

    The types give a session's events the type of a request, which has no id: a session is checked
    as the type of a created one instead."""
    if "session" in event:
        session = event["session"]
        strictly(RealtimeSessionCreateResponse, session)
        unknown = ("id", "object", "expires_at")
        session = {name: value for name, value in session.items() if name not in unknown}
        event = event | {"session": session}
    strictly(RealtimeServerEvent, event)


class Mirror:
    """The order of a conversation, as a client puts it together from what it is told."""

    def __init__(self) -> None:
        # Deleted items stay, so that a late item that names one finds its place.
        self._chain: list[tuple[str, bool]] = []

    def hear(self, event: Fields) -> None:
        if event["type"] == "conversation.item.added":
            self._insert(event["item"]["id"], event["previous_item_id"])
        elif event["type"] == "conversation.item.deleted":
            at = self._chain.index((event["item_id"], True))
            self._chain[at] = (event["item_id"], False)

    def _insert(self, id: str, previous: str | None) -> None:
        known = [name for name, _ in self._chain]
        at = 0 if previous is None else known.index(previous) + 1
        if id in known:
            gone = known.index(id)
            assert self._chain[gone] == (id, False)
            del self._chain[gone]
            at -= gone < at
        self._chain.insert(at, (id, True))

    def ids(self) -> list[str]:
        return [name for name, lives in self._chain if lives]
