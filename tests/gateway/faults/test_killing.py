"""`kill -9` of a gateway at the moment that a client has seen something: another gateway on the
same store has it, and goes on from it when the provider has lost everything.

Thirty kills, on SQLite and PostgreSQL; THOROUGH=1 makes a hundred and twenty."""

from __future__ import annotations

import asyncio
import os
from itertools import cycle, islice

import pytest

from lockstitch import open_store
from lockstitch.core import records
from lockstitch.core.facts import ItemCompleted
from lockstitch.core.records import Name, Naming
from tests.gateway.faults.killing import PATIENCE_SECONDS, seen_until, started
from tests.gateway.faults.playing import (
    ASK,
    KEYS,
    LOOK,
    OUTPUTS,
    TOOLS,
    WORD,
    is_whole,
    script,
    user,
)
from tests.gateway.faults.serving import MODEL, Client, providers, wellformed

KILLS = 120 if os.environ.get("THOROUGH") else 30
AT_ONCE = 6
"""Kills in one test: each needs a gateway that starts, and that takes most of the time."""
LIFE_SECONDS = 2 * PATIENCE_SECONDS
"""From the start of one gateway to its kill; what takes longer hangs."""
MOMENTS = ("a call", "another call", "the end", "the end of text")
TRANSPORTS = ("sse", "websocket")
SAY = "Only say so."
PACE_SECONDS = 0.002


def _is_a_call(key):
    def wanted(event):
        return (
            event["type"] == "response.output_item.done"
            and event["item"].get("type") == "function_call"
            and event["item"]["call_id"] == key
        )

    return wanted


def _is_the_end(event):
    return event["type"] == "response.completed"


def _cases(first):
    """So many kills, each at another moment over another transport."""
    pairs = [(moment, transport) for moment in MOMENTS for transport in TRANSPORTS]
    return islice(cycle(pairs), first, first + AT_ONCE)


def _body(*items, **more):
    return {"model": MODEL, "input": list(items), "tools": TOOLS} | more


async def _begun(base):
    async with Client(base, "json") as client:
        return (await client.ask(input=[user(WORD)])).id


async def _goes_on(base, transport, provider, moment, anchor, seen):
    """What was seen can be gone on from, though the provider knows nothing of it any more."""
    asked, texts, given = [WORD], [f"Heard: {WORD}"], []
    async with Client(base, transport) as client:
        if moment == "the end":
            answer = await _gone_on(client, seen["response"])
            asked, texts, given = [*asked, ASK], [*texts, LOOK], KEYS
        elif moment == "the end of text":
            answer = await _gone_on(client, seen["response"])
            asked, texts = [*asked, SAY, "Well?"], [*texts, f"Heard: {SAY}"]
        else:
            # The answer broke off: its parent is whole, and is gone on from.
            answer = await client.ask(**_body(user(ASK), previous_response_id=anchor))
            asked = [*asked, ASK]
    wellformed(answer)
    assert answer.said == "completed", answer
    is_whole(list(provider.run_of(answer.id).context), asked=asked, texts=texts, given=given)
    assert set(provider.broken()) <= {"anchor-not-found"}


async def _gone_on(client, response):
    calls = [item for item in response["output"] if item["type"] == "function_call"]
    items = OUTPUTS if calls else [user("Well?")]
    return await client.ask(**_body(*items, previous_response_id=response["id"]))


async def _is_kept(store, events):
    """Each call that was shown, and the end if that was shown, are in the store."""
    for event in events:
        if event["type"] == "response.output_item.done":
            if event["item"]["type"] == "function_call":
                assert await store.find(Name(Naming.ITEM, event["item"]["id"])), event
        elif _is_the_end(event):
            response = event["response"]
            name = f"gateway/local/{response['id']}"
            facts = [records.decoded(record) async for record in store.read(name)]
            said = [fact for fact in facts if isinstance(fact, ItemCompleted)]
            assert len(said) == len(response["output"]), facts


def _survives(folder, url, first):
    """Each gateway goes on from what the one before it has shown, and is killed in its turn."""

    async def run():
        # Paced: the process dies in the middle of what it does.
        async with providers("a", script=script, settings={"pace": PACE_SECONDS}) as (provider,):
            before = None
            for moment, transport in [*_cases(first), ("", "")]:
                try:
                    async with (
                        asyncio.timeout(LIFE_SECONDS),
                        started(folder, url, [provider]) as (base, kill),
                    ):
                        if before is not None:
                            await _goes_on(base, before[1], provider, before[0], *before[2:])
                        if not moment:
                            return
                        anchor = await _begun(base)
                        events = await _shown(base, transport, moment, anchor, kill)
                    provider.forget()
                    async with await open_store(url) as store:
                        await _is_kept(store, events)
                    before = (moment, transport, anchor, events[-1])
                except BaseException as error:
                    error.add_note(f"{moment!r} over {transport} after {before and before[:2]}")
                    raise

    asyncio.run(run())


async def _shown(base, transport, moment, anchor, kill):
    body = _body(user(SAY if moment == "the end of text" else ASK), previous_response_id=anchor)
    wanted = {"a call": _is_a_call(KEYS[0]), "another call": _is_a_call(KEYS[1])}
    return await seen_until(base, transport, body, wanted.get(moment, _is_the_end), kill)


@pytest.mark.parametrize("first", range(0, KILLS - AT_ONCE, AT_ONCE))
def test_what_a_client_saw_survives_kill_9(first, tmp_path):
    _survives(tmp_path, f"sqlite:///{tmp_path}/journal.db", first)


def test_what_a_client_saw_survives_kill_9_on_postgresql(tmp_path, postgres_url):
    _survives(tmp_path, postgres_url, KILLS - AT_ONCE)
