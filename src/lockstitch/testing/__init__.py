"""For the tests of people who build on Lockstitch: an emulator in a thread, and pytest fixtures.

The fixtures are found by pytest itself (`pytest_plugin`), in every run of it: so nothing is
imported before it is used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockstitch.testing.threads import EmulatorThread

__all__ = ["EmulatorThread"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("lockstitch.testing.threads"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
