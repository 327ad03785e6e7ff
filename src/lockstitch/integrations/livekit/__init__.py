"""LiveKit's model for the Realtime API, with a context that stays in step.

    from lockstitch.integrations.livekit import RealtimeModel

instead of ``from livekit.plugins.openai.realtime import RealtimeModel``: nothing else changes."""

from lockstitch.integrations.livekit.versions import check

check()  # before anything of LiveKit's is built upon

from lockstitch.integrations.livekit import realtime  # noqa: E402
from lockstitch.integrations.livekit.contexts import copy_of  # noqa: E402
from lockstitch.integrations.livekit.realtime import RealtimeModel, RealtimeSession  # noqa: E402

__all__ = ["RealtimeModel", "RealtimeSession", "copy_of", "realtime"]
