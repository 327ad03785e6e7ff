"""Case B: a voice agent summarises its context while a tool call is in progress.

If the server has an item that the agent's own context lacks, then the agent either deleted it or
has not received it yet. A two-way diff cannot tell which; a diff against the agent's last snapshot
can."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp

from lockstitch.demo.playing import KEY, Case, Refused, Stage
from lockstitch.dialects.base import without
from lockstitch.emulator import call, reply
from lockstitch.realtime import Session
from lockstitch.realtime.websocket import websocket
from lockstitch.runner import CallEnded, tool

MODEL: Final = "gpt-realtime"
GREETING: Final = "Hello, this is Ada."
WELCOME: Final = "Hello Ada, where do you want to go?"
ASKED: Final = "Book the early flight to Oslo."
HURRY: Final = "And hurry, please."
MOMENT: Final = "One moment."
BOOKED: Final = "LS 740 is booked."
FAULT: Final = "the agent summarises its context during the call"
SUMMARY: Final = "Ada wants to travel."
MOMENT_SECONDS: Final = 0.2
"""How long the model thinks. Its answer already has a place in the conversation; the item before
it is deleted meanwhile."""
HEARD: Final = "conversation.item.input_audio_transcription.completed"
"""The last event about what the user said: the model has begun to answer."""
CALL_ID: Final = "call_book"

Item = dict[str, Any]

SETTINGS: Final = {
    "output_modalities": ["text"],
    "audio": {"input": {"transcription": {"model": "whisper-1"}}},
}


class Desk:
    """A slow tool: it starts some time after the model has called it."""

    def __init__(self, stage: Stage) -> None:
        self._file = stage.folder / "bookings.txt"
        self.may_begin = asyncio.Event()

    async def book(self, flight: str) -> str:
        """Book a flight."""
        await self.may_begin.wait()
        with self._file.open("a") as file:
            file.write(f"{flight}\n")
        return f"{flight} is booked"


def bookings(folder: Path) -> int:
    file = folder / "bookings.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


async def naive(stage: Stage) -> Sequence[Mapping[str, Any]]:
    """Run an agent that deletes on the server whatever its own context lacks."""
    desk = Desk(stage)
    configured = {
        "type": "realtime",
        **SETTINGS,
        "tools": [without(tool(desk.book).for_responses(), "strict")],
    }
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(_url(stage), headers={"Authorization": f"Bearer {KEY}"}) as socket,
    ):
        agent = TwoWay(stage, socket)
        await agent.send("session.update", session=configured)
        await agent.hear("session.updated")
        await _say(stage, GREETING)
        await agent.hear("response.done")
        await _say(stage, ASKED)
        await agent.hear("response.done")
        # The agent's own context gets the call when the tool starts, and it has not started.
        own = [item for item in agent.remote if item["type"] != "function_call"]
        await _say(stage, HURRY)
        await agent.hear(HEARD)
        stage.tell("fault", FAULT)
        await agent.sync([_message(SUMMARY), *own[2:]])
        await agent.hear("response.done")
        desk.may_begin.set()
        output = _output(await desk.book("LS 740"))
        stage.tell_item(output)
        await agent.sync([*agent.remote, output])
    return agent.remote


class TwoWay:
    """A copy of the server's context, and a sync that makes the server match the agent."""

    def __init__(self, stage: Stage, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._stage = stage
        self._socket = socket
        self.remote: list[Item] = []

    async def send(self, type: str, **fields: Any) -> None:
        await self._socket.send_json({"type": type, **fields})

    async def sync(self, own: Sequence[Item]) -> None:
        ids = [item["id"] for item in own]
        here = [item["id"] for item in self.remote]
        gone = [item for item in self.remote if item["id"] not in ids]
        for item in gone:
            self._stage.tell("loop", f"not in its own context: deletes {_told(item)}")
            await self.send("conversation.item.delete", item_id=item["id"])
        new = [item for item in own if item["id"] not in here]
        for item in new:
            before = ids.index(item["id"]) - 1
            previous = ids[before] if before >= 0 else "root"
            await self.send("conversation.item.create", item=item, previous_item_id=previous)
        await self.hear("conversation.item.deleted", len(gone))
        await self.hear("conversation.item.done", len(new))

    async def hear(self, wanted: str, times: int = 1) -> None:
        """Read events up to the nth of this name. Raises `Refused` for an error event."""
        while times:
            event = json.loads(await self._socket.receive_str())
            times -= event["type"] == wanted
            match event["type"]:
                case "conversation.item.added":
                    self._add(event["item"], event["previous_item_id"])
                case "conversation.item.done":
                    self._finish(event["item"])
                case "conversation.item.deleted":
                    self.remote = [one for one in self.remote if one["id"] != event["item_id"]]
                case "error":
                    raise Refused(event["error"]["message"])

    def _add(self, item: Item, previous: str | None) -> None:
        ids = [one["id"] for one in self.remote]
        if previous is None:
            self.remote.insert(0, item)
        elif previous in ids:
            self.remote.insert(ids.index(previous) + 1, item)
        else:
            self._stage.tell("loop", "previous_item_id not found: loses an item")

    def _finish(self, item: Item) -> None:
        if item.get("role") != "user":
            self._stage.tell_item(item)
        self.remote = [item if one["id"] == item["id"] else one for one in self.remote]


async def lockstitch(stage: Stage) -> Sequence[Mapping[str, Any]]:
    """Run the same agent on a realtime session, which deletes only what the agent had seen."""
    desk = Desk(stage)
    session = await Session.open(
        websocket(_url(stage), key=KEY), session=SETTINGS, tools=[desk.book]
    )
    async with session:
        heard = session.__aiter__()

        async def hear(is_wanted: Callable[[Any], bool]) -> None:
            async for event in heard:
                if isinstance(event, CallEnded):
                    stage.tell_event(event)
                elif (item := _spoken(event)) is not None:
                    stage.tell_item(item)
                if is_wanted(event):
                    return

        await _say(stage, GREETING)
        await hear(_is("response.done"))
        seen = session.snapshot()
        await _say(stage, ASKED)
        await hear(_is("response.done"))
        await _say(stage, HURRY)
        await hear(_is(HEARD))
        stage.tell("fault", FAULT)
        before = session.items
        await session.summarise(_message(SUMMARY), base=seen, fraction=1.0)
        _tell_summary(stage, before, session.items)
        await hear(_is("response.done"))
        desk.may_begin.set()
        await hear(_says(BOOKED))
        return session.items


def _tell_summary(stage: Stage, before: Sequence[Item], now: Sequence[Item]) -> None:
    for item in before:
        if any(one["id"] == item["id"] for one in now):
            stage.tell("loop", f"newer than the snapshot: keeps {_told(item)}")
        else:
            stage.tell("loop", f"summarised: deletes {_told(item)}")


async def _say(stage: Stage, text: str) -> None:
    stage.tell("user", text)
    await stage.speak(text)


def _spoken(event: Any) -> Item | None:
    """Return the item that the model has completed, if this event is about one."""
    if not _is("response.output_item.done")(event):
        return None
    item: Item = event["item"]
    return item


def _is(name: str) -> Callable[[Any], bool]:
    return lambda event: isinstance(event, dict) and event["type"] == name


def _says(text: str) -> Callable[[Any], bool]:
    def is_it(event: Any) -> bool:
        said = event["response"]["output"] if _is("response.done")(event) else ()
        return any(item.get("content", [{}])[0].get("text") == text for item in said)

    return is_it


def _url(stage: Stage) -> str:
    return f"{stage.base_url.replace('http', 'ws', 1)}/realtime?model={MODEL}"


def _message(text: str) -> Item:
    content = [{"type": "input_text", "text": text}]
    return {"id": "summary", "type": "message", "role": "user", "content": content}


def _output(said: str) -> Item:
    return {
        "id": "output",
        "type": "function_call_output",
        "call_id": CALL_ID,
        "output": said,
    }


def _told(item: Mapping[str, Any]) -> str:
    if item["type"] == "function_call":
        return f"call {item['call_id']}"
    return f"a {'user' if item['role'] == 'user' else 'model'} message"


CASE: Final = Case(
    letter="B",
    title="A call deleted while it runs",
    story="A voice agent summarises its context while a tool call is in progress and the user keeps"
    " talking. The agent's own copy of the context has neither yet.",
    names=("Without Lockstitch: a two-way diff", "With Lockstitch: a realtime session"),
    script=[
        WELCOME,
        call("book", {"flight": "LS 740"}, call_id=CALL_ID),
        reply(MOMENT, delay=MOMENT_SECONDS),
        BOOKED,
    ],
    naive=naive,
    lockstitch=lockstitch,
    lost="a call was deleted while it ran, and its output was rejected.",
    refusal="not found in conversation",
    effects=bookings,
    wanted_effects=1,
)
