"""What can go wrong with a realtime session. In every case its thread is whole in the store."""

from __future__ import annotations

from lockstitch.core.errors import LockstitchError


class RealtimeError(LockstitchError):
    """The root of what a session raises on purpose."""


class ConnectionLost(RealtimeError):
    """The connection ended. A session opens another one by itself."""


class CannotConnect(RealtimeError):
    """No connection could be had, or none that lasted. Open the thread again later."""


class ConfigurationRefused(RealtimeError):
    """The provider does not take the configuration of the session; its words are in the message."""


class ResponseRefused(RealtimeError):
    """The provider will not respond; its words are in the message."""


class SessionOver(RealtimeError):
    """The session was closed, or has failed: the message says why. Open the thread again."""


class NoSuchCall(RealtimeError):
    """No call with this id waits in the session."""
