"""One Realtime response, event by event, from what the model says to `response.done`.

The response goes by what its client was told, not by what it planned: `told` is called for each
event that went out, and every way to end it (in full, cancelled, failed) closes what is open."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lockstitch.emulator import tokens
from lockstitch.emulator.errors import BadScript
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.limits import LONGEST_REALTIME_CALL_ID_CHARACTERS
from lockstitch.emulator.model.replies import Asked, Draft, Reply
from lockstitch.emulator.realtime.audio import encoded, hum
from lockstitch.emulator.realtime.endings import COMPLETED, OF_REPLY, Ending
from lockstitch.emulator.realtime.items import Item, Place
from lockstitch.emulator.realtime.told import Fields, Told

# The length of the audio that goes with one piece of a transcript.
PIECE_MILLISECONDS = 20
_ID_LETTERS = 21
_WORDS = re.compile(r"\s*\S+\s*|\s+")
_PIECE_CHARACTERS = 16
# Nobody is limited here; the numbers are the same in every session.
_RATE_LIMITS = [
    {"name": "requests", "limit": 1_000, "remaining": 999, "reset_seconds": 0.06},
    {"name": "tokens", "limit": 200_000, "remaining": 199_000, "reset_seconds": 0.3},
]


def realtime_id(ids: Ids, prefix: str) -> str:
    """Ids of the Realtime API: short, so that a client may give them back."""
    return ids.letters(prefix, _ID_LETTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What is fixed when a response starts."""

    settings: Fields
    asked: Asked
    input_tokens: int
    # None if it is out of band: its items enter no conversation.
    conversation_id: str | None
    # The predecessor of its first item, whatever is deleted before that item is announced.
    previous: str | None
    metadata: dict[str, str] | None


