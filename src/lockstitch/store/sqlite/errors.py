"""What SQLite says went wrong, told as an error of the store: what, to what, and what to do."""

from __future__ import annotations

import apsw
import msgspec

from lockstitch.store.errors import CannotOpen, CannotWrite, Damaged, StoreError

OF_THE_FILE = (
    apsw.FullError,
    apsw.IOError,
    apsw.ReadOnlyError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.NoMemError,
)
"""Failures that have nothing to do with what was written: everything beside it fails too."""

TOLD = (apsw.Error, msgspec.DecodeError, UnicodeError)
"""What is told as an error of the store; anything else is a mistake in a program."""

_READ_WRONGLY = (apsw.CorruptError, apsw.NotADBError, msgspec.DecodeError, UnicodeDecodeError)
"""What is there cannot be what was written."""

_DAMAGED = (
    "Nothing was changed. Restore it from a backup, or save what can still be read with"
    " `lockstitch store export`."
)


def writing_failed(url: str, error: Exception) -> StoreError:
    """The error of a write that was rolled back."""
    match error:
        case _ if isinstance(error, _READ_WRONGLY):
            return _damaged(url, error)
        case UnicodeEncodeError():
            why, advice = f"it has a name that no UTF-8 has ({error})", "Choose another one."
        case apsw.FullError():
            why, advice = "the disk is full", "Free some space and write again."
        case apsw.ReadOnlyError():
            why = "the file or its folder is read-only"
            advice = "Make both writable and write again."
        case apsw.BusyError() | apsw.LockedError():
            why = "another process has it locked"
            advice = "Write again, or use PostgreSQL where many processes write."
        case apsw.TooBigError():
            why, advice = "it is more than SQLite can hold in a row", "Store it in parts."
        case _:
            why, advice = str(error), "Look at the disk and write again."
    return CannotWrite(
        f"Nothing was written to {url}: {why}. The earlier records are unchanged. {advice}"
    )


def reading_failed(url: str, error: Exception) -> StoreError:
    """The error of a read; what cannot be decoded is damaged too."""
    if isinstance(error, _READ_WRONGLY):
        return _damaged(url, error)
    if isinstance(error, UnicodeEncodeError):
        return CannotOpen(f"{url} cannot be asked for a name that no UTF-8 has ({error}).")
    return CannotOpen(f"{url} cannot be read: {error}. Look at the disk and try again.")


def opening_failed(url: str, error: apsw.Error) -> StoreError:
    """The error of an opening."""
    match error:
        case apsw.NotADBError():
            return Damaged(
                f"{url} is not a SQLite database, or its beginning is damaged. {_DAMAGED}"
            )
        case apsw.CorruptError():
            return _damaged(url, error)
        case apsw.ReadOnlyError():
            why = "the file or its folder is read-only"
            advice = "Make both writable, or open a copy in a folder that is."
        case apsw.BusyError() | apsw.LockedError():
            why, advice = "another process has it locked", "Try again when that is done."
        case apsw.FullError():
            why, advice = "the disk is full", "Free some space and try again."
        case _:
            why = str(error)
            advice = "Look at the permissions of the file and of its folder."
    return CannotOpen(f"{url} cannot be opened: {why}. {advice}")


def _damaged(url: str, error: Exception) -> Damaged:
    return Damaged(f"{url} is damaged ({error}). {_DAMAGED}")
