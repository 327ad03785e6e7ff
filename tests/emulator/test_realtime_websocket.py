"""The Realtime door over real sockets: a plain client, and the official one."""

import asyncio
import logging
import time
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI

from lockstitch.emulator.clock import VirtualClock
from lockstitch.emulator.errors import NobodyThere
from lockstitch.emulator.model.replies import Asked, Reply, call, item, reply
from lockstitch.emulator.model.turns import SpeechStep
from lockstitch.emulator.wire import reception
from tests.emulator.realtime_door import PATIENCE_SECONDS, Client, Served, serving
from tests.emulator.realtime_events import (
    create,
    function_call_output,
    names,
    only,
    turn_detection,
    user,
)

SLOW = 0.03


async def ask(client: Client, **response: Any) -> None:
    await client.send("response.create", response=response)


def broken(served: Served) -> dict[str, int]:
    return dict(served.world.record.broken)


# The upgrade


async def status_of(served: Served, path: str, **headers: str) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{served.url}{path}", headers=headers) as answer,
    ):
        return answer.status, await answer.json()


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
KEY = {"Authorization": "Bearer right"}
PATH = "/v1/realtime?model=gpt-realtime"


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        (PATH, UPGRADE, 401, None),
        (PATH, UPGRADE | {"Authorization": "Bearer wrong"}, 401, "invalid_api_key"),
        (
            PATH,
            UPGRADE | {"Sec-WebSocket-Protocol": "realtime, openai-insecure-api-key.wrong"},
            401,
            "invalid_api_key",
        ),
        (PATH, KEY, 405, "method_not_supported"),
        ("/v1/realtime", UPGRADE | KEY, 400, "missing_required_parameter"),
    ],
)
def test_who_may_not_come_in_is_told_in_json(
    path: str, headers: dict[str, str], status: int, code: str | None
):
    async def scene() -> None:
        async with serving(key="right") as served:
            got, body = await status_of(served, path, **headers)
            assert (got, body["error"]["code"]) == (status, code)

    asyncio.run(scene())


def test_a_fault_can_refuse_the_upgrade_once():
    async def scene() -> None:
        async with serving("refuse-upgrade code=426") as served:
            got, _ = await status_of(served, PATH, **UPGRADE, **KEY)
            assert got == 426
            async with served.client():
                pass

    asyncio.run(scene())


def test_a_browser_gives_its_key_as_a_subprotocol_and_the_record_keeps_it_secret():
    async def scene() -> None:
        protocols = ("realtime", "openai-insecure-api-key.right")
        async with serving(key="right") as served:
            async with served.client(headers={}, protocols=protocols) as client:
                assert client.socket.protocol == "realtime"
            entries = [str(entry.readable()) for entry in served.world.record.entries()]
            assert not any("insecure-api-key" in entry for entry in entries)

    asyncio.run(scene())


# Frames


def test_every_frame_is_recorded_both_ways_with_the_rule_it_broke():
    async def scene() -> None:
        async with serving() as served, served.client() as client:
            await client.send(**create(function_call_output("call_X"), event_id="mine"))
            error = (await client.until("error"))[-1]["error"]
            assert error["event_id"] == "mine"
            await client.socket.send_str("{")
            await client.until("error")
            await client.socket.send_bytes(b'{"type": "input_audio_buffer.clear"}')
            await client.until("input_audio_buffer.cleared")
            assert broken(served) == {"output-without-call": 1, "unreadable-frame": 1}
            frames = [
                (entry.sent, entry.what, entry.broke)
                for entry in served.world.record.entries()
                if entry.kind == "frame"
            ]
            assert frames == [
                (True, "session.created", None),
                (False, "frame session.update", None),
                (True, "session.updated", None),
                (False, "frame conversation.item.create", None),
                (True, "error", "output-without-call"),
                (False, "frame unreadable", None),
                (True, "error", "unreadable-frame"),
                (False, "frame input_audio_buffer.clear", None),
                (True, "input_audio_buffer.cleared", None),
            ]

    asyncio.run(scene())


def test_a_frame_that_is_too_large_closes_the_connection(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reception, "LARGEST_FRAME_BYTES", 1_000)

    async def scene() -> None:
        async with serving() as served, served.client() as client:
            await client.send("input_audio_buffer.append", audio="A" * 2_000)
            assert await client.to_the_end() == 1009

    asyncio.run(scene())


def test_a_session_that_is_too_old_is_told_and_closed():
    async def scene() -> None:
        async with serving(connection_seconds=0.05) as served:
            async with served.client(greeted=False) as client:
                assert await client.to_the_end() == 1001
                assert client.heard[-1]["error"]["code"] == "session_expired"
            assert served.door.sessions == {}

    asyncio.run(scene())


