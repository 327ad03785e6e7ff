"""A response as a stream, again, from behind the event that a client saw last.

From the log of this process, where it has one; from the upstream that keeps the response; in the
end from the journal, condensed. Whatever breaks on the way, the next of them goes on, and so the
stream ends well."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from aiohttp import web

from lockstitch.dialects.reading import UNREADABLE
from lockstitch.gateway.deciding.listing import id_of
from lockstitch.gateway.doors.kept_responses import (
    Shows,
    asking_for,
    is_heard,
    keeper,
    path_of,
    write_end,
)
from lockstitch.gateway.doors.reading import (
    AWAKE,
    AWAKE_SECONDS,
    ClientGone,
    Newer,
    Reader,
    follow,
)
from lockstitch.gateway.doors.resuming import Resumed
from lockstitch.gateway.doors.unknown import NOT_FOUND
from lockstitch.gateway.events import Heard, as_sse, body_of, number_of, with_response
from lockstitch.gateway.keeping import telling
from lockstitch.gateway.keeping.exchanges import Kept
from lockstitch.gateway.lines import Asking, LineFailure
from lockstitch.gateway.responding.passing import NOBODY_READS, fetched
from lockstitch.gateway.showing.streams import Log
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller, World
from lockstitch.store.errors import StoreError
from lockstitch.upstream.responses_answer import ENDING_OF_STATUS

POLL_SECONDS: Final = 0.5
"""How often somebody is asked about a response that is heard by nobody here: the journal, where
another process hears it, or the upstream that runs it in the background."""


class StreamAgain:
    """One client that asks for the rest of a stream."""

    def __init__(
        self, world: World, caller: Caller, request: web.BaseRequest, *, shown: str, after: int
    ) -> None:
        """``shown`` is the id that the client knows the response by; ``after`` the number of the
        event that it saw last, -1 for none."""
        self._world = world
        self._caller = caller
        self._request = request
        self._shown = shown
        self._newer = Newer(after)
        self._told_of: str | None = None
        """The response whose events the client got, if an upstream told them."""
        self._reader: Reader | None = None
        self._clock = asyncio.get_running_loop().time
        self._give_up = self._clock() + world.config.limits.unattended_seconds
        self._awake = self._clock() + AWAKE_SECONDS

    async def from_log(self, log: Log) -> web.StreamResponse:
        """A response that was heard here lately, or is heard now."""
        try:
            most = self._world.config.limits.unread_bytes
            if not await follow(await self._begun(), log, self._newer, most_waiting_bytes=most):
                await self._rest()
        except ClientGone:
            self._caller.note("the client went away")
        return self._ended()

    async def from_elsewhere(self, kept: Kept) -> web.StreamResponse:
        """One that is in the journal, and perhaps at an upstream."""
        try:
            upstream = keeper(self._world, self._caller, kept)
            if upstream is None or not await self._from_upstream(upstream, kept):
                await self._rest()
        except ClientGone:
            self._caller.note("the client went away")
        return self._ended()

    async def _begun(self) -> Reader:
        if self._reader is None:
            self._reader = await Reader.begin(self._world, self._caller, self._request)
        return self._reader

    def _ended(self) -> web.StreamResponse:
        if self._reader is None:
            return web.Response(status=NOBODY_READS)
        return self._reader.end()

    # From the upstream

    async def _from_upstream(self, upstream: Reached, kept: Kept) -> bool:
        """Write the upstream's stream, asked for again where it breaks; was that its end?"""
        self._caller.upstream = upstream.name
        heard: dict[bytes, int | None] = {}
        most = self._world.config.limits.unread_bytes
        for _ in range(1 + upstream.told.retries):
            resumed = Resumed(self._newer, kept.said, most_held_bytes=most)
            try:
                is_stream = await resumed.ask(upstream, self._asking(upstream, kept))
            except LineFailure as failure:
                self._caller.note_failure(upstream.name, failure)
                continue
            if not is_stream:
                break
            try:
                await resumed.write_to(await self._begun())
            finally:
                resumed.leave()
            self._give_up = self._clock() + self._world.config.limits.unattended_seconds
            heard |= resumed.items
            if self._newer.told:
                self._told_of = kept.id
            if resumed.last is not None:
                return await self._write_last(kept, resumed, resumed.last, heard)
            if resumed.whole:
                break
        if not kept.end_known:
            await self._await_end(upstream, kept, heard)
        return False

    def _asking(self, upstream: Reached, kept: Kept) -> Asking:
        # Whoever writes the end down must have heard all of it, also what the client has: the
        # journal may lack some of that, and the end need not list it.
        behind = self._newer.number if kept.end_known else self._newer.seen
        return asking_for(
            self._request,
            self._caller,
            upstream,
            path_of(kept.id),
            starting_after=str(behind) if behind >= 0 else None,
        )

    async def _write_last(
        self, kept: Kept, resumed: Resumed, last: Heard, heard: Mapping[bytes, int | None]
    ) -> bool:
        """Show the end, and what waits for it, once it is written down; False if it cannot be."""
        if not await self._written(kept, bytes(last.event.response), heard, by=last):
            return False
        if not await self._has(kept.id, resumed.calls):
            return False
        reader = await self._begun()
        for block in resumed.held:
            part = self._newer.of(block)
            if part:
                await reader.write(part)
        number = number_of(last)
        if number is None or number > self._newer.number:
            data = last.data
            with suppress(*UNREADABLE):
                data = with_response(data, kept.asked.asked_for())
            await reader.write(as_sse(last.event.type, data))
        return True

    async def _written(
        self,
        kept: Kept,
        response: bytes,
        heard: Mapping[bytes, int | None],
        *,
        by: Heard | None = None,
    ) -> bool:
        """Is the end written down, once nobody else hears the response? ``by`` is its event, if
        there was one."""
        while True:
            shows = await write_end(self._world, self._caller, kept, response, by=by, heard=heard)
            if shows is not Shows.UNDER_WAY:
                return shows is Shows.AS_IT_CAME
            if self._clock() > self._give_up:
                return False
            await self._pause()

    async def _has(self, response: str, calls: Sequence[bytes]) -> bool:
        """Does the journal have these calls? An end need not tell of all that was said."""
        if not calls:
            return True
        try:
            kept = await self._kept()
        except StoreError as error:
            self._caller.note(f"journal: {error}")
            return False
        if kept is None or kept.id != response:
            return False
        ids = {id_of(item) or item for item in kept.said}
        return all((id_of(call) or call) in ids for call in calls)

    async def _await_end(
        self, upstream: Reached, kept: Kept, heard: Mapping[bytes, int | None]
    ) -> None:
        """Wait for the end of a response whose upstream does not stream it. Raises `LineFailure`
        where nobody can tell and the client has seen nothing."""
        asking = Asking(
            method="GET", target=path_of(kept.id), headers=upstream.headers(self._caller.headers)
        )
        while self._clock() < self._give_up:
            try:
                whole = await fetched(upstream, asking)
                if whole.status not in (200, NOT_FOUND):
                    raise LineFailure(f"It said {whole.status}.", sent=True)
            except LineFailure as failure:
                self._caller.note_failure(upstream.name, failure)
                if self._reader is None:
                    raise
                return
            if whole.status == NOT_FOUND:
                return
            if body_of(whole.body).status in ENDING_OF_STATUS:
                await self._written(kept, whole.body, heard)
                return
            await self._pause()

    # From the journal

    async def _rest(self) -> None:
        """Write what the journal has behind the last event, when the response is over."""
        reader = await self._begun()
        after = self._newer.number
        try:
            kept = await self._over()
        except StoreError as error:
            self._caller.note(f"journal: {error}")
            kept = None
        if kept is None or self._told_of not in (None, kept.id):
            await reader.write(telling.unknown_end(self._shown, after))
            return
        for block in telling.events(kept, self._shown, after):
            await reader.write(block)

    async def _over(self) -> Kept | None:
        """Wait until nobody hears the response any more; what the journal has of it then."""
        while True:
            kept = await self._kept()
            if kept is None or kept.ending is not None or self._clock() > self._give_up:
                return kept
            if not await is_heard(self._world, self._caller.tenant, kept.id):
                return await self._kept()  # it may have ended in between
            await self._pause()

    async def _pause(self) -> None:
        """Wait a little, and let the client know that somebody is there."""
        reader = await self._begun()
        reader.news.clear()
        await reader.wait(POLL_SECONDS)
        if self._clock() > self._awake:
            self._awake = self._clock() + AWAKE_SECONDS
            await reader.write(AWAKE)

    async def _kept(self) -> Kept | None:
        return await self._world.exchanges.exchange(self._caller.tenant, self._shown)
