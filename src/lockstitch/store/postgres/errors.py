"""What PostgreSQL says went wrong, told as an error of the store: what, to what, and what to do.

No message holds a password: a URL comes here without one (`urls`)."""

from __future__ import annotations

import asyncpg

from lockstitch.store.errors import CannotOpen, CannotWrite, Damaged, StoreError

FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)
"""All that a driver raises when the server, the way to it, or what it was given is at fault."""

_CONNECTION_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.InterfaceError,
    OSError,
)
_OF_THE_SERVER = (
    *_CONNECTION_LOST,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.UndefinedTableError,
    asyncpg.DataCorruptedError,
    asyncpg.IndexCorruptedError,
)
_DAMAGED = (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError, asyncpg.UndefinedTableError)


def fails_alone(error: Exception) -> bool:
    """Is it the fault of what was written, so that what was written beside it need not fail?"""
    # The driver refuses what it cannot encode with an InterfaceError that is a ValueError.
    return isinstance(error, ValueError) or not isinstance(error, _OF_THE_SERVER)


def opening_failed(url: str, error: Exception) -> StoreError:
    """The error of an opening."""
    match error:
        case ValueError():
            # What the driver says of a URL may quote a part of the password.
            return CannotOpen(
                f"{url} is not the URL of a PostgreSQL database. Write it as"
                " postgresql://user:password@host:port/database, and percent-encode what is"
                " special in the password."
            )
        case asyncpg.InvalidAuthorizationSpecificationError():
            why = f"the server rejected the login ({error})"
            advice = "Look at the user and the password in the URL."
        case asyncpg.InvalidCatalogNameError():
            why = f"there is no such database ({error})"
            advice = "Make it with `createdb`, or look at the name in the URL."
        case asyncpg.InsufficientPrivilegeError():
            why = f"the user may not do that ({error})"
            advice = "Grant it CREATE on the database, or open it once as its owner."
        case asyncpg.TooManyConnectionsError():
            why = "the server has no connection left"
            advice = "Raise its max_connections, or close what is not used."
        case asyncpg.ReadOnlySQLTransactionError():
            why = "the database is read-only, and our tables are not there yet"
            advice = "Open it on the primary first."
        case asyncpg.DuplicateTableError() | asyncpg.DuplicateObjectError():
            why = f"its schema `lockstitch` is not ours ({error})"
            advice = "Use another database."
        case TimeoutError():
            why, advice = "the server does not answer", "Look at the host and the port in the URL."
        case OSError():
            why = f"the server cannot be reached ({error})"
            advice = "Start it, or look at the host and the port in the URL."
        case _:
            why, advice = str(error), "Look at the log of the server."
    return CannotOpen(f"{url} cannot be opened: {why}. {advice}")


def reading_failed(url: str, error: Exception) -> StoreError:
    """The error of a read."""
    if isinstance(error, _DAMAGED):
        return _damaged(url, error)
    why = "the connection was lost" if isinstance(error, _CONNECTION_LOST) else "the server failed"
    return CannotOpen(f"{url} cannot be read: {why} ({_words(error)}). Read again when it is back.")


def writing_failed(url: str, error: Exception, *, begun: bool = True) -> StoreError:
    """The error of a write; ``begun`` where the server may have heard of it."""
    match error:
        case _ if isinstance(error, _DAMAGED):
            return _damaged(url, error)
        case ValueError():
            why, advice = f"PostgreSQL cannot keep it ({_words(error)})", "Write something else."
        case _ if isinstance(error, _CONNECTION_LOST) and begun:
            return CannotWrite(
                f"The connection to {url} was lost in the middle of a write ({_words(error)}): it"
                " may or may not have happened. Read what is there before you write again."
            )
        case asyncpg.DiskFullError():
            why, advice = "the disk of the server is full", "Free some space and write again."
        case asyncpg.ReadOnlySQLTransactionError():
            why, advice = "the server is read-only", "Write to the primary, not to a standby."
        case asyncpg.InsufficientPrivilegeError():
            why, advice = f"the user may not ({_words(error)})", "Grant it and write again."
        case asyncpg.QueryCanceledError():
            why, advice = f"the server cancelled it ({_words(error)})", "Write again."
        case asyncpg.PostgresError() if not isinstance(error, _CONNECTION_LOST):
            why, advice = _words(error), "Look at the log of the server."
        case _:
            why = f"the server cannot be reached ({_words(error)})"
            advice = "Write again when it is back."
    return CannotWrite(
        f"Nothing was written to {url}: {why}. The earlier records are unchanged. {advice}"
    )


def _damaged(url: str, error: Exception) -> Damaged:
    return Damaged(
        f"{url} is damaged ({_words(error)}). Nothing was changed. Restore it from a backup, or"
        " save what can still be read with `lockstitch store export`."
    )


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
