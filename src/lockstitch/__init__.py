"""Lockstitch keeps tool-calling conversations whole.

Every call has exactly one output, wherever the conversation lives."""

from lockstitch.core.errors import (
    CannotMend,
    CannotTrim,
    LockstitchError,
    NotAHistory,
    UnknownDialect,
)
from lockstitch.core.findings import Finding
from lockstitch.core.mending import Policy
from lockstitch.core.outcomes import Evidence, Outcome
from lockstitch.histories import Mended, check, mend, trim

__version__ = "0.1.0"

__all__ = [
    "CannotMend",
    "CannotTrim",
    "Evidence",
    "Finding",
    "LockstitchError",
    "Mended",
    "NotAHistory",
    "Outcome",
    "Policy",
    "UnknownDialect",
    "check",
    "mend",
    "trim",
]
