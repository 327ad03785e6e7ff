"""A conversation with two tools and a summary, played to its end whatever happens on the way, and
what must be true then."""

from __future__ import annotations

import asyncio

from lockstitch.emulator import call, reply
from lockstitch.runner import CallContext, tool
from tests.realtime.hearing import come_to, texts_of, user

BOOK, MORE = "Book it, and look.", "Go on."
FINAL, LAST = "It is booked.", "That was all."
ARGUMENTS = {"book": {"flight": "LS 1"}, "look": {}}


def decide(asked):
    """A model that knows what it was told last."""
    if asked.output is not None:
        return reply(FINAL)
    if asked.user == MORE:
        return reply(LAST)
    return reply(*(call(name, ARGUMENTS[name], call_id=f"call_{name}") for name in ARGUMENTS))


class Effects:
    """Tools that count what they did."""

    def __init__(self):
        self.done = []

    @property
    def tools(self):
        async def book(flight: str, context: CallContext) -> str:
            """Book a flight."""
            self.done.append(("book", context.key))
            await asyncio.sleep(0)
            return f"{flight} is booked"

        @tool(effect="read")
        async def look(context: CallContext) -> str:
            """Look."""
            self.done.append(("look", context.key))
            return "looked"

        return book, look

    def of(self, name):
        return [key for made, key in self.done if made == name]


async def played(session, begun=False):
    """The conversation, to its end."""
    if not begun:
        await session.change(added=[user(BOOK, "first")])
        await session.respond()
    await come_to(session, FINAL)
    await session.summarise(user("In short.", "short"), base=session.snapshot(), count=1)
    await session.change(added=[user(MORE, "second")])
    await session.respond()
    await come_to(session, LAST)


async def settled(stage, session):
    """Until no fault strikes any more, and everything that was under way is over."""
    number, struck = 0, None
    while struck != stage.struck():
        struck = stage.struck()
        number += 1
        await session.change(added=[user("Barrier.", f"barrier_{number}")])


def check_played(stage, session, effects):
    """Nothing is lost, nothing is done twice, every pair is whole, and the provider saw nothing
    wrong."""
    ids = stage.in_step(session)
    items = session.items
    assert len(effects.of("book")) == 1
    assert len(effects.of("look")) <= 1
    keys = [wire["call_id"] for wire in items if wire["type"] == "function_call"]
    assert keys == ["call_book", "call_look"][: len(keys)]
    outputs = {w["call_id"]: w["output"] for w in items if w["type"] == "function_call_output"}
    assert outputs["call_book"] == "LS 1 is booked"
    assert sorted(outputs) == keys
    assert ids[0] == "short"
    assert "first" not in ids
    said = [texts_of(wire)[0] for wire in items if wire.get("role") == "assistant"]
    assert said == [FINAL, LAST]
    assert not stage.broken(), f"{stage.broken()} in {stage.what_passed()}"
