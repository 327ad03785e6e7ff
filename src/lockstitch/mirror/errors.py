"""What a mirror refuses. A mirror that raised is exactly the mirror it was before."""

from __future__ import annotations

from lockstitch.core.errors import LockstitchError


class NotATarget(LockstitchError):
    """The caller's target cannot be meant: an item without an id, or an id twice."""


class StalePlan(LockstitchError):
    """The caller committed a plan after the mirror had changed; plan again."""


class ForeignSnapshot(LockstitchError):
    """The caller passed a snapshot of another mirror."""
