"""What a tool can know of the call that it answers. A tool asks for it by a type hint."""

from __future__ import annotations

from threading import Event


class CallContext:
    """One call, as its tool sees it: a parameter with this type hint gets it, and the model never
    hears of that parameter."""

    __slots__ = ("_cancelled", "attempt", "call_id", "key", "thread")

    def __init__(self, *, key: str, call_id: str, thread: str, attempt: int = 1) -> None:
        self.key = key
        """The idempotency key: the same for the same call across crashes and re-runs, and never
        that of another call. Hand it to whoever does the work."""
        self.call_id = call_id
        """The provider's name of the call. Models repeat themselves: it is not the key."""
        self.thread = thread
        self.attempt = attempt
        """1, and more where the call had started before a crash."""
        self._cancelled = Event()

    @property
    def cancelled(self) -> bool:
        """Is the tool to end, because its turn was cancelled or its time is up? A function that
        runs in a thread must ask; an async one gets `CancelledError` besides."""
        return self._cancelled.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep, in a thread, but not longer than until the call is cancelled. True if it is."""
        return self._cancelled.wait(seconds)

    def cancel(self) -> None:
        """Say that the tool is to end. The runner does that."""
        self._cancelled.set()

    def __repr__(self) -> str:
        state = ", cancelled" if self.cancelled else ""
        return f"<CallContext {self.call_id} of {self.thread}, attempt {self.attempt}{state}>"
