"""A client that knows nothing: it sends JSON, and gives back what came, with nothing made nicer."""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from websockets.sync.client import ClientConnection, connect

from lockstitch.testing import EmulatorThread

# An answer that does not come within this never comes.
SECONDS = 10.0
HEADERS = {"Authorization": "Bearer any"}


@dataclass(frozen=True)
class Answer:
    status: int
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class Wire:
    """HTTP and WebSocket to one emulator."""

    def __init__(self, emulator: EmulatorThread) -> None:
        self._base = emulator.base_url

    def post(self, path: str, **body: Any) -> Answer:
        return self._ask("POST", path, json.dumps(body).encode())

    def get(self, path: str, **query: Any) -> Answer:
        return self._ask("GET", f"{path}?{urllib.parse.urlencode(query)}")

    def delete(self, path: str) -> Answer:
        return self._ask("DELETE", path)

    def create(self, input: Any = "hello", **body: Any) -> Answer:
        return self.post("/responses", **({"model": "gpt-5.5", "input": input} | body))

    def stream(self, input: Any = "hello", **body: Any) -> list[dict[str, Any]]:
        """The events of a streamed response."""
        return events_in(self.create(input, stream=True, **body).raw)

    def _ask(self, method: str, path: str, data: bytes | None = None) -> Answer:
        headers = HEADERS | ({"Content-Type": "application/json"} if data is not None else {})
        request = urllib.request.Request(
            self._base + path, data=data, method=method, headers=headers
        )
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return Answer(answer.status, answer.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return Answer(refused.code, refused.read())

    @contextmanager
    def socket(self) -> "Iterator[Socket]":
        url = self._base.replace("http://", "ws://") + "/responses"
        with connect(url, additional_headers=HEADERS, compression=None, max_size=None) as socket:
            yield Socket(socket)


class Socket:
    """One connection. A frame is a dict."""

    def __init__(self, socket: ClientConnection) -> None:
        self.raw = socket

    def send(self, **frame: Any) -> None:
        self.raw.send(json.dumps(frame))

    def create(self, input: Any = "hello", **fields: Any) -> None:
        self.send(type="response.create", **({"model": "gpt-5.5", "input": input} | fields))

    def steer(self, response: str, input: Any) -> None:
        self.send(type="response.steer", previous_response_id=response, input=input)

    def receive(self) -> dict[str, Any]:
        frame = json.loads(self.raw.recv(timeout=SECONDS))
        assert isinstance(frame, dict)
        return frame

    def until(self, *names: str) -> list[dict[str, Any]]:
        """The frames up to the first of one of these types, with it."""
        frames = [self.receive()]
        while frames[-1]["type"] not in names:
            frames.append(self.receive())
        return frames

    def finished(self) -> dict[str, Any]:
        """The body of the response that ends next."""
        body = self.until("response.completed", "response.incomplete", "response.failed")[-1]
        assert isinstance(body["response"], dict)
        return body["response"]


def events_in(raw: bytes) -> list[dict[str, Any]]:
    """The events of a stream; each is named as its JSON says."""
    events = []
    for block in raw.decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events
