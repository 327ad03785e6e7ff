"""The state and the rules of one Realtime session: client events in, server events out.

No socket, no clock and no task: `connection` moves the events. A response that is in
flight is advanced by its driver one event at a time, so a client's edits fall in between."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from lockstitch.emulator import refusals, tokens
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.limits import (
    LARGEST_REALTIME_AUDIO_EVENT_BYTES,
    MOST_REALTIME_RESPONSES,
    SHORTEST_REALTIME_COMMIT_MILLISECONDS,
)
from lockstitch.emulator.realtime import refusals as realtime_refusals
from lockstitch.emulator.realtime.asking import asked_of
from lockstitch.emulator.realtime.audio import (
    InputBuffer,
    decoded,
    hum,
    milliseconds_of,
    spoken_milliseconds,
)
from lockstitch.emulator.realtime.conversation import Conversation
from lockstitch.emulator.realtime.endings import CANCELLED, TURN_DETECTED, Ending
from lockstitch.emulator.realtime.items import Item, Place
from lockstitch.emulator.realtime.settings import SessionSettings
from lockstitch.emulator.realtime.shapes import (
    check_event,
    check_item,
    check_response,
    check_session,
)
from lockstitch.emulator.realtime.speaking import Speaking, Start, realtime_id
from lockstitch.emulator.realtime.told import Fields
from lockstitch.emulator.refusals import Refused


@dataclass(slots=True)
class Outcome:
    """What follows from something that happened to a session."""

    events: list[Fields] = field(default_factory=list)
    # Responses that start now: the driver finds each a reply, and says it.
    started: list[Speaking] = field(default_factory=list)
    # The rule that a client event broke; its only event is then an `error`.
    broke: str | None = None


class RealtimeSession:
    """One session. `active` is the response that writes to its conversation, if one does."""

    def __init__(self, ids: Ids, model: str, *, expires_at: float) -> None:
        self._ids = ids
        self.settings = SessionSettings(
            id=realtime_id(ids, "sess"), model=model, expires_at=int(expires_at)
        )
        self.conversation = Conversation(ids)
        self.active: Speaking | None = None
        # All that are being spoken, those out of band too.
        self._in_flight: dict[str, Speaking] = {}
        self._buffer = InputBuffer()
        self._spoke_audio = False

    def opening(self) -> list[Fields]:
        """The first event. GA sends no `conversation.created` beside it."""
        return [self._event("session.created", session=self.settings.body)]

    def receive(self, frame: Any) -> Outcome:
        """One client event, decoded. A session whose outcome broke a rule is as it was before."""
        try:
            if not isinstance(frame, dict):
                raise refusals.unreadable_frame()
            return _HANDLERS[check_event(frame)](self, frame)
        except Refused as refused:
            named = frame.get("event_id") if isinstance(frame, dict) else None
            return self.refusal(refused, named if isinstance(named, str) else None)

    def refusal(self, refused: Refused, event_id: str | None = None) -> Outcome:
        error = refused.error() | {"event_id": event_id}
        return Outcome([self._event("error", error=error)], broke=refused.rule)

    def items(self) -> list[Item]:
        """The conversation as the server has it, in order."""
        return [place.item for place in self.conversation.items]

    # Responses, as their driver sees them

    def told(self, speaking: Speaking, event: Fields) -> None:
        """An event of this response went out."""
        speaking.told(event)
        match event["type"]:
            case "conversation.item.added":
                items = self.conversation.items
                speaking.place = items.place(dict(event["item"]), event["previous_item_id"])
            case "response.output_item.done" if speaking.place is not None:
                speaking.place.item = dict(event["item"])
                speaking.place.milliseconds = speaking.milliseconds
            case "response.output_audio.delta":
                self._spoke_audio = True
            case "response.done":
                self._in_flight.pop(speaking.id, None)
                if self.active is speaking:
                    self.active = None

    def rest_of(self, speaking: Speaking) -> Iterator[Fields]:
        """All that is left to say of it, told as it is taken."""
        while (event := speaking.upcoming()) is not None:
            self.told(speaking, event)
            yield event

    def _ended(self, speaking: Speaking, ending: Ending) -> list[Fields]:
        speaking.end(ending)
        return list(self.rest_of(speaking))

    # The user, who is simulated from outside

    def speech(self, text: str, *, responds: bool = True) -> Outcome:
        """The user says this. Without turn detection it waits in the buffer for a commit."""
        try:
            return self._heard(text, responds)
        except Refused as refused:
            return self.refusal(refused)

    def _heard(self, text: str, responds: bool) -> Outcome:
        length = spoken_milliseconds(text)
        start = int(milliseconds_of(self._buffer.received, self._input_format))
        detection = self.settings.turn_detection
        self.conversation.items.check_room()
        self._buffer.append(hum(length, self._input_format), text)
        if detection is None:
            return Outcome()
        where = {"item_id": realtime_id(self._ids, "item")}
        name = "input_audio_buffer.speech"
        events = [self._event(f"{name}_started", audio_start_ms=start, **where)]
        if self.active is not None and detection["interrupt_response"]:
            events += self._ended(self.active, TURN_DETECTED)
        events.append(self._event(f"{name}_stopped", audio_end_ms=start + length, **where))
        events += self._committed(where["item_id"])
        if not responds or not detection["create_response"]:
            return Outcome(events)
        try:
            return Outcome(events, [self._start({})])
        except Refused as refused:
            return Outcome(events + self.refusal(refused).events)

    def _committed(self, id: str) -> list[Fields]:
        """The buffer becomes an item, and is transcribed if that was asked for."""
        audio, words = self._buffer.take()
        place, previous = self.conversation.hear(id, audio, words, self._input_format)
        name = "input_audio_buffer.committed"
        events = [self._event(name, previous_item_id=previous, item_id=id)]
        events += self._added(place, previous)
        if self.settings.input["transcription"] is not None:
            events += self._transcribed(place)
        return events

    def _transcribed(self, place: Place) -> list[Fields]:
        words = place.heard or f"[{place.milliseconds} ms of audio]"
        place.item = place.item | {"content": [{"type": "input_audio", "transcript": words}]}
        where = {"item_id": place.id, "content_index": 0}
        usage = {"type": "duration", "seconds": place.milliseconds / 1000}
        name = "conversation.item.input_audio_transcription"
        return [
            self._event(f"{name}.delta", **where, delta=words),
            self._event(f"{name}.completed", **where, transcript=words, usage=usage),
        ]

    # Client events

    def _update(self, frame: Fields) -> Outcome:
        check_session(frame["session"])
        self.settings.update(frame["session"], voice_is_fixed=self._spoke_audio)
        return Outcome([self._event("session.updated", session=self.settings.body)])

    def _append(self, frame: Fields) -> Outcome:
        audio = decoded(frame["audio"], "audio")
        if len(audio) > LARGEST_REALTIME_AUDIO_EVENT_BYTES:
            raise realtime_refusals.buffer_full(LARGEST_REALTIME_AUDIO_EVENT_BYTES)
        self._buffer.append(audio)
        if self.settings.turn_detection is not None:
            self._buffer.forget_silence()
        return Outcome()

    def _commit(self, _: Fields) -> Outcome:
        length = milliseconds_of(self._buffer.size, self._input_format)
        if length < SHORTEST_REALTIME_COMMIT_MILLISECONDS:
            raise realtime_refusals.nothing_to_commit(SHORTEST_REALTIME_COMMIT_MILLISECONDS, length)
        self.conversation.items.check_room()
        return Outcome(self._committed(realtime_id(self._ids, "item")))

    def _clear(self, _: Fields) -> Outcome:
        self._buffer.clear()
        return Outcome([self._event("input_audio_buffer.cleared")])

    def _create(self, frame: Fields) -> Outcome:
        check_item(frame["item"], "item")
        place, previous = self.conversation.create(
            frame["item"], frame.get("previous_item_id"), self._input_format
        )
        return Outcome(self._added(place, previous))

    def _retrieve(self, frame: Fields) -> Outcome:
        spoken = self.settings.body["audio"]["output"]["format"]
        item = self.conversation.retrieve(frame["item_id"], spoken)
        return Outcome([self._event("conversation.item.retrieved", item=item)])

    def _truncate(self, frame: Fields) -> Outcome:
        said = {name: frame[name] for name in ("item_id", "content_index", "audio_end_ms")}
        self.conversation.truncate(*said.values())
        return Outcome([self._event("conversation.item.truncated", **said)])

    def _delete(self, frame: Fields) -> Outcome:
        self.conversation.delete(frame["item_id"])
        return Outcome([self._event("conversation.item.deleted", item_id=frame["item_id"])])

    def _respond(self, frame: Fields) -> Outcome:
        given = frame.get("response") or {}
        check_response(given)
        return Outcome(started=[self._start(given)])

    def _cancel(self, frame: Fields) -> Outcome:
        named = frame.get("response_id")
        speaking = self._in_flight.get(named) if named else self.active
        if speaking is None:
            raise realtime_refusals.nothing_to_cancel()
        return Outcome(self._ended(speaking, CANCELLED))

    # What they are made of

    def _start(self, given: Fields) -> Speaking:
        """A response starts: its context, and the place of its items, are fixed by that."""
        in_conversation = given.get("conversation") != "none"
        if in_conversation and self.active is not None:
            raise realtime_refusals.response_active(self.active.id)
        if len(self._in_flight) >= MOST_REALTIME_RESPONSES:
            raise realtime_refusals.too_many_responses(MOST_REALTIME_RESPONSES)
        conversation = self.conversation
        conversation.items.check_room()
        context = conversation.context(given.get("input"))
        settings = self.settings.for_response(given)
        start = Start(
            settings=settings,
            asked=asked_of(context, settings),
            input_tokens=tokens.of_items(heard.item for heard in context),
            conversation_id=conversation.id if in_conversation else None,
            previous=conversation.items.last(),
            metadata=given.get("metadata"),
        )
        speaking = Speaking(self._ids.branch(), start)
        self._in_flight[speaking.id] = speaking
        if in_conversation:
            self.active = speaking
        return speaking

    def _added(self, place: Place, previous: str | None) -> list[Fields]:
        return [
            self._event(f"conversation.item.{what}", previous_item_id=previous, item=place.item)
            for what in ("added", "done")
        ]

    @property
    def _input_format(self) -> Fields:
        return dict(self.settings.input["format"])

    def _event(self, type: str, **fields: Any) -> Fields:
        return {"type": type, "event_id": realtime_id(self._ids, "event"), **fields}

    def __repr__(self) -> str:
        return f"<RealtimeSession {self.settings.body['id']}: {self.conversation!r}>"


_HANDLERS: Final[dict[str, Callable[[RealtimeSession, Fields], Outcome]]] = {
    "session.update": RealtimeSession._update,
    "input_audio_buffer.append": RealtimeSession._append,
    "input_audio_buffer.commit": RealtimeSession._commit,
    "input_audio_buffer.clear": RealtimeSession._clear,
    "conversation.item.create": RealtimeSession._create,
    "conversation.item.retrieve": RealtimeSession._retrieve,
    "conversation.item.truncate": RealtimeSession._truncate,
    "conversation.item.delete": RealtimeSession._delete,
    "response.create": RealtimeSession._respond,
    "response.cancel": RealtimeSession._cancel,
}
