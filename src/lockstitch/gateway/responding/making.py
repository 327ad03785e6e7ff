"""One request in each form in which it can be sent: as it is, rebuilt, stripped.

Which form is wanted, best first, is decided in `deciding.sending`; what a replay holds is
`replaying`. Who sends it is `answering`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

import msgspec

from lockstitch.gateway.deciding import sending
from lockstitch.gateway.deciding.asked import Asked, read, rebuilt
from lockstitch.gateway.deciding.portable import only_named
from lockstitch.gateway.deciding.refusals import RequestRefused
from lockstitch.gateway.deciding.sending import Form, Going
from lockstitch.gateway.keeping.exchanges import Kept
from lockstitch.gateway.responding.forms import cannot
from lockstitch.gateway.responding.preparing import Prepared
from lockstitch.gateway.responding.replaying import CannotReplay, Replaying, Sending
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller, World

AnchorGone: TypeAlias = Callable[[Kept | None], bool]
"""Is it certain that no upstream has this response any more?"""


class Making:
    """One request, for whichever upstream it goes to."""

    def __init__(
        self, world: World, caller: Caller, asked: Asked, *, anchor_gone: AnchorGone
    ) -> None:
        self._world = world
        self._caller = caller
        self._asked = asked
        self._anchor_gone = anchor_gone
        self._replaying = Replaying(world.exchanges, caller.tenant)

    async def first(self, found: Prepared, upstream: Reached) -> Sending:
        """For the upstream that it goes to first. Raises `RequestRefused`."""
        going = self._going(found, upstream)
        why = sending.why_replayed(going)
        try:
            return await self._first_of(sending.first_forms(going), found, upstream, why)
        except CannotReplay as error:
            raise RequestRefused(cannot(error, found)) from error

    async def elsewhere(self, found: Prepared, upstream: Reached, why: str) -> Sending:
        """For one that has nothing of what it goes on from. Raises `CannotReplay`."""
        forms = sending.other_forms(self._going(found, upstream))
        return await self._first_of(forms, found, upstream, why)

    async def form(self, form: Form, found: Prepared, upstream: Reached, why: str) -> Sending:
        """In this form. Raises `CannotReplay`."""
        asked, replaying = self._asked, self._replaying
        match form:
            case Form.AS_IT_IS:
                return Sending(found.body)
            case Form.UNSTORED:
                return Sending(rebuilt(read(found.body, asked.api), store=False))
            case Form.ALONE:
                raw = [msgspec.json.encode(item) for item in found.items]
                return await replaying.alone(asked, raw, upstream)
            case Form.CONVERSATION:
                held = found.held.items if found.held is not None else []
                return await replaying.whole(asked, [*held, *found.items], upstream, away=True)
            case Form.STRIPPED if asked.previous_response_id is None:
                return await replaying.whole(asked, found.items, upstream, away=True)
            case Form.STRIPPED:
                return await replaying.behind(asked, found.added, upstream, away=True)
            case Form.REPLAYED:
                made = await replaying.behind(asked, found.added, upstream)
                self._world.metrics.replays.labels(why).inc()
                kept_here = why == sending.KEPT_HERE
                self._caller.note("from the journal" if kept_here else f"replayed: {why}")
                return made

    async def _first_of(
        self, forms: Sequence[Form], found: Prepared, upstream: Reached, why: str
    ) -> Sending:
        """The first of these forms that can be made. Raises `CannotReplay` if none can be."""
        for form in forms[:-1]:
            with suppress(CannotReplay):
                return await self.form(form, found, upstream, why)
        return await self.form(forms[-1], found, upstream, why)

    def _going(self, found: Prepared, upstream: Reached) -> Going:
        asked, parent = self._asked, found.parent
        return Going(
            anchored=asked.previous_response_id is not None,
            local=parent is not None and parent.asked.local,
            anchor_gone=self._anchor_gone(parent),
            held=found.held is not None,
            foreign=found.foreign,
            names_kept=any(only_named(item) is not None for item in found.items),
            store=asked.store,
            keeps_state=upstream.keeps_state,
            at_home=found.home in (None, upstream.name),
            first=upstream.name == found.route[0],
        )
