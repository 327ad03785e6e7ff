"""Threads for plain functions: bounded, apart from others, and in nobody's way at the end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time

from lockstitch.runner.calling import Result, call
from lockstitch.runner.threads import Threads
from lockstitch.runner.tools import Tool, tool
from tests.runner.called import LONG_SECONDS, cancelled, context, returning, run


def test_a_plain_function_waits_for_a_free_thread_and_is_not_run_if_none_comes():
    threads = Threads(most=1)
    begun, end = threading.Event(), threading.Event()
    entered = []

    def stuck() -> str:
        begun.set()
        end.wait(LONG_SECONDS)
        return "free"

    @tool(timeout=0.02)
    def hurried() -> None:
        entered.append("hurried")

    def patient() -> str:
        return "patient"

    async def main():
        first = asyncio.create_task(call(Tool.of(stuck), "", context(), grace=0, threads=threads))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        second = await call(hurried, "", context(), grace=LONG_SECONDS, threads=threads)
        assert second == Result(
            text="It was not run: all 1 threads were busy for its time limit of 0.02 seconds.",
            failed=True,
            entered=False,
        )
        waiting = asyncio.create_task(
            call(Tool.of(patient), "", context(), grace=0, threads=threads)
        )
        await asyncio.sleep(0)
        assert repr(threads) == "<Threads 1 of 1, 1 waiting>"
        end.set()
        assert (await first).text == "free"
        assert (await waiting).text == "patient"

    asyncio.run(main())
    assert entered == []


def test_a_call_that_is_cancelled_while_it_waits_for_a_thread_never_started():
    threads = Threads(most=1)
    begun, end = threading.Event(), threading.Event()

    def stuck() -> None:
        begun.set()
        end.wait(LONG_SECONDS)

    def next_in_line() -> None:
        raise AssertionError("entered")

    async def main():
        first = asyncio.create_task(call(Tool.of(stuck), "", context(), grace=0, threads=threads))
        result = await cancelled(next_in_line, begun=begun, grace=LONG_SECONDS, threads=threads)
        end.set()
        await first
        return result

    assert asyncio.run(main()) == Result(
        text="It was not run: it was cancelled.", failed=True, entered=False
    )


def test_if_the_system_gives_no_thread_the_call_never_started(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    threads = Threads(most=1)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        result = run(returning("booked"), threads=threads)
    assert result == Result(
        text="It was not run: can't start new thread.", failed=True, entered=False
    )
    assert run(returning("booked"), threads=threads).text == "booked"


def test_stuck_tools_leave_the_event_loops_own_threads_free():
    end = threading.Event()
    more_than_the_loop_has = (os.cpu_count() or 1) + 5
    threads = Threads(more_than_the_loop_has)

    def stuck() -> None:
        end.wait(LONG_SECONDS)

    async def main():
        calls = [
            asyncio.create_task(call(Tool.of(stuck), "", context(), grace=0, threads=threads))
            for _ in range(more_than_the_loop_has)
        ]
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(LONG_SECONDS / 2):
                assert await asyncio.to_thread(lambda: "free") == "free"
        finally:
            end.set()
        await asyncio.gather(*calls)

    asyncio.run(main())


def test_many_calls_go_through_few_threads_and_all_of_them_arrive():
    threads = Threads(most=3)
    lock = threading.Lock()
    at_once, most = 0, 0

    def count(number: int) -> int:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.001)
        with lock:
            at_once -= 1
        return number

    async def main():
        made = Tool.of(count)
        return await asyncio.gather(
            *(
                call(made, {"number": number}, context(), grace=0, threads=threads)
                for number in range(60)
            )
        )

    assert [result.text for result in asyncio.run(main())] == [str(n) for n in range(60)]
    assert most <= 3


def test_a_stuck_tool_does_not_keep_the_program_from_ending():
    script = """
import asyncio, threading
from lockstitch.runner.calling import call
from lockstitch.runner.context import CallContext
from lockstitch.runner.tools import tool

@tool(timeout=0.01)
def stuck() -> None:
    threading.Event().wait()

context = CallContext(key="k", call_id="c", thread="t")
print(asyncio.run(call(stuck, "", context, grace=0)).running)
"""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=LONG_SECONDS,
    )
    assert done.stdout.strip() == "True"
    assert done.stderr == ""
    assert time.monotonic() - began < LONG_SECONDS


def test_threads_end_when_there_is_nothing_to_do():
    threads = Threads()
    assert run(returning("done"), threads=threads).text == "done"
    while repr(threads) != f"<Threads 0 of {threads.most}, 0 waiting>":
        time.sleep(0.001)


def test_a_tool_that_ends_after_its_loop_is_closed_harms_nobody(recwarn):
    threads, end = Threads(), threading.Event()

    @tool(timeout=0.01)
    def stuck() -> None:
        end.wait(LONG_SECONDS)

    assert run(stuck, grace=0, threads=threads).running
    end.set()
    while threads._running:
        time.sleep(0.001)
    assert not recwarn.list
