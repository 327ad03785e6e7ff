"""Every error Lockstitch raises on purpose.

Whose fault it is is a type; what happened, to what, and what to do next is the message.
Errors about files live beside the code that reads files (`lockstitch.sessions`)."""

from __future__ import annotations


class LockstitchError(Exception):
    """The root of every error raised on purpose."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The message, one problem a line. Only an error that lists several has more than one."""
        return (str(self),)


class NotAHistory(LockstitchError):
    """The caller passed something that is not a list of wire items."""


class UnknownDialect(LockstitchError):
    """The caller named a dialect that does not exist, or none could be told from the items."""


class UnknownPolicy(LockstitchError):
    """The caller asked for a way of mending that does not exist."""


class NotEvidence(LockstitchError):
    """The caller said what is known of a call in a form that nobody reads."""


class CannotMend(LockstitchError):
    """Mending did not reach a history that checks clean; nothing was changed."""


class CannotTrim(LockstitchError):
    """The caller asked to keep more than fits within the limits."""


class NotAnItem(LockstitchError):
    """The caller passed bytes that are no wire item."""


class IllegalFact(LockstitchError):
    """The caller appended what cannot have happened; the ledger is as it was."""


class BrokenPair(LockstitchError):
    """The caller's rewrite of a request would part a call from its output; nothing was recorded."""


class NotInLedger(LockstitchError):
    """The caller named a position at which the ledger has nothing of that kind."""


class UnknownMode(LockstitchError):
    """The caller named a way to continue that does not exist."""
