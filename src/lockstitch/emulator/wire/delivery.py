"""Carries a stream of events to the client, with the faults that strike it.

A sink is one transport: it frames an event, sends it, and can end the connection in every way a
network can. The two sinks are `sse` and `frames`."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable, Iterator
from enum import Enum
from functools import partial
from typing import Protocol

from lockstitch.emulator.clock import Clock
from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import ENDS, Fault
from lockstitch.emulator.striking import Close, Cut, Finish, Send, Step, Strikes, Struck, Wait

# Events that are ready together go out together, so many at most; then others have their
# turn. Each write wakes the client up, and that costs more than the events.
EVENTS_A_TURN = 32
# The close code that is never sent: the connection just ended.
ABNORMAL = 1006
# Long enough for loopback to hand over what was written before a reset.
RESET_GRACE_SECONDS = 0.02


class Delivered(Enum):
    """How a delivery ended."""

    WHOLE = "whole"
    # The connection was cut; the provider keeps what was asked, or forgets it.
    CUT = "cut"
    CUT_BUT_KEPT = "cut but kept"


class Sink(Protocol):
    async def send(self, *events: Event) -> None:
        """Whole events, in one write where the transport can."""

    async def drip(self, event: Event, size: int, pause: Callable[[], Awaitable[None]]) -> None:
        """One event, so many bytes at a time; nothing else goes out in between."""

    async def cut(self, how: str, event: Event | None, fault: Fault) -> None:
        """End the connection in the way that `how` says, inside this event if it is inside one."""

    async def close(self, code: int, fault: Fault) -> None:
        """Close a WebSocket with this code."""

    def struck(self, fault: Fault) -> None:
        """Record that a fault struck this stream."""


Finisher = Callable[[Fault], Iterable[Event]]
Commit = Callable[[], None]


async def deliver(
    sink: Sink,
    events: Iterable[Event],
    strikes: Strikes,
    clock: Clock,
    *,
    delay: float = 0.0,
    pace: float = 0.0,
    finish: Finisher | None = None,
    commit: Commit | None = None,
) -> Delivered:
    """Send all events: the first after `delay` seconds, the others `pace` seconds apart.

    `finish` gives the last ones when a fault ends the response early. `commit` makes the provider
    keep the response. It is called just before the event that ends the response goes out, so that
    whoever sees the end can build on it, and before a cut that loses the answer alone."""
    if delay:
        await clock.sleep(delay)
    if strikes:
        return await _struck(sink, iter(events), strikes, clock, pace, finish, commit)
    batch: list[Event] = []
    for event in events:
        if commit is not None and event.name in ENDS:
            commit()
        batch.append(event)
        if pace or len(batch) == EVENTS_A_TURN:
            await sink.send(*batch)
            batch.clear()
            await clock.sleep(pace) if pace else await asyncio.sleep(0)
    if batch:
        await sink.send(*batch)
    return Delivered.WHOLE


async def _struck(  # noqa: PLR0917
    sink: Sink,
    events: Iterator[Event],
    strikes: Strikes,
    clock: Clock,
    pace: float,
    finish: Finisher | None,
    commit: Commit | None,
) -> Delivered:
    for event in events:
        steps = strikes.passing(event)
        ended = await carry_out(steps, sink, clock, commit, ends=event.name in ENDS)
        if isinstance(ended, Delivered):
            return ended
        if ended is not None:
            rest = finish(ended) if finish else ()
            return await _struck(sink, iter(rest), strikes, clock, pace, None, commit)
        if pace:
            await clock.sleep(pace)
    ended = await carry_out(strikes.closing(), sink, clock, commit)
    return ended if isinstance(ended, Delivered) else Delivered.WHOLE


async def carry_out(
    steps: list[Step],
    sink: Sink,
    clock: Clock,
    commit: Commit | None = None,
    *,
    ends: bool = False,
) -> Delivered | Fault | None:
    """How the connection ended, or the fault that ends the response; None to go on.

    `ends`: these are the steps of the event that ends the response."""
    for step in steps:
        if commit is not None and _keeps(step, ends=ends):
            commit()
        match step:
            case Send(event, None):
                await sink.send(event)
            case Send(event, drip) if drip is not None:
                pause = partial(clock.sleep, drip.number("seconds"))
                await sink.drip(event, max(1, int(drip.number("bytes"))), pause)
            case Struck(fault):
                sink.struck(fault)
            case Wait(seconds):
                await clock.sleep(seconds)
            case Cut(how, inside, kept, fault):
                sink.struck(fault)
                await sink.cut(how, inside, fault)
                return Delivered.CUT_BUT_KEPT if kept else Delivered.CUT
            case Close(code, kept, fault):
                sink.struck(fault)
                await sink.close(code, fault)
                return Delivered.CUT_BUT_KEPT if kept else Delivered.CUT
            case Finish(fault):
                sink.struck(fault)
                return fault
    return None


def _keeps(step: Step, *, ends: bool) -> bool:
    match step:
        case Send():
            return ends
        case Cut(commit=kept) | Close(commit=kept):
            return kept
    return False


async def open_with(
    strikes: Strikes, sink: Sink, clock: Clock, commit: Commit | None = None
) -> Delivered | None:
    """What faults do before the first byte; None if the stream may begin."""
    if not strikes:
        return None
    ended = await carry_out(strikes.opening(), sink, clock, commit)
    return ended if isinstance(ended, Delivered) else None


def part_of(how: str, framed: bytes, payload: bytes) -> bytes:
    """The last bytes before a cut inside an event: half of it, or up to half a character."""
    if how == "half-frame":
        return framed[: len(framed) // 2]
    if how != "half-character":
        return b""
    start = framed.find(payload)
    for at, byte in enumerate(payload):
        if byte >= 0xC0:
            return framed[: start + at + 1]
    # All ASCII: the frame breaks off with the first byte of a two-byte character.
    return framed[: start + len(payload) // 2] + b"\xc3"


def leave_unanswered(transport: asyncio.BaseTransport | None, how: str) -> None:
    """End a connection with no answer at all, in the way that `how` says."""
    if how == "reset":
        tear_down(transport)
    elif transport is not None:
        transport.close()


def tear_down(transport: asyncio.BaseTransport | None) -> None:
    """End a connection as a crash would: the peer sees a reset, not an end."""
    if transport is None:
        return
    peer = transport.get_extra_info("socket")
    if peer is not None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if isinstance(transport, asyncio.Transport):
        transport.abort()
    else:
        transport.close()
