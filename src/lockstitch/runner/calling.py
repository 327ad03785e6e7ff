"""One call of one tool: its time limit, its cancellation, and an honest result.

A result that is not `certain` says that nobody knows how the call ended. An async tool can be
stopped, a thread cannot: it goes on by itself, and `context.cancelled` is all it hears.
Nothing here is durable; `desk` writes down what comes out."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from lockstitch.core.outcomes import Outcome
from lockstitch.runner.context import CallContext
from lockstitch.runner.outputs import Content, Unwritable, error_text, shortened, written
from lockstitch.runner.schemas import BadArguments, NotATool, plain_function
from lockstitch.runner.signals import is_from_signal
from lockstitch.runner.threads import Ended, Job, Threads
from lockstitch.runner.tools import Arguments, Tool

OnError: TypeAlias = Callable[[Tool, CallContext, BaseException], None]
"""Told of every error that a tool raised, with its traceback: the model gets one line of it."""

log = logging.getLogger("lockstitch.runner")

THREADS = Threads()
"""Where plain functions run, for every runner of the process."""

_left: set[asyncio.Future[Ended]] = set()
"""What runs on with nobody waiting: the event loop itself holds a task only weakly."""


class Result(Struct, frozen=True, kw_only=True):
    """What came of a call."""

    text: str
    """For the model. Where the outcome is not known it says why not, and no more."""
    content: Content | None = None
    """The parts of an output that is more than a text."""
    failed: bool = False
    certain: bool = True
    """False: nothing says how it ended. It may have had its effect, or all but that."""
    entered: bool = True
    """False: the tool was never entered, so nothing can have happened."""
    running: bool = False
    """It has not ended, and nobody waits for it any more."""

    @property
    def outcome(self) -> Outcome:
        if not self.entered:
            return Outcome.NEVER_STARTED
        return Outcome.FINISHED if self.certain else Outcome.UNKNOWN


class Cancelled(asyncio.CancelledError):
    """The caller was cancelled; ``result`` is what came of the call all the same.

    Catch it where `call` is awaited, write the result down, and raise `asyncio.CancelledError`:
    `asyncio.timeout` and its like know that very type and none below it."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self.result = result


def log_error(tool: Tool, context: CallContext, error: BaseException) -> None:
    """Write a tool's traceback to the log; a model that is told of an error may well mend it."""
    log.info("The tool %s failed in call %s.", tool.name, context.call_id, exc_info=error)


async def call(
    tool: Tool,
    arguments: Arguments,
    context: CallContext,
    *,
    grace: float,
    dialect: str = "responses",
    threads: Threads = THREADS,
    on_error: OnError = log_error,
) -> Result:
    """Run a tool once. What the tool does wrong is in the result, not raised. The API of
    ``dialect`` is to take its output.

    At its time limit, or when the caller is cancelled, the tool is asked to end and gets ``grace``
    seconds for that; what it gives back within them counts. Then the caller hears `Cancelled`, if
    it was. A cancel within the grace time ends it at once. What a signal raised while the tool ran
    is raised as it is; a `SystemExit` of the tool itself is an error like any other."""
    if tool.function is None:
        raise NotATool(f"{tool.name} is answered from outside: it cannot be run.")
    try:
        values = tool.read(arguments)
    except BadArguments as wrong:
        return Result(text=shortened(str(wrong)), failed=True, entered=False)
    values.update(dict.fromkeys(tool.signature.context, context))
    try:
        work = _begun(tool.function, values, context, threads)
    except RuntimeError as error:
        return Result(text=f"It was not run: {error}.", failed=True, entered=False)
    watch = _Watch(tool.timeout, grace)
    await watch.over(work)
    returned = _ended(work)
    if returned is not None and inspect.isawaitable(returned.value):
        # A plain function that wraps an async one: the rest of the work comes only now.
        work = _InLoop(lambda: returned.value, context)
        await watch.over(work)
    told = partial(_tell, on_error, tool, context)
    if not work.future.done():
        _left.add(work.future)
        work.future.add_done_callback(partial(_late, told))
    result = _result(tool, work, watch, threads, told, dialect=dialect)
    if watch.cancelled:
        raise Cancelled(result)
    return result


class _Work(Protocol):
    """A tool on its way."""

    @property
    def future(self) -> asyncio.Future[Ended]: ...

    @property
    def begun(self) -> bool:
        """May the tool have been entered?"""

    def stop(self) -> None:
        """Ask it to end."""


