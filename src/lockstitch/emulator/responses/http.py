"""The Responses API over HTTP: JSON answers and server-sent events.

Decides nothing about responses (`responses` does); it reads requests, delivers events, and says
in the end whether a run was committed or lost."""

import asyncio
from bisect import bisect_right
from functools import partial
from operator import attrgetter
from typing import Any

from aiohttp import web

from lockstitch.emulator import refusals
from lockstitch.emulator.faults import parse
from lockstitch.emulator.responses.store import Responses, Run
from lockstitch.emulator.striking import Strikes
from lockstitch.emulator.wire.delivery import Delivered, Sink, deliver, open_with
from lockstitch.emulator.wire.listing import flag, page, whole_number
from lockstitch.emulator.wire.reception import Exchange, Reception
from lockstitch.emulator.wire.sse import SseSink
from lockstitch.emulator.wire.unheard import Unheard
from lockstitch.emulator.world import World

_number = attrgetter("number")


class ResponsesDoor:
    """`/v1/responses` and all below it."""

    def __init__(self, world: World, reception: Reception, responses: Responses) -> None:
        self._world = world
        self._reception = reception
        self._responses = responses
        self._background: set[asyncio.Task[None]] = set()

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
        self._strike_request(exchange, request)
        run = self._responses.start(request)
        faults = tuple(parse(text) for text in run.reply.faults)
        strikes = exchange.strikes(faults)
        if run.background:
            self._run_in_background(run, strikes)
            if request.get("stream"):
                return await self._followed(exchange, run, -1)
            return exchange.answer(run.body)
        try:
            if request.get("stream"):
                return await self._streamed(exchange, run, strikes)
            return await self._whole(exchange, run, strikes)
        finally:
            # Whatever ended the delivery before the response did.
            self._responses.abandon(run)

    def _strike_request(self, exchange: Exchange, request: dict[str, Any]) -> None:
        """The faults that act on what the provider remembers, before it looks."""
        forget = exchange.struck("forget")
        if forget is not None:
            everything = forget.word("what") == "everything"
            anchor = request.get("previous_response_id")
            if everything or isinstance(anchor, str):
                self._responses.forget(None if everything else anchor)
        if request.get("conversation") is not None and exchange.struck("lock"):
            raise refusals.conversation_locked()

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
        sink = Unheard(exchange)
        commit = partial(self._responses.commit, run)
        ended = await open_with(strikes, sink, self._world.clock, commit)
        if ended is None:
            ended = await self._delivered(sink, run, strikes)
        self._settle(run, ended)
        if ended is not Delivered.WHOLE:
            return web.Response()
        return exchange.answer(run.body)

    async def _delivered(self, sink: Sink, run: Run, strikes: Strikes) -> Delivered:
        clock = self._world.clock
        if run.reply.delay:
            await clock.sleep(run.reply.delay)
        return await deliver(
            sink,
            run.events(),
            strikes,
            clock,
            pace=run.reply.pace or self._world.settings.pace,
            finish=run.finish,
            commit=partial(self._responses.commit, run),
        )

    def _settle(self, run: Run, ended: Delivered) -> None:
        if ended is Delivered.CUT:
            self._responses.abandon(run)
        else:
            self._responses.commit(run)

    def _run_in_background(self, run: Run, strikes: Strikes) -> None:
        async def perform() -> None:
            try:
                ended = await self._delivered(Unheard(None), run, strikes)
                self._settle(run, ended)
            finally:
                self._responses.abandon(run)

        task = asyncio.get_running_loop().create_task(perform())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def retrieve(self, exchange: Exchange) -> web.StreamResponse:
        await exchange.no_body(streams="stream" in exchange.request.query)
        query = exchange.request.query
        run = self._responses.get(exchange.request.match_info["id"])
        if flag("stream", query.get("stream", "false")):
            after = query.get("starting_after")
            seen = -1 if after is None else whole_number("starting_after", after)
            return await self._followed(exchange, run, seen)
        return exchange.answer(run.body)

    async def _followed(self, exchange: Exchange, run: Run, seen: int) -> web.StreamResponse:
        """The events after number `seen`: those that were, and those to come."""
        strikes = exchange.strikes()
        sink = SseSink(exchange)
        ended = await open_with(strikes, sink, self._world.clock)
        if ended is not None:
            return await sink.end()
        await sink.open()
        told = asyncio.Event()
        run.watchers.append(told.set)
        try:
            while True:
                told.clear()
                news = run.log[bisect_right(run.log, seen, key=_number) :]
                if news:
                    seen = news[-1].number
                    ended = await deliver(sink, news, strikes, self._world.clock)
                if run.over or ended in {Delivered.CUT, Delivered.CUT_BUT_KEPT}:
                    return await sink.end()
                await told.wait()
        finally:
            run.watchers.remove(told.set)

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
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
