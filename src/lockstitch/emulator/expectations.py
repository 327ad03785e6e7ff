"""What a test expects of the traffic, and what of it did not come true."""

from collections import Counter

import msgspec

from lockstitch.emulator.model.script import Script
from lockstitch.emulator.world import World


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Each field that is given is checked; the others are not."""

    # How many rules were broken in all; or which, and how often.
    violations: int | dict[str, int] | None = None
    # How often each was asked: `{"POST /v1/responses": 2}`.
    requests: dict[str, int] | None = None
    # Whether every fault that was armed struck.
    faults_struck: bool = False
    # Whether every turn that was told was used.
    turns_used: bool = False


def problems(expected: Expected, world: World, script: Script) -> list[str]:
    """One sentence for each expectation that was not met."""
    found = []
    record = world.record
    if isinstance(expected.violations, int):
        broken = sum(record.broken.values())
        if broken != expected.violations:
            found.append(
                f"{broken} requests broke a rule, expected {expected.violations}: "
                f"{_listed(record.broken)}."
            )
    elif expected.violations is not None and dict(record.broken) != expected.violations:
        found.append(
            f"The rules broken are {_listed(record.broken)}, "
            f"expected {_listed(Counter(expected.violations))}."
        )
    for what, times in (expected.requests or {}).items():
        if record.requests[what] != times:
            found.append(f"{what} was asked {record.requests[what]} times, expected {times}.")
    if expected.faults_struck:
        found += [f"The fault `{fault.text}` never struck." for fault in world.faults.unstruck()]
    if expected.turns_used and script.left():
        found.append(f"{len(script.left())} turns of the script were not used.")
    return found


def _listed(counted: Counter[str]) -> str:
    return ", ".join(f"{name} x{times}" for name, times in sorted(counted.items())) or "none"
