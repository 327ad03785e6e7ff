"""One message of Anthropic's API: a body, or event after event.

A reply's messages are text blocks, its function calls `tool_use` blocks, its reasoning thinking
blocks that this provider signs. A refusal is text, and the reason to stop."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from lockstitch.emulator import tokens
from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.messages import refusals as messages_refusals
from lockstitch.emulator.messages.signing import Signer
from lockstitch.emulator.model import saying
from lockstitch.emulator.model.replies import Reply
from lockstitch.emulator.model.saying import CannotSay, Say
from lockstitch.emulator.refusals import SERVER, Refused

SAYABLE: Final = frozenset({"message", "reasoning", "function_call"})
_THOUGHT: Final = frozenset({"thinking"})
# Why a response was incomplete, and what this API says then.
_INCOMPLETE: Final = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
# Codes of faults by which this API means overload: its own status, 529.
_OVERLOADED: Final = frozenset({"overloaded", "overloaded_error", "server_overloaded", "529"})

_encode = msgspec.json.Encoder().encode


class Answer:
    """What is said to one request, which was found right."""

    def __init__(self, body: dict[str, Any], reply: Reply, ids: Ids, signer: Signer) -> None:
        self._signer = signer
        said = saying.say(
            reply.drafts, lambda: ids.letters("toolu", 24), dialect="messages", sayable=SAYABLE
        )
        said = [_shown(one, body.get("thinking") or {}) for one in said]
        kept, cut = saying.shortened(said, body["max_tokens"])
        # An empty text would be refused when it comes back.
        self._said = [one for one in kept if one.pieces or one.kind not in {"text", "refusal"}]
        self._blocks = [self._block(one, cut=cut and one is kept[-1]) for one in self._said]
        self._head = {
            "id": ids.letters("msg", 24),
            "type": "message",
            "role": "assistant",
            "model": body["model"],
        }
        self._input_tokens, self._output_tokens = _counted(body, reply, self._said)
        self._reason = "max_tokens" if cut or reply.ends == "incomplete" else self._why_stopped()
        self._failure = _failed() if reply.ends == "failed" else None
        self._next = 0
        # The block whose start was sent and whose stop was not.
        self._open: int | None = None
        self._last: dict[str, Any] = {}

    def body(self) -> dict[str, Any]:
        """The whole of it; raises `Refused` if it failed."""
        if self._failure is not None:
            raise self._failure
        return self._message(self._blocks, self._reason, self._output_tokens)

    def events(self) -> Iterator[Event]:
        yield self._event("message_start", message=self._message([], None, 1))
        if not self._said:
            yield self._event("ping")
        for index, one in enumerate(self._said):
            yield self._event("content_block_start", index=index, content_block=_begun(one))
            self._open = index
            if not index:
                yield self._event("ping")
            for delta in self._deltas(one):
                yield self._event("content_block_delta", index=index, delta=delta)
            yield self._event("content_block_stop", index=index)
            self._open = None
        yield from self._end() if self._failure is None else self._broke(self._failure)

    def finish(self, fault: Fault) -> Iterator[Event]:
        """The last events when a fault ends the message here."""
        if fault.name == "incomplete":
            self._reason = _INCOMPLETE[fault.word("reason")]
            return self._stop_here(after=fault.point is not None and fault.point.after)
        status = 529 if fault.word("code") in _OVERLOADED else 500
        self._failure = Refused("fault", fault.word("message"), status, SERVER)
        return self._broke(self._failure)

    def _stop_here(self, *, after: bool) -> Iterator[Event]:
        """`after`: the last event went out. If not, it never happened."""
        opened = self._open
        if after and self._last["type"] == "content_block_start":
            opened = self._last["index"]
        elif after and self._last["type"] == "content_block_stop":
            opened = None
        if opened is not None:
            yield self._event("content_block_stop", index=opened)
        yield from self._end()

    def _end(self) -> Iterator[Event]:
        usage = {
            "input_tokens": self._input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": self._output_tokens,
        }
        delta = {"stop_reason": self._reason, "stop_sequence": None}
        yield self._event("message_delta", delta=delta, usage=usage)
        yield self._event("message_stop")

    def _broke(self, failure: Refused) -> Iterator[Event]:
        yield self._event("error", error=messages_refusals.error(failure))

    def _event(self, name: str, **fields: Any) -> Event:
        self._last = {"type": name, **fields}
        self._next += 1
        return Event(name, self._next - 1, _encode(self._last))

    def _message(self, content: list[Any], reason: str | None, output: int) -> dict[str, Any]:
        return {
            **self._head,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {
                "input_tokens": self._input_tokens,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
                "output_tokens": output,
                "service_tier": "standard",
            },
        }

    def _why_stopped(self) -> str:
        kinds = {one.kind for one in self._said}
        if "function_call" in kinds:
            return "tool_use"
        return "refusal" if "refusal" in kinds else "end_turn"

    def _block(self, one: Say, *, cut: bool) -> dict[str, Any]:
        begun = _begun(one)
        if one.kind == "function_call":
            return begun | {"input": _input(one, cut=cut)}
        if one.kind == "thinking":
            return begun | {"thinking": one.text, "signature": self._signer.sign(one.text)}
        return begun | {"text": one.text}

    def _deltas(self, one: Say) -> Iterator[dict[str, str]]:
        if one.kind == "function_call":
            # The first delta of an input is empty, as the API itself has it.
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in one.pieces:
                yield {"type": "input_json_delta", "partial_json": piece}
        elif one.kind == "thinking":
            for piece in one.pieces:
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": self._signer.sign(one.text)}
        else:
            for piece in one.pieces:
                yield {"type": "text_delta", "text": piece}


def _failed() -> Refused:
    return Refused("fault", "Internal server error", 500, SERVER)


def _begun(one: Say) -> dict[str, Any]:
    """A block as it is announced: empty of what will be streamed."""
    if one.kind == "function_call":
        return {"type": "tool_use", "id": one.id, "name": one.name, "input": {}}
    if one.kind == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "text", "text": "", "citations": None}


def _shown(one: Say, thinking: dict[str, Any]) -> Say:
    """The client may ask for the signature alone."""
    omitted = one.kind == "thinking" and thinking.get("display") == "omitted"
    return Say("thinking", ()) if omitted else one


def _input(one: Say, *, cut: bool) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(one.text or "{}")
    except msgspec.DecodeError:
        given = None
    if isinstance(given, dict):
        return given
    if cut:
        # What broke off is no JSON; a body has no other place for it.
        return {}
    raise CannotSay(
        f"A reply over messages calls {one.name!r} with arguments that are no JSON object: "
        f"{one.text[:100]!r}. Change the script."
    )


def _counted(body: dict[str, Any], reply: Reply, said: list[Say]) -> tuple[int, int]:
    asked, told = reply.input_tokens, reply.output_tokens
    return (
        count_input(body) if asked is None else asked,
        saying.count(said) if told is None else told,
    )


def count_input(body: dict[str, Any]) -> int:
    """The tokens of a request, of any that `messages` found right."""
    system = body.get("system")
    given = [*body["messages"], *(body.get("tools") or ()), *([system] if system else ())]
    return tokens.of_items(given)
