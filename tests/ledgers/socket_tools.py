"""The tools of a conversation: each has an effect that is counted, and an output kept at once."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

from lockstitch.core.calls import Call, Life
from lockstitch.facts import CallStarted, call_settled, call_settled_honestly
from tests.ledgers.socket_desk import Desk, Died
from tests.ledgers.socket_model import tool_output


class Tools:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._beside: set[asyncio.Task[None]] = set()

    async def announced(self, call: Call) -> None:
        """A call is whole, and its answer still coming: some runners wait, some do not."""
        desk = self._desk
        if not desk.likely(desk.eager):
            return
        if desk.likely(0.5):
            self._beside.add(asyncio.create_task(self._until_death(call)))
        else:
            await self.run(call)

    async def settle(self, call: Call) -> None:
        """An output for a call that has none: the tool's, or what is known without it."""
        desk, key = self._desk, call.item.key or ""
        if call.life is Life.STARTED or call.by_server:
            desk.account.unknown.add(key)
        elif desk.likely(0.1):
            desk.account.never_started.add(key)
        else:
            await self.run(call)
            return
        await desk.journal.append(call_settled_honestly(desk.ledger, call))

    async def run(self, call: Call) -> None:
        desk, key = self._desk, call.item.key or ""
        own = Random(f"{desk.seed} {key}")
        await desk.journal.append(CallStarted(call=call.seq, slot=call.slot))
        desk.may_die(0.03, own)
        for _ in range(own.randint(0, 5)):
            await asyncio.sleep(0)
        desk.account.effects[key] += 1
        desk.may_die(0.03, own)
        output = tool_output(desk.ledger.wire(call.seq), f"word-{key[-6:]}", own)
        desk.account.outputs[key] = output
        await desk.journal.append(call_settled(desk.ledger, call, output))

    async def _until_death(self, call: Call) -> None:
        with suppress(Died):  # whoever reads the stream finds out
            await self.run(call)

    async def ended(self) -> None:
        """Wait for those that run beside the stream."""
        running, self._beside = self._beside, set()
        await asyncio.gather(*running)
