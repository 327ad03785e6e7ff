"""Every fault that the emulator has, and one play of a conversation that meets it."""

from __future__ import annotations

import asyncio

from lockstitch.emulator.faults import FAULTS
from lockstitch.store.memory import MemoryStore
from tests.gateway.faults.playing import (
    ASK,
    BYE,
    FINAL,
    KEYS,
    LOOK,
    THANKS,
    WORD,
    Play,
    is_whole,
    user,
)

CASE_SECONDS = 15.0
"""A play takes some hundredths of a second; one that takes this long hangs."""
SHORT_SILENCE_SECONDS = 0.5
"""Where an upstream stalls; far above what passes between two events on loopback."""
CREATE = "path=/v1/responses"
AND = " and then "
"""Between faults that strike one try after the other."""


def choices(fault, setting):
    return FAULTS[fault].settings[setting].choices


ANYWHERE = [
    *(f"cut how={how}" for how in choices("cut", "how")),
    *(f"cut how={how} after=response.created" for how in choices("cut", "how")),
    *(f"cut how={how} before=end" for how in choices("cut", "how")),
    "cut after=end",
    "cut after=response.output_item.done",
    "cut commit=yes",
    "cut after=response.created commit=yes",
    "cut before=end commit=yes how=reset",
    "stall seconds=3600",
    "stall seconds=3600 after=response.in_progress",
    "stall seconds=3600 before=response.output_item.done",
    "stall seconds=3600 before=end",
    "stall seconds=0.01 before=end",
    "drip bytes=64 seconds=0",
    "duplicate",
    "duplicate at=response.output_item.done",
    "duplicate at=response.output_text.delta",
    "duplicate at=end",
    "late",
    "late at=response.created",
    "late at=response.output_item.added by=2",
    "late at=response.output_item.done by=3",
    "fail",
    "fail after=response.created",
    "fail after=response.in_progress code=rate_limit_exceeded",
    "fail code=rate_limit_exceeded",
    *(f"incomplete reason={reason}" for reason in choices("incomplete", "reason")),
    "incomplete after=response.in_progress",
    "error",
    "error after=response.created",
    "error after=response.in_progress code=rate_limit_exceeded",
    "error code=rate_limit_exceeded",
    *(f"status code={code}" for code in choices("status", "code")),
    *(f"status code={code} retry_after=0.01" for code in ("429", "503", "529")),
    "status code=503 retry_after=3600",
    *(f"lose how={how}" for how in choices("lose", "how")),
    *(f"forget what={what}" for what in choices("forget", "what")),
]
OF_CONVERSATIONS = ["lock"]
OF_WEBSOCKETS = [
    *(f"close code={code}" for code in choices("close", "code")),
    *(f"close code={code} before=end" for code in ("1000", "1006", "1011")),
    "close after=response.created code=1006 commit=yes",
]
OF_HANDSHAKES = [f"refuse-upgrade code={code}" for code in choices("refuse-upgrade", "code")]

BROKEN_BY = {
    "forget": {"anchor-not-found", "not-found"},
    "lock": {"conversation-locked"},
}
"""The rules that a client's own request breaks, because a fault made it so."""

CLEARLY_REFUSED = ("status", "lock", "forget", "refuse-upgrade")
"""What a provider says before it does anything."""


def faults_for(transport, shape):
    faults = list(ANYWHERE)
    if shape == "conversation":
        faults += OF_CONVERSATIONS
    if transport == "websocket":
        faults += OF_WEBSOCKETS + OF_HANDSHAKES
    return faults


async def weathers(made, fault, transport, shape, *, store=None, **settings):
    """Play a conversation that a fault strikes: what a client is told is true, nothing is lost,
    nothing is there twice. The answer that was struck; None if none was."""
    try:
        async with asyncio.timeout(CASE_SECONDS):
            return await _weathered(made, fault, transport, shape, store or MemoryStore(), settings)
    except BaseException as error:
        error.add_note(f"{fault!r}, {transport}, {shape}, {len(made)} upstreams, {settings}")
        raise


