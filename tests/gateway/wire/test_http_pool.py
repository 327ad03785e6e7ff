from __future__ import annotations

import asyncio
import socket
import time

import pytest

from lockstitch.gateway.lines import LineFailure
from tests.gateway.building import until
from tests.gateway.wire.playing import (
    Heard,
    answer_to,
    asking,
    lines_to,
    request_read,
    saying,
    serving,
)

SMALL = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def keeps(answer: bytes):
    return serving(saying(answer, then_close=False))


@pytest.mark.parametrize(
    "answer",
    [
        SMALL,
        HEAD + b"2\r\nhi\r\n0\r\n\r\n",
        HEAD + b"2\r\nhi\r\n0\r\nx-trailer: 1\r\n\r\n",
        b"HTTP/1.1 204 No\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + SMALL,
        b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nhi",
    ],
    ids=["length", "chunks", "trailer", "no body", "interim", "1.0"],
)
def test_a_connection_is_used_again_when_its_answer_was_whole(run, answer):
    async def go():
        async with keeps(answer) as url, lines_to(url) as lines:
            for _ in range(5):
                assert (await answer_to(lines)).is_whole
            assert lines.opened == 1

    run(go())


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi",
        SMALL + SMALL,
        SMALL + b"x",
    ],
    ids=["close", "1.0", "two answers", "garbage"],
)
def test_a_connection_that_may_not_be_used_again_is_not(run, answer):
    async def go():
        async with keeps(answer) as url, lines_to(url) as lines:
            for _ in range(3):
                heard = await answer_to(lines)
                assert (heard.is_whole, heard.body) == (True, b"hi")
            assert lines.opened == 3

    run(go())


def test_a_connection_that_was_paused_at_its_end_is_used_again(run):
    async def go():
        async with keeps(SMALL) as url, lines_to(url) as lines:
            for _ in range(3):
                heard = Heard()
                line = await lines.ask(asking(), heard)
                heard.heard = lambda data, line=line: line.pause()
                await heard.over()
            assert lines.opened == 1

    run(go())


def test_a_connection_whose_answer_broke_is_not_used_again(run):
    async def go():
        async with serving(saying(HEAD + b"2\r\nhi\r\n")) as url, lines_to(url) as lines:
            for _ in range(3):
                assert (await answer_to(lines)).failure is not None
            assert lines.opened == 3

    run(go())


def test_an_idle_connection_that_the_server_closed_is_not_asked(run):
    async def go():
        async with serving(saying(SMALL)) as url, lines_to(url) as lines:
            for _ in range(4):
                assert (await answer_to(lines)).is_whole
                await until(lambda: not lines._idle)
            assert lines.opened == 4

    run(go())


def test_an_idle_connection_that_says_something_unasked_is_closed(run):
    async def go():
        async def talk(reader, writer):
            await request_read(reader)
            writer.write(SMALL)
            await writer.drain()
            await asyncio.sleep(0.01)
            writer.write(b"HTTP/1.1 408 Timeout\r\ncontent-length: 0\r\n\r\n")
            await reader.read()

        async with serving(talk) as url, lines_to(url) as lines:
            assert (await answer_to(lines)).status == 200
            await until(lambda: not lines._idle)
            assert (await answer_to(lines)).status == 200
            assert lines.opened == 2

    run(go())


def test_a_used_connection_that_is_closed_instead_of_answered_is_told_and_not_asked_twice(run):
    async def go():
        requests = 0

        async def talk(reader, writer):
            nonlocal requests
            await request_read(reader)
            requests += 1
            writer.write(SMALL)
            await request_read(reader)
            requests += 1

        async with serving(talk) as url, lines_to(url) as lines:
            assert (await answer_to(lines)).is_whole
            heard = await answer_to(lines)
            assert heard.failure is not None
            assert heard.failure.sent
            assert "used before" in str(heard.failure)
            assert requests == 2
            assert lines.opened == 1

    run(go())


def test_an_idle_connection_grows_old_and_is_closed(run):
    async def go():
        async with keeps(SMALL) as url, lines_to(url, idle_seconds=0.05) as lines:
            await answer_to(lines)
            assert len(lines._idle) == 1
            await until(lambda: not lines._idle and not lines._all)
            await answer_to(lines)
            assert lines.opened == 2

    run(go())


def test_a_connection_that_grew_old_while_the_loop_was_busy_is_not_asked(run):
    async def go():
        async with keeps(SMALL) as url, lines_to(url, idle_seconds=0.05) as lines:
            await answer_to(lines)
            time.sleep(0.1)
            await answer_to(lines)
            assert lines.opened == 2

    run(go())


