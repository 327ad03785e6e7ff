"""How connections to a PostgreSQL server are made and set; `pool` keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import asyncpg

from lockstitch.store.postgres.errors import FAILURES, opening_failed
from lockstitch.store.postgres.pool import Connection, Pool
from lockstitch.store.urls import public_url

CONNECT_SECONDS = 10
"""A server that has not answered by then is taken for one that is not there."""

SESSION = {
    "application_name": "lockstitch",
    # What the promises rest on must not depend on how a server is set: an append that returned is
    # on disk, and a write that waited for a lock looks again at what is there.
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    # Compiling takes longer than any statement of ours.
    "jit": "off",
}

APPENDING = {
    # By the index, however few conversations there are: they are locked in the order they are
    # given in, and what was planned for a small table is not slow when it has grown.
    "enable_seqscan": "off",
    # Planning anew for each group takes longer than the plan could gain.
    "plan_cache_mode": "force_generic_plan",
}


async def open_pool(
    url: str, *, connections: int, settings: Mapping[str, str] = MappingProxyType({})
) -> Pool:
    """Up to so many connections, one of them made now.

    Raises `CannotOpen`."""

    async def connect() -> Connection:
        return await asyncpg.connect(
            url, timeout=CONNECT_SECONDS, server_settings={**SESSION, **settings}
        )

    pool = Pool(connect, connections=connections)
    try:
        async with pool.acquire():
            return pool
    except (*FAILURES, ValueError) as error:
        # What the driver says of a URL may quote a part of the password.
        cause = None if isinstance(error, ValueError) else error
        raise opening_failed(public_url(url), error) from cause
