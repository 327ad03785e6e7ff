"""What can go wrong with a store. Each message says what happened, to what, and what to do."""

from __future__ import annotations

from lockstitch.core.errors import LockstitchError


class StoreError(LockstitchError):
    """The root of every error of a store."""


class UnknownStore(StoreError):
    """The URL names no kind of store, or one whose extra is not installed."""


class CannotOpen(StoreError):
    """The store is not there, not reachable, or not ours."""


class SchemaTooNew(StoreError):
    """A newer version of Lockstitch wrote the store."""


class SchemaTooOld(StoreError):
    """The store must be migrated first."""


class Damaged(StoreError):
    """The store is corrupted; nothing was changed."""


class CannotWrite(StoreError):
    """The write failed (disk full, read-only, connection lost); what was there is kept.

    Where the connection was lost the write may still have happened: read before writing again."""


class ConversationBusy(StoreError):
    """Another process holds the conversation: ``owner``, by a claim with this ``token``."""

    def __init__(self, message: str, *, owner: str = "", token: int = 0) -> None:
        super().__init__(message)
        self.owner = owner
        self.token = token


class ClaimLost(StoreError):
    """Another process has taken the conversation over; nothing was written."""


class ConversationDeleted(ClaimLost):
    """The conversation was deleted meanwhile; nothing was written."""


class OutOfStep(StoreError):
    """The conversation is longer or shorter than the writer believed; nothing was written."""


class WrongKey(StoreError):
    """The store is encrypted, and no key that was given opens it."""


class NotAKey(StoreError):
    """What was given as a key is none, or the file of keys cannot be read."""


class NotAnExport(StoreError):
    """A file to import is not an export of a store, or is torn; what was complete is kept."""
