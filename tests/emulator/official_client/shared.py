"""What the tests of the official client share."""

from typing import Any

SEALED = ["reasoning.encrypted_content"]
USER = {"role": "user", "content": "hello"}


def stalled(after: int = 1) -> dict[str, Any]:
    """A reply that waits after this event until the clock is moved by nine seconds."""
    return {"faults": (f"stall after={after} seconds=9",)}


def output_of(made: Any, output: Any = "done") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": made.output[-1].call_id, "output": output}
