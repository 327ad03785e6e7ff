"""Which moments of a mirror somebody can still ask about: those whose snapshots live.

What was said or was there between two moments that nobody holds can be forgotten. Held weakly: a
moment is over when the last snapshot of it is."""

from __future__ import annotations

from bisect import bisect_left
from weakref import ref

FEWEST_TO_SWEEP = 64
"""Below this the moments that are over are not worth the sweeping."""


class Moment:
    """One version of a mirror, for as long as somebody holds it."""

    __slots__ = ("__weakref__", "version")

    def __init__(self, version: int) -> None:
        self.version = version


class Moments:
    """The moments that are held, in order."""

    def __init__(self) -> None:
        self._versions: list[int] = []
        self._held: list[ref[Moment]] = []
        self._sweep_at = FEWEST_TO_SWEEP

    def __repr__(self) -> str:
        return f"<Moments {len(self)} held>"

    def __len__(self) -> int:
        return sum(1 for held in self._held if held() is not None)

    def hold(self, version: int) -> Moment:
        """The moment of this version, which is the newest."""
        if self._versions and self._versions[-1] == version:
            moment = self._held[-1]()
            if moment is not None:
                return moment
        if len(self._held) >= self._sweep_at:
            self._sweep()
        moment = Moment(version)
        self._versions.append(version)
        self._held.append(ref(moment))
        return moment

    def any_in(self, since: int, until: int) -> bool:
        """Does somebody hold a moment from ``since`` on and before ``until``?"""
        versions = self._versions
        for at in range(bisect_left(versions, since), len(versions)):
            if versions[at] >= until:
                return False
            if self._held[at]() is not None:
                return True
        return False

    def _sweep(self) -> None:
        living = [
            (version, held)
            for version, held in zip(self._versions, self._held, strict=True)
            if held() is not None
        ]
        self._versions = [version for version, _ in living]
        self._held = [held for _, held in living]
        self._sweep_at = max(FEWEST_TO_SWEEP, 2 * len(living))
