"""Drives one Realtime session over one WebSocket: frames in, events out, responses in between.

Whoever changes the session holds `_turn` until the events of that change are out, so a client
hears of things in the order in which they happened. Only the pauses are outside of a turn."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVarTuple

import msgspec
from aiohttp import WSMsgType, web

from lockstitch.emulator.decoding import decoded
from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault, parse
from lockstitch.emulator.model.replies import Reply
from lockstitch.emulator.model.turns import SpeechStep
from lockstitch.emulator.realtime import refusals as realtime_refusals
from lockstitch.emulator.realtime.endings import failed, of_fault
from lockstitch.emulator.realtime.layers import Layers
from lockstitch.emulator.realtime.session import Outcome, RealtimeSession
from lockstitch.emulator.realtime.speaking import Speaking
from lockstitch.emulator.realtime.told import Fields
from lockstitch.emulator.refusals import SERVER, Refused
from lockstitch.emulator.striking import Step, Strikes
from lockstitch.emulator.wire.delivery import EVENTS_A_TURN, Delivered, carry_out
from lockstitch.emulator.wire.frames import FrameSink
from lockstitch.emulator.wire.reception import GOING_AWAY
from lockstitch.emulator.world import World

log = logging.getLogger("lockstitch.emulator")

PATH = "/v1/realtime"
# What a session is closed with in which the emulator itself failed.
BROKEN = 1011

_encode = msgspec.json.Encoder().encode

Given = TypeVarTuple("Given")


class Connection:
    """One client's connection, from the upgrade to its end."""

    def __init__(
        self,
        world: World,
        session: RealtimeSession,
        socket: web.WebSocketResponse,
        sink: FrameSink,
        speech: Sequence[SpeechStep] = (),
    ) -> None:
        self.session = session
        self._world = world
        self._socket = socket
        self._sink = sink
        self._speech = speech
        self._expires_at = world.clock.now() + world.settings.connection_seconds
        self._turn = asyncio.Lock()
        self._layers = Layers()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sent = 0
        # The events that the simulated user waits for, and how often each was seen.
        self._awaited = frozenset(step.after for step in speech)
        self._seen: Counter[str] = Counter()
        # The user has something to say that was not said yet.
        self._to_say = 0

    async def serve(self, faults: list[Fault]) -> None:
        """Until the client, a fault or the session's age ends it."""
        self._spawn(self._grow_old)
        async with self._turn:
            await self._struck(self._layers.add(faults))
            await self._carry(Outcome(self.session.opening()))
        async for message in self._socket:
            if message.type is WSMsgType.TEXT:
                await self._receive(message.data.encode())
            elif message.type is WSMsgType.BINARY:
                await self._receive(message.data)

    async def speak(self, text: str, *, responds: bool) -> None:
        """The user says this."""
        async with self._turn:
            await self._carry(self.session.speech(text, responds=responds))

    async def stop(self) -> None:
        """The connection is gone: what was in flight is lost."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._world.record.flush()

    # What comes in

    async def _receive(self, data: bytes) -> None:
        try:
            frame = decoded(data)
        except Refused:
            frame = None
        named = frame.get("type") if isinstance(frame, dict) else None
        what = named if isinstance(named, str) else "unreadable"
        self._world.record.received(self._sink.connection, "frame", f"frame {what}", data)
        async with self._turn:
            await self._carry(self.session.receive(frame))
            self._notice(what)

    async def _carry(self, outcome: Outcome) -> None:
        for event in outcome.events:
            fault = await self._tell(event, broke=outcome.broke)
            if fault is not None:
                # It happened already, and no response can be ended for it: it is told.
                await self._break_off(None, fault)
                await self._sink.send(self._event(event))
        for speaking in outcome.started:
            reply, own = self._reply(speaking)
            self._spawn(self._say, speaking, reply, own)

    # What is said

    def _reply(self, speaking: Speaking) -> tuple[Reply, Strikes]:
        try:
            reply = self._world.speak(speaking.asked)
            own = Strikes([parse(text) for text in reply.faults])
            speaking.answer(reply)
        except Exception as problem:
            log.exception("the emulator has no answer in a Realtime session")
            speaking.end(failed(message=f"The emulator has no answer: {problem}"))
            return Reply(drafts=()), Strikes([])
        return reply, own

    async def _say(self, speaking: Speaking, reply: Reply, own: Strikes) -> None:
        clock, pace = self._world.clock, reply.pace or self._world.settings.pace
        if reply.delay:
            await clock.sleep(reply.delay)
        if speaking.ended:
            return
        async with self._turn:
            known = self._world.faults.concerning(PATH, self.session.settings.model)
            for steps in (self._layers.add(known), own.opening()):
                fault = await self._struck(steps)
                if fault is not None:
                    await self._break_off(speaking, fault)
        said = 0
        while await self._say_next(speaking, own):
            said += 1
            if pace:
                await clock.sleep(pace)
            elif self._to_say or not said % EVENTS_A_TURN:
                await asyncio.sleep(0)

    async def _say_next(self, speaking: Speaking, own: Strikes) -> bool:
        """One event of a response; False when it has no more, because it ended or was ended."""
        async with self._turn:
            event = speaking.upcoming()
            if event is None:
                return False
            fault = await self._tell(event, own=own)
            if fault is None:
                self.session.told(speaking, event)
            else:
                await self._break_off(speaking, fault)
            if speaking.ended:
                self._layers.resume()
            return True

    async def _break_off(self, speaking: Speaking | None, fault: Fault) -> None:
        """A fault ends the response: the rest of its events are those that close it."""
        if fault.name == "error":
            said = Refused("fault", fault.word("message"), type=SERVER, code=fault.word("code"))
            for event in self.session.refusal(said).events:
                await self._sink.send(self._event(event))
        if speaking is None:
            self._layers.resume()
        else:
            speaking.end(of_fault(fault))

    # What goes out

    async def _tell(
        self,
        event: Fields,
        *,
        own: Strikes | None = None,
        broke: str | None = None,
    ) -> Fault | None:
        """Send an event, as the faults have it; the fault that ends its response instead."""
        out = self._event(event)
        steps = None
        if self._layers or own:
            steps = self._layers.passing(out, own)
        if steps is not None:
            fault = await self._struck(steps)
            if fault is not None:
                return fault
        elif broke is not None:
            await self._sink.refuse(broke, out.data)
        else:
            await self._sink.send(out)
        self._notice(out.name)
        return None

    async def _struck(self, steps: list[Step]) -> Fault | None:
        ended = await carry_out(steps, self._sink, self._world.clock)
        if isinstance(ended, Delivered):
            raise ConnectionResetError("The emulator cut this connection.")
        return ended

    def _event(self, event: Fields) -> Event:
        out = Event(event["type"], self._sent, _encode(event))
        self._sent += 1
        return out

    # What happens by itself

    def _notice(self, name: str) -> None:
        """An event went by; the simulated user may have waited for it."""
        if name not in self._awaited:
            return
        self._seen[name] += 1
        for step in self._speech:
            if step.after == name and step.nth == self._seen[name]:
                self._to_say += 1
                self._spawn(self._say_as_user, step)

    async def _say_as_user(self, step: SpeechStep) -> None:
        try:
            if step.delay:
                await self._world.clock.sleep(step.delay)
            await self.speak(step.says, responds=step.responds)
        finally:
            self._to_say -= 1

    async def _grow_old(self) -> None:
        await self._world.clock.until(self._expires_at)
        minutes = self._world.settings.connection_seconds / 60
        async with self._turn:
            expired = self.session.refusal(realtime_refusals.session_expired(minutes))
            for event in expired.events:
                await self._sink.send(self._event(event))
        self._world.record.sent(self._sink.connection, "close", str(GOING_AWAY))
        await self._socket.close(code=GOING_AWAY, message=b"session_expired")

    def _spawn(self, work: Callable[[*Given], Awaitable[None]], *given: *Given) -> None:
        task = asyncio.create_task(self._guarded(work, *given))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Callable[[*Given], Awaitable[None]], *given: *Given) -> None:
        # Begun here, not before: a task that is cancelled at once never gets here.
        try:
            await work(*given)
        except ConnectionError:
            pass  # The connection is gone, as whoever reads from it finds out too.
        except Exception:
            log.exception("the emulator failed in a Realtime session")
            await self._socket.close(code=BROKEN)

    def __repr__(self) -> str:
        return f"<Connection {self._sink.connection}: {self.session!r}>"
