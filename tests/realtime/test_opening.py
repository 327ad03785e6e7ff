"""How a session begins, and what keeps it from beginning."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count

import pytest

from lockstitch.emulator import Settings
from lockstitch.ledgers.making import item_added
from lockstitch.realtime import (
    CannotConnect,
    ConfigurationRefused,
    Patience,
    RealtimeError,
    ResponseRefused,
    Session,
)
from lockstitch.realtime.websocket import websocket
from lockstitch.store.errors import ConversationBusy
from lockstitch.store.journal import Journal
from tests.realtime.hearing import user
from tests.realtime.stage import KINDS, SECONDS, THREAD, Through, staged, within

LEAST_STEPS = 10
"""To open takes more; if fewer are found, nobody was cancelled in the middle."""


def test_a_refused_configuration_is_told_and_nothing_is_left_behind():
    async def scene():
        async with staged() as stage:
            with pytest.raises(ConfigurationRefused, match="smell"):
                async with stage.session(configured={"output_modalities": ["smell"]}):
                    pass
            async with stage.session() as session:  # the thread is free
                assert session.items == []

    within(scene)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_is_refused_is_not_tried_again(kind):
    async def scene():
        async with staged(settings=Settings(key="right")) as stage:
            with pytest.raises(CannotConnect, match="401") as refused:
                async with stage.session(kind=kind):
                    pass
            # Whoever is told to change the key is not told to wait.
            assert "before you send it again. The stored thread is valid." in str(refused.value)
            assert "later" not in str(refused.value)
            assert len([e for e in stage.emulator.record.entries() if not e.sent]) == 1

    within(scene)


def test_a_server_that_is_not_there_is_given_up_after_its_attempts(monkeypatch):
    monkeypatch.setattr("lockstitch.runner.backoff.FIRST_DELAY_SECONDS", 0.001)

    async def scene():
        with pytest.raises(CannotConnect, match=r"retries in a row: 2.*open it again later"):
            await Session.open(
                websocket("ws://127.0.0.1:9/v1/realtime?model=m"), patience=Patience(attempts=2)
            )

    within(scene)


def test_two_processes_do_not_have_the_same_thread():
    async def scene():
        async with staged() as stage, stage.session():
            with pytest.raises(ConversationBusy):
                async with stage.session():
                    pass

    within(scene)


def test_a_thread_of_another_kind_is_not_taken():
    async def scene():
        async with staged() as stage:
            async with await Journal.open(stage.store, THREAD) as journal:
                await journal.append(item_added("Hello."))
            with pytest.raises(RealtimeError, match="dialect responses"):
                async with stage.session():
                    pass

    within(scene)


def test_an_error_that_names_no_event_is_told_with_what_was_not_answered():
    async def scene():
        def passes(event):
            if event["type"] != "error":
                return event
            return event | {"error": event["error"] | {"event_id": None}}

        async with staged("Hello.") as stage:
            connect = Through(stage.connect(), passes)
            patience = Patience(answer_seconds=0.2, attempts=0)
            async with stage.session(connect=connect, patience=patience) as session:
                with pytest.raises(ResponseRefused, match="the provider said: Invalid value"):
                    await session.respond({"output_modalities": ["smoke"]})
            wrong = {"output_modalities": ["smoke"]}
            with pytest.raises(CannotConnect, match="the provider said: Invalid value"):
                async with stage.session(connect=connect, patience=patience, configured=wrong):
                    raise AssertionError("it was not refused")

    within(scene)


def test_whoever_is_cancelled_while_a_session_opens_leaves_nothing_behind():
    async def scene():
        async with staged() as stage:
            async with stage.session() as session:  # so that there is something to push
                await session.change(added=[user("a", "a"), user("b", "b")])
            for steps in count():
                if await _is_opened_in(stage, steps):
                    break
            assert steps > LEAST_STEPS

    within(scene, seconds=3 * SECONDS)


async def _is_opened_in(stage, steps):
    """Open a session, and cancel it after so many steps; True if it was open by then."""
    connections, inner = [], stage.connect()

    async def connect():
        connections.append(await inner())
        return connections[-1]

    opening = asyncio.create_task(
        Session.open(connect, session={"instructions": "x"}, thread=THREAD, store=stage.store)
    )
    for _ in range(steps):
        await asyncio.sleep(0)
    opening.cancel()
    with suppress(asyncio.CancelledError):
        session = await opening
        await session.close()
        return True
    async with await Journal.open(stage.store, THREAD):  # others may have the thread
        assert all("closed" in repr(one) for one in connections)
    return False
