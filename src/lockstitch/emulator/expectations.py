"""Compare the recorded traffic with what a test expects."""

from collections import Counter

import msgspec

from lockstitch.emulator.model.script import Script
from lockstitch.emulator.world import World


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a test expects of the traffic. Only the fields that are given are checked.

    At least one request must have reached the emulator, unless ``requests`` is 0: a test whose
    agent never ran shows nothing."""

    # How many requests broke a rule, in all or by rule: `{"call-without-output": 1}`.
    violations: int | dict[str, int] | None = None
    # How many requests and WebSocket frames came, in all or by kind: `{"POST /v1/responses": 2}`.
    requests: int | dict[str, int] | None = None
    # True: every fault must have been triggered.
    faults_struck: bool = False
    # True: every turn of the script must have been used.
    turns_used: bool = False


NOTHING_CAME = (
    "No request reached the emulator. Check that the agent ran, and that it uses the emulator's"
    " base URL. If no request is expected, pass requests=0."
)


def problems(expected: Expected, world: World, script: Script) -> list[str]:
    """Return one sentence for each expectation that was not met."""
    found = []
    record = world.record
    came = sum(record.requests.values())
    if came == 0 and expected.requests != 0:
        found.append(NOTHING_CAME)
    if isinstance(expected.requests, int):
        if came and came != expected.requests:
            found.append(
                f"Expected {expected.requests} requests, got {came}: {_listed(record.requests)}."
            )
    else:
        for what, times in (expected.requests or {}).items():
            if record.requests[what] != times:
                found.append(f"Expected {what} x{times}, got x{record.requests[what]}.")
    if isinstance(expected.violations, int):
        broken = sum(record.broken.values())
        if broken != expected.violations:
            found.append(
                f"Expected {expected.violations} violations, got {broken}:"
                f" {_listed(record.broken)}."
            )
    elif expected.violations is not None and dict(record.broken) != expected.violations:
        found.append(
            f"Expected violations: {_listed(Counter(expected.violations))};"
            f" got: {_listed(record.broken)}."
        )
    if expected.faults_struck:
        found += [
            f"The fault `{fault.text}` was never triggered." for fault in world.faults.unstruck()
        ]
    if expected.turns_used and script.left():
        found.append(f"Turns of the script that were not used: {len(script.left())}.")
    return found


def _listed(counted: Counter[str]) -> str:
    return ", ".join(f"{name} x{times}" for name, times in sorted(counted.items())) or "none"
