"""What running a tool twice would do. It decides what may happen after a crash."""

from __future__ import annotations

from lockstitch.core.members import Member


class Effect(Member):
    """What a tool does to the world.

    It matters for one kind of call only: one that had started when the process died, with nothing
    on disk that says how it ended. A call that never started is run, and one that ended has its
    output, whatever its tool declares."""

    READ = "read"
    """It changes nothing. After a crash it is run again."""
    IDEMPOTENT = "idempotent"
    """Twice with the same key is once. After a crash it is run again, with the same
    `CallContext.key`."""
    ONCE = "once"
    """Twice would be wrong, and so this is what a tool is that declares nothing. After a crash it
    is not run again: its outcome is unknown, and the model is told so."""
