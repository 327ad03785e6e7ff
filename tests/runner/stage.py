"""Where turns are played: the emulator over real sockets, official clients, a store in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import anthropic
import openai
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

import lockstitch
from lockstitch.core.facts import Mode
from lockstitch.emulator import Emulator, Script
from lockstitch.runner import Runner, TurnEnded
from lockstitch.store.journal import kept_ledger
from lockstitch.store.memory import MemoryStore
from lockstitch.upstream.openai_chat import OpenAIChat

MODEL = "gpt-5.5"
CLAUDE = "claude-opus-4-6"
THREAD = "thread-42"
SECONDS = 20.0
"""A test takes well below a second; one that takes this long hangs."""
TRANSPORTS = ("http", "websocket")
MODES = tuple(mode.value for mode in Mode)

CREATES = (
    *("POST /v1/responses", "frame response.create"),
    *("POST /v1/chat/completions", "POST /v1/messages"),
)


def within(work):
    """Run a test, which must end."""

    async def bounded():
        async with asyncio.timeout(SECONDS):
            return await work()

    return asyncio.run(bounded())


@asynccontextmanager
async def staged(*turns, **settings):
    """A stage with an emulator that says these turns."""
    script = Script(list(turns)) if turns else None
    # Nothing here is encrypted, and to read the certificates takes longer than most tests.
    async with (
        Emulator(script=script, **settings) as emulator,
        AsyncOpenAI(
            base_url=emulator.base_url,
            api_key="any",
            http_client=openai.DefaultAsyncHttpxClient(verify=False),
        ) as for_openai,
        AsyncAnthropic(
            base_url=emulator.url,
            api_key="any",
            http_client=anthropic.DefaultAsyncHttpxClient(verify=False),
        ) as for_anthropic,
    ):
        stage = Stage(emulator, for_openai, for_anthropic)
        try:
            yield stage
        finally:
            await stage.close()


class Stage:
    """An emulator, a store, and the runners between them."""

    def __init__(self, emulator, client, for_anthropic):
        self.emulator = emulator
        self.client = client
        self.store = MemoryStore()
        self._anthropic = for_anthropic
        self._runners = []

    def runner(self, *tools, kind="responses", transport="http", **more):
        """A runner as a process of its own would have one; only the store is shared."""
        client = {
            "responses": lambda: self.client,
            "chat": lambda: OpenAIChat(self.client),
            "messages": lambda: self._anthropic,
        }[kind]()
        more.setdefault("model", CLAUDE if kind == "messages" else MODEL)
        more.setdefault("store", self.store)
        made = Runner(client=client, tools=tools, websocket=transport == "websocket", **more)
        self._runners.append(made)
        return made

    async def close(self):
        for runner in self._runners:
            await runner.close()

    # What happened

    def sent(self):
        """The bodies of all requests for an answer, in order."""
        return [
            entry.readable()["data"]
            for entry in self.emulator.record.entries()
            if not entry.sent and entry.what in CREATES
        ]

    def broken(self):
        """The rules that were broken, and how often. Asking for a response that was not kept is
        no violation: it is how one finds out."""
        rules = Counter(
            entry.broke for entry in self.emulator.record.entries() if entry.broke is not None
        )
        asked = sum(
            not entry.sent and entry.what.startswith("GET /v1/responses/resp_")
            for entry in self.emulator.record.entries()
        )
        if rules["not-found"] <= asked:
            del rules["not-found"]
        return dict(rules)

    def struck(self):
        """How often faults have struck."""
        return sum(fault.struck for fault in self.emulator.faults.all())

    async def ledger(self, thread=THREAD):
        """A thread as it is in the store, whoever may hold it."""
        return await kept_ledger(self.store, thread)

    async def whole(self, thread=THREAD):
        """The history of a thread that is whole: nothing waits, and it would be taken anywhere."""
        ledger = await self.ledger(thread)
        assert ledger.unsettled() == []
        history = ledger.history()
        assert lockstitch.check(history, dialect=ledger.dialect.name) == []
        return history

    async def context(self, mode, thread=THREAD):
        """What the provider has before it: everything that the next answer would see."""
        ledger = await self.ledger(thread)
        if mode == Mode.CONVERSATION.value:
            pages = self.client.conversations.items.list(ledger.conversation, order="asc")
            return [item.model_dump() async for item in pages]
        if mode == Mode.FULL.value:
            # It keeps nothing: this is what the last request told it.
            last = self.sent()[-1]
            return last.get("input") or last["messages"]
        last = self.emulator.responses.ids_stored()[-1]
        pages = self.client.responses.input_items.list(last, order="asc")
        return [item.model_dump() async for item in pages]


async def played(events):
    """All events of a turn."""
    return [event async for event in events]


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def text_of(events):
    """What the model said last."""
    return of(TurnEnded, events)[-1].text


def outputs_in(items):
    """The call ids of the outputs among items of any dialect, in order."""
    found = []
    for item in items:
        if item.get("type", "").endswith("call_output"):
            found.append(item["call_id"])
        elif item.get("role") == "tool":
            found.append(item["tool_call_id"])
        elif item.get("role") == "user" and isinstance(item["content"], list):
            found += [part["tool_use_id"] for part in item["content"] if "tool_use_id" in part]
    return found


def calls_in(items):
    """The call ids of the calls among items of the Responses API, in order."""
    return [item["call_id"] for item in items if item.get("type", "").endswith("_call")]
