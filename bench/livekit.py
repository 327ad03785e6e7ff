"""LiveKit's `_create_update_chat_ctx_events`, and ours in the same session: building edit events.

Both have the same items at the provider and are given the same context of LiveKit's own models.
Theirs compares, and makes event objects. Ours also notes what the agent holds, commits the plan,
and gives plain events; those that wait for an acknowledgement follow later. Nothing is sent or
encoded. The whole of `update_chat_ctx` is measured as well, on a line in memory."""

from __future__ import annotations

import asyncio
import json
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import aiohttp
from livekit.agents import llm
from livekit.plugins import openai
from openai.types.realtime import ConversationItemAdded

from bench.harness import Result, cpu
from bench.mirror import (
    CHANGES,
    EVENTS_TARGET,
    LARGEST,
    MANY_TARGET,
    SIZES,
    Item,
    Wire,
    item,
    push_all,
    reorder,
    rounds_of,
    wire,
)
from lockstitch.integrations import livekit as in_step

REPEATS = 9
WHOLE_REPEATS = 3
WHOLE_TARGET = 1.0
"""Most of it is LiveKit's own sending and hearing, which both share."""

Session: TypeAlias = openai.realtime.RealtimeSession


def run() -> Iterator[Result]:
    for result in _results():
        yield replace(result, ours=result.ours * 1000, peer=result.peer * 1000, unit="ms")


def _results() -> Iterator[Result]:
    with asyncio.Runner() as runner:
        for size in SIZES:
            for name in CHANGES:
                yield runner.run(_building(size, name))
        for name in CHANGES:
            yield _whole(runner, name)


def _medians(
    name: str, rounds: Iterable[tuple[float, float]], target: float, peer_is: str
) -> Result:
    ours, theirs = zip(*rounds, strict=True)
    return Result(name, statistics.median(ours), statistics.median(theirs), target, peer_is=peer_is)


# --- the same on both sides ----------------------------------------------------------------------


def contexts(size: int, name: str) -> tuple[list[Item], llm.ChatContext]:
    """What is there, and what shall be. Ours moves items only in a context that knows its copy."""
    items = [item(number) for number in range(size)]
    change = CHANGES[name]
    target = change(items).target
    if change is push_all:
        return [], target
    if change is reorder:
        context = in_step.copy_of(llm.ChatContext(list(items)))
        context.items[:] = target.items
        return items, context
    return items, target


def model() -> openai.realtime.RealtimeModel:
    return openai.realtime.RealtimeModel(api_key="any", base_url="http://127.0.0.1:9")


def answer(event: Wire) -> Wire:
    """What the provider says to an edit that it carries out."""
    if event["type"] == "conversation.item.delete":
        return {"type": "conversation.item.deleted", "item_id": event["item_id"]}
    previous = event["previous_item_id"]
    return {
        "type": "conversation.item.added",
        "item": event["item"],
        "previous_item_id": None if previous == "root" else previous,
    }


# --- building ------------------------------------------------------------------------------------


class Theirs(openai.realtime.RealtimeSession):
    """LiveKit's session, without a connection."""

    async def _main_task(self) -> None:
        """Nothing is sent."""


class Ours(in_step.RealtimeSession):
    """Ours, as if it were connected; what it sends is kept."""

    def __init__(self, realtime_model: openai.realtime.RealtimeModel) -> None:
        self.sent: list[Any] = []
        super().__init__(realtime_model)
        self.sent.clear()
        self._connected = True

    async def _main_task(self) -> None:
        """Nothing is sent."""

    def send_event(self, event: Any) -> None:
        self.sent.append(event)


def _hear(session: Session, event: Wire) -> None:
    session.emit("openai_server_event_received", event)
    session._handle_conversion_item_added(ConversationItemAdded.construct(**event))


def their_session(there: list[Item]) -> Theirs:
    session = Theirs(model())
    previous = "root"
    for one in there:
        event = {"type": "", "item": wire(one), "previous_item_id": previous}
        _hear(session, answer(event))
        previous = one.id
    return session


def our_session(there: list[Item]) -> Ours:
    """One in which the agent has pushed these items, and the provider has them."""
    session = Ours(model())
    session.sent += session._create_update_chat_ctx_events(llm.ChatContext(list(there)))
    while session.sent:
        sent, session.sent = session.sent, []
        for event in sent:
            _hear(session, answer(event))
    # As in a call that goes on: with this push all that is there was looked at once.
    assert session._create_update_chat_ctx_events(llm.ChatContext(list(there))) == []
    return session


async def _building(size: int, name: str) -> Result:
    there, target = contexts(size, name)

    rounds = rounds_of(size)

    def once() -> tuple[float, float]:
        """In sessions of their own: a plan is committed, and no call happens twice."""
        theirs = [their_session(there) for _ in range(rounds)]
        ours = [our_session(there) for _ in range(rounds)]
        peer = cpu(lambda: [one._create_update_chat_ctx_events(target) for one in theirs])
        spent = cpu(lambda: [one._create_update_chat_ctx_events(target) for one in ours])
        assert not any(one._view.mirror.idle for one in ours)
        return spent / rounds, peer / rounds

    many = size == LARGEST and CHANGES[name] in (push_all, reorder)
    once()
    return _medians(
        f"{size}, {name}",
        (once() for _ in range(REPEATS)),
        MANY_TARGET if many else EVENTS_TARGET,
        "LiveKit's building of edit events",
    )


# --- the whole update ----------------------------------------------------------------------------


class Line:
    """A connection in memory whose other end carries out every edit at once."""

    def __init__(self) -> None:
        self._told = asyncio.Queue[aiohttp.WSMessage]()

    async def receive(self) -> aiohttp.WSMessage:
        return await self._told.get()

    async def send_str(self, text: str) -> None:
        event = json.loads(text)
        if event["type"].startswith("conversation.item."):
            self._tell(aiohttp.WSMsgType.TEXT, json.dumps(answer(event)))

    async def close(self) -> None:
        self._tell(aiohttp.WSMsgType.CLOSED, None)

    def _tell(self, kind: aiohttp.WSMsgType, data: str | None) -> None:
        self._told.put_nowait(aiohttp.WSMessage(kind, data, None))


class TheirsOnALine(openai.realtime.RealtimeSession):
    async def _create_ws_conn(self) -> Any:
        return Line()


class OursOnALine(in_step.RealtimeSession):
    async def _create_ws_conn(self) -> Any:
        return Line()


def _whole(runner: asyncio.Runner, name: str) -> Result:
    there, target = contexts(LARGEST, name)

    def seconds(session_class: Callable[[openai.realtime.RealtimeModel], Session]) -> float:
        session = runner.run(_opened(session_class, there))
        spent = cpu(lambda: runner.run(session.update_chat_ctx(target)))
        runner.run(session.aclose())
        return spent

    return _medians(
        f"whole update, {name}",
        ((seconds(OursOnALine), seconds(TheirsOnALine)) for _ in range(WHOLE_REPEATS)),
        WHOLE_TARGET,
        f"LiveKit's update_chat_ctx, {LARGEST} items",
    )


async def _opened(
    session_class: Callable[[openai.realtime.RealtimeModel], Session], there: list[Item]
) -> Session:
    session = session_class(model())
    for _ in range(2):
        await session.update_chat_ctx(llm.ChatContext(list(there)))
    return session
