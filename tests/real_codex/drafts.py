"""What the model says to Codex: calls of the tools that Codex has."""

from __future__ import annotations

from lockstitch.emulator import Draft, call, custom_call

# All is said but the end, and the stream stays open: the time to kill Codex.
HELD = ("stall before=end",)


def runs(call_id: str, command: str) -> Draft:
    """A call of the tool with which Codex runs a command."""
    return call("exec_command", {"cmd": command}, call_id=call_id)


def patches(call_id: str, patch: str) -> Draft:
    """A call of the custom tool with which Codex changes files."""
    return custom_call("apply_patch", patch, call_id=call_id)
