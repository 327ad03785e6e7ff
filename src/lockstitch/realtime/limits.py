"""The bounds of a realtime session, each with its reason."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Patience(Struct, frozen=True, kw_only=True):
    """How long a session waits, and for what."""

    acknowledgement_seconds: float = 5.0
    """An edit that is not answered by then is in doubt, and asked about."""
    answer_seconds: float = 10.0
    """A response that was asked for has begun by then, and a configuration is in force."""
    hold_seconds: float = 30.0
    """An edit of the tail waits so long for a response to end. Then it goes all the same: the
    mirror stays true, and only the order of the newest items is the provider's choice."""
    attempts: int = 6
    """Connections in a row that came to nothing, before the session is given up."""
    steady_seconds: float = 10.0
    """A connection that lived this long did not come to nothing."""


MOST_ROUNDS: Final = 4
"""Plans of one edit: the first, one that asks about doubts, one that repairs, and one to spare."""

MOST_EVENTS_UNREAD: Final = 10_000
"""Events that wait for whoever reads them: some minutes of speech. Beyond this a reader that is
slow holds up the connection, and without any reader the oldest go."""

MOST_EVENTS_AT_ONCE: Final = 1_000
"""Events that are taken together and written down with one look at the context: a long history is
pushed in seconds. More wait in the socket."""

CLOSE_SECONDS: Final = 2.0
"""A server that is still talking may take its time to hear that we are going. Nobody waits for it
longer."""

HEARTBEAT_SECONDS: Final = 20.0
"""A connection on which nothing at all was heard for so long is asked whether it lives."""
