"""One call: how it is run, when it ends, and what is known if it does not."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import threading

import pytest

from lockstitch.core.outcomes import Outcome
from lockstitch.runner.calling import Cancelled, Result, call
from lockstitch.runner.context import CallContext
from lockstitch.runner.schemas import NotATool
from lockstitch.runner.tools import Tool, tool
from tests.runner.called import LONG_SECONDS, cancelled, context, raising, run

# --- what goes wrong ---------------------------------------------------------------------------


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


@pytest.mark.parametrize("leave", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_is_not_swallowed(leave):
    for fail in raising(leave()):
        with pytest.raises(leave):
            run(fail)


class Panic(BaseException):
    """As extensions in Rust raise: it is no `Exception`, and the program is to go on."""


@pytest.mark.parametrize("error", [Panic("index out of bounds"), GeneratorExit("left")])
def test_any_other_error_is_the_result_of_the_call(error):
    for fail in raising(error):
        result = run(fail)
        assert result.text == f"{type(error).__name__}: {error}"
        assert result.failed
        assert result.outcome is Outcome.FINISHED


def test_what_ends_the_program_is_not_swallowed_if_it_comes_late():
    @tool(timeout=0.01)
    async def stubborn() -> None:
        try:
            await asyncio.sleep(LONG_SECONDS)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            raise SystemExit(3) from None

    async def main():
        assert (await call(stubborn, "", context(), grace=0)).running
        await asyncio.sleep(LONG_SECONDS)

    with pytest.raises(SystemExit):
        asyncio.run(main())


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
