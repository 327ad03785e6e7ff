"""What a session hands on: every event of the server, and the words of the user."""

from __future__ import annotations

import pytest

from tests.realtime.hearing import saying, texts_of, until, user
from tests.realtime.stage import KINDS, staged, within


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_of_the_server_is_handed_on_as_it_came(kind):
    async def scene():
        async with staged("Hello to you.") as stage, stage.session(kind=kind) as session:
            await session.change(added=[user("Hello.")])
            await session.respond()
            heard = await until(session, "rate_limits.updated")
            sent = [
                entry.readable()["data"]
                for entry in stage.emulator.record.entries()
                if entry.sent and entry.kind == "frame"
            ]
            assert [event for event in heard if isinstance(event, dict)] == sent
            stage.in_step(session)
            assert stage.broken() == {}

    within(scene)


def test_what_the_user_says_is_remembered_with_its_words():
    async def scene():
        configured = {"audio": {"input": {"transcription": {"model": "whisper-1"}}}}
        async with (
            staged("It is sunny.") as stage,
            stage.session(configured=configured) as session,
        ):
            await stage.emulator.speak("How is the weather?")
            await until(session, saying("It is sunny."))
            stage.in_step(session)
            assert [texts_of(item) for item in session.history()] == [
                ["How is the weather?"],
                ["It is sunny."],
            ]

    within(scene)
