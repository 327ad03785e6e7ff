"""A conversation of four turns, one of which a fault strikes, and what must be true of it after.

A client does what clients do: it takes what it is told, asks once more after an error, and goes on
from the response it knows. Where it cannot know, in a conversation, it looks."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from lockstitch.core import records
from lockstitch.core.facts import ItemCompleted, Noted, ResponseEnded
from lockstitch.core.records import Name, Naming
from lockstitch.emulator import ALWAYS, Script, Turn, call, reasoning, reply
from lockstitch.gateway.keeping.notes import SAME_AS
from tests.gateway.faults.serving import TERMINAL, Client, serving, upstream, wellformed

WORD = "Remember the herring."
ASK = "Shall I sail from Oslo?"
THANKS = "Thanks, old friend."
BYE = "Farewell."
LOOK = "I look it up."
FINAL = "Sail at noon."
NAMES = ("wind", "charts")
KEYS = [f"call_{name}" for name in NAMES]
SHAPES = ("first", "outputs", "full", "conversation")
TOOLS = [
    {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}}
    | {"strict": False}
    for name in NAMES
]


def decide(asked):
    if asked.output is not None:
        return reply(FINAL)
    if asked.user == ASK:
        calls = [call(name, {"city": "Oslo"}, call_id=f"call_{name}") for name in NAMES]
        return reply(reasoning("What is the wind?"), LOOK, *calls)
    return reply(f"Heard: {asked.user}")


def script():
    return Script([Turn(decide=decide, times=ALWAYS)])


def user(text):
    return {"type": "message", "role": "user", "content": text}


def output(key):
    return {"type": "function_call_output", "call_id": key, "output": f"{key} is fair"}


OUTPUTS = [output(key) for key in KEYS]


class Play:
    """One conversation through one gateway after another, on one store."""

    def __init__(self, made, store, transport, *, settings=None, told=None, lane=None):
        self.providers = made
        self.store = store
        self.transport = transport
        self.settings = settings or {}
        self.told = told or {}
        self.lane = lane
        self.client = None
        self.conversation = None
        self.last = None
        """The response that the client goes on from."""
        self.as_sent = False
        """The upstream is about to repeat events, or to change their order."""
        self.shown = 0
        """Events that had to be in the journal, and were."""

    @asynccontextmanager
    async def through_a_gateway(self):
        """A gateway that knows nothing but its store."""
        upstreams = [upstream(one, **self.told) for one in self.providers]
        async with AsyncExitStack() as stack:
            base = await stack.enter_async_context(serving(self.store, *upstreams))
            self.client = await stack.enter_async_context(
                Client(base, self.transport, lane=self.lane, seen=self._seen)
            )
            yield self

    async def ask(self, *items, **more):
        """One answer, which is well formed whatever it says."""
        answer = await self.client.ask(input=list(items), tools=TOOLS, **self.settings, **more)
        wellformed(answer, as_sent=self.as_sent)
        await self.client.is_quiet(0.001)
        if answer.said != "error":
            self._echoes(answer, more)
            if self.transport == "json":
                await self._is_kept(answer.response)
        return answer

    async def go_on(self, *items):
        """Go on from what the client knows."""
        if self.conversation is not None:
            return await self.ask(*items, conversation=self.conversation)
        more = {} if self.last is None else {"previous_response_id": self.last}
        return await self.ask(*items, **more)

    async def said(self, *items, go_on=None):
        """Like `go_on`, where nothing is wrong."""
        answer = await (go_on or self.go_on)(*items)
        assert answer.said == "completed", answer
        self.last = answer.id
        return answer

    async def begin(self, shape):
        """All turns before the one that is struck."""
        if shape == "conversation":
            status, body = await self.client.post("/conversations", {})
            assert status == 200, body
            self.conversation = body["id"]
        if shape == "full":
            # Whoever keeps the history must have what the model thought, too.
            self.settings = self.settings | {"include": ["reasoning.encrypted_content"]}
        if shape != "first":
            await self.said(user(WORD))
            looked = await self.said(user(ASK))
            assert looked.calls == KEYS
            self.looked = looked

    async def struck(self, shape):
        """The turn that a fault strikes, as a client would ask for it."""
        match shape:
            case "first":
                return await self.go_on(user(ASK))
            case "full":
                # What a client keeps of the answer, item by item, and no anchor.
                answer = {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": f"Heard: {WORD}"}],
                }
                history = [user(WORD), answer, user(ASK)]
                return await self.ask(*history, *self.looked.response["output"], *OUTPUTS)
            case _:
                return await self.go_on(*OUTPUTS)

    async def finish(self, shape, answer):
        """The turns behind the one that was struck; the last answer."""
        if answer.said in ("completed", "incomplete"):
            self.last = answer.id
        else:
            answer = await self._again(shape)
        if shape == "first":
            # What broke off half-way is no call, and needs no output.
            await self.said(*(map(output, answer.calls) if answer.calls else [user("?")]))
        return await self.said(user(THANKS))

    async def _again(self, shape):
        """The client was told of an error. It asks again; in a conversation it looks first."""
        if shape == "conversation":
            held = await self.held()
            if any(item["type"] == "function_call_output" for item in held):
                return None
        answer = await self.struck(shape)
        assert answer.said == "completed", answer
        self.last = answer.id
        return answer

    async def held(self):
        """The items of the conversation, oldest first."""
        path = f"/conversations/{self.conversation}/items?limit=100&order=asc"
        status, body = await self.client.get(path)
        assert status == 200, body
        return body["data"]

    # --- what must be true ---------------------------------------------------------------------

    def context(self, response):
        """What a provider accepted as all that this response saw."""
        for provider in self.providers:
            run = provider.run_of(response)
            if run is not None:
                return list(run.context)
        raise AssertionError(f"no provider has made {response}")

    def _echoes(self, answer, asked):
        """The response says what the client asked, whatever its upstream was asked."""
        response = answer.response
        assert response["previous_response_id"] == asked.get("previous_response_id"), answer
        conversation = asked.get("conversation")
        assert response.get("conversation") == (conversation and {"id": conversation}), answer

    async def _seen(self, event):
        """The event is here: it must be in the journal already."""
        if event["type"] == "response.output_item.done":
            item = event["item"]
            # One that broke off half-way is no call: nobody can act on it.
            if item["type"].endswith("_call") and item["status"] == "completed":
                assert await self.store.find(Name(Naming.ITEM, item["id"])), event
                self.shown += 1
        elif event["type"] in TERMINAL:
            await self._is_kept(event["response"])

    async def _is_kept(self, response):
        if response["status"] not in ("completed", "incomplete"):
            return
        facts = await self._facts(response["id"])
        said = [fact.item for fact in facts if isinstance(fact, ItemCompleted)]
        assert [msgspec.json.decode(item) for item in said] == response["output"], response["id"]
        assert any(isinstance(fact, ResponseEnded) for fact in facts), response["id"]
        self.shown += 1

    async def _facts(self, response):
        name = f"gateway/local/{response}"
        facts = [records.decoded(record) async for record in self.store.read(name)]
        for fact in facts:
            if isinstance(fact, Noted) and fact.kind == SAME_AS:
                return await self._facts(fact.note.decode())
        return facts


def is_whole(context, *, asked, texts, given=KEYS):
    """Everything is there, once, in its order; each call with its output behind it."""
    users = [_text(item) for item in context if item.get("role") == "user"]
    assert users == list(asked), users
    model = [_text(item) for item in context if item.get("role") == "assistant"]
    assert model == list(texts), model
    calls = [
        item["call_id"]
        for item in context
        if item.get("type") == "function_call" and item.get("status") != "incomplete"
    ]
    assert calls == list(given), calls
    outputs = [item["call_id"] for item in context if item.get("type") == "function_call_output"]
    assert outputs == calls, outputs


def _text(item):
    content = item["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
