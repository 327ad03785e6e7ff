"""Steering: user input that is queued for a response while it is being generated.

After `response.steer.accepted` the server owns the input: it goes into a successor, or waits for
the outputs of the calls that the response made, or is given back with `response.steer.failed`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from lockstitch.emulator.events import Event
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.limits import MOST_PENDING_STEERS
from lockstitch.emulator.refusals import Refused
from lockstitch.emulator.responses.admission import announced
from lockstitch.emulator.responses.context import Item
from lockstitch.emulator.responses.pairs import CALLS, OUTPUTS, key_of
from lockstitch.emulator.responses.run import Run
from lockstitch.emulator.responses.shapes import check_items

_FRAME_FIELDS = frozenset({"type", "previous_response_id", "input"})
_MESSAGE_FIELDS = frozenset({"type", "role", "content"})
_PARTS = frozenset({"input_text", "input_image", "input_file"})

_OUTPUT_OF: Final = {
    answered: name for name, output in reversed(OUTPUTS.items()) for answered in output.answers
}


@dataclass(frozen=True, slots=True)
class Steer:
    """One accepted submission."""

    id: str
    response: str
    # As the client gave it, and as items.
    given: Any
    items: tuple[Item, ...]


class CannotSteer(Exception):
    """The submission is not taken; the client gets its input back."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Steering:
    """The steering of one connection."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._queued: dict[str, list[Steer]] = {}

    def accept(self, frame: dict[str, Any], run: Run | None, *, finished: bool) -> Steer:
        """Queue a submission for the response it names."""
        items = checked_input(frame)
        if run is None:
            if finished:
                raise CannotSteer(
                    "response_already_completed", "The response has already completed."
                )
            raise CannotSteer(
                "response_not_found", "The response is not available on this connection."
            )
        if run.conversation is not None or run.compacts:
            raise CannotSteer(
                "steering_not_supported",
                "Responses in a conversation or with automatic compaction cannot be steered.",
            )
        queued = self._queued.setdefault(run.id, [])
        if len(queued) >= MOST_PENDING_STEERS:
            raise CannotSteer(
                "too_many_pending_steers", "Too much steering input is pending for this response."
            )
        steer = Steer(self._ids.letters("steer", 24), run.id, frame["input"], tuple(items))
        queued.append(steer)
        return steer

    def queued(self, response: str) -> Sequence[Steer]:
        return self._queued.get(response, ())

    def take(self, response: str) -> list[Steer]:
        """The submissions go into a successor, or back to the client."""
        return self._queued.pop(response, [])

    def stops(self, run: Run) -> bool:
        """Whether the response is to stop here: between two items, with no call left open."""
        return (
            bool(self._queued.get(run.id))
            and run.performance.between_items
            and run.performance.more_to_say
            and not announced({}, run.performance.output)
        )


def checked_input(frame: dict[str, Any]) -> list[Item]:
    """The items of a submission: messages of the user, and nothing else."""
    if not frame.keys() <= _FRAME_FIELDS:
        named = sorted(frame.keys() - _FRAME_FIELDS)[0]
        raise CannotSteer("invalid_input", f"Unknown parameter: '{named}'.")
    given = frame.get("input")
    if isinstance(given, str) and given:
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise CannotSteer("invalid_input", "Steering input must be a string or a list of messages.")
    try:
        check_items(given)
    except Refused as refused:
        raise CannotSteer("invalid_input", refused.message) from None
    if not all(_is_plain_message(item) for item in given):
        raise CannotSteer(
            "invalid_input", "Steering accepts only messages of the user: type, role and content."
        )
    return given


def _is_plain_message(item: Item) -> bool:
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    return (
        item.get("role") == "user"
        and item.keys() <= _MESSAGE_FIELDS
        and all(part.get("type") in _PARTS for part in parts)
    )


def required_input(output: Sequence[Item]) -> list[dict[str, Any]]:
    """A stub for each output that the response waits for."""
    waiting = announced({}, output)
    stubs = []
    for item in output:
        call = CALLS.get(item["type"])
        key = key_of(item, call.key) if call else None
        if call is None or key is None or (item["type"], key) not in waiting:
            continue
        if item["type"] == "program":
            # The server's own to finish.
            continue
        stubs.append(_stub(item, key))
    return stubs


def _stub(call: Item, key: str) -> dict[str, Any]:
    named = _OUTPUT_OF[call["type"]]
    if call["type"] == "local_shell_call":
        # The one family with two answers; the types of steering know this one alone.
        named = "function_call_output"
    stub: dict[str, Any] = {"type": named, OUTPUTS[named].key: key}
    if named == "function_call_output":
        stub["name"] = call.get("name", call["type"])
    if named == "tool_search_output":
        stub["execution"] = "client"
    return stub


def accepted(run: Run, steer: Steer) -> Event:
    return run.performance.aside("response.steer.accepted", steer=_named(steer))


def pending(run: Run, steer: Steer) -> Event:
    return run.performance.aside(
        "response.steer.pending",
        steer=_named(steer),
        reason="waiting_for_required_input",
        required_input=required_input(run.performance.output),
    )


def _named(steer: Steer) -> dict[str, str]:
    return {"id": steer.id, "previous_response_id": steer.response}


def failed(
    code: str, message: str, previous: str, given: Any, *, number: int, id: str | None = None
) -> dict[str, Any]:
    """The event that gives a submission back."""
    steer: dict[str, Any] = {"previous_response_id": previous, "input": given}
    if id is not None:
        steer["id"] = id
    return {
        "type": "response.steer.failed",
        "error": {"type": "invalid_request_error", "code": code, "message": message},
        "steer": steer,
        "sequence_number": number,
    }


def as_event(said: dict[str, Any]) -> Event:
    return Event(said["type"], said["sequence_number"], msgspec.json.encode(said))
