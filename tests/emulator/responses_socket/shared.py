"""What the tests of the Responses socket share."""

from typing import Any

from tests.emulator.wire import Socket, Wire

# A reply that says that it began, and waits until the clock is moved.
STALLED = {"faults": ("stall after=response.created seconds=9",)}
UNKNOWN = "resp_" + "0" * 48


def done(socket: Socket, input: Any = "hello", **fields: Any) -> dict[str, Any]:
    """A response, from its request to its end."""
    socket.create(input, **fields)
    return socket.finished()


def error_of(socket: Socket) -> dict[str, Any]:
    frame = socket.receive()
    assert frame["type"] == "error", frame
    assert isinstance(frame["error"], dict)
    return frame["error"]


def begun(socket: Socket, **fields: Any) -> str:
    """The id of a response that is asked for and has begun."""
    socket.create(**fields)
    return str(socket.until("response.created")[-1]["response"]["id"])


def output_of(call_id: str = "call_1") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "done"}


def texts_seen(wire: Wire, response: str) -> list[str]:
    """What the response saw, in its order: texts, and the types of all else."""
    listed = wire.get(f"/responses/{response}/input_items", order="asc").body["data"]
    return [
        item["content"][0]["text"] if item["type"] == "message" else item["type"] for item in listed
    ]


def lost(anchor: str) -> dict[str, Any]:
    return {
        "message": f"Previous response with id '{anchor}' not found.",
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    }
