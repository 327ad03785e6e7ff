"""The whole of a conversation in one request: rebuilt from the journal, and proven.

Where that is not possible it says why, and nothing is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from lockstitch.core.continuation import Refuse, Replay, SettleFirst
from lockstitch.core.errors import IllegalFact, LockstitchError, NotAnItem
from lockstitch.core.findings import Finding
from lockstitch.dialects.base import Wire
from lockstitch.gateway.deciding.asked import Asked, rebuilt
from lockstitch.gateway.deciding.portable import CannotTravel, NotWhole, abroad, at_home, referred
from lockstitch.gateway.keeping.chains import Chain, ChainUnknown
from lockstitch.gateway.keeping.journal import Exchanges
from lockstitch.gateway.upstreams import Reached


class CannotReplay(LockstitchError):
    """What a request goes on from cannot be sent in its place."""

    def __init__(
        self, message: str, findings: Sequence[Finding] = (), *, unknown: bool = False
    ) -> None:
        super().__init__(message)
        self.unknown = unknown
        """The chain is not known, or nothing can go on from it."""
        self.findings = findings
        """What is not whole, where that is the reason."""


class Sending(Struct, frozen=True):
    """A request as it is sent."""

    body: bytes
    away: bool = False
    """Was what belongs to another upstream left out?"""


class Replaying:
    """Rebuilds requests of one tenant."""

    def __init__(self, exchanges: Exchanges, tenant: str) -> None:
        self._exchanges = exchanges
        self._tenant = tenant

    async def behind(
        self, asked: Asked, items: Sequence[bytes], to: Reached, *, away: bool = False
    ) -> Sending:
        """A request that named a response, with everything in its place. ``away``: another
        upstream said something of the items."""
        assert asked.previous_response_id is not None
        try:
            path = await self._exchanges.path(self._tenant, asked.previous_response_id)
            chain = Chain.of(path)
            chain.asked(items)
            plan = chain.plan()
        except ChainUnknown as error:
            raise CannotReplay(str(error), unknown=True) from error
        except (NotAnItem, IllegalFact) as error:
            raise CannotReplay(str(error)) from error
        if isinstance(plan, SettleFirst):
            calls = ", ".join(call.item.key or "" for call in plan.calls)
            raise CannotReplay(f"No tool output found for function call {calls}.")
        if isinstance(plan, Refuse):
            raise CannotReplay(
                f"The history to resend is not valid: {plan.reason.value}.", plan.findings
            )
        if not isinstance(plan, Replay):
            raise CannotReplay("There is nothing to replay.")
        away = away or any(one.asked.upstream != to.name for one in path)
        return await self.whole(asked, chain.items(plan), to, away=away)

    async def alone(self, asked: Asked, items: Sequence[bytes], to: Reached) -> Sending:
        """A request that holds everything itself, for an upstream that keeps nothing: without what
        only names something that is kept elsewhere."""
        chain = Chain()
        try:
            chain.asked(items)
            plan = chain.plan()
        except (NotAnItem, IllegalFact) as error:
            raise CannotReplay(str(error)) from error
        if not isinstance(plan, Replay):
            raise CannotReplay("The history to send is not valid.")
        return await self.whole(asked, chain.items(plan), to, away=False)

    async def whole(
        self, asked: Asked, items: Sequence[Wire], to: Reached, *, away: bool
    ) -> Sending:
        """A request with these items as all of its input. ``away``: another upstream said some of
        them."""
        known = await self._referred(items)
        try:
            if away:
                sent = abroad(items, lookup=known.get, settings=_settings(asked))
            else:
                sent = at_home(items, lookup=known.get)
        except NotWhole as error:
            raise CannotReplay(str(error), error.findings) from error
        except CannotTravel as error:
            raise CannotReplay(str(error)) from error
        body = rebuilt(
            asked,
            items=sent,
            previous_response_id=None,
            conversation=None,
            store=UNSET if to.keeps_state else False,
        )
        return Sending(body, away)

    async def _referred(self, items: Sequence[Wire]) -> dict[str, Wire]:
        """The items that others only refer to, as far as the journal has them."""
        found: dict[str, Wire] = {}
        for item in items:
            name = referred(item)
            if name is not None:
                known = await self._exchanges.item(self._tenant, name)
                if known is not None:
                    found[name] = msgspec.json.decode(known)
        return found


def _settings(asked: Asked) -> dict[str, Any]:
    """The fields of a request beside its items."""
    return {
        name: msgspec.json.decode(raw)
        for name, raw in asked.fields.items()
        if name in {"prompt", "tools"}
    }
