"""The contract of a store as checks to run on one: `lockstitch.store.contract`, executable.

Run each of `CHECKS` on an empty store of yours, and each of `LASTING_CHECKS` if it outlives the
process: `asyncio.run(check(opened))`, where `opened()` is a block in which it is open. A check
returns if the promise holds. `model` has random operations against a plain dictionary."""

from inspect import getmembers, iscoroutinefunction
from types import ModuleType

from lockstitch.testing.store_contract import (
    beginning,
    claiming,
    closing,
    finding,
    forgetting,
    keeping,
    lasting,
    sharing,
)
from lockstitch.testing.store_contract.opened import Check, Opened

__all__ = ["CHECKS", "LASTING_CHECKS", "Check", "Opened"]


def _checks(module: ModuleType) -> list[Check]:
    """Every coroutine function that was written there and is not its own business."""
    return [
        member
        for name, member in getmembers(module, iscoroutinefunction)
        if member.__module__ == module.__name__ and not name.startswith("_")
    ]


CHECKS: tuple[Check, ...] = tuple(
    check
    for module in (keeping, claiming, beginning, finding, forgetting, sharing, closing)
    for check in _checks(module)
)
"""What every store promises; a check is named for its promise."""

LASTING_CHECKS: tuple[Check, ...] = tuple(_checks(lasting))
"""What a store promises besides that is kept on a disk or a server."""
