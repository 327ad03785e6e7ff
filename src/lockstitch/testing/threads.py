"""An emulator in a thread of its own, so that clients of every kind can talk to it.

Its methods may be called from any thread; each returns when the emulator has done it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Self, TextIO, TypeVar

from lockstitch.emulator import (
    Draft,
    Emulator,
    Expected,
    NotAsExpected,
    Script,
    Settings,
    VirtualClock,
    problems,
)
from lockstitch.emulator.clock import Clock
from lockstitch.emulator.record import Entry

Value = TypeVar("Value")

# An emulator that does not start or stop within this is broken; a test should say so.
START_SECONDS = 10.0


class EmulatorThread:
    """A running emulator."""

    def __init__(
        self,
        *,
        script: Script | None = None,
        faults: Iterable[str] = (),
        clock: Clock | None = None,
        record: TextIO | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.emulator = Emulator(
            script=script, faults=faults, clock=clock, record=record, settings=settings
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="emulator", daemon=True)

    def start(self) -> Self:
        self._thread.start()
        try:
            self._wait(self.emulator.start())
        except BaseException:
            self._end()
            raise
        return self

    def stop(self) -> None:
        if self._thread.is_alive():
            self._wait(self.emulator.stop())
            self._end()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return self.emulator.url

    @property
    def base_url(self) -> str:
        """What a client is given as its base URL."""
        return self.emulator.base_url

    # What it says and breaks next

    def say(self, *drafts: Draft | str, **settings: Any) -> None:
        """Queue a reply: texts, calls and other drafts of one turn."""
        self._do(lambda: self.emulator.say(*drafts, **settings))

    def fault(self, text: str) -> None:
        """Arm a fault, written as on the command line."""
        self._do(lambda: self.emulator.fault(text))

    def speak(self, text: str, *, responds: bool = True) -> None:
        """The user speaks, in the newest Realtime session."""
        self._wait(self.emulator.speak(text, responds=responds))

    def forget(self, response: str | None = None) -> None:
        """Lose a response, or everything."""
        self._do(lambda: self.emulator.responses.forget(response))

    def advance(self, seconds: float) -> None:
        """Move a virtual clock on."""
        clock = self.emulator.clock
        if not isinstance(clock, VirtualClock):
            raise TypeError("This emulator runs on the real clock: pass clock=VirtualClock(…).")
        self._do(lambda: clock.advance(seconds))

    def reset(self) -> None:
        """As it was when it started."""
        self._do(self.emulator.reset)

    # What happened

    def entries(self) -> list[Entry]:
        """All that went over the wire."""
        return self._do(lambda: list(self.emulator.record.entries()))

    def requests(self, what: str = "") -> list[Any]:
        """The bodies and frames that clients sent, as JSON; only those whose line begins so:
        `POST /v1/responses`, `frame response.create`."""
        return [
            entry.readable().get("data")
            for entry in self.entries()
            if not entry.sent and entry.what.startswith(what)
        ]

    def violations(self) -> dict[str, int]:
        """The rules that were broken, and how often."""
        return self._do(lambda: dict(self.emulator.record.broken))

    def expect(self, **expected: Any) -> None:
        """Raise `NotAsExpected` if the traffic differs from ``expected``, the fields of `Expected`.

        It also raises if no request came at all, unless ``requests=0`` is given."""
        found = self._do(
            lambda: problems(Expected(**expected), self.emulator.world, self.emulator.script)
        )
        if found:
            raise NotAsExpected(" ".join(found))

    # Threads

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_SECONDS)

    def _wait(self, work: Awaitable[Value]) -> Value:
        async def awaited() -> Value:
            return await work

        return asyncio.run_coroutine_threadsafe(awaited(), self._loop).result(START_SECONDS)

    def _do(self, work: Callable[[], Value]) -> Value:
        async def done() -> Value:
            return work()

        return self._wait(done())

    def __repr__(self) -> str:
        return f"<EmulatorThread {self.url or 'not started'}>"
