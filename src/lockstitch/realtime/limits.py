"""The bounds of a realtime session, each with its reason."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Patience(Struct, frozen=True, kw_only=True):
    """How long a session waits, and for what."""

    connect_seconds: float = 30.0
    """A connection stands by then, or it is tried again."""
    acknowledgement_seconds: float = 5.0
    """An edit that is not answered by then, nor any other of its plan, is in doubt, and asked
    about."""
    answer_seconds: float = 10.0
    """A response that was asked for has begun by then, and a configuration is in force."""
    hold_seconds: float = 30.0
    """An edit of the tail waits so long for a response to end. Then it goes all the same: the
    mirror stays true, and only the order of the newest items is the provider's choice."""
    turn_seconds: float = 120.0
    """The request for a response waits so long for its turn: for edits, and for a response that
    goes on. Speech is generated faster than it is spoken: one that goes on for longer has most
    likely ended without a word."""
    attempts: int = 6
    """How often in a row it is tried again, behind a connection that was lost or could not be had,
    before the session is given up."""
    steady_seconds: float = 10.0
    """A connection that lived this long did not come to nothing."""
    renew_after_seconds: float = 55 * 60.0
    """A connection of this age is given up for a new one, at a quiet moment: "a session lives 60
    minutes", and its end comes in the middle of something. `math.inf`: never."""
    renew_by_seconds: float = 59 * 60.0
    """At this age calls and the user are waited for no longer."""
    quiet_seconds: float = 2.0
    """A moment is quiet if nothing was under way for so long: who has just stopped speaking is
    about to be answered."""


ACTIVE_SECONDS: Final = 0.5
"""A request that another response was in the way of is made again so much later, if nobody tells
what became of that one."""

LOOK_SECONDS: Final = 1.0
"""How often is looked whether the moment is quiet: not everything that ends is told on the line."""

RENEW_AGAIN_SECONDS: Final = 15.0
"""Before a connection that is to take the place of another is tried again: the other one still
lives, and nobody is in a hurry."""

MOST_ROUNDS: Final = 4
"""Plans of one edit: the first, one that asks about doubts, one that repairs, and one to spare."""

MOST_EVENTS_UNREAD: Final = 10_000
"""Events that wait for whoever reads them: some minutes of speech. Beyond this a reader that is
slow holds up the connection, and without any reader the oldest go."""

MOST_EVENTS_AT_ONCE: Final = 1_000
"""Events that are taken together and written down with one look at the context: a long history is
pushed in seconds. More wait in the socket."""

MOST_ITEMS_UNWRITTEN: Final = 1_024
"""Items that were said, or sent by hand, and did not enter the context so far. They do so soon
after, or never: those of a response out of band, those that were refused."""

MOST_NAMES_REMEMBERED: Final = 4_096
"""Items that took another's place. An older name, in a snapshot from before a lost connection, is
that of an item which is gone."""

SEND_SECONDS: Final = 30.0
"""A connection that takes nothing for so long is lost, whether or not it says so."""

CLOSE_SECONDS: Final = 2.0
"""A server that is still talking may take its time to hear that we are going. Nobody waits for it
longer."""

HEARTBEAT_SECONDS: Final = 20.0
"""A connection on which nothing at all was heard for so long is asked whether it lives."""
