"""The configuration of a Realtime session: its defaults, and what an update changes in it.

Only what an update names is changed; null clears what can be cleared and leaves the rest."""

from typing import Any

from lockstitch.emulator.realtime import refusals as realtime_refusals

Fields = dict[str, Any]

_INSTRUCTIONS = "You are a helpful voice assistant. Be brief, friendly and truthful."
# What turn detection is when only its type is said.
_TURN_DETECTION: dict[str, Fields] = {
    "server_vad": {
        "threshold": 0.5,
        "prefix_padding_ms": 300,
        "silence_duration_ms": 500,
        "idle_timeout_ms": None,
        "create_response": True,
        "interrupt_response": True,
    },
    "semantic_vad": {"eagerness": "auto", "create_response": True, "interrupt_response": True},
}
# The settings that null turns off; of any other, null says nothing.
_CLEARED_BY_NULL = frozenset(
    {
        "include",
        "noise_reduction",
        "parallel_tool_calls",
        "prompt",
        "reasoning",
        "tracing",
        "transcription",
        "turn_detection",
    }
)
# Settings inside of which an update changes only what it names.
_MERGED = frozenset({"audio", "input", "output", "noise_reduction"})

# What a response says that no session does.
_OF_ONE_RESPONSE = frozenset({"conversation", "input", "metadata"})


class SessionSettings:
    """The settings in force. `body` is the session as its events show it."""

    def __init__(self, *, id: str, model: str, expires_at: int) -> None:
        pcm = {"type": "audio/pcm", "rate": 24_000}
        self.body: Fields = {
            "type": "realtime",
            "object": "realtime.session",
            "id": id,
            "model": model,
            "output_modalities": ["audio"],
            "instructions": _INSTRUCTIONS,
            "tools": [],
            "tool_choice": "auto",
            "max_output_tokens": "inf",
            "tracing": None,
            "truncation": "auto",
            "prompt": None,
            "expires_at": expires_at,
            "audio": {
                "input": {
                    "format": pcm,
                    "transcription": None,
                    "noise_reduction": None,
                    "turn_detection": _turn_detection({"type": "server_vad"}),
                },
                "output": {"format": dict(pcm), "voice": "alloy", "speed": 1.0},
            },
            "include": None,
        }

    @property
    def model(self) -> str:
        return str(self.body["model"])

    @property
    def input(self) -> Fields:
        """The settings of the user's audio."""
        return dict(self.body["audio"]["input"])

    @property
    def turn_detection(self) -> Fields | None:
        detection: Fields | None = self.input["turn_detection"]
        return detection

    def update(self, given: Fields, *, voice_is_fixed: bool) -> None:
        """Take an update whose shape was checked. Settings that raised are as they were."""
        wanted = _merged(self.body, given)
        if wanted["model"] != self.body["model"]:
            raise realtime_refusals.model_fixed(self.body["model"])
        voice = self.body["audio"]["output"]["voice"]
        if voice_is_fixed and wanted["audio"]["output"]["voice"] != voice:
            raise realtime_refusals.voice_fixed()
        self.body = wanted

    def for_response(self, given: Fields) -> Fields:
        """The settings of one response: the session's, and what the response says itself."""
        own = {name: value for name, value in given.items() if name not in _OF_ONE_RESPONSE}
        return _merged(self.body, own)


def _merged(current: Fields, given: Fields) -> Fields:
    wanted = dict(current)
    for name, value in given.items():
        if value is None:
            if name in _CLEARED_BY_NULL:
                wanted[name] = None
        elif name in _MERGED:
            wanted[name] = _merged(current.get(name) or {}, value)
        elif name == "turn_detection":
            wanted[name] = _turn_detection(value)
        else:
            wanted[name] = value
    return wanted


def _turn_detection(given: Fields) -> Fields:
    said = {name: value for name, value in given.items() if value is not None}
    return {"type": given["type"]} | _TURN_DETECTION[given["type"]] | said
