"""A fault at every point of every transport: what was cut leaves no trace, what was kept is there.

The promises after each: the client saw a prefix of the events, the conversation is unlocked, and
holds the turn if and only if the provider kept it."""

import asyncio
import json

import aiohttp
import pytest

from lockstitch.emulator import Settings, VirtualClock, call, reasoning

TURN = (reasoning("häm"), call("look", {"at": "Ålesund"}))
ENDS = {"response.completed", "response.failed", "response.incomplete", "error"}
SIDES = ("before", "after")
HOWS = ("close", "reset", "half-frame", "half-character")


def said_by(emulator):
    """Queue the turn that every round tells."""
    emulator.say(*TURN)


async def rounds(emulator, tell, faults):
    """Tell the turn once for each fault, on a conversation of its own; what was seen and kept."""
    async with aiohttp.ClientSession(
        headers={"Authorization": "Bearer any"}, timeout=aiohttp.ClientTimeout(total=10)
    ) as session:
        for fault in faults:
            async with session.post(f"{emulator.base_url}/conversations", json={}) as answer:
                conversation = (await answer.json())["id"]
            said_by(emulator)
            if fault:
                emulator.fault(fault)
            body = {"model": "m", "input": "go", "conversation": conversation}
            seen = await tell(session, emulator, body)
            url = f"{emulator.base_url}/conversations/{conversation}/items"
            async with session.get(url) as answer:
                kept = [item["type"] for item in (await answer.json())["data"]]
            # Unlocked: an item can be added at once.
            note = {"items": [{"role": "user", "content": "note"}]}
            async with session.post(url, json=note) as answer:
                assert answer.status == 200, (fault, await answer.text())
            yield fault, seen, kept


async def streamed(session, emulator, body):
    """The events' names that came over SSE, whole ones only."""
    data = b""
    try:
        async with session.post(
            f"{emulator.base_url}/responses", json=body | {"stream": True}
        ) as answer:
            async for piece in answer.content.iter_any():
                data += piece
    except aiohttp.ClientError:
        pass
    whole = data.split(b"\n\n")[:-1]
    return [json.loads(event.split(b"data: ", 1)[1])["type"] for event in whole]


async def in_frames(session, emulator, body):
    """The events' names that came over a WebSocket."""
    seen = []
    async with session.ws_connect(f"{emulator.base_url}/responses") as socket:
        await socket.send_json({"type": "response.create"} | body)
        while not seen or seen[-1] not in ENDS:
            message = await socket.receive(timeout=10)
            if message.type is not aiohttp.WSMsgType.TEXT:
                break
            seen.append(json.loads(message.data)["type"])
    return seen


async def whole(session, emulator, body):
    """The status of an answer in one piece, if one came."""
    try:
        async with session.post(f"{emulator.base_url}/responses", json=body) as answer:
            return [(await answer.json())["status"]]
    except aiohttp.ClientError:
        return []


@pytest.fixture
def swift(make_emulator):
    """Stalls and drips take no time."""
    return make_emulator(clock=VirtualClock(), settings=Settings(connection_seconds=1e12))


async def all_events(emulator, tell):
    async for _, seen, kept in rounds(emulator, tell, [""]):
        assert kept == ["function_call", "reasoning", "message"]
        return seen
    raise AssertionError


@pytest.mark.parametrize("tell", [streamed, in_frames])
@pytest.mark.parametrize("how", HOWS)
def test_a_cut_anywhere_is_a_prefix_of_the_events_and_leaves_no_trace(emulator, tell, how):
    async def loop():
        events = await all_events(emulator, tell)
        cuts = [f"cut {side}={n} how={how}" for n in range(len(events)) for side in SIDES]
        async for fault, seen, kept in rounds(emulator, tell, cuts):
            assert seen == events[: len(seen)], fault
            number, after = int(fault.split("=")[1].split()[0]), "after" in fault
            assert len(seen) == number + after, (fault, seen)
            # After the last event the response was over, and kept: the client has seen its end.
            assert bool(kept) == (seen == events), fault

    asyncio.run(loop())