def test_a_session_grows_old_by_the_clock_of_the_emulator():
    async def scene() -> None:
        clock = VirtualClock()
        async with serving(clock=clock) as served, served.client() as client:
            clock.advance(3_600.0)
            await client.send("input_audio_buffer.clear")
            assert await client.to_the_end() == 1001
            assert client.heard[-1]["error"]["code"] == "session_expired"

    asyncio.run(scene())


def test_a_paced_reply_does_not_age_a_session_on_a_virtual_clock():
    async def scene() -> None:
        async with serving(clock=VirtualClock(), pace=1.0) as served, served.client() as client:
            await ask(client)
            await client.until("response.done")

    asyncio.run(scene())


# Responses


def test_a_tool_is_called_and_its_output_is_answered():
    async def scene() -> None:
        async with serving() as served, served.client() as client:
            served.say(call("get_weather", {"city": "Athens"}))
            served.say("It is sunny.")
            await client.send(**create(user("What is the weather?")))
            await ask(client)
            heard = await client.until("response.done")
            called = only(heard, "response.output_item.done")["item"]
            await client.send(**create(function_call_output(called["call_id"], "sunny")))
            await ask(client)
            done = (await client.until("response.done"))[-1]["response"]
            assert done["output"][0]["content"][0]["text"] == "It is sunny."
            assert [asked.output for asked in served.asked] == [None, "sunny"]
            assert served.asked[1].tool == "get_weather"
            assert broken(served) == {}

    asyncio.run(scene())


def test_a_client_edits_while_a_paced_response_is_in_flight():
    async def scene() -> None:
        async with serving(pace=SLOW) as served, served.client() as client:
            served.say(call("get_weather", {"city": "Athens"}))
            served.say("One moment please.")
            await served.door.speak("What is the weather?")
            heard = await client.until("rate_limits.updated")
            called = only(heard, "response.output_item.done")["item"]
            # The user speaks again while the tool runs, and is answered.
            await served.door.speak("Are you there?")
            heard = await client.until("response.created")
            said = only(heard, "conversation.item.added")
            assert said["previous_item_id"] == called["id"]
            for gone in (called["id"], said["item"]["id"]):
                await client.send("conversation.item.delete", item_id=gone)
            heard = await client.until("response.done")
            late = only(heard, "conversation.item.added")
            assert late["previous_item_id"] == said["item"]["id"]
            assert names(heard).count("conversation.item.deleted") == 2

    asyncio.run(scene())


def test_a_call_is_deleted_in_flight_and_named_as_predecessor_after_that():
    """The founding case, over a socket: the late item comes after the delete was confirmed."""

    async def scene() -> None:
        clock = VirtualClock(flowing=False)
        async with serving(clock=clock) as served, served.client() as client:
            served.say(call("get_weather", {"city": "Athens"}))
            served.say("Still here.", delay=0.4)
            await ask(client)
            called = only(await client.until("rate_limits.updated"), "response.output_item.done")
            # A response starts behind the call and takes its time.
            await ask(client)
            await client.send("conversation.item.delete", item_id=called["item"]["id"])
            deleted = (await client.until("conversation.item.deleted"))[-1]
            clock.advance(0.4)
            late = only(await client.until("response.done"), "conversation.item.added")
            assert late["previous_item_id"] == deleted["item_id"] == called["item"]["id"]
            output = function_call_output(called["item"]["call_id"])
            await client.send(**create(output, event_id="mine"))
            error = (await client.until("error"))[-1]["error"]
            assert (error["code"], error["event_id"]) == ("invalid_tool_call_id", "mine")

    asyncio.run(scene())


PACE_SECONDS = 30.0
"""Between two events of a reply that is slow: also on a busy machine nothing else takes so long."""


def test_a_cancel_comes_at_once_however_slow_the_reply():
    async def scene() -> None:
        async with serving() as served, served.client() as client:
            served.say("One two three.", pace=PACE_SECONDS)
            await ask(client)
            await client.until("response.created")
            began = time.monotonic()
            await client.send("response.cancel")
            done = (await client.until("response.done"))[-1]["response"]
            assert done["status"] == "cancelled"
            assert time.monotonic() - began < PACE_SECONDS
            await ask(client)
            done = (await client.until("response.done"))[-1]["response"]
            assert done["status"] == "completed"

    asyncio.run(scene())


def test_a_response_runs_out_of_band_beside_the_active_one():
    async def scene() -> None:
        async with serving() as served, served.client() as client:
            served.say("One two three.", pace=SLOW)
            served.say("Aside.")
            await ask(client)
            await client.until("response.created")
            await ask(client)
            error = (await client.until("error"))[-1]["error"]
            assert error["code"] == "conversation_already_has_active_response"
            await ask(client, conversation="none", metadata={"topic": "aside"})
            first, second = [
                event["response"]
                for event in await client.until("response.done", 2)
                if event["type"] == "response.done"
            ]
            assert first["metadata"] == {"topic": "aside"}
            assert first["conversation_id"] is None
            assert second["conversation_id"] is not None

    asyncio.run(scene())


