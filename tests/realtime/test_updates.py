"""The configuration of a session, changed while it lives."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.mirror import Why
from lockstitch.realtime import ConfigurationRefused, ConfigurationUnanswered, Patience
from tests.realtime.hearing import until, user
from tests.realtime.stage import Slow, Through, staged, within


def test_a_changed_configuration_holds_on_the_next_line_too():
    async def scene():
        faults = ["cut before=conversation.item.added how=reset"]
        async with staged("One.", faults=faults) as stage, stage.session() as session:
            await session.configure({"instructions": "Be brief."})
            with pytest.raises(ConfigurationRefused, match="smell"):
                await session.send(
                    {"type": "session.update", "session": {"output_modalities": ["smell"]}}
                )
            await session.change(added=[user("a", "a")])
            assert stage.struck() == 1
            body = stage.provider.settings.body
            assert (body["instructions"], body["output_modalities"]) == ("Be brief.", ["text"])
            stage.in_step(session)

    within(scene)


def test_a_configuration_that_nobody_answers_is_told_as_that_and_the_session_goes_on():
    async def scene():
        silent = set()

        def passes(event):
            return None if event["type"] in silent else event

        faults = ["cut before=conversation.item.added nth=2 how=reset"]
        async with staged(faults=faults) as stage:
            connect = Through(stage.connect(), passes)
            patience = Patience(answer_seconds=1.0)
            async with stage.session(connect=connect, patience=patience) as session:
                silent.add("session.updated")
                with pytest.raises(ConfigurationUnanswered, match=r"within 1 seconds") as told:
                    await session.configure({"instructions": "Be brief."})
                assert "the provider did not say why" in str(told.value)
                assert "Configure again" in str(told.value)
                silent.clear()
                assert await session.change(added=[user("a", "a")])
                assert len(stage.frames("session.update")) == 2  # the connection is the same
                await session.change(added=[user("b", "b")])
                assert stage.struck() == 1
                # What was in force for certain is what the next one is told.
                assert "instructions" not in stage.frames("session.update")[-1]["session"]
                await session.configure({"instructions": "Be brief."})
                assert stage.provider.settings.body["instructions"] == "Be brief."

    within(scene)


def test_each_of_two_configurations_at_the_same_time_gets_its_own_answer():
    async def scene():
        async with staged() as stage:
            connect = Slow(stage.connect(), "error", seconds=0.1)
            async with stage.session(connect=connect) as session:
                good, bad = await asyncio.gather(
                    session.configure({"instructions": "Be brief."}),
                    session.configure({"output_modalities": ["smell"]}),
                    return_exceptions=True,
                )
                assert good is None
                assert isinstance(bad, ConfigurationRefused)
                body = stage.provider.settings.body
                assert (body["instructions"], body["output_modalities"]) == ("Be brief.", ["text"])

    within(scene)


def test_words_that_are_asked_for_later_are_waited_for_from_then_on():
    async def scene():
        transcribed = "conversation.item.input_audio_transcription.completed"
        held = []

        def passes(event):
            if event["type"] == transcribed and not held:
                held.append(event)
                return None
            return event

        async with staged() as stage:
            connect = Through(stage.connect(), passes)
            async with stage.session(connect=connect) as session:
                transcription = {"transcription": {"model": "whisper-1"}}
                await session.configure({"audio": {"input": transcription}})
                await stage.emulator.speak("Hello?", responds=False)
                await until(session, "conversation.item.done")
                # Nobody has heard it so far: nobody can have decided about it.
                seen = session.snapshot()
                assert seen.decided == []
                edited = await session.edit([], base=seen)
                assert [one.why for one in edited.kept] == [Why.UNFINISHED]

    within(scene)
