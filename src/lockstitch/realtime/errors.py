"""What can go wrong with a realtime session. In every case its thread is whole in the store."""

from __future__ import annotations

from lockstitch.core.errors import LockstitchError


class RealtimeError(LockstitchError):
    """The root of what a session raises on purpose."""


class ConnectionLost(RealtimeError):
    """The connection ended. A session opens another one by itself."""


class Renewed(ConnectionLost):
    """The session itself has ended the connection, before the provider does: another one stands."""


class CannotConnect(RealtimeError):
    """No connection could be had, or none that lasted. Open the thread again later."""


class ConfigurationRefused(RealtimeError):
    """The provider does not take the configuration of the session; its words are in the message."""


class ConfigurationUnanswered(RealtimeError):
    """The provider did not say whether a configuration is in force. Nothing else has changed."""


class ResponseRefused(RealtimeError):
    """The provider will not respond; its words are in the message."""


class NoTurn(RealtimeError):
    """A response could not be asked for: the message says what was in the way all the time."""


class NotSendable(RealtimeError):
    """The caller gave something that is no JSON: the message says where. Nothing was sent."""


class SessionOver(RealtimeError):
    """The session was closed, or has failed: the message says why. Open the thread again."""


class NoSuchCall(RealtimeError):
    """No call with this id waits in the session."""
