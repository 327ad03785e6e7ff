"""What must be true when the gateway is gone: everything that a client saw is in the store, and a
new gateway goes on from it when every upstream has forgotten everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import msgspec

from lockstitch.core import records
from lockstitch.core.facts import AnyFact, Ending, ItemCompleted, Noted, ResponseEnded
from lockstitch.gateway.keeping.notes import SAME_AS
from lockstitch.store import Store, open_store
from soak.answers import Answer, problems
from soak.clients import tenant_of
from soak.echoes import Plan, echo, echo_in, marks, text_of
from soak.findings import Findings, digest
from soak.processes import KEYS
from soak.talks import TOOLS, Point, Talk
from soak.wire import Door

_AT_ONCE = 5


async def all_is_kept(url: str, findings: Findings) -> None:
    """Read every response that was seen, and compare."""
    async with open_store(url, create=False) as store:
        for response, (tenant, seen) in findings.seen.items():
            facts = await _facts(store, f"gateway/{tenant}/", response)
            said = [
                msgspec.json.decode(fact.item) for fact in facts if isinstance(fact, ItemCompleted)
            ]
            ended = [fact for fact in facts if isinstance(fact, ResponseEnded)]
            findings.counts["responses read back"] += 1
            if not facts:
                findings.is_wrong("seen and not kept", f"{response} is not in the store")
            elif not ended or ended[-1].ending not in (Ending.COMPLETED, Ending.INCOMPLETE):
                findings.is_wrong("seen and not kept", f"{response} did not end: {ended}")
            elif digest(said) != seen:
                findings.is_wrong("seen and not kept", f"{response} has another output: {said}")


async def _facts(store: Store, prefix: str, response: str) -> list[AnyFact]:
    facts = [fact async for fact in _read(store, prefix + response)]
    for fact in facts:
        if isinstance(fact, Noted) and fact.kind == SAME_AS:
            return [fact async for fact in _read(store, prefix + fact.note.decode())]
    return facts


async def _read(store: Store, name: str) -> AsyncIterator[AnyFact]:
    async for record in store.read(name):
        yield records.decoded(record)


async def all_go_on(base: str, points: Sequence[Point], findings: Findings) -> None:
    """Each of these is gone on from once more, and its answer follows from the whole of it."""
    doors = {tenant: Door(base, key) for tenant, key in KEYS.items()}
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(point: Point) -> None:
        async with turns:
            items = Talk(point, 1).next_items(point, Plan())
            body = {"model": point.model, "input": items, "tools": TOOLS, "stream": True}
            body |= dict(point.settings) | {"previous_response_id": point.tip}
            answer = await doors[tenant_of(point.model)].streamed(body)
            findings.counts["chains gone on from"] += 1
            for problem in _wrong_with(answer, [*point.held, *marks(items)]):
                findings.is_wrong("chain does not go on", f"{point.model} {point.tip}: {problem}")

    try:
        await asyncio.gather(*map(one, points))
    finally:
        for door in doors.values():
            await door.close()


def _wrong_with(answer: Answer, held: Sequence[str]) -> list[str]:
    found = list(problems(answer))
    response = answer.response
    if response is None or response["status"] != "completed":
        return [*found, f"no answer: {answer}"]
    said = echo_in(text_of(response["output"][-1]["content"]))
    if said != echo(held):
        found.append(f"it says {said}, and was to say {echo(held)}")
    return found
