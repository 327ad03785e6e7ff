"""Lockstitch keeps tool-calling conversations whole.

Every call has exactly one output, wherever the conversation lives. Names are imported when they
are first used: `lockstitch --help` needs none of them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockstitch import facts
    from lockstitch.core.errors import (
        BrokenPair,
        CannotMend,
        CannotTrim,
        IllegalFact,
        LockstitchError,
        NotAHistory,
        NotAnItem,
        NotEvidence,
        UnknownDialect,
        UnknownPolicy,
    )
    from lockstitch.core.findings import Finding
    from lockstitch.core.mending import Policy
    from lockstitch.core.outcomes import Evidence, Outcome
    from lockstitch.histories import Mended, check, mend, trim
    from lockstitch.ledgers import Ledger
    from lockstitch.mirror import Mirror
    from lockstitch.runner import Runner, tool
    from lockstitch.store import Journal, open_store

__version__ = "0.2.0"

__all__ = [
    "BrokenPair",
    "CannotMend",
    "CannotTrim",
    "Evidence",
    "Finding",
    "IllegalFact",
    "Journal",
    "Ledger",
    "LockstitchError",
    "Mended",
    "Mirror",
    "NotAHistory",
    "NotAnItem",
    "NotEvidence",
    "Outcome",
    "Policy",
    "Runner",
    "UnknownDialect",
    "UnknownPolicy",
    "check",
    "facts",
    "mend",
    "open_store",
    "tool",
    "trim",
]

_HOMES = {
    "lockstitch.core.errors": (
        "BrokenPair",
        "CannotMend",
        "CannotTrim",
        "IllegalFact",
        "LockstitchError",
        "NotAHistory",
        "NotAnItem",
        "NotEvidence",
        "UnknownDialect",
        "UnknownPolicy",
    ),
    "lockstitch.core.findings": ("Finding",),
    "lockstitch.core.mending": ("Policy",),
    "lockstitch.core.outcomes": ("Evidence", "Outcome"),
    "lockstitch.histories": ("Mended", "check", "mend", "trim"),
    "lockstitch.ledgers": ("Ledger",),
    "lockstitch.mirror": ("Mirror",),
    "lockstitch.runner": ("Runner", "tool"),
    "lockstitch.store": ("Journal", "open_store"),
}


def __getattr__(name: str) -> Any:
    if name == "facts":
        return import_module("lockstitch.facts")
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'lockstitch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
