"""Broken histories, at each setting of the guard: what reaches the provider, and what the client is
told."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.store.memory import MemoryStore
from tests.gateway.faults.playing import ASK, KEYS, OUTPUTS, WORD, Play, output, script, user
from tests.gateway.faults.serving import TRANSPORTS, providers

each_transport = pytest.mark.parametrize("transport", TRANSPORTS)


def heard():
    """What a client keeps of the first answer."""
    content = [{"type": "output_text", "text": f"Heard: {WORD}"}]
    return {"type": "message", "role": "assistant", "content": content}


def called(key):
    return {"type": "function_call", "call_id": key, "name": "wind", "arguments": "{}"}


BROKEN = {
    "an open call": [user(ASK), called(KEYS[0])],
    "an open call in the middle": [user(ASK), called(KEYS[0]), user("Well?")],
    "one of two is open": [user(ASK), called(KEYS[0]), called(KEYS[1]), output(KEYS[0])],
    "an orphan": [user(ASK), output(KEYS[0])],
    "an output twice": [user(ASK), called(KEYS[0]), output(KEYS[0]), output(KEYS[0])],
    "an output before its call": [user(ASK), output(KEYS[0]), called(KEYS[0]), user("Well?")],
}
each_broken = pytest.mark.parametrize("what", BROKEN)


def played(transport, guard, work, **settings):
    async def run():
        async with providers("a", script=script) as made:
            play = Play(made, MemoryStore(), transport, told={"guard": guard}, **settings)
            async with asyncio.timeout(15), play.through_a_gateway():
                await work(play, made[0])

    asyncio.run(run())


@each_broken
@each_transport
@pytest.mark.parametrize("guard", ["off", "report"])
def test_a_guard_that_only_looks_lets_a_broken_history_pass_as_it_is(transport, guard, what):
    async def work(play, provider):
        answer = await play.ask(*BROKEN[what])
        assert answer.said == "error", answer
        assert any(key in answer.error["message"] for key in KEYS)
        (asked,) = provider.asked()
        assert asked["input"] == BROKEN[what]

    played(transport, guard, work)


@each_broken
@each_transport
def test_a_guard_that_mends_makes_a_broken_history_whole(transport, what):
    async def work(play, provider):
        answer = await play.ask(*BROKEN[what])
        assert answer.said == "completed", answer
        assert provider.broken() == {}
        # What was mended is what the journal has: it can be gone on from without the upstream.
        play.last = answer.id
        provider.forget()
        await play.said(user("And now?"))
        assert set(provider.broken()) <= {"anchor-not-found"}

    played(transport, "mend", work)


@each_broken
@each_transport
def test_a_guard_that_refuses_names_the_call_and_sends_nothing(transport, what):
    async def work(play, provider):
        answer = await play.ask(*BROKEN[what])
        assert answer.said == "error", answer
        assert any(key in answer.error["message"] for key in KEYS)
        assert answer.error["type"] == "invalid_request_error"
        assert provider.asked() == []

    played(transport, "refuse", work)


@each_transport
@pytest.mark.parametrize("guard", ["off", "report", "mend", "refuse"])
def test_no_guard_touches_a_delta_of_outputs_behind_an_anchor(transport, guard):
    async def work(play, provider):
        await play.begin("outputs")
        await play.said(*OUTPUTS)
        assert provider.asked()[-1]["input"] == OUTPUTS
        assert provider.broken() == {}

    played(transport, guard, work)


@each_transport
def test_an_open_call_gets_the_output_that_was_seen_on_a_sibling_branch(transport):
    """The client lost its output and sends the history without it; a sibling had delivered it."""

    async def work(play, provider):
        await play.begin("full")
        said = play.looked.response["output"]
        await play.said(*OUTPUTS)
        history = [user(WORD), heard(), user(ASK), *said, output(KEYS[0]), user("Well?")]
        answer = await play.ask(*history)
        assert answer.said == "completed", answer
        given = {
            item["call_id"]: item["output"]
            for item in play.context(answer.id)
            if item["type"] == "function_call_output"
        }
        assert given == {key: f"{key} is fair" for key in KEYS}
        assert provider.broken() == {}

    played(transport, "mend", work)


@each_transport
def test_an_output_of_a_chain_that_the_history_does_not_prove_is_not_used(transport):
    """The same call id, name and arguments, in a history that the journal does not know."""

    async def work(play, provider):
        await play.begin("full")
        said = play.looked.response["output"]
        await play.said(*OUTPUTS)
        answer = await play.ask(user("Another story."), *said, output(KEYS[0]), user("Well?"))
        assert answer.said == "completed", answer
        given = {
            item["call_id"]: item["output"]
            for item in play.context(answer.id)
            if item["type"] == "function_call_output"
        }
        assert given[KEYS[0]] == f"{KEYS[0]} is fair"
        assert given[KEYS[1]].startswith("[lockstitch] Outcome unknown.")

    played(transport, "mend", work)


@each_transport
def test_an_open_call_behind_an_anchor_gets_the_output_of_a_sibling_branch(transport):
    async def work(play, provider):
        await play.begin("outputs")
        root = play.last
        await play.said(*OUTPUTS)
        play.last = root
        answer = await play.go_on(output(KEYS[0]))
        assert answer.said == "completed", answer
        given = {
            item["call_id"]: item["output"]
            for item in play.context(answer.id)
            if item["type"] == "function_call_output"
        }
        assert given == {key: f"{key} is fair" for key in KEYS}

    played(transport, "mend", work)


@each_transport
@pytest.mark.parametrize("guard", ["mend", "refuse"])
@pytest.mark.parametrize("fault", ["cut", "forget what=everything", "status code=500"])
def test_a_guard_and_a_fault_together_send_nothing_broken(transport, guard, fault):
    async def work(play, provider):
        for history in BROKEN.values():
            provider.fault(f"{fault} path=/v1/responses")
            await play.ask(*history)
            provider.emulator.faults.clear()
        assert provider.broken() == {}

    played(transport, guard, work)
