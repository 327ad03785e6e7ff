"""For the tests of people who build on Lockstitch: an emulator in a thread, and pytest fixtures.

The fixtures are found by pytest itself (`pytest_plugin`); nothing has to be imported."""

from lockstitch.testing.threads import EmulatorThread

__all__ = ["EmulatorThread"]