async def _weathered(made, fault, transport, shape, store, settings):
    for provider in made:
        provider.reset()
    if "3600" in fault:
        told = settings.get("told", {})
        settings = settings | {"told": {"silence_seconds": SHORT_SILENCE_SECONDS} | told}
    play = Play(made, store, transport, **settings)
    upgrade = fault.startswith("refuse-upgrade")
    async with play.through_a_gateway():
        if upgrade:
            made[0].fault(fault)
        await play.begin(shape)
        faults = fault.split(AND)
        for number, one in enumerate(faults if not upgrade else (), 1):
            # The second strikes the second try, and so on.
            made[0].fault(
                f"{one} {CREATE} request={number}" if len(faults) > 1 else f"{one} {CREATE}"
            )
        before = [len(provider.with_conversations()) for provider in made]
        play.as_sent = any(one.startswith(("duplicate", "late")) for one in faults)
        answer = await play.struck(shape)
        play.as_sent = False
        traffic = [p.with_conversations()[n:] for p, n in zip(made, before, strict=True)]
        struck = made[0].struck()
        for provider in made:
            provider.emulator.faults.clear()
        for one in traffic:
            _is_looked_for_first(faults, one)
        gone = shape == "conversation" and "everything" in fault and answer.said == "error"
        if not gone:
            await play.finish(shape, answer)
            await _has_it_once(play, shape, answer)
    if shape != "conversation":
        await _is_known_without_any_upstream(play, shape, answer)
    broken = {rule for provider in made for rule in provider.broken()}
    allowed = set().union(*(BROKEN_BY.get(one.split()[0], set()) for one in faults))
    assert broken <= allowed | {"anchor-not-found"}, broken
    return answer if struck else None


def _is_looked_for_first(faults, traffic):
    """The upstream's list would have it twice: what was not clearly refused is sent again only
    right after the list was looked at."""
    refused = 0
    while refused < len(faults) and faults[refused].startswith(CLEARLY_REFUSED):
        refused += 1
    if refused < len(faults):
        sends = [at for at, what in enumerate(traffic) if what == "send"]
        assert all(traffic[at - 1] == "look" for at in sends[refused + 1 :]), traffic


async def _has_it_once(play, shape, answer):
    """What the provider took for the whole of the conversation is that."""
    asked, texts = _expected(shape, answer)
    if shape == "conversation":
        held = await play.held()
        is_whole(held, asked=[*asked, THANKS], texts=[*texts, f"Heard: {THANKS}"])
        return
    is_whole(
        play.context(play.last),
        asked=[*asked, THANKS],
        texts=texts,
        given=_given(shape, answer),
    )


def _given(shape, answer):
    """The calls that must have an output: what broke off half-way is none."""
    return answer.calls if shape == "first" and answer.said == "incomplete" else KEYS


def _expected(shape, answer):
    asked = [ASK] if shape == "first" else [WORD, ASK]
    texts = [LOOK] if shape == "first" else [f"Heard: {WORD}", LOOK]
    if answer.said != "incomplete":
        return asked, [*texts, FINAL]
    said = ["".join(part["text"] for part in item["content"]) for item in answer.messages]
    if shape != "first":
        return asked, [*texts, *said]
    return ([*asked, "?"], [*said, "Heard: ?"]) if not answer.calls else (asked, [*said, FINAL])


async def _is_known_without_any_upstream(play, shape, answer):
    """The journal has all of it: another gateway goes on when every provider has lost it."""
    for provider in play.providers:
        provider.forget()
    asked, texts = _expected(shape, answer)
    async with play.through_a_gateway():
        await play.said(user(BYE))
    is_whole(
        play.context(play.last),
        asked=[*asked, THANKS, BYE],
        texts=[*texts, f"Heard: {THANKS}"],
        given=_given(shape, answer),
    )
