"""A Responses server that says what a test scripted, and keeps what it was asked.

The least that Codex needs from a provider: an answer is a list of finished items, whole or with
its stream held open. On loopback only; every wait has an end."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self

LONGEST_HOLD_SECONDS = 60
"""A stream that nobody releases ends here, so that no test can hang on it."""

Wire = dict[str, Any]


def says(text: str) -> Wire:
    """A message of the model."""
    return {
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }


def runs(call_id: str, command: str) -> Wire:
    """A call of the tool with which Codex runs a command."""
    return {
        "type": "function_call",
        "status": "completed",
        "name": "exec_command",
        "arguments": json.dumps({"cmd": command}),
        "call_id": call_id,
    }


def patches(call_id: str, patch: str) -> Wire:
    """A call of the custom tool with which Codex changes files."""
    return {
        "type": "custom_tool_call",
        "status": "completed",
        "name": "apply_patch",
        "input": patch,
        "call_id": call_id,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One response: its items, and whether its stream then stays open."""

    items: tuple[Wire, ...]
    held: bool = False


@dataclass(slots=True)
class ScriptedProvider:
    """Serves while its context lasts. What the script does not foresee is answered with "done"."""

    script: list[Answer] = field(default_factory=list)
    requests: list[Wire] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        handler = type("_Bound", (_Handler,), {"provider": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    @property
    def base_url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def will(self, *items: Wire, held: bool = False) -> Self:
        """Answer the next request that has no answer yet with these items."""
        self.script.append(Answer(items=items, held=held))
        return self

    def take(self, request: Wire) -> tuple[int, Answer]:
        """Keep a request; the number of its response, and what to say."""
        with self._lock:
            self.requests.append(request)
            answer = self.script.pop(0) if self.script else Answer(items=(says("done"),))
            return len(self.requests), answer

    def hold(self) -> None:
        """Wait as a held stream does: for the end of the test, or not much longer."""
        self._ended.wait(LONGEST_HOLD_SECONDS)


class _Handler(BaseHTTPRequestHandler):
    provider: ClassVar[ScriptedProvider]

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: what matters is in the requests that were kept."""

    def do_GET(self) -> None:
        self._send(200, b'{"object":"list","data":[],"models":[]}')

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not self.path.endswith("/responses"):
            self._send(404, b'{"error":{"message":"not scripted"}}')
            return
        number, answer = self.provider.take(json.loads(body))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        with contextlib.suppress(OSError):  # Codex was killed: what a held stream is for
            self._stream(f"resp_{number}", answer)
        self.close_connection = True

    def _stream(self, response: str, answer: Answer) -> None:
        items = [_with_id(item, response, n) for n, item in enumerate(answer.items)]
        for event in _opening(response, items):
            self._event(event)
        if answer.held:
            self.provider.hold()
        self._event({"type": "response.completed", "response": _whole(response, items)})

    def _event(self, event: Wire) -> None:
        self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


_PREFIX = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc"}


def _with_id(item: Wire, response: str, n: int) -> Wire:
    return {"id": f"{_PREFIX[item['type']]}_{response}_{n}", **item}


def _opening(response: str, items: Iterable[Wire]) -> Iterator[Wire]:
    yield {"type": "response.created", "response": {"id": response, "status": "in_progress"}}
    for n, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": n, "item": item}
        yield {"type": "response.output_item.done", "output_index": n, "item": item}


def _whole(response: str, items: list[Wire]) -> Wire:
    usage = {
        "input_tokens": 1,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2,
    }
    return {"id": response, "status": "completed", "output": items, "usage": usage}