@pytest.mark.parametrize("tell", [streamed, in_frames, whole])
def test_a_response_that_was_kept_is_there_wherever_the_connection_was_cut(emulator, tell):
    async def loop():
        events = await all_events(emulator, streamed)
        cuts = [f"cut before={n} commit=yes" for n in range(len(events))]
        async for fault, _, kept in rounds(emulator, tell, ["cut commit=yes", *cuts, "lose"]):
            assert kept == ["function_call", "reasoning", "message"], fault

    asyncio.run(loop())


def test_a_cut_of_an_answer_in_one_piece_leaves_no_trace(emulator):
    async def loop():
        events = await all_events(emulator, streamed)
        cuts = [f"cut before={n} how={how}" for n in range(len(events)) for how in HOWS[:2]]
        async for fault, seen, kept in rounds(emulator, whole, ["cut", *cuts]):
            assert (seen, kept) == ([], []), fault

    asyncio.run(loop())


@pytest.mark.parametrize("tell", [streamed, in_frames])
def test_a_response_ended_early_anywhere_ends_with_the_event_that_says_so(emulator, tell):
    async def loop():
        events = await all_events(emulator, tell)
        for name, last in (("fail", "response.failed"), ("incomplete", "response.incomplete")):
            faults = [f"{name} before={n}" for n in range(1, len(events))]
            async for fault, seen, kept in rounds(emulator, tell, faults):
                assert seen[-1] == last, fault
                assert seen.count(last) == 1
                assert bool(kept) == (name == "incomplete"), fault

    asyncio.run(loop())


@pytest.mark.parametrize("tell", [streamed, in_frames])
@pytest.mark.parametrize("fault", ["stall", "drip bytes=1", "stall after=3", "drip before=2"])
def test_what_only_takes_time_changes_nothing(swift, tell, fault):
    async def loop():
        events = await all_events(swift, tell)
        async for _, seen, kept in rounds(swift, tell, [fault]):
            assert seen == events
            assert kept

    asyncio.run(loop())


@pytest.mark.parametrize("code", [1000, 1001, 1009, 1011, 1012, 1006])
def test_a_websocket_is_closed_with_the_code_that_was_asked_for(emulator, code):
    async def closed():
        emulator.fault(f"close code={code} after=response.created")
        async with (
            aiohttp.ClientSession(headers={"Authorization": "Bearer any"}) as session,
            session.ws_connect(f"{emulator.base_url}/responses") as socket,
        ):
            await socket.send_json({"type": "response.create", "model": "m", "input": "x"})
            assert json.loads((await socket.receive()).data)["type"] == "response.created"
            await socket.receive()
            return socket.close_code

    assert asyncio.run(closed()) == code


@pytest.mark.parametrize("status", [426, 500])
def test_an_upgrade_is_refused_with_the_status_that_was_asked_for(emulator, status):
    async def refused():
        emulator.fault(f"refuse-upgrade code={status}")
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer any"}) as session:
            with pytest.raises(aiohttp.WSServerHandshakeError) as problem:
                await session.ws_connect(f"{emulator.base_url}/responses")
            async with session.ws_connect(f"{emulator.base_url}/responses"):
                return problem.value.status

    assert asyncio.run(refused()) == status


@pytest.mark.parametrize("status", [400, 401, 404, 409, 429, 500, 502, 503, 529])
def test_a_status_is_answered_by_every_dialect_in_its_own_form(emulator, status):
    async def answered():
        bodies = {
            "responses": {"model": "m", "input": "x"},
            "conversations": {},
            "chat/completions": {"model": "m", "messages": [{"role": "user", "content": "x"}]},
            "messages": {
                "model": "m",
                "max_tokens": 9,
                "messages": [{"role": "user", "content": "x"}],
            },
        }
        headers = {"Authorization": "Bearer any", "anthropic-version": "2023-06-01"}
        async with aiohttp.ClientSession(headers=headers) as session:
            for path, body in bodies.items():
                emulator.fault(f"status code={status}")
                async with session.post(f"{emulator.base_url}/{path}", json=body) as answer:
                    assert answer.status == status, path
                    assert ("Retry-After" in answer.headers) == (status == 429)
                    said = await answer.json()
                    assert said["error"]["message"]
                    assert (said.get("type") == "error") == (path == "messages")
        assert emulator.violations() == {}

    asyncio.run(answered())


