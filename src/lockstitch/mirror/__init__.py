"""A mirror of a provider's realtime context: what is there, and the least edits to change it."""

from lockstitch.mirror.edits import (
    ROOT,
    Create,
    Delete,
    Edit,
    Kept,
    Plan,
    Retrieve,
    Unplaceable,
    Why,
    WhyNot,
)
from lockstitch.mirror.errors import ForeignSnapshot, NotATarget, StalePlan
from lockstitch.mirror.flight import Standing
from lockstitch.mirror.fresh_ids import fresh_ids
from lockstitch.mirror.mirror import Mirror, Snapshot
from lockstitch.mirror.summarising import summarised

__all__ = [
    "ROOT",
    "Create",
    "Delete",
    "Edit",
    "ForeignSnapshot",
    "Kept",
    "Mirror",
    "NotATarget",
    "Plan",
    "Retrieve",
    "Snapshot",
    "StalePlan",
    "Standing",
    "Unplaceable",
    "Why",
    "WhyNot",
    "fresh_ids",
    "summarised",
]
