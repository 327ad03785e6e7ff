"""The default conversation of a Realtime session: what may enter it, and what is kept of it.

Order and tombstones are in `items`. Audio is kept beside an item, because events show an
item without it."""

from typing import Any

from lockstitch.emulator.ids import Ids
from lockstitch.emulator.limits import MOST_REALTIME_AUDIO_BYTES
from lockstitch.emulator.realtime import refusals as realtime_refusals
from lockstitch.emulator.realtime.asking import Heard
from lockstitch.emulator.realtime.audio import decoded, encoded, hum, milliseconds_of
from lockstitch.emulator.realtime.items import Item, Items, Place, is_call
from lockstitch.emulator.realtime.speaking import realtime_id

Format = dict[str, Any]


class Conversation:
    """The items, and the ids of those that come without one."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self.id = realtime_id(ids, "conv")
        self.items = Items()
        self._audio_kept = 0

    def create(self, given: Item, previous: str | None, format: Format) -> tuple[Place, str | None]:
        """An item of the client's, and the id of the item that it follows."""
        item, audio = self._settled(given, "item")
        call_id = _answered(item)
        if call_id and not self.items.calls(call_id):
            raise realtime_refusals.unknown_call(call_id)
        place, previous = self.items.add(item, previous)
        self._keep(place, audio, format)
        return place, previous

    def hear(self, id: str, audio: bytes, words: str, format: Format) -> tuple[Place, str | None]:
        """What the user said becomes the last item."""
        item = {
            "id": id,
            "object": "realtime.item",
            "type": "message",
            "status": "completed",
            "role": "user",
            # The transcript comes later, in events of its own.
            "content": [{"type": "input_audio", "transcript": None}],
        }
        place, previous = self.items.add(item, None)
        place.heard = words
        self._keep(place, audio, format)
        return place, previous

    def delete(self, id: str) -> None:
        place = self.items.delete(id)
        if place is None:
            raise realtime_refusals.no_such_item("deleting", "delete", id)
        self._audio_kept -= len(place.audio)
        place.audio = b""

    def truncate(self, id: str, index: int, milliseconds: int) -> None:
        place = self.items.get(id)
        if place is None:
            raise realtime_refusals.no_such_item("truncating", "truncate", id)
        content = place.item.get("content") or []
        if index >= len(content) or content[index]["type"] != "output_audio":
            raise realtime_refusals.not_truncatable()
        if milliseconds > place.milliseconds:
            raise realtime_refusals.audio_already_shorter(place.milliseconds, milliseconds)
        place.milliseconds = milliseconds
        # No words may stay in the context that the user has not heard.
        place.item = place.item | {"content": [{"type": "output_audio"}]}

    def retrieve(self, id: str, format: Format) -> Item:
        """The item with its audio; `format` is that of what the model says."""
        place = self.items.get(id)
        if place is None:
            raise realtime_refusals.no_such_item("retrieving", "retrieve", id)
        if "content" not in place.item:
            return place.item
        return place.item | {
            "content": [_with_audio(part, place, format) for part in place.item["content"]]
        }

    def context(self, input: list[Item] | None) -> list[Heard]:
        """What a response knows: the conversation, or the input that it brings instead."""
        if input is None:
            return [Heard(place.item, place.heard) for place in self.items]
        context: list[Heard] = []
        for index, given in enumerate(input):
            context.append(self._brought(given, f"response.input[{index}]"))
            call_id = _answered(context[-1].item)
            if call_id and not any(is_call(heard.item, call_id) for heard in context):
                raise realtime_refusals.unknown_call(call_id)
        return context

    def _brought(self, given: Item, path: str) -> Heard:
        if given["type"] != "item_reference":
            return Heard(self._settled(given, path)[0])
        place = self.items.get(given["id"])
        if place is None:
            raise realtime_refusals.unknown_reference(given["id"], f"{path}.id")
        return Heard(place.item, place.heard)

    def _settled(self, given: Item, path: str) -> tuple[Item, bytes]:
        """The item as it is kept, and its audio."""
        item: Item = {"id": realtime_id(self._ids, "item")}
        if not given["type"].startswith("mcp_"):
            item |= {"object": "realtime.item", "status": "completed"}
        item |= {name: value for name, value in given.items() if value is not None}
        if item["type"] == "function_call" and "call_id" not in item:
            item["call_id"] = self._ids.call()
        audio = b""
        if item["type"] == "message":
            item["content"] = [dict(part) for part in item["content"]]
            for index, part in enumerate(item["content"]):
                if part["type"] == "input_audio":
                    audio += decoded(part.pop("audio"), f"{path}.content[{index}].audio")
        return item, audio

    def _keep(self, place: Place, audio: bytes, format: Format) -> None:
        place.milliseconds = int(milliseconds_of(len(audio), format))
        if self._audio_kept + len(audio) <= MOST_REALTIME_AUDIO_BYTES:
            place.audio = audio
            self._audio_kept += len(audio)

    def __repr__(self) -> str:
        return f"<Conversation {self.id}: {self.items!r}>"


def _answered(item: Item) -> str:
    """The call that an output answers; empty for any other item."""
    return str(item["call_id"]) if item["type"] == "function_call_output" else ""


def _with_audio(part: dict[str, Any], place: Place, format: Format) -> dict[str, Any]:
    if part["type"] == "input_audio":
        return part | {"audio": encoded(place.audio)}
    if part["type"] == "output_audio":
        return part | {"audio": encoded(hum(place.milliseconds, format))}
    return part
