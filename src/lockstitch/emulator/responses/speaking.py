"""One response, event by event.

`SPEAKERS` says how each type of item is streamed; a type that is not there is announced and
done. The response's body grows as its items are done, so at any moment it is what a client
that asks for it should see."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from lockstitch.emulator import tokens
from lockstitch.emulator.events import Event
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.model.replies import Draft
from lockstitch.emulator.responses.drafting import begun, finished
from lockstitch.emulator.responses.minting import Mint

Item = dict[str, Any]

_PIECE_CHARACTERS = 8
_WORDS = re.compile(r"\s*\S+\s*|\s+")

_encode = msgspec.json.Encoder().encode


class _Full(Exception):
    """The response has as many tokens as the client allowed."""


class Performance:
    """The speaking of one response. `response` is its body, `output` the items that are done."""

    def __init__(
        self,
        response: dict[str, Any],
        drafts: Sequence[Draft],
        *,
        ids: Ids,
        mint: Mint,
        now: Callable[[], float],
        input_tokens: int = 0,
        output_tokens: int | None = None,
        ends: str = "completed",
        encrypted: bool = False,
    ) -> None:
        self.response = response
        self.output: list[Item] = response["output"]
        # The response has said its last event, or was ended.
        self.ended = False
        # Another item comes after the one being spoken.
        self.more_to_say = bool(drafts)
        # The sequence number of the next event.
        self.next = 0
        self._drafts = drafts
        self._ids = ids
        self._mint = mint
        self._now = now
        self._input_tokens = input_tokens
        self._output_tokens = output_tokens
        self._ends = ends
        self._encrypted = encrypted
        self._most: int | None = response.get("max_output_tokens")
        self._spoken = 0
        # The item being spoken, and how much of its text was said.
        self._current: Item | None = None
        self._said: list[str] = []

    def events(self) -> Iterator[Event]:
        """All events, to the last. The items are made as they come."""
        yield self._event("response.created", response=self.response)
        if self.response["status"] == "queued":
            yield self._event("response.queued", response=self.response)
            self.response["status"] = "in_progress"
        yield self._event("response.in_progress", response=self.response)
        for place, draft in enumerate(self._drafts, 1):
            self.more_to_say = place < len(self._drafts)
            try:
                yield from self._item(draft)
            except _Full:
                yield from self.end("incomplete", reason="max_output_tokens")
                return
        yield from self.end(self._ends)

    @property
    def between_items(self) -> bool:
        """Nothing is half said."""
        return self._current is None

    def end(self, how: str, *, reason: str = "", code: str = "", message: str = "") -> list[Event]:
        """End the response here; what is half said is kept as incomplete, or dropped."""
        events = self._break_off() if how == "incomplete" else []
        self._current = None
        self.ended = True
        now = self._now()
        body = self.response
        body["status"] = how
        body["completed_at"] = int(now) if how == "completed" else None
        body["error"] = None
        body["incomplete_details"] = None
        if how == "incomplete":
            body["incomplete_details"] = {"reason": reason or "max_output_tokens"}
        if how == "failed":
            body["error"] = {
                "code": code or "server_error",
                "message": message or "The model failed to generate a response.",
            }
        body["usage"] = None if how in {"failed", "cancelled"} else self._usage()
        if how != "cancelled":
            events.append(self._event(f"response.{how}", response=body))
        return events

    def broke(self, code: str, message: str) -> list[Event]:
        """An `error` event: the stream ends, and the response with it."""
        self.end("cancelled")
        self.response["status"] = "failed"
        self.response["error"] = {"code": "server_error", "message": message}
        return [self._event("error", code=code, message=message, param=None)]

    def aside(self, name: str, **fields: Any) -> Event:
        """An event about the response that is no part of its telling."""
        return self._event(name, **fields)

    def retract(self) -> None:
        """The last event was not sent: its number is free again."""
        self.next -= 1

    def number(self) -> int:
        """A sequence number for an event that is made elsewhere."""
        self.next += 1
        return self.next - 1

    def _usage(self) -> dict[str, Any]:
        said = tokens.of_items(self.output) if self._output_tokens is None else self._output_tokens
        thought = tokens.of_items(item for item in self.output if item["type"] == "reasoning")
        return tokens.usage(self._input_tokens, said, reasoning=min(thought, said))

    def _break_off(self) -> list[Event]:
        item, self._current = self._current, None
        if item is None or "status" not in item or item["type"] not in _BROKEN_OFF:
            return []
        item |= _BROKEN_OFF[item["type"]]("".join(self._said))
        item["status"] = "incomplete"
        return [self._done(item)]

    def _item(self, draft: Draft) -> Iterator[Event]:
        item = finished(draft, self._ids, self._mint, encrypted=self._encrypted)
        self._current, self._said = item, []
        yield self._event(
            "response.output_item.added", output_index=len(self.output), item=begun(item)
        )
        speak = SPEAKERS.get(item["type"])
        if speak is not None:
            yield from speak(self, item)
        self._current = None
        yield self._done(item)

    def _done(self, item: Item) -> Event:
        self.output.append(item)
        return self._event(
            "response.output_item.done", output_index=len(self.output) - 1, item=item
        )

    def _event(self, name: str, **fields: Any) -> Event:
        number = self.next
        self.next = number + 1
        data = _encode({"type": name, **fields, "sequence_number": number})
        return Event(name, number, data)

    def _place(self, item: Item) -> dict[str, Any]:
        return {"item_id": item["id"], "output_index": len(self.output)}

    def _deltas(
        self, name: str, text: str, place: dict[str, Any], *, words: bool
    ) -> Iterator[Event]:
        """`text` in pieces; each counts as a token."""
        pieces = _WORDS.findall(text) if words else in_pieces(text)
        # Nearly all events are deltas, and they differ in two fields alone.
        head = _encode({"type": name, **place})[:-1] + b',"delta":'
        said = self._said
        for piece in pieces:
            self._spoken += 1
            if self._most is not None and self._spoken > self._most:
                raise _Full
            said.append(piece)
            number = self.next
            self.next = number + 1
            delta = b'%b%b,"sequence_number":%d}' % (head, _encode(piece), number)
            yield Event(name, number, delta)

    def _message(self, item: Item) -> Iterator[Event]:
        for index, part in enumerate(item["content"]):
            place = self._place(item) | {"content_index": index}
            self._said = []
            refused = part["type"] == "refusal"
            empty = part | ({"refusal": ""} if refused else {"text": ""})
            yield self._event("response.content_part.added", **place, part=empty)
            if refused:
                said = part["refusal"]
                yield from self._deltas("response.refusal.delta", said, place, words=True)
                yield self._event("response.refusal.done", **place, refusal=said)
            else:
                said = part["text"]
                logged = place | {"logprobs": []}
                yield from self._deltas("response.output_text.delta", said, logged, words=True)
                yield self._event("response.output_text.done", **logged, text=said)
            yield self._event("response.content_part.done", **place, part=part)

    def _reasoning(self, item: Item) -> Iterator[Event]:
        for index, part in enumerate(item["summary"]):
            place = self._place(item) | {"summary_index": index}
            empty = part | {"text": ""}
            yield self._event("response.reasoning_summary_part.added", **place, part=empty)
            name = "response.reasoning_summary_text"
            yield from self._deltas(f"{name}.delta", part["text"], place, words=True)
            yield self._event(f"{name}.done", **place, text=part["text"])
            yield self._event("response.reasoning_summary_part.done", **place, part=part)
        for index, part in enumerate(item.get("content") or []):
            place = self._place(item) | {"content_index": index}
            name = "response.reasoning_text"
            yield from self._deltas(f"{name}.delta", part["text"], place, words=True)
            yield self._event(f"{name}.done", **place, text=part["text"])

    def _function_call(self, item: Item) -> Iterator[Event]:
        return self._streamed(item, "response.function_call_arguments", "arguments")

    def _custom_tool_call(self, item: Item) -> Iterator[Event]:
        return self._streamed(item, "response.custom_tool_call_input", "input")

    def _streamed(self, item: Item, name: str, field: str) -> Iterator[Event]:
        place = self._place(item)
        yield from self._deltas(f"{name}.delta", item[field], place, words=False)
        yield self._event(f"{name}.done", **place, **{field: item[field]})

    def _shell_call(self, item: Item) -> Iterator[Event]:
        for index, command in enumerate(item["action"].get("commands") or []):
            place = {"output_index": len(self.output), "command_index": index}
            name = "response.shell_call_command"
            yield self._event(f"{name}.added", **place, command="")
            yield from self._deltas(f"{name}.delta", command, place, words=False)
            yield self._event(f"{name}.done", **place, command=command)

    def _mcp_call(self, item: Item) -> Iterator[Event]:
        yield self._event("response.mcp_call.in_progress", **self._place(item))
        yield from self._streamed(item, "response.mcp_call_arguments", "arguments")
        ended = "failed" if item.get("error") else "completed"
        yield self._event(f"response.mcp_call.{ended}", **self._place(item))

    def _code_interpreter_call(self, item: Item) -> Iterator[Event]:
        place = self._place(item)
        yield self._event("response.code_interpreter_call.in_progress", **place)
        yield from self._streamed(item, "response.code_interpreter_call_code", "code")
        yield self._event("response.code_interpreter_call.interpreting", **place)
        yield self._event("response.code_interpreter_call.completed", **place)

    def _mcp_list_tools(self, item: Item) -> Iterator[Event]:
        yield self._event("response.mcp_list_tools.in_progress", **self._place(item))
        ended = "failed" if item.get("error") else "completed"
        yield self._event(f"response.mcp_list_tools.{ended}", **self._place(item))

    def _in_stages(self, item: Item) -> Iterator[Event]:
        for stage in _STAGES[item["type"]]:
            yield self._event(f"response.{item['type']}.{stage}", **self._place(item))

    def _compaction(self, item: Item) -> Iterator[Event]:
        yield self._event("response.compaction.compacting", **self._place(item))


def in_pieces(text: str) -> list[str]:
    """Arguments come in pieces that know nothing of words."""
    return [
        text[start : start + _PIECE_CHARACTERS] for start in range(0, len(text), _PIECE_CHARACTERS)
    ]


# What is left of an item that broke off after this much of its text.
_BROKEN_OFF: Final[dict[str, Callable[[str], dict[str, Any]]]] = {
    "message": lambda said: {
        "content": [{"type": "output_text", "text": said, "annotations": [], "logprobs": []}]
    },
    "function_call": lambda said: {"arguments": said},
}

_STAGES: Final = {
    "web_search_call": ("in_progress", "searching", "completed"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "image_generation_call": ("in_progress", "generating", "completed"),
}

SPEAKERS: Final[dict[str, Callable[[Performance, Item], Iterator[Event]]]] = {
    "message": Performance._message,
    "reasoning": Performance._reasoning,
    "function_call": Performance._function_call,
    "custom_tool_call": Performance._custom_tool_call,
    "shell_call": Performance._shell_call,
    "mcp_call": Performance._mcp_call,
    "code_interpreter_call": Performance._code_interpreter_call,
    "mcp_list_tools": Performance._mcp_list_tools,
    "web_search_call": Performance._in_stages,
    "file_search_call": Performance._in_stages,
    "image_generation_call": Performance._in_stages,
    "compaction": Performance._compaction,
}
