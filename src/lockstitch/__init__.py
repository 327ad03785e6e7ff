"""Lockstitch keeps tool-calling conversations whole.

Every call has exactly one output, wherever the conversation lives. Names are imported when they
are first used: `lockstitch --help` needs none of them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "lockstitch.core.errors": (
        "CannotMend",
        "CannotTrim",
        "LockstitchError",
        "NotAHistory",
        "UnknownDialect",
    ),
    "lockstitch.core.findings": ("Finding",),
    "lockstitch.core.mending": ("Policy",),
    "lockstitch.core.outcomes": ("Evidence", "Outcome"),
    "lockstitch.histories": ("Mended", "check", "mend", "trim"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'lockstitch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
