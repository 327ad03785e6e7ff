"""The configuration of a session, changed while it lives."""

from __future__ import annotations

import pytest

from lockstitch.realtime import ConfigurationRefused
from tests.realtime.hearing import user
from tests.realtime.stage import staged, within


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
