"""Three calls in one answer, one of them slow: the turn that is cut at every event.

The model knows only what it was told last, as a real one does: after a cut it asks for what it has
not heard of. The tools count what they did."""

from __future__ import annotations

import asyncio
from collections import Counter

from lockstitch.emulator import ALWAYS, Turn, call, reasoning, reply
from tests.runner.stage import THREAD, outputs_in, played, text_of

USER = "Shall I sail from Oslo?"
FINAL = "Sail at noon."
LATER = "Until then."
NAMES = ("wind", "charts", "book")
KEYS = [f"call_{name}" for name in NAMES]
SLOW_SECONDS = 0.004
"""Longer than the rest of a stream on loopback: it ends after the cut, or after the answer."""


def decide(asked):
    """Everything at once; or what comes behind the last output; or the last word."""
    if asked.output is None:
        return reply(LATER) if asked.user != USER else _calling(asked, NAMES)
    left = NAMES[NAMES.index(asked.tool) + 1 :]
    return _calling(asked, left) if left else reply(FINAL)


def _calling(asked, names):
    thought = [reasoning("What is the wind?")] if asked.dialect == "responses" else []
    made = [call(name, {"city": "Oslo"}, call_id=f"call_{name}") for name in names]
    return reply(*thought, *made)


THREE_CALLS = Turn(decide=decide, times=ALWAYS)


class Counting:
    """The three tools, and how often each had its effect."""

    def __init__(self):
        self.effects = Counter()

    @property
    def tools(self):
        async def wind(city: str) -> str:
            return self._done("wind", city)

        async def charts(city: str) -> str:
            await asyncio.sleep(SLOW_SECONDS)
            return self._done("charts", city)

        async def book(city: str) -> str:
            return self._done("book", city)

        return wind, charts, book

    def _done(self, name, city):
        self.effects[name] += 1
        return f"{name} of {city}"


async def sail(stage, *, thread=THREAD, mode=None, **settings):
    """Play the turn, and one more after it: everything is right, whatever happened in between.
    What was told."""
    counting = Counting()
    runner = stage.runner(*counting.tools, mode=mode, **settings)
    events = await played(runner.turn(thread, USER))
    later = await played(runner.turn(thread, "Thanks."))
    await runner.close()
    assert text_of(events) == FINAL
    assert text_of(later) == LATER
    assert counting.effects == dict.fromkeys(NAMES, 1)
    history = await stage.whole(thread)
    assert outputs_in(history) == KEYS
    # What was said before a cut is said again, and is there once.
    assert str(history).count(FINAL) == 1
    await provider_has_it_once(stage, mode, thread)
    return events


async def provider_has_it_once(stage, mode, thread=THREAD):
    """Nothing is there twice, and nothing is missing, where the conversation goes on."""
    context = await stage.context(mode, thread)
    assert outputs_in(context) == KEYS
    assert str(context).count(USER) == 1
    assert str(context).count(FINAL) == 1
