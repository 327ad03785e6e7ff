"""One connection of the Responses WebSocket: lanes, warm-ups, steering, error frames.

A thin driver: `lanes` and `steering` decide, this reads frames, runs one task for each lane
that has work, and sends. A lane's requests are answered one after the other."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from lockstitch.emulator import refusals
from lockstitch.emulator.decoding import decoded
from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault, parse, struck
from lockstitch.emulator.limits import MOST_STORED_RESPONSES
from lockstitch.emulator.refusals import Refused
from lockstitch.emulator.responses import memory_faults, steering
from lockstitch.emulator.responses.lane_sink import LaneSink
from lockstitch.emulator.responses.lanes import UNNAMED, Lanes
from lockstitch.emulator.responses.run import Run
from lockstitch.emulator.responses.steering import CannotSteer, Steering
from lockstitch.emulator.responses.store import Responses
from lockstitch.emulator.striking import Strikes
from lockstitch.emulator.wire.delivery import Delivered, deliver, open_with
from lockstitch.emulator.wire.frames import FrameSink
from lockstitch.emulator.wire.reception import status_refusal
from lockstitch.emulator.world import World

log = logging.getLogger("lockstitch.emulator")

_encode = msgspec.json.Encoder().encode
PATH = "/v1/responses"


class Connection:
    """One client's connection, from the handshake to its end."""

    def __init__(self, world: World, responses: Responses, sink: FrameSink) -> None:
        self._world = world
        self._responses = responses
        self._sink = sink
        self._lanes = Lanes()
        self._steering = Steering(world.ids.branch())
        self._waiting: dict[str, deque[dict[str, Any]]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, Run] = {}
        self._lane_of: dict[str, str] = {}
        self._expires_at = world.clock.now() + world.settings.connection_seconds

    async def serve(self, socket: web.WebSocketResponse) -> None:
        ageing = asyncio.create_task(self._grow_old(socket))
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await self._receive(message.data.encode())
                elif message.type is WSMsgType.BINARY:
                    await self._refuse_binary(message.data)
        finally:
            ageing.cancel()

    async def stop(self) -> None:
        """The connection is gone: what was in flight is lost."""
        for worker in self._workers.values():
            worker.cancel()
        await asyncio.gather(*self._workers.values(), return_exceptions=True)
        self._world.record.flush()

    async def _grow_old(self, socket: web.WebSocketResponse) -> None:
        await self._world.clock.until(self._expires_at)
        # No client broke a rule by growing old.
        refused = refusals.connection_too_old(self._world.settings.connection_seconds / 60)
        await self._sink.refuse("fault", _error_frame(refused, UNNAMED))
        self._world.record.sent(self._sink.connection, "close", "1000")
        await socket.close(code=1000)

    async def _refuse_binary(self, data: bytes) -> None:
        self._world.record.received(self._sink.connection, "frame", "frame unreadable", data)
        await self._refuse(refusals.unreadable_frame(), UNNAMED)

    async def _receive(self, data: bytes) -> None:
        frame: Any = None
        try:
            frame = decoded(data)
        except Refused:
            frame = None
        named = frame.get("type") if isinstance(frame, dict) else None
        self._world.record.received(
            self._sink.connection, "frame", f"frame {named or 'unreadable'}", data
        )
        if not isinstance(frame, dict):
            await self._refuse(refusals.unreadable_frame(), UNNAMED)
        elif named == "response.create":
            await self._queue(frame)
        elif named == "response.steer":
            await self._steer(frame)
        else:
            supported = "'response.create' and 'response.steer'"
            await self._refuse(refusals.wrong_value("type", str(named), supported), UNNAMED)

    # Requests

    async def _queue(self, frame: dict[str, Any]) -> None:
        named = frame.get("stream_id")
        try:
            lane = self._lanes.enter(named)
        except Refused as refused:
            await self._refuse(refused, named if isinstance(named, str) else UNNAMED)
            return
        self._waiting.setdefault(lane, deque()).append(frame)
        if lane not in self._workers:
            worker = asyncio.create_task(self._work(lane))
            self._workers[lane] = worker

    async def _work(self, lane: str) -> None:
        """Answer the lane's requests until none waits."""
        try:
            while self._waiting[lane]:
                frame = self._waiting[lane].popleft()
                try:
                    await self._answer(frame, lane)
                except ConnectionError:
                    return
                except Exception:
                    log.exception("the emulator failed at a frame")
                    await self._refuse(refusals.own_fault(), lane)
                finally:
                    self._lanes.leave()
                    self._world.record.flush()
        finally:
            self._workers.pop(lane, None)

    async def _answer(self, frame: dict[str, Any], lane: str) -> None:
        parent = frame.get("previous_response_id")
        try:
            faults, lost = self._meet_faults(frame)
            first = self._queued_for(parent, lane)
            run = self._responses.start(frame, anchors=self._lanes, first=first, websocket=True)
        except Refused as refused:
            self._lanes.evict(lane, parent)
            await self._refuse(refused, lane)
            return
        if first:
            self._steering.take(str(parent))
        next_run: Run | None = run
        while next_run is not None:
            next_run = await self._perform(next_run, frame, lane, faults, lost)

    def _queued_for(self, parent: Any, lane: str) -> list[dict[str, Any]]:
        """Steering input that waited for this continuation."""
        if not isinstance(parent, str) or self._lane_of.get(parent) != lane:
            return []
        return [item for steer in self._steering.queued(parent) for item in steer.items]

    def _meet_faults(self, frame: dict[str, Any]) -> tuple[list[Fault], Fault | None]:
        """The faults of a request, and the one that loses its answer."""
        model = frame.get("model")
        faults = self._world.faults.concerning(PATH, model if isinstance(model, str) else "")
        if not faults:
            return [], None

        def met(name: str) -> Fault | None:
            fault = struck(faults, name)
            if fault is not None:
                self._sink.struck(fault)
            return fault

        status = met("status")
        if status is not None:
            raise status_refusal(status)
        memory_faults.meet(met, frame, self._responses, self._lanes.forget)
        return faults, struck(faults, "lose")

    async def _perform(
        self,
        run: Run,
        frame: dict[str, Any],
        lane: str,
        faults: list[Fault],
        lost: Fault | None,
    ) -> Run | None:
        """Deliver one response; its successor, if steering makes one."""
        strikes = Strikes([*faults, *(parse(text) for text in run.reply.faults)])
        sink = LaneSink(self._sink, lane, lost)
        self._running[run.id] = run
        self._lane_of[run.id] = lane
        if len(self._lane_of) > MOST_STORED_RESPONSES:
            del self._lane_of[next(iter(self._lane_of))]
        try:
            commit = partial(self._commit, run, lane)
            ended = await open_with(strikes, sink, self._world.clock, commit)
            if ended is None:
                ended = await self._delivered(run, sink, strikes, lane)
            if ended is not Delivered.CUT:
                commit()
        finally:
            self._running.pop(run.id, None)
            self._responses.abandon(run)
        if run.after is None:
            self._lanes.evict(lane, frame.get("previous_response_id"))
        if lost is not None:
            self._sink.struck(lost)
            await self._sink.cut(lost.word("how"), None, lost)
            return None
        if ended is not Delivered.WHOLE:
            return None
        return await self._follow(run, frame, sink)

    async def _delivered(self, run: Run, sink: LaneSink, strikes: Strikes, lane: str) -> Delivered:
        return await deliver(
            sink,
            self._steered(run),
            strikes,
            self._world.clock,
            delay=run.reply.delay,
            pace=run.reply.pace or self._world.settings.pace,
            finish=run.finish,
            commit=partial(self._commit, run, lane),
        )

    def _steered(self, run: Run) -> Iterator[Event]:
        """The run's events; it stops between two items when steering input waits."""
        for event in run.events():
            yield event
            if event.name == "response.output_item.done" and self._steering.stops(run):
                yield from run.stop("steered")
                return

    def _commit(self, run: Run, lane: str) -> None:
        self._responses.commit(run)
        self._lanes.keep(lane, run)

    # Steering

    async def _steer(self, frame: dict[str, Any]) -> None:
        named = frame.get("previous_response_id")
        if not isinstance(named, str):
            await self._refuse(refusals.missing_parameter("previous_response_id"), UNNAMED)
            return
        run = self._running.get(named)
        if run is not None and run.performance.ended:
            # Its last event is said, if not yet slept over.
            run = None
        lane = self._lane_of.get(named, UNNAMED)
        sink = LaneSink(self._sink, lane, None)
        try:
            steer = self._steering.accept(frame, run, finished=named in self._lane_of)
        except CannotSteer as problem:
            number = run.performance.number() if run else 0
            event = steering.failed(
                problem.code, str(problem), named, frame.get("input"), number=number
            )
            await sink.refuse(f"steer-{problem.code}", steering.as_event(event))
            return
        if run is not None:
            await sink.send(steering.accepted(run, steer))

    async def _follow(self, run: Run, frame: dict[str, Any], sink: LaneSink) -> Run | None:
        """What becomes of the steering input when the response is over."""
        waiting = self._steering.queued(run.id)
        if not waiting:
            return None
        if run.after is not None and run.after.open:
            for steer in waiting:
                await sink.send(steering.pending(run, steer))
            return None
        self._steering.take(run.id)
        items = [item for steer in waiting for item in steer.items]
        successor = {
            name: value for name, value in frame.items() if name not in {"input", "generate"}
        }
        successor |= {"previous_response_id": run.id, "input": items}
        try:
            return self._responses.start(successor, anchors=self._lanes, websocket=True)
        except Refused as refused:
            for steer in waiting:
                event = steering.failed(
                    "successor_creation_failed",
                    refused.message,
                    run.id,
                    steer.given,
                    number=run.performance.number(),
                    id=steer.id,
                )
                await sink.send(steering.as_event(event))
            return None

    async def _refuse(self, refused: Refused, lane: str) -> None:
        await self._sink.refuse(refused.rule, _error_frame(refused, lane))


def _error_frame(refused: Refused, lane: str) -> bytes:
    frame: dict[str, Any] = {"type": "error", "status": refused.status}
    if lane:
        frame["stream_id"] = lane
    error = refused.error()
    if refused.headers:
        error["headers"] = refused.headers
    return _encode(frame | {"error": error})
