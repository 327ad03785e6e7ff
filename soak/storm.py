"""What goes wrong at the upstreams all the time, from a seed; and what they say was wrong.

Faults are armed one after the other, at points drawn at random. Now and then an upstream is killed
and started again, knowing nothing."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import aiohttp

from soak.findings import Findings
from soak.processes import SILENCE_SECONDS, Upstream
from soak.provider import GARBAGE

FAULT_SECONDS = 0.25
"""Between two faults, at both upstreams together."""
KILL_SECONDS = 50.0
DOWN_SECONDS = 3.0
CLEAR_EVERY = 60
"""Faults whose point never comes up would pile up."""
LONGEST_STALL_SECONDS = 1.5 * SILENCE_SECONDS
ALLOWED = {
    "anchor-not-found": "its response was forgotten, or made elsewhere",
    "not-found": "what a client looks for was forgotten",
    "conversation-locked": "a client asks again while the answer to the lost request still runs",
}
"""The rules that requests break because upstreams forget and stall. No other is ever broken."""

_POINTS = (
    "before=first-byte",
    "after=response.created",
    "after=response.in_progress",
    "before=end",
)
_HOW = ("close", "reset", "half-frame", "half-character")


def fault(chance: random.Random) -> str:
    """One fault, somewhere."""
    point = chance.choice((*_POINTS, *(f"after={n}" for n in range(2, 40))))
    inside = chance.choice((*_POINTS[1:], *(f"after={n}" for n in range(2, 30))))
    match chance.choices(tuple(_WEIGHTS), tuple(_WEIGHTS.values()))[0]:
        case "cut":
            commit = chance.choice(("no", "no", "yes"))
            return f"cut {point} how={chance.choice(_HOW)} commit={commit}"
        case "close":
            return f"close {point} code={chance.choice((1000, 1001, 1006, 1011, 1012))}"
        case "stall":
            seconds = chance.choice((0.3, 1.0, 2.0, LONGEST_STALL_SECONDS))
            return f"stall {point} seconds={seconds}"
        case "drip":
            # Even a large answer is whole within seconds.
            return f"drip {point} bytes={chance.choice((300, 1000))} seconds=0.002"
        case "fail":
            code = chance.choice(("server_error", "rate_limit_exceeded"))
            return f"{chance.choice(('fail', 'error'))} {inside} code={code}"
        case "incomplete":
            return f"incomplete {inside}"
        case "status":
            status = chance.choice((429, 429, 500, 502, 503, 503, 529))
            waits = chance.choice(("", " retry_after=0.2", " retry_after=1", " retry_after=30"))
            return f"status code={status}{waits}"
        case "lose":
            return f"lose how={chance.choice(_HOW)}"
        case "forget":
            return f"forget what={chance.choice(('anchor', 'anchor', 'anchor', 'cache'))}"
        case "forget everything":
            return "forget what=everything"
        case name:
            return name


_WEIGHTS = {
    "cut": 30,
    "close": 6,
    "stall": 10,
    "drip": 6,
    "fail": 10,
    "incomplete": 6,
    "status": 12,
    "lose": 6,
    "forget": 12,
    "forget everything": 1,
    "lock": 2,
    "refuse-upgrade": 2,
}


class Storm:
    def __init__(
        self,
        upstreams: Sequence[Upstream],
        session: aiohttp.ClientSession,
        findings: Findings,
        seed: int,
    ) -> None:
        self._upstreams = upstreams
        self._session = session
        self._findings = findings
        self._chance = random.Random(f"{seed}/storm")
        self._locks = {upstream.name: asyncio.Lock() for upstream in upstreams}
        self._known: dict[str, Counter[str]] = {}
        """What the processes that run have said of broken rules so far."""
        self._struck: dict[str, int] = {}
        self.struck_before = 0
        self.broken: Counter[str] = Counter()
        self.kills = 0
        self._told: dict[str, int] = {}
        """The last entry of each record that was told of."""

    @property
    def struck(self) -> int:
        """Faults that came to strike."""
        return self.struck_before + sum(self._struck.values())

    async def rage(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._arm())
            group.create_task(self._kill())

    async def calm(self) -> None:
        """No fault is armed any more."""
        for upstream in self._upstreams:
            async with self._locks[upstream.name]:
                if upstream.child is None:
                    await upstream.start(self._session)
                await self._session.delete(f"{upstream.url}/_emulator/faults")
        await self.look()

    async def forget(self) -> None:
        for upstream in self._upstreams:
            async with self._session.post(f"{upstream.url}/_emulator/forget", json={}) as answer:
                assert answer.status == 200, await answer.text()

    async def _arm(self) -> None:
        armed = 0
        while True:
            await asyncio.sleep(self._chance.uniform(0.5, 1.5) * FAULT_SECONDS)
            upstream = self._chance.choice(self._upstreams)
            # 426 says that there are no WebSockets. The first upstream is to go on having them.
            refused = 500 if upstream is self._upstreams[0] else 426
            garbage = self._chance.random() < 0.06
            kind = self._chance.choice(tuple(GARBAGE))
            text = fault(self._chance)
            if text == "refuse-upgrade":
                text += f" code={refused}"
            armed += 1
            async with self._locks[upstream.name]:
                if upstream.child is None:
                    continue
                if garbage:
                    url, body = f"{upstream.url}/_soak/garbage", {"kinds": [kind]}
                else:
                    url, body = f"{upstream.url}/_emulator/faults", {"faults": [text]}
                async with self._session.post(url, json=body) as answer:
                    assert answer.status == 200, (text, await answer.text())
                if armed % CLEAR_EVERY == 0:
                    await self._session.delete(f"{upstream.url}/_emulator/faults")

    async def _kill(self) -> None:
        while True:
            await asyncio.sleep(self._chance.uniform(0.5, 1.5) * KILL_SECONDS)
            upstream = self._chance.choice(self._upstreams)
            async with self._locks[upstream.name]:
                await self._look(upstream)
                self.struck_before += self._struck.pop(upstream.name, 0)
                self._known.pop(upstream.name, None)
                self._told.pop(upstream.name, None)
                upstream.kill()
                self.kills += 1
                await asyncio.sleep(self._chance.uniform(0.2, 1.0) * DOWN_SECONDS)
                await upstream.start(self._session)

    async def look(self) -> None:
        """See which rules were broken, and what struck."""
        for upstream in self._upstreams:
            async with self._locks[upstream.name]:
                if upstream.child is not None:
                    await self._look(upstream)

    async def _look(self, upstream: Upstream) -> None:
        async with self._session.get(f"{upstream.url}/_emulator") as answer:
            told = await answer.json()
        async with self._session.get(f"{upstream.url}/_soak/garbage") as answer:
            given = (await answer.json())["given"]
        self._struck[upstream.name] = sum(told["struck"].values()) + given
        new = Counter(told["violations"]) - self._known.get(upstream.name, Counter())
        self._known[upstream.name] = Counter(told["violations"])
        self.broken += new
        if any(rule not in ALLOWED for rule in new):
            await self._tell(upstream, new)

    async def _tell(self, upstream: Upstream, new: Counter[str]) -> None:
        """What was refused, and the request that it answered."""
        async with self._session.get(f"{upstream.url}/_emulator/record") as answer:
            entries = (await answer.json())["entries"]
        asked = {}
        for entry in entries:
            if entry["direction"] == "in" and "data" in entry:
                asked[entry["connection"]] = entry["data"]
            rule = entry.get("broke")
            if rule not in new or rule in ALLOWED:
                continue
            if entry["number"] <= self._told.get(upstream.name, 0):
                continue
            self._told[upstream.name] = entry["number"]
            said = str(entry.get("data"))[:300]
            request = _shortened(asked.get(entry["connection"]))
            self._findings.is_wrong(
                f"violation: {rule}", f"{upstream.name}: {said} for {request[:1500]}"
            )


def _shortened(request: Any) -> str:
    """A request with its items by id alone."""
    if not isinstance(request, dict):
        return str(request)
    sent = request.get("input")
    if not isinstance(sent, list):
        return str(request)
    items = [f"{item.get('type', 'message')} {item.get('id', '')}" for item in sent]
    return str({**request, "input": items, "tools": "…"})
