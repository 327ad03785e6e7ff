"""The Responses API over HTTP: JSON answers and server-sent events.

Decides nothing about responses (`responses` does); it reads requests, delivers events, and says
in the end whether a run was committed or lost."""

import asyncio
from functools import partial

from aiohttp import web

from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import FINISHING, Fault, parse
from lockstitch.emulator.responses import memory_faults
from lockstitch.emulator.responses.background import Background, strikes_a_body, strikes_the_run
from lockstitch.emulator.responses.run import Run
from lockstitch.emulator.responses.store import Responses
from lockstitch.emulator.striking import Strikes
from lockstitch.emulator.wire.delivery import Delivered, Sink, carry_out, deliver, open_with
from lockstitch.emulator.wire.listing import flag, is_true, page, whole_number
from lockstitch.emulator.wire.reception import Exchange, Reception
from lockstitch.emulator.wire.sse import SseSink
from lockstitch.emulator.world import World


class ResponsesDoor:
    """`/v1/responses` and all below it."""

    def __init__(self, world: World, reception: Reception, responses: Responses) -> None:
        self._world = world
        self._reception = reception
        self._responses = responses
        self._background = Background(responses)

    def routes(self) -> list[web.RouteDef]:
        received = self._reception.received
        one = "/v1/responses/{id}"
        return [
            web.post("/v1/responses", received(self.create)),
            web.post("/v1/responses/compact", received(self.compact)),
            web.post("/v1/responses/input_tokens", received(self.input_tokens)),
            web.get(one, received(self.retrieve)),
            web.delete(one, received(self.delete)),
            web.post(f"{one}/cancel", received(self.cancel)),
            web.get(f"{one}/input_items", received(self.input_items)),
        ]

    async def create(self, exchange: Exchange) -> web.StreamResponse:
        request = await exchange.json(streams=True)
        memory_faults.meet(exchange.struck, request, self._responses)
        run = self._responses.start(request)
        faults = [*exchange.faults, *(parse(text) for text in run.reply.faults)]
        streams = bool(request.get("stream"))
        if run.background:
            return await self._in_background(exchange, run, faults, streams=streams)
        try:
            answer = self._streamed if streams else self._whole
            return await answer(exchange, run, Strikes(faults))
        finally:
            # Whatever ended the delivery before the response did.
            self._responses.abandon(run)

    async def _streamed(self, exchange: Exchange, run: Run, strikes: Strikes) -> web.StreamResponse:
        sink = SseSink(exchange)
        commit = partial(self._responses.commit, run)
        ended = await open_with(strikes, sink, self._world.clock, commit)
        if ended is None:
            await sink.open({"openai-processing-ms": "1", "x-request-id": f"req_{run.id[5:]}"})
            ended = await self._delivered(sink, run, strikes)
        self._settle(run, ended)
        return await sink.end()

    async def _whole(self, exchange: Exchange, run: Run, strikes: Strikes) -> web.StreamResponse:
        sink = exchange.unheard()
        commit = partial(self._responses.commit, run)
        ended = await open_with(strikes, sink, self._world.clock, commit)
        if ended is None:
            ended = await self._delivered(sink, run, strikes)
        self._settle(run, ended)
        if ended is not Delivered.WHOLE:
            return web.Response()
        return exchange.answer(run.body)

    async def _delivered(self, sink: Sink, run: Run, strikes: Strikes) -> Delivered:
        return await deliver(
            sink,
            run.events(),
            strikes,
            self._world.clock,
            delay=run.reply.delay,
            pace=run.reply.pace or self._world.settings.pace,
            finish=run.finish,
            commit=partial(self._responses.commit, run),
        )

    def _settle(self, run: Run, ended: Delivered) -> None:
        if ended is Delivered.CUT:
            self._responses.abandon(run)
        else:
            self._responses.commit(run)

    async def _in_background(
        self, exchange: Exchange, run: Run, faults: list[Fault], *, streams: bool
    ) -> web.StreamResponse:
        """Begin the response, and answer at once. It goes on whatever becomes of the answer."""
        sink = exchange.unheard(run.tell)
        struck = Strikes([fault for fault in faults if strikes_the_run(fault)])
        self._background.begin(run, partial(self._delivered, sink, run, struck))
        heard = [fault for fault in faults if not strikes_the_run(fault)]
        if streams:
            return await self._followed(exchange, run, -1, Strikes(heard))
        strikes = Strikes([fault for fault in heard if strikes_a_body(fault)])
        if await open_with(strikes, exchange.unheard(), self._world.clock) is not None:
            return web.Response()
        return exchange.answer(run.body)

    async def retrieve(self, exchange: Exchange) -> web.StreamResponse:
        query = exchange.request.query
        stream = query.get("stream", "false")
        await exchange.no_body(streams=is_true(stream))
        run = self._responses.get(exchange.request.match_info["id"])
        if not flag("stream", stream):
            return exchange.answer(run.body)
        after = query.get("starting_after")
        seen = -1 if after is None else whole_number("starting_after", after)
        # How the response ends is no longer in question, or not in this one's hands.
        heard = [fault for fault in exchange.faults if fault.name not in FINISHING]
        return await self._followed(exchange, run, seen, Strikes(heard))

    async def _followed(
        self, exchange: Exchange, run: Run, seen: int, strikes: Strikes
    ) -> web.StreamResponse:
        """The events after number `seen`: those that were, and those to come."""
        sink = SseSink(exchange)
        if await open_with(strikes, sink, self._world.clock) is not None:
            return await sink.end()
        await sink.open()
        told = asyncio.Event()
        run.watchers.append(told.set)
        try:
            while (news := run.news(seen)) or not run.over:
                if not news:
                    await told.wait()
                elif not await self._heard(sink, news, strikes):
                    return await sink.end()
                else:
                    seen = news[-1].number
                told.clear()
        finally:
            run.watchers.remove(told.set)
        await carry_out(strikes.closing(), sink, self._world.clock)
        return await sink.end()

    async def _heard(self, sink: Sink, news: list[Event], strikes: Strikes) -> bool:
        """Send a part of a stream; whether the connection is still there."""
        clock = self._world.clock
        if not strikes:
            return await deliver(sink, news, strikes, clock) is Delivered.WHOLE
        for event in news:
            if await carry_out(strikes.passing(event), sink, clock) is not None:
                return False
        return True

    async def delete(self, exchange: Exchange) -> web.StreamResponse:
        await exchange.no_body()
        named = exchange.request.match_info["id"]
        self._responses.delete(named)
        return exchange.answer({"id": named, "object": "response", "deleted": True})

    async def cancel(self, exchange: Exchange) -> web.StreamResponse:
        await exchange.no_body()
        return exchange.answer(self._responses.cancel(exchange.request.match_info["id"]).body)

    async def input_items(self, exchange: Exchange) -> web.StreamResponse:
        await exchange.no_body()
        items = self._responses.input_items(exchange.request.match_info["id"])
        return exchange.answer(page(items, exchange.request.query))

    async def compact(self, exchange: Exchange) -> web.StreamResponse:
        return exchange.answer(self._responses.compact(await exchange.json()))

    async def input_tokens(self, exchange: Exchange) -> web.StreamResponse:
        counted = self._responses.count(await exchange.json())
        return exchange.answer({"object": "response.input_tokens", "input_tokens": counted})

    async def stop(self) -> None:
        await self._background.stop()
