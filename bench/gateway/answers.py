"""The answers that the upstream streams: made once for each length, then given fresh ids.

An answer is one run of bytes, already framed, and where each event of it ends; ids have one length,
so a new answer costs one `replace`. What is asked for (`Plan`) travels in the text of the
user's message, the one place that every relay leaves alone."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any, Literal

from bench.gateway.frames import text_frame

Transport = Literal["http", "websocket"]

MODEL = "bench"
KEY = "sk-" + hashlib.sha256(b"lockstitch bench").hexdigest()
"""What the clients show. It opens nothing; LiteLLM does not start without one that looks strong."""
_ID = "0" * 47 + "f"
"""Where an id stands in a template: as long as one, and nothing else."""
_STAMP = b"t" + b"0" * 19 + b"x"
STAMPED = re.compile(rb"t(\d{19})x")
"""When a delta was written: nanoseconds of the clock that all processes share."""
_TURN = b"turn 00000000"
"""Where the number of a turn stands in a request: no two say the same, as no two people do."""
_AROUND_THE_DELTAS = 8
_WORDS = (" the", " conversation", " stays", " whole", ",", " and", " every", " call", " has one")


@dataclass(frozen=True, slots=True)
class Plan:
    """What one answer is to be."""

    events: int
    pace_ms: int = 0
    """Between two events; 0 is all of them at once."""
    stamped: bool = False

    def asked(self, transport: Transport) -> bytes:
        """The body of the request, or the frame's payload."""
        plan = f"bench-plan {self.events} {self.pace_ms} {int(self.stamped)}"
        text = f"{plan} {_TURN.decode()}"
        said = {"role": "user", "content": [{"type": "input_text", "text": text}]}
        body: dict[str, Any] = {"model": MODEL, "input": [{"type": "message", **said}]}
        if transport == "http":
            return json.dumps({**body, "stream": True}).encode()
        return json.dumps({"type": "response.create", **body}).encode()


def numbered(request: bytes) -> bytes:
    """A request that says something else than all others before it."""
    return request.replace(_TURN, b"turn %08d" % next(_turns), 1)


_turns = count()
_PLANNED = re.compile(rb"bench-plan (\d+) (\d+) ([01])")


def planned_in(request: bytes) -> Plan | None:
    """The plan in a request, however it was written out again on its way."""
    found = _PLANNED.search(request)
    if found is None:
        return None
    return Plan(int(found[1]), int(found[2]), found[3] == b"1")


@dataclass(frozen=True, slots=True)
class Script:
    """All answers of one length, on one transport."""

    template: bytes
    ends: tuple[int, ...]

    def answer(self) -> bytes:
        return self.template.replace(_ID.encode(), secrets.token_hex(24).encode())


@cache
def script(events: int, transport: Transport, stamped: bool) -> Script:
    framed = _chunk if transport == "http" else text_frame
    template, ends = b"", []
    for event in _events(events, stamped):
        template += framed(_sse(event) if transport == "http" else _encoded(event))
        ends.append(len(template))
    if transport == "http":
        template += b"0\r\n\r\n"
        ends[-1] = len(template)
    return Script(template, tuple(ends))


def stamped_now(event: bytes) -> bytes:
    return event.replace(_STAMP, b"t%019dx" % time.monotonic_ns(), 1)


def _events(count: int, stamped: bool) -> Iterator[dict[str, Any]]:
    item_id = f"msg_{_ID}"
    where = {"item_id": item_id, "output_index": 0, "content_index": 0}
    deltas = [_WORDS[n % len(_WORDS)] for n in range(count - _AROUND_THE_DELTAS)]
    text = "".join(deltas)
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    item = {"id": item_id, "type": "message", "role": "assistant", "phase": "final_answer"}
    begun = {**item, "status": "in_progress", "content": []}
    done = {**item, "status": "completed", "content": [part]}
    told: list[dict[str, Any]] = [
        {"type": "response.created", "response": _response("in_progress", [])},
        {"type": "response.in_progress", "response": _response("in_progress", [])},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        {"type": "response.content_part.added", **where, "part": {**part, "text": ""}},
    ]
    for n, delta in enumerate(deltas):
        spoken = _STAMP.decode() if stamped else delta
        event = {"type": "response.output_text.delta", **where, "delta": spoken, "logprobs": []}
        told.append({**event, "obfuscation": "aB3dE6gH9jK2mN5pQ"[n % 8 :]})
    told += [
        {"type": "response.output_text.done", **where, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **where, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": _response("completed", [done])},
    ]
    for n, event in enumerate(told):
        yield {"type": event.pop("type"), "sequence_number": n, **event}


def _response(status: str, output: list[Any]) -> dict[str, Any]:
    usage = {
        "input_tokens": 36,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 190,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 226,
    }
    return {
        "id": f"resp_{_ID}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "metadata": {},
        "model": MODEL,
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage if status == "completed" else None,
        "user": None,
    }


def _encoded(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


def _sse(event: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event["type"].encode(), _encoded(event))


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)
