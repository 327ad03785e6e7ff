"""What a user of the emulator can get wrong. Each message says what to do next.

A root of its own: the emulator imports nothing of the rest of Lockstitch."""


class EmulatorError(Exception):
    """The root of every error the emulator raises on purpose."""


class UnknownFault(EmulatorError):
    """A fault was asked for that does not exist, or with settings it does not have."""


class BadScript(EmulatorError):
    """A script could not be read, or says something the emulator cannot do."""


class CannotListen(EmulatorError):
    """The address is taken, not ours, or not to be had."""


class NobodyThere(EmulatorError):
    """The user was to speak in a Realtime session, and there is no such session."""


class NotAsExpected(EmulatorError, AssertionError):
    """The traffic was not what the test said it would be."""
