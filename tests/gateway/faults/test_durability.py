"""What a client is shown, it can rely on: calls and ends wait for the journal, all else does not.
What the journal cannot take is not shown."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.store.errors import CannotWrite
from lockstitch.store.memory import MemoryStore
from tests.gateway.faults.playing import ASK, OUTPUTS, TOOLS, Play, script, user
from tests.gateway.faults.serving import (
    SECONDS,
    TERMINAL,
    TRANSPORTS,
    Client,
    GatedStore,
    providers,
    serving,
    upstream,
    wellformed,
)

streamed = pytest.mark.parametrize("transport", ["sse", "websocket"])
each_transport = pytest.mark.parametrize("transport", TRANSPORTS)


def _is_promised(event):
    """Something that must be durable before it is seen."""
    return event["type"] in TERMINAL or (
        event["type"] == "response.output_item.done" and event["item"]["type"] == "function_call"
    )


class FailingStore(MemoryStore):
    """A store whose writes fail from the n-th on, for so many."""

    def __init__(self, first, times):
        super().__init__()
        self.left = first
        self.times = times

    async def begin(self, conversation, records, **how):
        self._count()
        return await super().begin(conversation, records, **how)

    async def append(self, claim, after, records, **how):
        self._count()
        await super().append(claim, after, records, **how)

    def _count(self):
        self.left -= 1
        if self.left < 0 and self.times:
            self.times -= 1
            raise CannotWrite("The disk is full.")


@streamed
def test_a_call_is_seen_when_it_is_durable_and_what_stands_before_it_at_once(transport):
    async def run():
        store = GatedStore()
        events = []

        async def seen(event):
            events.append(event)

        async with (
            providers("a", script=script) as (provider,),
            serving(store, upstream(provider)) as base,
            Client(base, transport, seen=seen) as client,
        ):
            store.gate.clear()
            asking = asyncio.create_task(client.ask(input=[user(ASK)], tools=TOOLS))
            async with asyncio.timeout(SECONDS):
                while "response.output_text.done" not in [event["type"] for event in events]:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            types = [event["type"] for event in events]
            # The text came to its end; no call and no end was shown.
            assert not any(map(_is_promised, events)), types
            store.gate.set()
            answer = await asking
            wellformed(answer)
            assert answer.said == "completed"
            assert len(answer.calls) == 2

    asyncio.run(run())


@each_transport
def test_an_end_is_seen_when_it_is_durable(transport):
    async def run():
        store = GatedStore()
        async with (
            providers("a", script=script) as (provider,),
            serving(store, upstream(provider)) as base,
            Client(base, transport) as client,
        ):
            store.gate.clear()
            asking = asyncio.create_task(client.ask(input=[user("Hello")]))
            await asyncio.sleep(0.2)
            assert not asking.done()
            store.gate.set()
            answer = await asking
            wellformed(answer)
            assert answer.said == "completed"

    asyncio.run(run())


@pytest.mark.parametrize("times", [1, 1000])
@each_transport
def test_what_the_journal_cannot_take_is_not_shown(transport, times):
    """The first write fails, the second, … until none does. A client sees an error, or what is
    there to be gone on from."""

    async def run():
        # Paced, so that there is more than one write.
        async with providers("a", script=script, settings={"pace": 0.001}) as made:
            for first in range(40):
                made[0].reset()
                store = FailingStore(first, times)
                play = Play(made, store, transport)
                async with asyncio.timeout(15), play.through_a_gateway():
                    answer = await play.ask(user(ASK))
                    struck = store.times < times
                    store.times = 0
                    if answer.said == "completed":
                        play.last = answer.id
                        made[0].forget()
                        await play.said(*OUTPUTS)
                    else:
                        await play.said(user(ASK))
                        await play.said(*OUTPUTS)
                assert set(made[0].broken()) <= {"anchor-not-found"}
                if not struck:
                    break
            assert 0 < first < 30

    asyncio.run(run())


@streamed
def test_a_client_that_goes_away_leaves_its_answer_in_the_journal(transport):
    async def run():
        async with (
            providers("a", script=script, settings={"pace": 0.002}) as (provider,),
            serving(store := MemoryStore(), upstream(provider)) as base,
        ):
            begun = asyncio.get_running_loop().create_future()

            async def seen(event):
                if not begun.done():
                    begun.set_result(event["response"]["id"])

            async with Client(base, transport, seen=seen) as client:
                asking = asyncio.create_task(client.ask(input=[user(ASK)], tools=TOOLS))
                response = await begun
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
            async with asyncio.timeout(SECONDS):
                while True:
                    name = f"gateway/local/{response}"
                    kept = [record async for record in store.read(name)]
                    if any(b"answered" in record.payload for record in kept):
                        break
                    await asyncio.sleep(0.01)
            provider.forget()
            async with Client(base, transport) as client:
                answer = await client.ask(input=OUTPUTS, tools=TOOLS, previous_response_id=response)
                assert answer.said == "completed", answer
            assert set(provider.broken()) <= {"anchor-not-found"}

    asyncio.run(run())