@pytest.mark.parametrize("problem", ["a draft", "an exception"])
def test_what_cannot_be_said_is_logged_and_fails_the_response(
    problem: str, caplog: pytest.LogCaptureFixture
):
    def speak(_: Asked) -> Reply:
        if problem == "a draft":
            return reply(item("web_search_call"))
        raise RuntimeError("the script broke")

    async def scene() -> None:
        async with serving(speak=speak) as served, served.client() as client:
            await ask(client)
            done = (await client.until("response.done"))[-1]["response"]
            assert done["status"] == "failed"
            assert done["status_details"]["error"]["code"] == "server_error"

    with caplog.at_level(logging.ERROR, "lockstitch.emulator"):
        asyncio.run(scene())
    assert "the emulator has no answer" in caplog.text


# Speech


def test_the_user_speaks_in_the_newest_session_or_in_a_chosen_one():
    async def scene() -> None:
        async with serving() as served:
            with pytest.raises(NobodyThere):
                await served.door.speak("Hello?")
            async with served.client() as first, served.client() as second:
                old, new = sorted(served.door.sessions)
                await served.door.speak("Hello")
                await second.until("response.done")
                await served.door.speak("You too", session=old, responds=False)
                await first.until("conversation.item.done")
                with pytest.raises(NobodyThere):
                    await served.door.speak("Hello?", session=new + 1)
            assert [asked.user for asked in served.asked] == ["Hello"]

    asyncio.run(scene())


def test_a_step_of_the_script_speaks_after_the_event_it_waits_for():
    async def scene() -> None:
        steps = [
            SpeechStep(after="response.output_item.done", nth=2, says="Second"),
            SpeechStep(after="conversation.item.create", delay=0.01, says="First", responds=False),
        ]
        async with serving(speech=steps) as served, served.client() as client:
            await client.send(**create(user("hello")))
            heard = await client.until("conversation.item.done", 2)
            assert "input_audio_buffer.speech_started" in names(heard)
            served.say("One.", "Two.", "Three.")
            await ask(client)
            heard = await client.until("response.done", 2)
            order = names(heard)
            at = order.index("input_audio_buffer.speech_started")
            # It interrupts the response that it followed.
            assert order[at - 1] == "response.output_item.done"
            assert order[:at].count("response.output_item.done") == 2
            first = next(event for event in heard if event["type"] == "response.done")
            assert first["response"]["status_details"]["reason"] == "turn_detected"
            assert [asked.user for asked in served.asked] == ["First", "Second"]

    asyncio.run(scene())


def test_speech_does_not_interrupt_when_the_client_says_so():
    async def scene() -> None:
        audio = turn_detection(interrupt_response=False, create_response=False)
        async with serving(pace=SLOW) as served, served.client(audio=audio) as client:
            await ask(client)
            await client.until("response.created")
            await served.door.speak("Hello")
            heard = await client.until("response.done")
            assert "input_audio_buffer.committed" in names(heard)
            assert heard[-1]["response"]["status"] == "completed"

    asyncio.run(scene())


# Faults


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("cut how=close after=response.output_item.added", 1000),
        ("cut how=reset after=response.output_item.added", 1006),
        ("cut how=half-frame before=response.output_item.done", 1006),
        ("close code=1012 after=response.output_item.added", 1012),
        ("close code=1006 after=response.output_item.added", 1006),
        ("close code=1001 before=session.updated", 1001),
        ("cut how=close", 1000),
    ],
)
def test_a_fault_ends_the_connection(fault: str, code: int):
    async def scene() -> None:
        async with serving(fault) as served:
            async with served.client(greeted=False) as client:
                await client.send("session.update", session={"type": "realtime"})
                await ask(client)
                assert await client.to_the_end() == code
                assert "response.done" not in names(client.heard)
            assert sum(served.world.record.struck.values()) == 1
            async with served.client() as client:
                await ask(client)
                await client.until("response.done")

    asyncio.run(scene())


def test_a_fault_armed_in_the_middle_of_a_session_strikes_the_next_response():
    async def scene() -> None:
        async with serving() as served, served.client() as client:
            await ask(client)
            await client.until("rate_limits.updated")
            served.world.faults.arm("duplicate at=response.output_item.done")
            await ask(client)
            heard = await client.until("response.done")
            assert names(heard).count("response.output_item.done") == 2
            assert broken(served) == {}

    asyncio.run(scene())


