"""What every part of one emulator shares: its time, ids, faults, record, and who speaks.

Made once by `server`; the doors and the provider's state behind them are given it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lockstitch.emulator.clock import Clock
from lockstitch.emulator.faults import Faults
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.limits import LONGEST_CONNECTION_SECONDS
from lockstitch.emulator.model.replies import Asked, Reply
from lockstitch.emulator.record import Record

# The models that are listed; requests may name any other.
MODELS = ("gpt-5.5", "gpt-5.5-mini", "gpt-realtime", "claude-sonnet-5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user chose."""

    seed: int = 0
    # The only key that is taken; any key will do when it is empty.
    key: str = ""
    # How long a WebSocket connection or a Realtime session lives.
    connection_seconds: float = LONGEST_CONNECTION_SECONDS
    # Seconds between two events, where a reply does not say.
    pace: float = 0.0
    models: tuple[str, ...] = MODELS


@dataclass(slots=True)
class World:
    clock: Clock
    ids: Ids
    faults: Faults
    record: Record
    speak: Callable[[Asked], Reply]
    settings: Settings = field(default_factory=Settings)
