"""What the providers that keep nothing have in common: there is nothing to ask them for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lockstitch.core.facts import Mode
from lockstitch.upstream.contract import Fate, Heard, Request, UpstreamFailure


class KeepsNothing:
    """The part of an `Upstream` that is about what was kept."""

    modes = frozenset({Mode.FULL})

    async def retrieved(self, response: str) -> Sequence[Heard] | None:
        return None

    async def new_conversation(self) -> str:
        raise self._keeps_none()

    async def listed(self, conversation: str, after: str | None) -> list[dict[str, Any]]:
        raise self._keeps_none()

    async def close(self) -> None:
        """Nothing is held between requests."""

    def check(self, request: Request) -> None:
        """Refuse a request that goes on from something."""
        if request.anchor is not None:
            raise self._keeps_none()

    def _keeps_none(self) -> UpstreamFailure:
        return UpstreamFailure(
            f"{self!r} keeps no responses and no conversations. Send everything: mode=full.",
            fate=Fate.REFUSED,
        )
