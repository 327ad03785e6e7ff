"""Connections to a PostgreSQL server: how they are set, and how many there are."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, TypeAlias

import asyncpg

from lockstitch.store.postgres.errors import FAILURES, opening_failed, public_url

Pool: TypeAlias = "asyncpg.Pool[Any]"

CONNECT_SECONDS = 10
"""A server that has not answered by then is taken for one that is not there."""

CLOSE_SECONDS = 10
"""How long a goodbye may take, and what still runs."""

SESSION = {
    "application_name": "lockstitch",
    # What the promises rest on must not depend on how a server is set: an append that returned is
    # on disk, and a write that waited for a lock looks again at what is there.
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    # Compiling takes longer than any statement of ours.
    "jit": "off",
}


async def open_pool(url: str, *, connections: int) -> Pool:
    """Up to so many connections, one of them made now. A lost one is made again when needed.

    Raises `CannotOpen`."""
    try:
        return await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=connections,
            timeout=CONNECT_SECONDS,
            server_settings=SESSION,
            reset=_leave_as_it_is,
        )
    except (*FAILURES, ValueError) as error:
        # What the driver says of a URL may quote a part of the password.
        cause = None if isinstance(error, ValueError) else error
        raise opening_failed(public_url(url), error) from cause


async def close_pool(pool: Pool) -> None:
    """Say goodbye to the server; one that does not answer is left without."""
    with contextlib.suppress(*FAILURES):
        async with asyncio.timeout(CLOSE_SECONDS):
            await pool.close()  # lets go of everything when it is cancelled


async def _leave_as_it_is(connection: asyncpg.Connection[Any]) -> None:
    """No statement of ours changes a session; setting it back would cost a round trip."""
