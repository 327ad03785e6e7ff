"""Realtime conversations that stay in step: over edits, tools, lost connections and crashes."""

from lockstitch.realtime.connection import Connect, Connection
from lockstitch.realtime.editing import Edited, Refusal, Seen
from lockstitch.realtime.errors import (
    CannotConnect,
    ConfigurationRefused,
    ConfigurationUnanswered,
    ConnectionLost,
    NoSuchCall,
    NotSendable,
    NoTurn,
    RealtimeError,
    ResponseRefused,
    SessionOver,
)
from lockstitch.realtime.events import EventsMissed, NoReply, OutputUnplaced, Reconnecting, Restored
from lockstitch.realtime.limits import Patience
from lockstitch.realtime.session import Session

__all__ = [
    "CannotConnect",
    "ConfigurationRefused",
    "ConfigurationUnanswered",
    "Connect",
    "Connection",
    "ConnectionLost",
    "Edited",
    "EventsMissed",
    "NoReply",
    "NoSuchCall",
    "NoTurn",
    "NotSendable",
    "OutputUnplaced",
    "Patience",
    "RealtimeError",
    "Reconnecting",
    "Refusal",
    "ResponseRefused",
    "Restored",
    "Seen",
    "Session",
    "SessionOver",
]
