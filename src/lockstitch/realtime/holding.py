"""What waits for what, as a table.

Everything that decides whether something may be sent now lives in this file. Whoever waits asks
again after each event; nothing here waits."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from lockstitch.dialects.base import text_of
from lockstitch.mirror import ROOT, Create, Delete, Plan
from lockstitch.mirror.context import MOST_ENDED_RESPONSES_REMEMBERED, MOST_RESPONSES_AT_ONCE
from lockstitch.mirror.remembering import Recent


class Busy(Enum):
    """What can be under way."""

    RESTORING = "there is no session that has the whole context"
    EDITING = "an edit is not acknowledged"
    ASKED = "a response was asked for and has not begun"
    RESPONDING = "a response of the conversation is being generated"
    CALLING = "a call has no output at the provider"
    LISTENING = "the user is speaking, or was just heard and has no words yet"


class Act(Enum):
    """What a session sends."""

    EVENT = "an event that neither edits nor asks for a response: audio, a cancel"
    EDIT = "an edit of what stands before the last item"
    EDIT_OF_THE_TAIL = "an edit of the last item, or behind it"
    RESPOND = "the request for a response of the conversation"
    RESPOND_ASIDE = "the request for a response out of band"
    RENEW = "the renewal of a connection"
    RENEW_LATE = "the renewal of a connection whose time is nearly up"


WAITS_FOR: Final[dict[Act, frozenset[Busy]]] = {
    Act.EVENT: frozenset({Busy.RESTORING}),
    Act.EDIT: frozenset({Busy.RESTORING}),
    # "The order of a server item is fixed when its response starts": what is put behind the same
    # item meanwhile would stand before it or behind it, as it happens.
    Act.EDIT_OF_THE_TAIL: frozenset({Busy.RESTORING, Busy.ASKED, Busy.RESPONDING}),
    # "One active response at a time in the default conversation"; and it is to see the edits.
    Act.RESPOND: frozenset({Busy.RESTORING, Busy.EDITING, Busy.ASKED, Busy.RESPONDING}),
    Act.RESPOND_ASIDE: frozenset({Busy.RESTORING}),
    # What is cut off is asked for again, and what was heard and has no words is lost.
    Act.RENEW: frozenset(Busy),
    # A tool goes on over it. A response may still end before the provider cuts it off.
    Act.RENEW_LATE: frozenset({Busy.RESTORING, Busy.EDITING, Busy.ASKED, Busy.RESPONDING}),
}


def may(act: Act, busy: AbstractSet[Busy]) -> bool:
    """May this be sent while that is under way?"""
    return WAITS_FOR[act].isdisjoint(busy)


def act_of(event: Mapping[str, Any]) -> Act:
    """What a client event is."""
    if event.get("type") != "response.create":
        return Act.EVENT
    response = event.get("response")
    aside = isinstance(response, Mapping) and response.get("conversation") == "none"
    return Act.RESPOND_ASIDE if aside else Act.RESPOND


def act_of_plan(plan: Plan, last: str | None) -> Act:
    """What carrying out a plan is, where ``last`` is the last item that is there."""
    tail = ROOT if last is None else last
    for edit in plan.edits:
        if isinstance(edit, Create) and edit.previous_item_id in {None, tail}:
            return Act.EDIT_OF_THE_TAIL
        if isinstance(edit, Delete) and edit.item_id == last:
            return Act.EDIT_OF_THE_TAIL
    return Act.EDIT


CREATES: Final = "create_response"
"""What a turn detection says of whether it is followed by a response."""


class Speaking(Struct):
    """A response that goes on."""

    request: Mapping[str, Any] | None = None
    """What it was asked for with; None if the server began it by itself."""
    said: int = 0
    """How many items it has said to their end."""
    cancelled: bool = False
    """Did the client ask for its end?"""


class Floor:
    """Who has the floor: the responses of the conversation, from being asked for to their end.
    Those out of band do not count."""

    def __init__(self) -> None:
        self.asked: Mapping[str, Any] | None = None
        """A request that was not answered so far."""
        self.begun = 0
        """How many responses have begun."""
        self.begun_before_output = 0
        """How many had when the last output of a call came: whichever began later has seen it."""
        self.speaking: dict[str, Speaking] = {}
        self.contested = False
        """Was the last one begun while one was asked for, and the server was about to begin one
        by itself? Then it may be either: if it is the server's, the request is refused."""
        self._answers_users = True
        """Does the server begin one when the user has spoken?"""
        self._due = False
        """And has the user spoken?"""
        self._ended = Recent(MOST_ENDED_RESPONSES_REMEMBERED)

    def __repr__(self) -> str:
        return f"<Floor {'asked, ' if self.asked else ''}{len(self.speaking)} speaking>"

    def busy(self) -> set[Busy]:
        found = set[Busy]()
        if self.asked is not None:
            found.add(Busy.ASKED)
        if self.speaking:
            found.add(Busy.RESPONDING)
        return found

    def ask(self, request: Mapping[str, Any]) -> None:
        """A response is asked for with this event."""
        self.asked = request

    def give_up(self, request: Mapping[str, Any]) -> None:
        """Nobody has answered the request."""
        if self.asked is request:
            self.asked = None

    def cancel(self, response: str | None) -> None:
        """The client asks for the end of this response; of whichever goes on if it names none."""
        for named, speaking in self.speaking.items():
            if response in {None, named}:
                speaking.cancelled = True

    def output_came(self) -> None:
        """The conversation has another output of a call."""
        self.begun_before_output = self.begun

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take one server event."""
        match event.get("type"):
            case "response.created":
                self._begin(event.get("response"))
            case "response.output_item.done":
                self._say(text_of(event.get("response_id")), event.get("item"))
            case "response.done":
                self._end(event.get("response"))
            case "error":
                self._refuse(event.get("error"))
            case "input_audio_buffer.committed":
                self._due = self._answers_users
            case "session.created" | "session.updated":
                self._configure(event.get("session"))

    def _configure(self, session: object) -> None:
        heard = _audio_input(session)
        if "turn_detection" in heard:
            turns = heard["turn_detection"]
            self._answers_users = isinstance(turns, Mapping) and turns.get(CREATES) is not False

    def _begin(self, response: object) -> None:
        named = _id_of(response)
        if named is None or named in self.speaking or named in self._ended:
            return
        # A provider that does not tell has one conversation, and it is that.
        if isinstance(response, Mapping) and response.get("conversation_id", named) is None:
            return
        if len(self.speaking) >= MOST_RESPONSES_AT_ONCE:
            self._close(next(iter(self.speaking)))  # we have missed its end
        self.speaking[named] = Speaking(self.asked)
        self.contested = self._due and self.asked is not None
        self.begun += 1
        self.asked, self._due = None, False

    def _say(self, response: str | None, item: object) -> None:
        whole = isinstance(item, Mapping) and item.get("status") != "incomplete"
        if response in self.speaking and whole:
            self.speaking[response].said += 1

    def _refuse(self, error: object) -> None:
        named = error.get("event_id") if isinstance(error, Mapping) else None
        if named is not None and self.asked is not None and self.asked.get("event_id") == named:
            self.asked = None

    def _end(self, response: object) -> None:
        named = _id_of(response)
        if named is not None:
            self._close(named)

    def _close(self, response: str) -> None:
        self._ended.add(response)
        self.speaking.pop(response, None)


_TRANSCRIPTION: Final = "conversation.item.input_audio_transcription"
_SILENT: Final = frozenset({"input_audio_buffer.speech_stopped", "input_audio_buffer.cleared"})
_WORDED: Final = frozenset(
    {f"{_TRANSCRIPTION}.completed", f"{_TRANSCRIPTION}.failed", "conversation.item.deleted"}
)


class Ear:
    """The user: who speaks, and what was heard of it without its words."""

    def __init__(self, *, transcribes: bool = False) -> None:
        self.transcribes = transcribes
        """Will the words of what the user says come later?"""
        self._by_hand = False
        """Does the client say where speech begins and ends? Else it sends silence, too."""
        self._speaking = False
        self._wordless: str | None = None
        """The last item that was said and not transcribed so far."""

    def __repr__(self) -> str:
        return f"<Ear {'busy' if self.busy() else 'idle'}>"

    def busy(self) -> set[Busy]:
        waits = self.transcribes and self._wordless is not None
        return {Busy.LISTENING} if self._speaking or waits else set()

    def sends(self, event: Mapping[str, Any]) -> None:
        """Take one client event."""
        if self._by_hand and event.get("type") == "input_audio_buffer.append":
            self._speaking = True

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take one server event."""
        kind = text_of(event.get("type"))
        if kind == "input_audio_buffer.speech_started":
            self._speaking = True
        elif kind in _SILENT:
            self._speaking = False
        elif kind == "input_audio_buffer.committed":
            self._speaking = False
            self._wordless = text_of(event.get("item_id"))
        elif kind in _WORDED and text_of(event.get("item_id")) == self._wordless:
            self._wordless = None
        elif kind == "session.updated":
            self._configure(event.get("session"))

    def _configure(self, session: object) -> None:
        """What is in force from here on."""
        heard = _audio_input(session)
        if "transcription" in heard:
            self.transcribes = bool(heard["transcription"])
        if "turn_detection" in heard:
            self._by_hand = heard["turn_detection"] is None


def _audio_input(session: object) -> Mapping[str, Any]:
    """How a session hears; a provider may leave out what it does not know."""
    audio = session.get("audio") if isinstance(session, Mapping) else None
    heard = audio.get("input") if isinstance(audio, Mapping) else None
    return heard if isinstance(heard, Mapping) else {}


def _id_of(response: object) -> str | None:
    return text_of(response.get("id")) if isinstance(response, Mapping) else None
