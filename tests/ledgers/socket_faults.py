"""The faults that a random conversation meets: what each is, and in which mode it makes sense."""

from __future__ import annotations

from random import Random

from lockstitch.facts import Continue, Mode, Replay

_HOWS = ("close", "reset", "half-frame", "half-character")
_POINTS = (
    "before=first-byte",
    "after=response.created",
    "after=response.output_item.added",
    "after=response.output_item.done",
    "after=response.output_item.done nth=2",
    "after=response.output_item.done nth=3",
    "before=response.function_call_arguments.done",
    "before=end",
    "after=5",
    "after=9",
)
_INSIDE = tuple(point for point in _POINTS if "first-byte" not in point)
_CODES = ("400", "429", "500", "503", "529")
NEXT_REQUEST = "path=/v1/responses request=1"
"""A fault strikes the request that it was meant for, or none."""


def drawn(rng: Random, plan: Continue | Replay, *, forgets: bool) -> str:
    """A fault for the request that carries out this plan."""
    kinds = ["cut"] * 6 + ["fail", "incomplete", "incomplete", "error", "status", "lose", "lose"]
    kinds += ["duplicate", "late", "drip", "stall"]
    if forgets:
        kinds.append("forget everything")
    if plan.mode is Mode.CONVERSATION:
        kinds += ["lock", "lock", "lose"]
    if forgets and plan.mode is Mode.CHAIN and isinstance(plan, Continue):
        kinds += ["forget", "forget"]
    match rng.choice(kinds):
        case "cut":
            commit = rng.choice(("yes", "no"))
            fault = f"cut {rng.choice(_POINTS)} how={rng.choice(_HOWS)} commit={commit}"
        case "fail" | "incomplete" | "error" as ending:
            fault = f"{ending} {rng.choice(_INSIDE)}"
        case "status":
            fault = f"status code={rng.choice(_CODES)} retry_after=0"
        case "lose":
            fault = f"lose how={rng.choice(_HOWS[:2])}"
        case "duplicate":
            fault = f"duplicate at=response.output_item.done nth={rng.randint(1, 3)}"
        case "late":
            by = rng.randint(1, 30)
            fault = f"late at=response.output_item.done nth={rng.randint(1, 3)} by={by}"
        case "drip":
            fault = f"drip bytes={rng.randint(100, 700)} seconds=0"
        case "stall":
            fault = f"stall {rng.choice(_POINTS)} seconds=0.005"
        case "forget everything":
            fault = "forget what=everything"
        case other:
            fault = other
    return f"{fault} {NEXT_REQUEST}"
