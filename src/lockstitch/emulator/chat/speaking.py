"""One chat completion: a body, or chunk after chunk.

The events have no names on the wire; for faults they are `chunk`, `finish` (the chunk that says
why a choice ended) and `[DONE]`. An error is an `error` event, after which nothing comes."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from lockstitch.emulator import tokens
from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.model import saying
from lockstitch.emulator.model.replies import Reply
from lockstitch.emulator.model.saying import Say
from lockstitch.emulator.refusals import SERVER, Refused

SAYABLE: Final = frozenset({"message", "reasoning", "function_call", "custom_tool_call"})
_CALLS: Final = frozenset({"function_call", "custom_tool_call"})
_THOUGHT: Final = frozenset({"thinking"})
# What a call is called in chat, and where what it is given stands.
_CALL_WORDS: Final = {
    "function_call": ("function", "arguments"),
    "custom_tool_call": ("custom", "input"),
}
# Why a response was incomplete, and what chat says then.
_INCOMPLETE: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}

_encode = msgspec.json.Encoder().encode


class Completion:
    """What is said to one request, which was found right."""

    def __init__(self, body: dict[str, Any], reply: Reply, ids: Ids, now: float) -> None:
        name = ids.letters("chatcmpl", 29).replace("_", "-", 1)
        self._head = {"id": name, "created": int(now), "model": body["model"]}
        self._tail = {"service_tier": "default", "system_fingerprint": None}
        most = body.get("max_completion_tokens") or body.get("max_tokens")
        self._choices = []
        self._cut = False
        for _ in range(body.get("n") or 1):
            said = saying.say(reply.drafts, ids.call, dialect="chat", sayable=SAYABLE)
            kept, cut = saying.shortened(said, most)
            self._choices.append(kept)
            self._cut = self._cut or cut
        self._usage = self._counted(body, reply)
        options = body.get("stream_options") or {}
        self._tells_usage = bool(options.get("include_usage"))
        # Why it ended, when not because all was said.
        self._reason = "length" if self._cut or reply.ends == "incomplete" else ""
        self._failure = _failed() if reply.ends == "failed" else None
        self._next = 0
        self._unfinished = list(range(len(self._choices)))
        self._last = ""

    def body(self) -> dict[str, Any]:
        """The whole of it; raises `Refused` if it failed."""
        if self._failure is not None:
            raise self._failure
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [
                {
                    "index": index,
                    "message": _message(said),
                    "logprobs": None,
                    "finish_reason": self._finish_reason(said),
                }
                for index, said in enumerate(self._choices)
            ],
            "usage": self._usage,
            **self._tail,
        }

    def events(self) -> Iterator[Event]:
        for index, said in enumerate(self._choices):
            for delta in _deltas(said):
                yield self._chunk(index, delta)
            if self._failure is None:
                yield self._finish_chunk(index)
                self._unfinished.remove(index)
        yield from self._end() if self._failure is None else self._broke(self._failure)

    def finish(self, fault: Fault) -> Iterator[Event]:
        """The last events when a fault ends the completion here."""
        if fault.name == "incomplete":
            self._reason = _INCOMPLETE[fault.word("reason")]
            # The choice whose end was the last thing sent is not ended twice.
            told = fault.point is not None and fault.point.after and self._last == "finish"
            unfinished = self._unfinished[1:] if told else self._unfinished
            return iter([*(self._finish_chunk(index) for index in unfinished), *self._end()])
        code, message = fault.word("code"), fault.word("message")
        self._failure = Refused("fault", message, 500, SERVER, code=code)
        return self._broke(self._failure)

    def _end(self) -> Iterator[Event]:
        if self._tells_usage:
            yield self._event("chunk", self._chunked([], self._usage))
        yield Event("[DONE]", self._numbered("[DONE]"), b"[DONE]")

    def _broke(self, failure: Refused) -> Iterator[Event]:
        yield self._event("error", failure.body())

    def _chunk(self, index: int, delta: dict[str, Any]) -> Event:
        return self._event("chunk", self._chunked([_choice(index, delta)], None))

    def _finish_chunk(self, index: int) -> Event:
        reason = self._finish_reason(self._choices[index])
        return self._event("finish", self._chunked([_choice(index, {}, reason)], None))

    def _chunked(self, choices: list[Any], usage: dict[str, Any] | None) -> dict[str, Any]:
        chunk = {
            **self._head,
            "object": "chat.completion.chunk",
            "choices": choices,
            **self._tail,
        }
        return {**chunk, "usage": usage} if self._tells_usage else chunk

    def _event(self, name: str, data: dict[str, Any]) -> Event:
        return Event(name, self._numbered(name), _encode(data))

    def _numbered(self, name: str) -> int:
        self._last = name
        self._next += 1
        return self._next - 1

    def _finish_reason(self, said: list[Say]) -> str:
        called = any(one.kind in _CALLS for one in said)
        return self._reason or ("tool_calls" if called else "stop")

    def _counted(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        asked, said = reply.input_tokens, reply.output_tokens
        if asked is None:
            asked = tokens.of_items([*body["messages"], *(body.get("tools") or ())])
        if said is None:
            said = sum(saying.count(choice) for choice in self._choices)
        thought = sum(saying.count(choice, _THOUGHT) for choice in self._choices)
        return {
            "prompt_tokens": asked,
            "completion_tokens": said,
            "total_tokens": asked + said,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": min(thought, said),
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }


def _failed() -> Refused:
    message = "The model failed to generate a response."
    return Refused("fault", message, 500, SERVER, code="server_error")


def _choice(index: int, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}


def _pieces(said: list[Say], kind: str) -> list[str] | None:
    """The text of this kind; several messages are one in chat, with an empty line between."""
    texts = [one.pieces for one in said if one.kind == kind]
    if not texts:
        return None
    return [piece for at, text in enumerate(texts) for piece in (("\n\n",) * bool(at) + text)]


def _joined(said: list[Say], kind: str) -> str | None:
    pieces = _pieces(said, kind)
    return None if pieces is None else "".join(pieces)


def _message(said: list[Say]) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": _joined(said, "text"),
        "refusal": _joined(said, "refusal"),
        "annotations": [],
    }
    calls = [_call(one) for one in said if one.kind in _CALLS]
    return message | ({"tool_calls": calls} if calls else {})


def _call(one: Say) -> dict[str, Any]:
    word, given = _CALL_WORDS[one.kind]
    return {"id": one.id, "type": word, word: {"name": one.name, given: one.text}}


def _deltas(said: list[Say]) -> Iterator[dict[str, Any]]:
    texts = _pieces(said, "text")
    yield {"role": "assistant", "content": None if texts is None else "", "refusal": None}
    for piece in texts or ():
        yield {"content": piece}
    for piece in _pieces(said, "refusal") or ():
        yield {"refusal": piece}
    for index, one in enumerate(one for one in said if one.kind in _CALLS):
        word, given = _CALL_WORDS[one.kind]
        begun = {"index": index, "id": one.id, "type": word, word: {"name": one.name, given: ""}}
        yield {"tool_calls": [begun]}
        for piece in one.pieces:
            yield {"tool_calls": [{"index": index, word: {given: piece}}]}
