"""Tells what was said over HTTP, whole or event by event, with the faults that strike it.

For the dialects without a memory, Chat Completions and Messages: there is nothing to keep, so a
cut is only a cut."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from aiohttp import web

from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault, parse
from lockstitch.emulator.model.replies import Reply
from lockstitch.emulator.striking import Strikes
from lockstitch.emulator.wire.delivery import Delivered, Sink, deliver, open_with
from lockstitch.emulator.wire.reception import Exchange
from lockstitch.emulator.wire.sse import SseSink


class Spoken(Protocol):
    """An answer, in its dialect."""

    def body(self) -> dict[str, Any]:
        """The whole of it; raises `Refused` if it failed."""

    def events(self) -> Iterator[Event]: ...

    def finish(self, fault: Fault) -> Iterable[Event]:
        """The last events when a fault ends the answer here; `body` knows of it from then on."""


async def tell_whole(
    exchange: Exchange, reply: Reply, spoken: Spoken, headers: dict[str, str]
) -> web.StreamResponse:
    """One JSON body. Faults strike the events that nobody hears."""
    strikes = _strikes(exchange, reply)
    sink = exchange.unheard()
    told = await open_with(strikes, sink, exchange.world.clock)
    if told is None:
        told = await _delivered(exchange, reply, spoken, sink, strikes)
    if told is not Delivered.WHOLE:
        return web.Response()
    return exchange.answer(spoken.body(), headers=headers)


async def tell_as_events(
    exchange: Exchange,
    reply: Reply,
    spoken: Spoken,
    headers: dict[str, str],
    *,
    named: bool,
) -> web.StreamResponse:
    """Server-sent events."""
    strikes = _strikes(exchange, reply)
    sink = SseSink(exchange, named=named)
    if await open_with(strikes, sink, exchange.world.clock) is None:
        await sink.open(headers)
        await _delivered(exchange, reply, spoken, sink, strikes)
    return await sink.end()


def _strikes(exchange: Exchange, reply: Reply) -> Strikes:
    return exchange.strikes(tuple(parse(text) for text in reply.faults))


async def _delivered(
    exchange: Exchange, reply: Reply, spoken: Spoken, sink: Sink, strikes: Strikes
) -> Delivered:
    world = exchange.world
    return await deliver(
        sink,
        spoken.events(),
        strikes,
        world.clock,
        delay=reply.delay,
        pace=reply.pace or world.settings.pace,
        finish=spoken.finish,
    )