class Speaking:
    """A response from its start to its end."""

    def __init__(self, ids: Ids, start: Start) -> None:
        self._ids = ids
        self._start = start
        self.id = realtime_id(ids, "resp")
        self.asked = start.asked
        # The predecessor of the next item.
        self.previous = start.previous
        # The place in the conversation of the item that is being told.
        self.place: Place | None = None
        # How long the audio is that was told of that item.
        self.milliseconds = 0
        self.spoke_audio = False
        self.ended = False
        self._begun = False
        self._told: list[Told] = []
        self._plan: Iterator[Fields] = iter(())
        self._counted: tuple[int | None, int | None] = (None, None)

    @property
    def in_conversation(self) -> bool:
        return self._start.conversation_id is not None

    def answer(self, reply: Reply) -> None:
        """Say this. BadScript if Realtime has no words for one of the drafts."""
        spoken = [self._spoken(draft) for draft in reply.drafts]
        self._counted = (reply.input_tokens, reply.output_tokens)
        self._plan = self._all(spoken, OF_REPLY[reply.ends])

    def end(self, ending: Ending) -> None:
        """From here on, say only what closes the response."""
        if not self.ended:
            self._plan = self._last(ending, "incomplete")

    def upcoming(self) -> Fields | None:
        """The next event, or None at the end. It counts once it was `told`."""
        return next(self._plan, None)

    def told(self, event: Fields) -> None:
        """The client has this event now."""
        match event["type"]:
            case "response.created":
                self._begun = True
            case "response.output_item.added":
                self._told.append(Told(event["item"], len(self._told)))
                self.place = None
                self.milliseconds = 0
            case "conversation.item.added":
                self._told[-1].hear(event)
                self.previous = event["item"]["id"]
            case "response.output_audio.delta":
                self.milliseconds += PIECE_MILLISECONDS
                self.spoke_audio = True
            case "response.done":
                self.ended = True
            case "rate_limits.updated":
                pass
            case _:
                self._told[-1].hear(event)

    # What is told, in its order

    def _all(self, spoken: list[tuple[Item, str]], ending: Ending) -> Iterator[Fields]:
        yield from self._beginning()
        for item, said in spoken:
            yield from self._announcing(item)
            told = self._told[-1]
            yield from self._message(told, said) if "content" in item else self._call(told, said)
            yield from self._closing("completed")
        yield from self._last(ending, "completed")

    def _beginning(self) -> Iterator[Fields]:
        if not self._begun:
            yield self._event("response.created", response=self._body("in_progress"))

    def _announcing(self, item: Item) -> Iterator[Fields]:
        index = len(self._told)
        yield self._event(
            "response.output_item.added", response_id=self.id, output_index=index, item=item
        )
        if self.in_conversation:
            yield self._event("conversation.item.added", previous_item_id=self.previous, item=item)

    def _message(self, told: Told, said: str) -> Iterator[Fields]:
        where = self._where(told) | {"content_index": 0}
        audio = self._start.settings["output_modalities"] == ["audio"]
        part = {"type": "audio", "transcript": ""} if audio else {"type": "text", "text": ""}
        yield self._event("response.content_part.added", **where, part=part)
        for piece in _WORDS.findall(said):
            if audio:
                yield self._event("response.output_audio_transcript.delta", **where, delta=piece)
                hummed = hum(PIECE_MILLISECONDS, self._audio["format"])
                yield self._event("response.output_audio.delta", **where, delta=encoded(hummed))
            else:
                yield self._event("response.output_text.delta", **where, delta=piece)

    def _call(self, told: Told, said: str) -> Iterator[Fields]:
        where = self._where(told) | {"call_id": told.item["call_id"]}
        for start in range(0, len(said), _PIECE_CHARACTERS):
            delta = said[start : start + _PIECE_CHARACTERS]
            yield self._event("response.function_call_arguments.delta", **where, delta=delta)

    def _closing(self, status: str) -> Iterator[Fields]:
        """What is still open of the last item, closed."""
        if not self._told:
            return
        told = self._told[-1]
        where = self._where(told)
        for stream in tuple(told.streams):
            yield self._event(f"response.{stream}.done", **where, **told.stream_now(stream))
        if told.part:
            part = told.part_now()
            yield self._event("response.content_part.done", **where, content_index=0, part=part)
        if not told.done:
            place = {"response_id": self.id, "output_index": told.index}
            item = told.item_now(status)
            yield self._event("response.output_item.done", **place, item=item)
        # An item that the client deleted meanwhile is not done in the conversation.
        if self.place and not self.place.deleted and not told.done_in_conversation:
            item = told.item_now()
            yield self._event("conversation.item.done", previous_item_id=told.previous, item=item)

    def _last(self, ending: Ending, status: str) -> Iterator[Fields]:
        yield from self._beginning()
        yield from self._closing(status)
        yield self._event("response.done", response=self._body(ending.status, ending))
        yield self._event("rate_limits.updated", rate_limits=_RATE_LIMITS)

    # What it is made of

    @property
    def _audio(self) -> Fields:
        return dict(self._start.settings["audio"]["output"])

    def _where(self, told: Told) -> Fields:
        return {"response_id": self.id, "item_id": told.item["id"], "output_index": told.index}

    def _event(self, type: str, **fields: Any) -> Fields:
        return {"type": type, "event_id": realtime_id(self._ids, "event"), **fields}

    def _spoken(self, draft: Draft) -> tuple[Item, str]:
        """The item that a draft becomes, with nothing said yet, and what it will say."""
        item: Item = {
            "id": realtime_id(self._ids, "item"),
            "object": "realtime.item",
            "type": draft["type"],
            "status": "in_progress",
        }
        if draft["type"] == "message":
            return item | {"role": "assistant", "content": []}, _text_of(draft)
        if draft["type"] == "function_call":
            call = {"call_id": self._call_id(draft), "name": draft["name"], "arguments": ""}
            return item | call, str(draft.get("arguments", "{}"))
        raise BadScript(
            f"A Realtime response cannot say an item of type {draft['type']}: it says messages "
            "and function calls. Give this turn to another dialect."
        )

    def _call_id(self, draft: Draft) -> str:
        call_id = str(draft.get("call_id") or self._ids.call())
        if len(call_id) > LONGEST_REALTIME_CALL_ID_CHARACTERS:
            raise BadScript(
                f"The call_id {call_id} has {len(call_id)} characters, and Realtime takes "
                f"{LONGEST_REALTIME_CALL_ID_CHARACTERS}. Shorten it, or leave it out."
            )
        return call_id

    def _body(self, status: str, ending: Ending = COMPLETED) -> Fields:
        settings, audio = self._start.settings, self._audio
        voice = audio["voice"]
        return {
            "object": "realtime.response",
            "id": self.id,
            "status": status,
            "status_details": ending.details(),
            "output": [told.item_now() for told in self._told],
            "conversation_id": self._start.conversation_id,
            "output_modalities": settings["output_modalities"],
            "max_output_tokens": settings["max_output_tokens"],
            "audio": {
                "output": {
                    "format": audio["format"],
                    "voice": voice if isinstance(voice, str) else voice["id"],
                }
            },
            "usage": None if status == "in_progress" else self._usage(),
            "metadata": self._start.metadata,
        }

    def _usage(self) -> Fields:
        heard, said = self._counted
        heard = self._start.input_tokens if heard is None else heard
        said = tokens.of_items(told.item for told in self._told) if said is None else said
        audio = said if self.spoke_audio else 0
        none = {"text_tokens": 0, "audio_tokens": 0, "image_tokens": 0}
        return {
            "total_tokens": heard + said,
            "input_tokens": heard,
            "output_tokens": said,
            "input_token_details": {
                "text_tokens": heard,
                "audio_tokens": 0,
                "image_tokens": 0,
                "cached_tokens": 0,
                "cached_tokens_details": none,
            },
            "output_token_details": {"text_tokens": said - audio, "audio_tokens": audio},
        }

    def __repr__(self) -> str:
        return f"<Speaking {self.id} {'ended' if self.ended else f'{len(self._told)} items'}>"


def _text_of(draft: Draft) -> str:
    """What a message says; Realtime has no refusals, so one is said like anything else."""
    content = draft.get("content", "")
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or part.get("refusal") or "" for part in content)
