"""How a Realtime response can end, and what `response.done` says of it."""

from dataclasses import dataclass
from typing import Any, Final

from lockstitch.emulator.faults import Fault


@dataclass(frozen=True, slots=True)
class Ending:
    """A status, and why, if the response is not complete."""

    status: str
    reason: str | None = None
    error: dict[str, Any] | None = None

    def details(self) -> dict[str, Any] | None:
        if self.status == "completed":
            return None
        said = {"type": self.status, "reason": self.reason, "error": self.error}
        return {name: value for name, value in said.items() if value is not None}


def incomplete(reason: str = "max_output_tokens") -> Ending:
    return Ending("incomplete", reason)


def failed(
    code: str = "server_error", message: str = "The model failed to generate a response."
) -> Ending:
    return Ending("failed", error={"type": "server_error", "code": code, "message": message})


COMPLETED: Final = Ending("completed")
CANCELLED: Final = Ending("cancelled", "client_cancelled")
TURN_DETECTED: Final = Ending("cancelled", "turn_detected")
# By the word of a reply.
OF_REPLY: Final = {"completed": COMPLETED, "incomplete": incomplete(), "failed": failed()}


def of_fault(fault: Fault) -> Ending:
    """`incomplete`, or `fail` and `error`, which a response does not survive either."""
    if fault.name == "incomplete":
        return incomplete(fault.word("reason"))
    return failed(fault.word("code"), fault.word("message"))
