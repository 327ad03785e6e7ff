"""What a client was told of one output item of a Realtime response, as far as it was told.

A fold over the events that went out: `FOLDS` says what each of them adds. What closes an item is
read from here, so an item that is cut short is closed with what was said of it, and no more."""

from collections.abc import Callable
from typing import Any, Final

from lockstitch.emulator.realtime.items import Item

Fields = dict[str, Any]

# By a content part's type: its name in the item, where its text is, and the streams that fill it.
_PARTS: Final = {
    "text": ("output_text", "text", ("output_text",)),
    "audio": ("output_audio", "transcript", ("output_audio", "output_audio_transcript")),
}
ARGUMENTS = "function_call_arguments"
_TEXT_FIELDS = {"output_text": "text", "output_audio_transcript": "transcript"}


class Told:
    """One item. `streams` and `part` are what is still open of it."""

    __slots__ = ("done", "done_in_conversation", "index", "item", "part", "previous", "streams")

    def __init__(self, announced: Item, index: int) -> None:
        self.item = dict(announced)
        self.index = index
        self.previous: str | None = None
        self.streams = [ARGUMENTS] if announced["type"] == "function_call" else []
        self.part = ""
        self.done = False
        self.done_in_conversation = False

    def hear(self, event: Fields) -> None:
        fold = FOLDS.get(event["type"])
        if fold is not None:
            fold(self, event)

    def item_now(self, status: str = "") -> Item:
        """The item as it is known to the client, as an object of its own."""
        item = self.item | ({"status": status} if status else {})
        if "content" in item:
            item["content"] = [dict(part) for part in item["content"]]
        return item

    def part_now(self) -> Fields:
        """The open content part, as its own events show it."""
        _, field, _ = _PARTS[self.part]
        return {"type": self.part, field: self.item["content"][0][field]}

    def stream_now(self, stream: str) -> Fields:
        """What the end of an open stream says beside where it is."""
        if stream == ARGUMENTS:
            item = self.item
            return {field: item[field] for field in ("call_id", "name", "arguments")}
        said: Fields = {"content_index": 0}
        if stream in _TEXT_FIELDS:
            field = _TEXT_FIELDS[stream]
            said[field] = self.item["content"][0][field]
        return said

    # The folds

    def _placed(self, event: Fields) -> None:
        self.previous = event["previous_item_id"]

    def _part_added(self, event: Fields) -> None:
        self.part = event["part"]["type"]
        name, field, streams = _PARTS[self.part]
        self.item["content"] = [{"type": name, field: ""}]
        self.streams = list(streams)

    def _text_told(self, event: Fields) -> None:
        field = _TEXT_FIELDS[_stream(event)]
        self.item["content"][0][field] += event["delta"]

    def _arguments_told(self, event: Fields) -> None:
        self.item["arguments"] += event["delta"]

    def _stream_done(self, event: Fields) -> None:
        self.streams.remove(_stream(event))

    def _part_done(self, _: Fields) -> None:
        self.part = ""

    def _item_done(self, event: Fields) -> None:
        self.item = event["item"]
        self.done = True

    def _item_done_in_conversation(self, _: Fields) -> None:
        self.done_in_conversation = True


def _stream(event: Fields) -> str:
    """`output_text` of `response.output_text.delta`."""
    return str(event["type"]).split(".")[1]


FOLDS: Final[dict[str, Callable[[Told, Fields], None]]] = {
    "conversation.item.added": Told._placed,
    "response.content_part.added": Told._part_added,
    "response.output_text.delta": Told._text_told,
    "response.output_audio_transcript.delta": Told._text_told,
    "response.function_call_arguments.delta": Told._arguments_told,
    "response.output_text.done": Told._stream_done,
    "response.output_audio.done": Told._stream_done,
    "response.output_audio_transcript.done": Told._stream_done,
    "response.function_call_arguments.done": Told._stream_done,
    "response.content_part.done": Told._part_done,
    "response.output_item.done": Told._item_done,
    "conversation.item.done": Told._item_done_in_conversation,
}