def test_a_fault_of_a_reply_strikes_that_reply_alone():
    async def scene() -> None:
        async with serving() as served, served.client() as client:
            served.say("One.")
            served.say("Two.", faults=("late at=response.output_item.done by=1",))
            served.say("Three.")
            for late in (False, True, False):
                await ask(client)
                order = names(await client.until("rate_limits.updated"))
                done = order.index("response.output_item.done")
                assert (order[done - 1] == "conversation.item.done") is late

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("fault", "status", "detail"),
    [
        ("fail code=overloaded", "failed", "overloaded"),
        ("fail code=overloaded before=response.output_item.done", "failed", "overloaded"),
        ("fail before=response.created", "failed", "server_error"),
        ("incomplete reason=content_filter", "incomplete", "content_filter"),
        ("error code=rate_limit_exceeded", "failed", "rate_limit_exceeded"),
    ],
)
@pytest.mark.parametrize("of_reply", [False, True])
def test_a_fault_ends_a_response_early(fault: str, status: str, detail: str, of_reply: bool):
    async def scene() -> None:
        async with serving() as served, served.client() as client:
            if of_reply:
                served.say("Hello.", faults=(fault,))
            else:
                served.world.faults.arm(fault)
            await ask(client)
            heard = await client.until("rate_limits.updated")
            done = only(heard, "response.done")["response"]
            assert done["status"] == status
            assert detail in str(done["status_details"])
            assert ("error" in names(heard)) is fault.startswith("error")
            for what in ("output_item", "content_part"):
                order = names(heard)
                assert order.count(f"response.{what}.added") == order.count(f"response.{what}.done")
            # The session goes on.
            await ask(client)
            done = (await client.until("response.done"))[-1]["response"]
            assert done["status"] == "completed"

    asyncio.run(scene())


def test_a_fault_that_always_fails_fails_every_response():
    async def scene() -> None:
        async with serving("fail times=always") as served, served.client() as client:
            for _ in range(3):
                await ask(client)
                done = (await client.until("response.done"))[-1]["response"]
                assert done["status"] == "failed"

    asyncio.run(scene())


def test_an_error_that_strikes_outside_of_a_response_leaves_it_all_told():
    async def scene() -> None:
        fault = "error before=conversation.item.added"
        async with serving(fault) as served, served.client() as client:
            await client.send(**create(user("hello")))
            heard = await client.until("conversation.item.done")
            assert names(heard)[0] == "error"
            assert names(heard)[1:] == ["conversation.item.added", "conversation.item.done"]

    asyncio.run(scene())


def test_a_stall_holds_up_everything_and_then_goes_on():
    async def scene() -> None:
        fault, clock = "stall seconds=60 before=response.done", VirtualClock(flowing=False)
        async with serving(fault, clock=clock) as served, served.client() as client:
            await ask(client)
            await client.until("conversation.item.done")
            await client.send("input_audio_buffer.clear")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.hear()
            clock.advance(60.0)
            assert "response.done" in names(await client.until("input_audio_buffer.cleared"))

    asyncio.run(scene())


def test_a_client_that_goes_away_leaves_no_session_behind():
    async def scene() -> None:
        async with serving() as served:
            served.say("One two three.", pace=30.0)
            async with served.client() as client:
                await ask(client)
                await client.until("response.created")
            async with asyncio.timeout(PATIENCE_SECONDS):
                while served.door.sessions:
                    await asyncio.sleep(0.005)

    asyncio.run(scene())


def test_an_emulator_that_stops_closes_its_sessions():
    async def scene() -> None:
        async with serving() as served, served.client() as client:
            served.say("One two three.", pace=30.0)
            await ask(client)
            await client.until("response.created")
            ending = asyncio.create_task(client.to_the_end())
            await served.emulator.stop()
            assert await ending == 1001

    asyncio.run(scene())


# The official client


def test_the_official_client_speaks_and_is_answered():
    async def scene() -> list[str]:
        async with serving() as served:
            served.say(call("get_weather", {"city": "Athens"}))
            served.say("It is sunny.")
            openai = AsyncOpenAI(
                api_key="any",
                base_url=f"{served.url}/v1",
                websocket_base_url=f"{served.url.replace('http', 'ws')}/v1",
            )
            async with openai.realtime.connect(model="gpt-realtime") as connection:
                await connection.session.update(
                    session={"type": "realtime", "output_modalities": ["text"]}
                )
                await connection.conversation.item.create(item=user("What is the weather?"))
                await connection.response.create()
                return await _conversed(connection)

    order = asyncio.run(scene())
    assert order[0] == "session.created"
    assert "error" not in order
    assert order.count("response.done") == 2


async def _conversed(connection: Any) -> list[str]:
    order = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for event in connection:
            order.append(event.type)
            if event.type == "response.output_item.done" and event.item.type == "function_call":
                called = event.item
            if event.type == "response.done":
                if order.count("response.done") == 2:
                    assert event.response.output[0].content[0].text == "It is sunny."
                    return order
                await connection.conversation.item.create(item=function_call_output(called.call_id))
                await connection.response.create()
    raise AssertionError(order)