def test_a_cut_before_the_first_byte_strikes_any_request(emulator):
    async def cut():
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer any"}) as session:
            for method, path in (("POST", "conversations"), ("GET", "models")):
                # This client asks again by itself where that is safe.
                emulator.fault("cut times=2")
                with pytest.raises(aiohttp.ClientError):
                    await session.request(method, f"{emulator.base_url}/{path}", json={})
        assert not emulator.emulator.conversations.all()

    asyncio.run(cut())


def test_what_was_forgotten_cannot_be_continued(emulator):
    async def forgotten():
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer any"}) as session:
            for what in ("anchor", "everything"):
                url = f"{emulator.base_url}/responses"
                async with session.post(url, json={"model": "m", "input": "x"}) as answer:
                    made = await answer.json()
                emulator.fault(f"forget what={what}")
                body = {"model": "m", "input": "y", "previous_response_id": made["id"]}
                async with session.post(url, json=body) as answer:
                    said = await answer.json()
                assert said["error"]["code"] == "previous_response_not_found"

    asyncio.run(forgotten())


def test_over_http_there_is_no_cache_to_forget(emulator):
    async def continued():
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer any"}) as session:
            url = f"{emulator.base_url}/responses"
            async with session.post(url, json={"model": "m", "input": "x"}) as answer:
                made = await answer.json()
            emulator.fault("forget what=cache")
            body = {"model": "m", "input": "y", "previous_response_id": made["id"]}
            async with session.post(url, json=body) as answer:
                return answer.status

    assert asyncio.run(continued()) == 200


def test_a_lock_that_was_asked_for_is_answered_as_a_busy_conversation_is(emulator):
    async def locked():
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer any"}) as session:
            async with session.post(f"{emulator.base_url}/conversations", json={}) as answer:
                conversation = (await answer.json())["id"]
            emulator.fault("lock")
            body = {"model": "m", "input": "x", "conversation": conversation}
            async with session.post(f"{emulator.base_url}/responses", json=body) as answer:
                assert (await answer.json())["error"]["code"] == "conversation_locked"
            async with session.post(f"{emulator.base_url}/responses", json=body) as answer:
                assert answer.status == 200

    asyncio.run(locked())


@pytest.mark.parametrize("tell", [streamed, in_frames])
@pytest.mark.parametrize(
    "fault",
    [
        "stall seconds=0",
        "drip seconds=0",
        "duplicate",
        "late",
        "fail",
        "incomplete",
        "error",
        "cut before=end",
        "close before=end",
    ],
)
def test_a_fault_that_struck_is_on_record_by_name(emulator, tell, fault):
    async def loop():
        async for _ in rounds(emulator, tell, [fault]):
            pass

    asyncio.run(loop())
    assert dict(emulator.emulator.record.struck) == {fault: 1}
    struck = [entry.fault for entry in emulator.entries() if entry.fault]
    assert struck == [fault]
    events = [entry.what for entry in emulator.entries() if entry.kind in {"event", "frame"}]
    assert "response.created" in events
    assert "" not in events


def test_a_lane_that_drips_does_not_get_into_the_frames_of_another(emulator):
    async def told():
        emulator.fault("drip bytes=7 seconds=0.0002 model=slow")
        emulator.say("slow " * 20)
        for _ in range(5):
            emulator.say("quick " * 5)
        names = []
        async with (
            aiohttp.ClientSession(headers={"Authorization": "Bearer any"}) as session,
            session.ws_connect(f"{emulator.base_url}/responses") as socket,
        ):
            frame = {"type": "response.create", "input": "x"}
            await socket.send_json(frame | {"model": "slow", "stream_id": "a"})
            for _ in range(5):
                await socket.send_json(frame | {"model": "quick", "stream_id": "b"})
            await socket.send_str("no JSON")
            while names.count("response.completed") < 6:
                message = await socket.receive(timeout=10)
                names.append(json.loads(message.data)["type"])
        return names

    assert asyncio.run(told()).count("error") == 1