def test_a_connection_whose_request_was_not_read_to_its_end_is_not_used_again(run):
    async def go():
        async def talk(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(SMALL)
            await writer.drain()
            await asyncio.sleep(0.05)

        async with serving(talk) as url, lines_to(url) as lines:
            for _ in range(2):
                assert (await answer_to(lines, body=b"x" * 20_000_000)).is_whole
            assert lines.opened == 2
            assert not lines._idle

    run(go())


def test_no_more_than_the_limit_are_asked_at_a_time(run):
    async def go():
        busy = most = 0

        async def talk(reader, writer):
            nonlocal busy, most
            while True:
                await request_read(reader)
                busy += 1
                most = max(most, busy)
                await asyncio.sleep(0.005)
                busy -= 1
                writer.write(SMALL)

        async with serving(talk) as url, lines_to(url, connections=3) as lines:
            heard = await asyncio.gather(*(answer_to(lines) for _ in range(30)))
            assert all(one.is_whole for one in heard)
            assert most == 3
            assert lines.opened == 3

    run(go())


def test_who_waits_too_long_for_a_turn_is_told_that_nothing_was_sent(run):
    async def go():
        async def talk(reader, writer):
            await reader.read()

        async with (
            serving(talk) as url,
            lines_to(url, connections=1, connect_seconds=0.05) as lines,
        ):
            line = await lines.ask(asking(), Heard())
            with pytest.raises(LineFailure, match="All 1 connections") as raised:
                await lines.ask(asking(), Heard())
            assert not raised.value.sent
            line.leave()
            await lines.ask(asking(), Heard())

    run(go())


def test_who_gives_up_waiting_leaves_no_turn_behind(run):
    async def go():
        async def talk(reader, writer):
            await reader.read()

        async with serving(talk) as url, lines_to(url, connections=2) as lines:
            held = [await lines.ask(asking(), Heard()) for _ in range(2)]
            waiting = [asyncio.create_task(lines.ask(asking(), Heard())) for _ in range(10)]
            await asyncio.sleep(0.01)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            for line in held:
                line.leave()
            assert lines._turns._value == 2
            # In the middle of opening a connection, too.
            for turns in range(6):
                task = asyncio.create_task(lines.ask(asking(), Heard()))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                (result,) = await asyncio.gather(task, return_exceptions=True)
                if not isinstance(result, BaseException):
                    result.leave()
                assert lines._turns._value == 2

    run(go())


def test_an_upstream_that_is_not_there_fails_with_nothing_sent(run):
    async def go():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            async with lines_to(f"http://127.0.0.1:{taken.getsockname()[1]}") as lines:
                for _ in range(3):
                    with pytest.raises(LineFailure, match="No connection") as raised:
                        await lines.ask(asking(), Heard())
                    assert not raised.value.sent
                assert lines._turns._value == 1000

    run(go())


def test_an_upstream_whose_name_is_none_fails_with_nothing_sent(run):
    async def go():
        async with lines_to(f"http://{'a' * 70}.invalid") as lines:
            with pytest.raises(LineFailure) as raised:
                await lines.ask(asking(), Heard())
            assert not raised.value.sent

    run(go())


def test_an_upstream_that_does_not_accept_fails_within_the_limit(run):
    async def go():
        # TLS that nobody answers.
        async def talk(reader, writer):
            await reader.read()

        async with serving(talk) as url:
            address = url.replace("http:", "https:")
            async with lines_to(address, connect_seconds=0.1) as lines:
                with pytest.raises(LineFailure, match=r"within 0\.1 seconds") as raised:
                    await lines.ask(asking(), Heard())
                assert not raised.value.sent
                assert lines._turns._value == 1000

    run(go())


def test_closing_breaks_what_is_under_way_and_lets_nothing_begin(run):
    async def go():
        async def talk(reader, writer):
            await request_read(reader)
            writer.write(SMALL)
            await request_read(reader)
            await reader.read()

        async with serving(talk) as url, lines_to(url) as lines:
            assert (await answer_to(lines)).is_whole
            heard = Heard()
            await lines.ask(asking(), heard)
            await lines.close()
            assert heard.failure is not None
            assert not lines._all
            with pytest.raises(LineFailure) as raised:
                await lines.ask(asking(), Heard())
            assert not raised.value.sent

    run(go())
