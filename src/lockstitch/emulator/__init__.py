"""A strict OpenAI-compatible provider on loopback, which breaks on command.

The opposite side of everything else here: written from what providers do, and importing nothing
from the rest of Lockstitch, so that a misreading cannot cancel itself out."""

try:
    from lockstitch.emulator.clock import RealClock, VirtualClock
    from lockstitch.emulator.errors import (
        BadScript,
        CannotListen,
        EmulatorError,
        NotAsExpected,
        UnknownFault,
    )
    from lockstitch.emulator.expectations import Expected, problems
    from lockstitch.emulator.model.replies import (
        Asked,
        Draft,
        Reply,
        call,
        custom_call,
        item,
        reasoning,
        refusal,
        reply,
        text,
    )
    from lockstitch.emulator.model.script import Script, load
    from lockstitch.emulator.model.turns import ALWAYS, SpeechStep, Turn, When
    from lockstitch.emulator.server import Emulator
    from lockstitch.emulator.world import Settings
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in {"aiohttp", "yaml"}:
        raise
    raise ModuleNotFoundError(
        f"The emulator needs {missing.name}, which is not installed."
        " Run: pip install 'lockstitch[emulator]'",
        name=missing.name,
    ) from None

__all__ = [
    "ALWAYS",
    "Asked",
    "BadScript",
    "CannotListen",
    "Draft",
    "Emulator",
    "EmulatorError",
    "Expected",
    "NotAsExpected",
    "RealClock",
    "Reply",
    "Script",
    "Settings",
    "SpeechStep",
    "Turn",
    "UnknownFault",
    "VirtualClock",
    "When",
    "call",
    "custom_call",
    "item",
    "load",
    "problems",
    "reasoning",
    "refusal",
    "reply",
    "text",
]
