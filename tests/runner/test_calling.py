"""One call: how it is run, when it ends, and what is known if it does not."""

from __future__ import annotations

import argparse
import asyncio
import contextvars
import dataclasses
import functools
import logging
import signal
import sys
import threading
from contextlib import contextmanager

import pytest

from lockstitch.core.outcomes import Outcome
from lockstitch.runner.calling import Cancelled, Result, call
from lockstitch.runner.context import CallContext
from lockstitch.runner.schemas import NotATool
from lockstitch.runner.tools import Tool, tool
from tests.runner.called import LONG_SECONDS, cancelled, context, raising, run

# --- what goes wrong ---------------------------------------------------------------------------


@contextmanager
def handling(number, handler):
    """Set a signal handler for a while."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such city"), "ValueError: no such city"),
        (ValueError(), "ValueError"),
        (Unspeakable(), "Unspeakable"),
        (KeyError("city"), "KeyError: 'city'"),
        (
            ExceptionGroup("two things", [ValueError("a"), OSError("b")]),
            "ExceptionGroup: two things: ValueError: a; OSError: b",
        ),
    ],
)
def test_an_error_is_one_line_for_the_model_and_a_traceback_for_people(error, text):
    for fail in raising(error):
        told = []
        result = run(fail, on_error=lambda tool, context, error, told=told: told.append(error))
        assert result == Result(text=text, failed=True)
        assert told == [error]
        assert told[0].__traceback__ is not None


def test_a_plain_function_may_even_raise_stop_iteration():
    fail, _ = raising(StopIteration("over"))
    assert run(fail) == Result(text="StopIteration: over", failed=True)


def test_errors_are_logged_if_nobody_asks_for_them(caplog):
    with caplog.at_level(logging.INFO, "lockstitch.runner"):
        run(raising(ValueError("no such city"))[0])
    (record,) = caplog.records
    assert record.getMessage() == "The tool fail failed in call call_1."
    assert record.exc_info is not None


def test_a_hook_that_fails_does_not_lose_the_result(caplog):
    def hook(tool, context, error):
        raise RuntimeError("the hook")

    result = run(raising(ValueError("the tool"))[1], on_error=hook)
    assert result == Result(text="ValueError: the tool", failed=True)
    assert "the hook" in caplog.text


@pytest.mark.parametrize("arguments", ["{", '{"city":1}', "[]", {"town": "Bern"}])
def test_with_bad_arguments_the_tool_is_never_entered(arguments):
    entered = []

    def weather(city: str) -> None:
        entered.append(city)

    result = run(weather, arguments)
    assert result.failed
    assert result.outcome is Outcome.NEVER_STARTED
    assert "The arguments of weather do not fit" in result.text
    assert not entered


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SystemExit(2), "SystemExit: 2"),
        (SystemExit(0), "SystemExit: 0"),
        (SystemExit(), "SystemExit"),
        (SystemExit("no such option"), "SystemExit: no such option"),
        (
            BaseExceptionGroup("two", [SystemExit(2), ValueError("b")]),
            "BaseExceptionGroup: two: SystemExit: 2; ValueError: b",
        ),
    ],
)
def test_a_tool_that_exits_has_failed_and_the_program_goes_on(error, text):
    for fail in raising(error):
        told = []
        result = run(fail, on_error=lambda tool, context, error, told=told: told.append(error))
        assert result == Result(text=text, failed=True)
        assert told == [error]


def test_a_bad_argument_for_argparse_does_not_end_the_program(capsys):
    def resize(options: str) -> int:
        parser = argparse.ArgumentParser()
        parser.add_argument("--width", type=int)
        return parser.parse_args(options.split()).width

    assert run(resize, '{"options":"--width 7"}').text == "7"
    assert run(resize, '{"options":"--width wide"}') == Result(text="SystemExit: 2", failed=True)
    assert "invalid int value: 'wide'" in capsys.readouterr().err


@dataclasses.dataclass
class Size:
    width: int

    def __post_init__(self) -> None:
        sys.exit("too wide")


def test_a_type_of_a_tool_that_exits_in_its_check_is_a_bad_argument():
    def resize(size: Size) -> int:
        return size.width

    result = run(resize, '{"size":{"width":7}}')
    assert "too wide" in result.text
    assert result.outcome is Outcome.NEVER_STARTED


def test_an_approval_function_that_exits_has_not_said_that_the_call_may_run():
    @tool(needs_approval=lambda arguments: sys.exit(2))
    def pay() -> None:
        """Pay."""

    assert pay.asks_first("{}")


def test_control_c_in_an_async_tool_ends_the_program():
    async def busy() -> None:
        signal.raise_signal(signal.SIGINT)

    with handling(signal.SIGINT, signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        run(busy)


def test_a_keyboard_interrupt_in_a_thread_is_the_tool_s_own():
    # Signals are handled in the main thread only.
    fail, _ = raising(KeyboardInterrupt())
    assert run(fail) == Result(text="KeyboardInterrupt", failed=True)


class Service:
    """A program that ends well when it is asked to."""

    def stop(self, *_):
        sys.exit(3)

    def __call__(self, *_):
        self.stop()


@pytest.mark.parametrize(
    "handler",
    [
        lambda *_: sys.exit(3),
        Service().stop,
        Service(),
        functools.partial(lambda why, *_: sys.exit(3), "asked to"),
    ],
)
def test_a_signal_handler_that_exits_while_an_async_tool_runs_ends_the_program(handler):
    async def busy() -> None:
        signal.raise_signal(signal.SIGTERM)

    async def busy_group() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        except SystemExit as error:
            raise BaseExceptionGroup("two", [error, ValueError("b")]) from None

    with handling(signal.SIGTERM, handler):
        with pytest.raises(SystemExit) as heard:
            run(busy)
        assert heard.value.code == 3
        with pytest.raises(BaseExceptionGroup):
            run(busy_group)
        # Only set is not raised.
        assert run(raising(SystemExit(4))[1]) == Result(text="SystemExit: 4", failed=True)


class Panic(BaseException):
    """As extensions in Rust raise: it is no `Exception`, and the program is to go on."""


@pytest.mark.parametrize("error", [Panic("index out of bounds"), GeneratorExit("left")])
def test_any_other_error_is_the_result_of_the_call(error):
    for fail in raising(error):
        result = run(fail)
        assert result.text == f"{type(error).__name__}: {error}"
        assert result.failed
        assert result.outcome is Outcome.FINISHED


def test_a_signal_that_comes_late_ends_the_program():
    @tool(timeout=0.01)
    async def stubborn() -> None:
        try:
            await asyncio.sleep(LONG_SECONDS)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            signal.raise_signal(signal.SIGTERM)

    async def main():
        assert (await call(stubborn, "", context(), grace=0)).running
        await asyncio.sleep(LONG_SECONDS)

    with handling(signal.SIGTERM, Service()), pytest.raises(SystemExit):
        asyncio.run(main())


def test_a_tool_that_exits_late_has_failed_and_the_program_goes_on():
    told = []

    @tool(timeout=0.01)
    async def stubborn() -> None:
        try:
            await asyncio.sleep(LONG_SECONDS)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            sys.exit(3)

    async def main():
        def tell(tool, context, error):
            told.append(error.code)

        assert (await call(stubborn, "", context(), grace=0, on_error=tell)).running
        while not told:
            await asyncio.sleep(0.001)

    asyncio.run(main())
    assert told == [3]


def test_an_external_tool_cannot_be_run():
    made = Tool.answered_outside("ask", "Ask a person.", {"type": "object", "properties": {}})
    with pytest.raises(NotATool, match="ask is answered from outside"):
        run(made)


# --- how it is run ---------------------------------------------------------------------------


def test_a_plain_function_runs_in_a_thread_and_an_async_one_in_the_loop():
    async def here() -> int:
        return threading.get_ident()

    def there() -> int:
        return threading.get_ident()

    assert run(here).text == str(threading.get_ident())
    assert run(there).text != str(threading.get_ident())


def test_both_see_the_context_variables_of_the_caller_and_keep_theirs():
    variable = contextvars.ContextVar("variable", default="unset")

    def there() -> str:
        seen = variable.get()
        variable.set("by the tool")
        return seen

    async def here() -> str:
        return there()

    async def main():
        variable.set("by the caller")
        for function in (there, here):
            assert (await call(Tool.of(function), "", context(), grace=0)).text == "by the caller"
        assert variable.get() == "by the caller"

    asyncio.run(main())


def test_the_context_is_passed_to_who_asks_for_it():
    given = context()

    async def book(flight: str, asked: CallContext) -> str:
        assert asked is given
        return f"{flight} {asked.key} {asked.call_id} {asked.thread} {asked.attempt}"

    result = asyncio.run(call(Tool.of(book), '{"flight":"LH1"}', given, grace=0))
    assert result.text == "LH1 key call_1 thread-42 1"


def test_callables_of_all_kinds_are_called():
    class Clock:
        def tell(self, zone: str) -> str:
            return zone

        async def __call__(self, zone: str) -> str:
            return zone

    async def add(first: int, second: int) -> int:
        return first + second

    assert run(Clock().tell, '{"zone":"UTC"}').text == "UTC"
    assert run(Clock(), '{"zone":"UTC"}').text == "UTC"
    assert run(functools.partial(add, second=2), '{"first":1}').text == "3"


def test_a_plain_wrapper_of_an_async_function_is_awaited():
    loops = []

    async def inner(city: str) -> str:
        loops.append(asyncio.get_running_loop())
        return city

    @functools.wraps(inner)
    def outer(*arguments, **named):
        return inner(*arguments, **named)

    assert run(outer, '{"city":"Bern"}').text == "Bern"
    assert len(loops) == 1


def test_a_custom_tool_gets_its_text_as_it_came():
    @tool(kind="custom")
    def patch(text: str) -> str:
        return text.upper()

    assert run(patch, '{"not": json').text == '{"NOT": JSON'


# --- the time limit --------------------------------------------------------------------------


def test_an_async_tool_is_stopped_at_its_limit_and_its_outcome_is_unknown():
    heard = []

    @tool(timeout=0.02)
    async def book() -> None:
        try:
            await asyncio.sleep(LONG_SECONDS)
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    result = run(book)
    assert heard == ["cancelled"]
    assert result == Result(
        text="It reached its time limit of 0.02 seconds before it gave an output.",
        failed=True,
        certain=False,
    )
    assert result.outcome is Outcome.UNKNOWN


def test_what_a_tool_says_when_it_is_asked_to_end_is_its_output():
    @tool(timeout=0.02)
    async def book() -> str:
        try:
            await asyncio.sleep(LONG_SECONDS)
        except asyncio.CancelledError:
            return "nothing was booked"
        return "booked"

    @tool(timeout=0.02)
    def search(context: CallContext) -> str:
        return "two of nine" if context.wait(LONG_SECONDS) else "nine"

    assert run(book) == Result(text="nothing was booked")
    assert run(search) == Result(text="two of nine")


def test_an_error_that_a_tool_raises_when_it_is_asked_to_end_is_its_own():
    @tool(timeout=0.02)
    async def book() -> None:
        try:
            await asyncio.sleep(LONG_SECONDS)
        except asyncio.CancelledError:
            raise RuntimeError("rolled back") from None

    assert run(book) == Result(text="RuntimeError: rolled back", failed=True)


def test_a_thread_that_runs_on_after_its_limit_has_an_unknown_outcome():
    end = threading.Event()

    @tool(timeout=0.02)
    def book() -> None:
        end.wait(LONG_SECONDS)

    result = run(book, grace=0.02)
    end.set()
    assert result == Result(
        text="It reached its time limit of 0.02 seconds, and it still runs.",
        failed=True,
        certain=False,
        running=True,
    )


def test_an_async_tool_that_will_not_end_is_left_running_and_its_error_is_told():
    told = []

    @tool(timeout=0.01)
    async def stubborn(end: str) -> None:
        try:
            await asyncio.sleep(LONG_SECONDS)
        except asyncio.CancelledError:
            await released.wait()
            raise ValueError(end) from None

    released = asyncio.Event()

    async def main():
        result = await call(
            stubborn,
            {"end": "late"},
            context(),
            grace=0.01,
            on_error=lambda tool, context, error: told.append(str(error)),
        )
        assert (result.certain, result.running) == (False, True)
        released.set()
        while not told:
            await asyncio.sleep(0.001)

    asyncio.run(main())
    assert told == ["late"]


def test_a_tool_that_ends_in_time_is_not_asked_to_end():
    given = context()

    @tool(timeout=LONG_SECONDS)
    def quick(asked: CallContext) -> bool:
        return asked.cancelled

    assert asyncio.run(call(quick, "", given, grace=0)).text == "false"
    assert not given.cancelled


# --- cancelling ------------------------------------------------------------------------------


def test_a_cancelled_async_tool_is_stopped_and_the_caller_learns_of_it():
    async def main():
        begun = asyncio.Event()

        async def book() -> None:
            begun.set()
            await asyncio.sleep(LONG_SECONDS)

        return await cancelled(book, begun=begun, grace=LONG_SECONDS)

    assert asyncio.run(main()) == Result(
        text="It was cancelled before it gave an output.", failed=True, certain=False
    )


def test_an_output_that_comes_within_the_grace_time_is_not_lost():
    begun = threading.Event()

    def book(context: CallContext) -> str:
        begun.set()
        context.wait(LONG_SECONDS)
        return "booked"

    async def book_async() -> str:
        begun.set()
        try:
            await asyncio.sleep(LONG_SECONDS)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
        return "booked"

    for function in (book, book_async):
        begun.clear()
        result = asyncio.run(cancelled(function, begun=begun, grace=LONG_SECONDS))
        assert result == Result(text="booked")


def test_after_the_grace_time_the_outcome_is_unknown():
    begun, end = threading.Event(), threading.Event()

    def book() -> None:
        begun.set()
        end.wait(LONG_SECONDS)

    result = asyncio.run(cancelled(book, begun=begun, grace=0.01))
    end.set()
    assert result == Result(
        text="It was cancelled, and it still runs.", failed=True, certain=False, running=True
    )


def test_a_second_cancel_ends_the_grace_time():
    begun, end = threading.Event(), threading.Event()

    def book() -> None:
        begun.set()
        end.wait(LONG_SECONDS)

    async def main():
        task = asyncio.create_task(call(Tool.of(book), "", context(), grace=LONG_SECONDS))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(Cancelled) as heard:
            await task
        return heard.value.result

    result = asyncio.run(main())
    end.set()
    assert result.running


def test_a_wrapped_async_tool_that_is_cancelled_ends_quietly(recwarn):
    begun = threading.Event()

    async def inner() -> str:
        await asyncio.sleep(LONG_SECONDS)
        return "booked"

    def outer(context: CallContext):
        begun.set()
        context.wait(LONG_SECONDS)
        return inner()

    result = asyncio.run(cancelled(outer, begun=begun, grace=LONG_SECONDS))
    assert result.outcome is Outcome.UNKNOWN
    assert not result.running
    assert not recwarn.list


def test_a_tool_that_is_cancelled_from_within_has_an_unknown_outcome():
    for fail in raising(asyncio.CancelledError()):
        result = run(fail)
        assert result.outcome is Outcome.UNKNOWN


def test_cancelled_is_a_cancellation_for_all_who_do_not_know_it():
    async def main():
        begun = asyncio.Event()

        async def book() -> None:
            begun.set()
            await asyncio.sleep(LONG_SECONDS)

        task = asyncio.create_task(call(Tool.of(book), "", context(), grace=LONG_SECONDS))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(main())


def test_the_context_shows_its_state():
    given = context()
    assert repr(given) == "<CallContext call_1 of thread-42, attempt 1>"
    assert not given.wait(0)
    given.cancel()
    assert given.wait(0)
    assert repr(given) == "<CallContext call_1 of thread-42, attempt 1, cancelled>"
