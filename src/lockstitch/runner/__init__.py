"""An agent loop that can be killed, unplugged and resumed: turns on a ledger."""

from lockstitch.runner.context import CallContext
from lockstitch.runner.effects import Effect
from lockstitch.runner.errors import (
    CannotContinue,
    NoSuchCall,
    OutOfBudget,
    ProviderRefused,
    TurnFailed,
)
from lockstitch.runner.events import (
    CallBegan,
    CallEnded,
    Event,
    ItemSaid,
    PendingCall,
    Retrying,
    TextDelta,
    TurnEnded,
    Waiting,
)
from lockstitch.runner.limits import Budget
from lockstitch.runner.runner import Runner
from lockstitch.runner.tools import Tool, tool

__all__ = [
    "Budget",
    "CallBegan",
    "CallContext",
    "CallEnded",
    "CannotContinue",
    "Effect",
    "Event",
    "ItemSaid",
    "NoSuchCall",
    "OutOfBudget",
    "PendingCall",
    "ProviderRefused",
    "Retrying",
    "Runner",
    "TextDelta",
    "Tool",
    "TurnEnded",
    "TurnFailed",
    "Waiting",
    "tool",
]
