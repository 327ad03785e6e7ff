"""Random callers on random connections: the user speaks, the caller edits and summarises, tools
run, connections are lost or renewed, the thread is opened again. Both sides have the same whole
context."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.emulator import call, reply
from lockstitch.emulator.errors import NobodyThere
from lockstitch.realtime import Patience
from lockstitch.runner import CallContext, tool
from tests.generated import examples
from tests.realtime.hearing import user
from tests.realtime.stage import KINDS, staged

CASE_SECONDS = 30.0
QUICK = Patience(
    acknowledgement_seconds=0.5,
    answer_seconds=5.0,
    hold_seconds=2.0,
    attempts=20,
    quiet_seconds=0.0,
)
CONFIGURED = {"audio": {"input": {"transcription": {"model": "whisper-1"}}}}

actions = st.sampled_from(
    ["say", "speak", "respond", "summarise", "remove", "change", "age", "reopen"]
)
cuts = st.lists(st.integers(2, 60), max_size=3)


class Model:
    """Makes calls, and says what comes to its mind."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self.made = 0
        self.makes_calls = True

    def decide(self, asked):
        self.made += 1
        pace = self._random.choice([0.0, 0.0, 0.002])
        if self.makes_calls and asked.output is None and self._random.random() < 0.5:
            count = self._random.randint(1, 2)
            calls = [call("act", {"n": n}, call_id=f"call_{self.made}_{n}") for n in range(count)]
            return reply(*calls, pace=pace)
        return reply(f"Answer {self.made}.", pace=pace)


class World:
    """Where the tools have their effects."""

    def __init__(self):
        self.effects = []
        self.seconds = 0.0
        """How late it is: connections grow old."""

    def now(self):
        return self.seconds

    @property
    def act(self):
        @tool
        async def act(n: int, context: CallContext) -> str:
            """Do something that must not be done twice."""
            self.effects.append((context.call_id, context.key))
            await asyncio.sleep(0.001 * n)
            return f"did {context.call_id}"

        return act


@given(
    steps=st.lists(st.tuples(actions, st.integers(0, 5)), max_size=14),
    cut=cuts,
    seed=st.integers(0, 1000),
    kind=st.sampled_from(KINDS),
)
@settings(max_examples=examples(25), deadline=None)
def test_both_sides_have_the_same_whole_context(steps, cut, seed, kind):
    async def scene():
        faults = [f"cut after={number} how=reset" for number in cut]
        model, world, left = Model(seed), World(), list(steps)
        async with (
            asyncio.timeout(CASE_SECONDS),
            staged(decide=model.decide, faults=faults) as stage,
        ):
            while await _is_left(stage, world, left, kind):
                pass
            model.makes_calls = False
            async with _session(stage, world, kind) as session:
                await _quiet(stage, session)
                _check(stage, session, world)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lockstitch.runner.backoff.FIRST_DELAY_SECONDS", 0.001)
        asyncio.run(scene())


def _session(stage, world, kind):
    return stage.session(
        world.act, kind=kind, patience=QUICK, configured=CONFIGURED, clock=world.now
    )


async def _is_left(stage, world, left, kind):
    """One process, until it has taken all steps, or leaves some of them to another (True)."""
    async with _session(stage, world, kind) as session:
        seen = session.snapshot()
        while left:
            step, number = left.pop(0)
            if step == "reopen":
                return True
            if number % 2:
                seen = session.snapshot()
            if step == "age":
                world.seconds += QUICK.renew_after_seconds
            else:
                await _take(stage, session, step, number, seen)
    return False


async def _take(stage, session, step, number, seen):
    match step:
        case "say":
            await session.change(added=[user(f"said {number}")], base=seen)
        case "speak":
            with suppress(NobodyThere):  # the connection was just lost
                await stage.emulator.speak(f"spoken {number}")
        case "respond":
            await session.respond()
        case "summarise":
            await session.summarise(user("in short"), base=seen, fraction=0.2 * number)
        case "remove":
            await session.change(removed=[w["id"] for w in seen.items[:number]], base=seen)
        case "change":
            wires = [w for w in seen.items[-number:] if w["type"] == "message"]
            changed = [user(f"changed {number}", w["id"]) for w in wires if w["role"] == "user"]
            await session.change(changed=changed, base=seen)


async def _quiet(stage, session):
    """Until nothing is under way, and no fault strikes any more."""
    while True:
        struck = stage.struck()
        # Behind whatever goes on: it is an edit of the tail.
        await session.change(added=[user("barrier")])
        answered = {w["call_id"] for w in session.items if w["type"] == "function_call_output"}
        made = {w["call_id"] for w in session.items if w["type"] == "function_call"}
        if struck == stage.struck() and made <= answered:
            with suppress(ValueError):  # no session is open: the connection was just lost
                if session.items == stage.provider.items():
                    return


def _check(stage, session, world):
    stage.in_step(session)
    keys = [key for _, key in world.effects]
    assert len(keys) == len(set(keys))  # no call had its effect twice
    assert lockstitch.check(session.history(), dialect="realtime") == []
    # The user and the caller may want a response at the same time: the server says who was first.
    assert set(stage.broken()) <= {"realtime-response-active"}
