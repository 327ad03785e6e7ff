"""What can go wrong with a turn. In every case the thread is whole on disk, and can go on."""

from __future__ import annotations

from lockstitch.core.errors import LockstitchError


class TurnFailed(LockstitchError):
    """The turn could not be finished; the message says why, and what to do."""


class ProviderRefused(TurnFailed):
    """The provider will not take the request."""


class OutOfBudget(TurnFailed):
    """The turn took more time, attempts or rounds than it was given."""


class CannotContinue(TurnFailed):
    """The ledger says that no whole request can be made from here."""


class NoSuchCall(TurnFailed):
    """No call with this id waits in the thread."""
