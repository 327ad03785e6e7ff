"""What a conversation lists that an upstream keeps, to see whether a lost request arrived there.

What follows from the listing is decided in `reading_back`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from lockstitch.dialects.base import Wire
from lockstitch.gateway.deciding.reading_back import is_absent
from lockstitch.gateway.lines import Asking, LineFailure
from lockstitch.gateway.responding.passing import fetched
from lockstitch.gateway.responding.ways import of_no_body
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller

LISTING_SECONDS: Final = 5.0
"""Who takes longer to list a conversation has not answered: the client waits for all of this."""

LOOKED_AT_ITEMS: Final = 100
"""The newest of a conversation: as many as an upstream lists at once."""


class _Listing(Struct):
    data: list[Wire]


_listing = msgspec.json.Decoder(_Listing)


async def never_arrived(
    upstream: Reached, caller: Caller, conversation: str, items: Sequence[Wire]
) -> bool:
    """Is it proven that these items are not there? A listing that cannot be had proves nothing."""
    where = f"/conversations/{quote(conversation, safe='')}/items"
    asking = Asking(
        method="GET",
        target=f"{where}?order=desc&limit={LOOKED_AT_ITEMS}",
        headers=of_no_body(upstream.headers(caller.headers)),
    )
    try:
        async with asyncio.timeout(LISTING_SECONDS):
            whole = await fetched(upstream, asking)
        return whole.status == 200 and is_absent(items, _listing.decode(whole.body).data)
    except (LineFailure, TimeoutError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