class _InLoop:
    """An async tool, in a task of its own: it can be cancelled while its caller goes on."""

    begun = True
    """Tasks begin in the order in which they are made, so this one does before a cancel comes."""

    def __init__(self, function: Callable[[], Awaitable[Any]], context: CallContext) -> None:
        self._context = context
        self.future: asyncio.Future[Ended] = asyncio.create_task(self._run(function))

    async def _run(self, function: Callable[[], Awaitable[Any]]) -> Ended:
        try:
            return Ended(await function())
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # Not every error is an `Exception`: `sys.exit` and extensions in Rust raise others. And
            # what ends the program, raised by a task of its own, would tear the loop down around a
            # caller who has not heard of it yet.
            return Ended(error=error, interrupted=is_from_signal(error))

    def stop(self) -> None:
        self._context.cancel()
        self.future.cancel()


class _InThread:
    """A plain function, in a thread: it can be asked to end, or taken back before it begins."""

    def __init__(self, job: Job, context: CallContext, threads: Threads) -> None:
        self._job = job
        self._context = context
        self._threads = threads
        self.future = job.future

    @property
    def begun(self) -> bool:
        return self._job.begun

    def stop(self) -> None:
        self._context.cancel()
        self._threads.withdraw(self._job)


def _begun(
    function: Callable[..., Any], values: dict[str, Any], context: CallContext, threads: Threads
) -> _Work:
    entered = partial(function, **values)
    if inspect.iscoroutinefunction(plain_function(function)):
        return _InLoop(entered, context)
    return _InThread(threads.start(entered), context, threads)


class _Watch:
    """How long a call may take, and whether it was asked to end."""

    def __init__(self, limit: float | None, grace: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._deadline = None if limit is None else self._loop.time() + limit
        self._grace = grace
        self.cancelled = False
        self.late = False

    async def over(self, work: _Work) -> None:
        """Wait until it has ended, or has had its grace time and did not end."""
        await self._wait(work, self._left())
        if not work.future.done():
            self.late = self.late or not self.cancelled
            work.stop()
            await self._wait(work, self._grace)

    def _left(self) -> float | None:
        if self.cancelled:
            return 0.0
        return None if self._deadline is None else max(0.0, self._deadline - self._loop.time())

    async def _wait(self, work: _Work, seconds: float | None) -> None:
        try:
            await asyncio.wait((work.future,), timeout=seconds)
        except asyncio.CancelledError:
            self.cancelled = True


def _ended(work: _Work) -> Ended | None:
    """How it ended. What a signal raised is raised again: somebody wants the program to end."""
    if not work.future.done() or work.future.cancelled():
        return None
    ended = work.future.result()
    if ended.error is not None and ended.interrupted:
        raise ended.error
    return ended


def _result(
    tool: Tool,
    work: _Work,
    watch: _Watch,
    threads: Threads,
    told: Callable[[BaseException], None],
    *,
    dialect: str,
) -> Result:
    ended = _ended(work)
    if ended is None or isinstance(ended.error, asyncio.CancelledError):
        return _without_an_end(tool, work, watch, threads)
    if ended.error is not None:
        told(ended.error)
        return Result(text=error_text(ended.error), failed=True)
    try:
        text, content = written(ended.value, dialect)
    except Unwritable as found:
        said = f"It ran to its end, but its output cannot be shown: it returned {found}."
        return Result(text=shortened(said), failed=True)
    return Result(text=text, content=content)


def _without_an_end(tool: Tool, work: _Work, watch: _Watch, threads: Threads) -> Result:
    """Nothing came out: it did not begin, it was stopped, or it still runs."""
    limit = f"its time limit of {tool.timeout:g} seconds" if watch.late else ""
    if not work.begun:
        busy = f"all {threads.most} threads were busy for {limit}"
        why = busy if watch.late else "it was cancelled"
        return Result(text=f"It was not run: {why}.", failed=True, entered=False)
    why = f"It reached {limit}" if watch.late else "It was cancelled"
    running = not work.future.done()
    text = f"{why}, and it still runs." if running else f"{why} before it gave an output."
    return Result(text=text, failed=True, certain=False, running=running)


def _tell(
    on_error: OnError, tool: Tool, context: CallContext, error: BaseException
) -> None:  # fmt: skip
    try:
        on_error(tool, context, error)
    except Exception:
        # An output must not be lost because somebody could not write about it.
        log.exception("The hook for errors of tools failed.")


def _late(told: Callable[[BaseException], None], future: asyncio.Future[Ended]) -> None:
    """It ended after all. Its call is settled; only an error is still worth a word."""
    _left.discard(future)
    ended = None if future.cancelled() else future.result()
    if ended is not None and ended.error is not None:
        told(ended.error)
        if ended.interrupted:
            raise ended.error
