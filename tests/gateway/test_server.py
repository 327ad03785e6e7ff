"""Who may come in, which door a request takes, and how a gateway ends."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import re
import socket
from collections import Counter
from io import StringIO

import aiohttp
import pytest
from msgspec.structs import replace

from lockstitch.gateway.config.model import Config, LogSettings, Upstream
from lockstitch.gateway.config.secrets import Secret
from lockstitch.gateway.keeping.recording import Recorder
from lockstitch.gateway.keeping.recordings import Recording
from lockstitch.gateway.responding.answering import Answering
from lockstitch.gateway.responding.attempts import Attempt
from lockstitch.gateway.server import Gateway
from lockstitch.gateway.showing.streams import Log, Stream
from lockstitch.gateway.watching import logs
from lockstitch.gateway.wire.flow import Flow
from lockstitch.gateway.wire.http_line import HttpLine
from lockstitch.store.journal import Journal
from tests.gateway.building import (
    EACH_SECONDS,
    QUICK,
    Faulty,
    both,
    error_body,
    gateway,
    keys,
    message,
    next_end,
    open_files,
    provider,
    raw,
    refusing,
    run,
    saying,
    streaming,
    told_by,
    until,
    upstream,
)


def served(work, **more):
    async def main():
        async with both(**more) as (up, gw):
            await work(up, gw)

    run(main())


def test_nobody_comes_in_without_a_key_where_there_are_keys():
    async def work(up, gw):
        for key in (None, "lsk_z", "", "lsk_a "):
            headers = {} if key is None else {"authorization": f"Bearer {key}"}
            for path in ("/responses", "/chat/completions", "/messages", "/files", "/models"):
                async with gw.client.post(gw.url + path, json={}, headers=headers) as told:
                    if key == "lsk_a ":
                        continue
                    assert told.status == 401, (key, path)
        asked = [one for one in up.asked if "lsk" in one.request.headers.get("authorization", "")]
        assert asked == []
        assert (await gw.ask(input="x", key="lsk_a"))["http"] == 200
        async with gw.client.post(
            gw.url + "/responses", json={"model": "m", "input": "x"}, headers={"x-api-key": "lsk_a"}
        ) as told:
            assert told.status == 200

    served(work, keys=keys("a"))


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("http://localhost:3000", 200),
        ("http://127.0.0.1:8080", 200),
        ("http://[::1]:9", 200),
        ("https://example.com", 403),
        ("http://localhost.example.com", 403),
        ("http://127.0.0.1.example.com", 403),
        ("null", 403),
        ("http://[", 403),
    ],
)
def test_a_page_of_another_machine_is_refused_where_there_are_no_keys(origin, status):
    async def work(up, gw):
        headers = {} if origin is None else {"origin": origin}
        body = {"model": "m", "input": "x"}
        async with gw.client.post(gw.url + "/responses", json=body, headers=headers) as told:
            assert told.status == status
        assert len(up.asked) == (status == 200)

    served(work)


def test_a_key_of_ours_never_reaches_an_upstream():
    async def work(up, gw):
        for path in ("/responses", "/chat/completions", "/files", "/models"):
            async with gw.client.post(
                gw.url + path,
                json={"model": "m", "input": "x", "messages": []},
                headers={"authorization": "Bearer lsk_a", "x-api-key": "lsk_a", "cookie": "lsk_a"},
            ) as told:
                await told.read()
        ws = await gw.socket("lsk_a")
        await ws.send_json({"type": "response.create", "model": "m", "input": "x"})
        await until(lambda: len(up.asked) >= 4)
        await ws.close()
        for one in up.asked:
            assert "lsk_a" not in str(one.request.raw_headers)

    served(work, keys=keys("a"), up_transport="both")


def test_a_key_that_expired_is_none():
    async def work(up, gw):
        assert (await gw.ask(input="x", key="lsk_a"))["http"] == 401

    served(work, keys=keys("a", expires=1.0))


def test_health_and_metrics_are_told():
    async def work(up, gw):
        base = gw.url.removesuffix("/v1")
        for path, status in [
            ("/health/live", 200),
            ("/health/ready", 200),
            ("/health/other", 404),
            ("/metrics", 401),
            ("/", 404),
            ("/v1", 404),
        ]:
            async with gw.client.get(base + path) as told:
                assert told.status == status, path
        async with gw.client.get(base + "/metrics", headers={"authorization": "Bearer lsk_a"}) as m:
            assert m.status == 200
        gw.store.fails = lambda kind, name: True
        async with gw.client.get(base + "/health/ready") as told:
            assert told.status == 503
        async with gw.client.get(base + "/health/live") as told:
            assert told.status == 200

    served(work, keys=keys("a"))


def test_a_journal_that_is_not_there_is_said_to_be_so():
    async def work(up, gw):
        gw.store.fails = lambda kind, name: True
        told = await gw.ask(input="x", previous_response_id="resp_1")
        assert told["http"] == 503
        assert up.asked == []

    served(work)


def test_a_mistake_of_ours_is_an_answer_without_its_details():
    async def work(up, gw):
        def wrong(*_):
            raise ZeroDivisionError("a secret detail")

        gw.world.prefixes.find = wrong
        told = await gw.ask(input="x")
        assert told["http"] == 500
        assert "secret" not in str(told)
        assert "req_" in told["error"]["message"]

    served(work)


@pytest.mark.parametrize("path", ["/v1/%2e%2e/admin", "/v1/../admin", "/%76%31/x", "/v1/a/../../b"])
def test_no_path_leaves_the_api(path):
    async def work(up, gw):
        reader, writer = await gw.talk()
        writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
        told = await reader.read()
        writer.close()
        assert told.split(b" ")[1] in (b"400", b"404"), told[:200]
        assert up.asked == []

    served(work)


@pytest.mark.parametrize(
    "path", ["/responses/resp_1/others", "/conversations/conv_1/others", "/conversations/a/b/c/d"]
)
def test_what_nobody_knows_below_what_belongs_to_a_key_is_not_there(path):
    async def work(up, gw):
        anna = {"authorization": "Bearer lsk_a"}
        async with gw.client.get(gw.url + path, headers=anna) as told:
            assert told.status == 404
        with pytest.raises(aiohttp.WSServerHandshakeError, match="404"):
            await gw.client.ws_connect(gw.url + path, headers=anna)
        assert (up.asked, up.sockets) == ([], [])

    served(work, keys=keys("a"))


def test_what_a_key_made_passes_where_there_are_no_keys_any_more():
    """The upstream has it for everybody who may ask it; with keys, only for whose it is."""

    async def main():
        store = Faulty()
        async with provider() as up:
            async with gateway(upstream(up), store=store, keys=keys("a", "b")) as gw:
                up.then(
                    streaming("resp_1", message()), raw(b'{"id":"conv_1"}', kind="application/json")
                )
                assert (await gw.ask(input="x", key="lsk_a"))["id"] == "resp_1"
                assert (await gw.ask(key="lsk_a", path="/conversations"))["id"] == "conv_1"
                for path in ("/responses/resp_1", "/conversations/conv_1"):
                    assert await status_of(gw, path, "lsk_b") == 404
            up.asked.clear()
            async with gateway(upstream(up), store=store) as gw:
                for path in ("/responses/resp_1", "/conversations/conv_1"):
                    up.then(raw(b"{}", kind="application/json"))
                    assert await status_of(gw, path) == 200
                assert (await gw.ask(input="y", previous_response_id="resp_1"))["http"] == 200
            assert len(up.asked) == 3

    run(main())


async def status_of(gw, path, key=None):
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    async with gw.client.get(gw.url + path, headers=headers) as told:
        return told.status


def test_a_key_has_its_limits():
    async def work(up, gw):
        assert (await gw.ask(input="x", key="lsk_a"))["http"] == 200
        told = await gw.ask(input="x", key="lsk_a")
        assert told["http"] == 429
        assert refused(gw) == {"requests_per_minute": 1.0}
        assert (await gw.ask(input="x", key="lsk_b"))["http"] == 200

    async def main():
        async with both(keys=(*keys("a", requests_per_minute=1), *keys("b"))) as (up, gw):
            await work(up, gw)

    run(main())


def test_a_place_is_given_back_however_a_request_ends():
    async def work(up, gw):
        for answer in (
            raw(b"", status=500, kind="text/plain"),
            saying(told_by("resp_1", message())[:3], then="cut"),
            streaming("resp_2", message()),
        ):
            up.then(answer)
            await gw.stream(input="x", key="lsk_a")
            up.answers.clear()
        for body in (b"{", b"", b'{"input":5,"model":"m"}'):
            async with gw.client.post(
                gw.url + "/responses", data=body, headers={"authorization": "Bearer lsk_a"}
            ) as told:
                assert told.status == 400
        assert (await gw.ask(input="x", key="lsk_a"))["http"] == 200

    served(work, keys=keys("a", concurrent=1), up_retries=0)


def refused(gw):
    """How often the gateway itself has refused, by why."""
    (counted,) = gw.world.metrics.refused.collect()
    return {one.labels["why"]: one.value for one in counted.samples}


def test_a_websocket_that_passes_is_one_request_of_its_key():
    async def work(up, gw):
        anna = {"authorization": "Bearer lsk_a"}
        ws = await gw.client.ws_connect(gw.url + "/realtime", headers=anna)
        await ws.close()
        with pytest.raises(aiohttp.WSServerHandshakeError) as no:
            await gw.client.ws_connect(gw.url + "/realtime", headers=anna)
        assert no.value.status == 429
        assert 30 < int(no.value.headers["retry-after"]) <= 60
        assert refused(gw) == {"requests_per_minute": 1.0}
        assert len(up.sockets) == 1

    served(work, up_transport="both", keys=keys("a", requests_per_minute=1))


def test_a_websocket_that_passes_has_a_place_of_its_key_for_its_whole_life():
    async def work(up, gw):
        anna = {"authorization": "Bearer lsk_a"}
        ws = await gw.client.ws_connect(gw.url + "/realtime", headers=anna)
        assert (await gw.ask(input="x", key="lsk_a"))["http"] == 429
        with pytest.raises(aiohttp.WSServerHandshakeError, match="429"):
            await gw.client.ws_connect(gw.url + "/realtime", headers=anna)
        lanes = await gw.socket("lsk_a")
        await lanes.send_json({"type": "response.create", "model": "m", "input": "x"})
        assert (await next_end(lanes))["status"] == 429
        assert refused(gw) == {"concurrent": 3.0}
        await ws.close()
        await until(lambda: gw.gateway._open == 1)
        await lanes.send_json({"type": "response.create", "model": "m", "input": "x"})
        assert (await next_end(lanes))["type"] == "response.completed"
        await lanes.close()
        await until(lambda: gw.gateway._open == 0)
        assert (await gw.ask(input="x", key="lsk_a"))["http"] == 200

    served(work, up_transport="both", keys=keys("a", concurrent=1))


def test_limits_that_are_read_again_hold_and_are_named():
    async def work(up, gw):
        async def asked(size):
            return await gw.ask(input="x" * size)

        assert (await asked(3000))["http"] == 200
        limits = replace(QUICK, body_bytes=2000, header_bytes=1024, idle_seconds=0.2)
        await gw.gateway.reload(replace(gw.world.config, limits=limits))
        told = await asked(3000)
        assert told["http"] == 413
        assert "(2000 bytes)" in told["error"]["message"]
        assert (await asked(1000))["http"] == 200
        reader, writer = await gw.talk()
        writer.write(b"GET /v1/models HTTP/1.1\r\nhost: x\r\nx-a: %b\r\n\r\n" % (b"y" * 2000))
        assert b" 400 " in await reader.readline()
        writer.close()
        reader, writer = await gw.talk()
        writer.write(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n")
        async with asyncio.timeout(EACH_SECONDS):
            assert b"live" in await reader.read()  # and it is closed
        writer.close()

    served(work)


def test_a_body_that_began_under_another_limit_is_told_that_one():
    async def work(up, gw):
        reader, writer = await gw.talk()
        writer.write(b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: 3000\r\n\r\n")
        await until(lambda: gw.gateway._open)
        limits = replace(QUICK, body_bytes=5000)
        await gw.gateway.reload(replace(gw.world.config, limits=limits))
        writer.write(b"x" * 3000)
        assert b" 413 " in await reader.readline()
        assert b"(2000 bytes)" in await reader.read(4096)
        writer.close()

    served(work, limits=replace(QUICK, body_bytes=2000))


def test_another_configuration_may_keep_fewer_events():
    async def work(up, gw):
        await gw.stream(input="x")
        assert gw.world.runs.size > 0
        limits = replace(QUICK, events_kept_bytes=0)
        await gw.gateway.reload(replace(gw.world.config, limits=limits))
        assert gw.world.runs.size == 0
        await gw.stream(input="x")
        assert gw.world.runs.size == 0

    served(work)


def test_another_configuration_is_gone_on_with_while_requests_run():
    async def main():
        async with (
            provider() as one,
            provider() as two,
            gateway(upstream(one, "one"), keys=keys("a")) as gw,
        ):
            one.then(saying(told_by("resp_1", message()), pace=0.02))
            running = asyncio.create_task(gw.stream(input="x", key="lsk_a"))
            await until(lambda: one.asked)
            config = replace(gw.world.config, upstreams=(upstream(two, "two"),), keys=keys("b"))
            await gw.gateway.reload(config)
            assert (await gw.ask(input="x", key="lsk_a"))["http"] == 401
            assert (await gw.ask(input="x", key="lsk_b"))["http"] == 200
            assert len(two.asked) == 1
            assert (await running)[-1]["type"] == "response.completed"

    run(main())


def test_a_request_that_is_tried_again_after_its_upstream_was_taken_out_ends_well():
    async def main():
        async with provider() as one, provider() as two:
            names = (upstream(one, "one", retries=0), upstream(two, "two", retries=0))
            async with gateway(*names) as gw:
                go = asyncio.Event()

                async def waits(asked):
                    await go.wait()
                    return await raw(b"{}", status=503, kind="application/json")(asked)

                one.then(waits)
                running = asyncio.create_task(gw.ask(input="x"))
                await until(lambda: one.asked)
                await gw.gateway.reload(replace(gw.world.config, upstreams=(names[0],)))
                go.set()
                told = await running
                assert told["http"] != 500, told

    run(main())


def test_a_gateway_that_drains_lets_what_runs_finish():
    async def main():
        async with provider() as up, gateway(upstream(up)) as gw:
            up.then(saying(told_by("resp_1", message()), pace=0.03))
            running = asyncio.create_task(gw.stream(input="x"))
            await until(lambda: up.asked)
            await gw.gateway.drain(5)
            assert (await running)[-1]["type"] == "response.completed"
            with pytest.raises(ConnectionRefusedError):
                await gw.talk()

    run(main())


def test_a_gateway_can_be_drained_before_it_began_and_twice():
    async def main():
        made = Gateway(Config(store="memory:", limits=QUICK), Faulty())
        await made.drain(0.1)
        await made.drain(0.1)

    run(main())


def test_many_requests_leave_nothing_behind():
    async def work(up, gw):
        async def some(count):
            for n in range(count):
                if n % 3 == 0:
                    await gw.ask(input="x")
                elif n % 3 == 1:
                    await gw.stream(input="x")
                else:
                    up.then(saying(told_by(f"cut_{up.count}_{n}", message())[:4], then="cut"))
                    await gw.stream(input="x")
            up.asked.clear()

        def alive():
            gc.collect()
            kinds = (Answering, Attempt, Stream, Log, Recording, Recorder, Journal, HttpLine, Flow)
            return Counter(type(one).__name__ for one in gc.get_objects() if isinstance(one, kinds))

        others = alive()  # what tests before this one hold on to is not ours
        await some(6)
        files, tasks = open_files(), len(asyncio.all_tasks())
        await some(30)
        left = alive() - others
        # A Flow looks after its client for a second longer.
        assert all(count <= 3 or name == "Flow" for name, count in left.items()), left
        assert open_files() <= files + 2
        assert len(asyncio.all_tasks()) <= tasks + 2
        assert not gw.store.claimed
        assert not gw.world.running
        assert len(gw.world.runs) == 0

    served(work, limits=replace(QUICK, events_kept_bytes=0), up_retries=0)


def test_requests_are_logged_without_what_they_say(capsys):
    logs.configure(LogSettings(format="json"))

    async def work(up, gw):
        async with gw.client.post(
            gw.url + "/responses?token=hush",
            json={"model": "m", "input": "a private question"},
            headers={"authorization": "Bearer sk-private"},
        ) as told:
            await told.read()

    served(work)
    written = capsys.readouterr()
    everything = written.out + written.err
    assert "private" not in everything
    assert "hush" not in everything


def lines_logged(work):
    """What a gateway logs of its requests meanwhile."""
    written = StringIO()
    logs.configure(LogSettings(), stream=written)
    try:
        run(work)
    finally:
        logs.configure(LogSettings())
    said = [json.loads(line) for line in written.getvalue().splitlines()]
    return [line for line in said if line["event"] == "request"]


def nobody():
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


ASKED = {
    "POST /responses": {"input": "x"},
    "POST /chat/completions": {"messages": []},
    "POST /messages": {"messages": []},
    "POST /conversations": {},
    "GET /models": {},
    "POST /files": {},
    "GET /conversations/conv_1": {},
}


@pytest.mark.parametrize("asked", ASKED)
def test_the_log_says_why_an_upstream_cannot_be_reached_and_the_client_learns_which(asked):
    method, _, path = asked.partition(" ")
    port = nobody()

    async def work():
        one = Upstream(name="away", url=f"http://127.0.0.1:{port}/v1", retries=0)
        async with gateway(one) as gw:
            body = {"model": "m", **ASKED[asked]}
            async with gw.client.request(method, gw.url + path, json=body) as told:
                assert told.status == 502
                message = (await told.json())["error"]["message"]
                assert message.startswith("The upstream 'away' cannot be reached: it refused")
                assert str(port) not in message

    (line,) = lines_logged(work())
    (note,) = [one for one in line["notes"] if one.startswith("away: ")]
    assert f"127.0.0.1:{port}" in note
    assert f"[Errno {errno.ECONNREFUSED}]" in note


KEYLESS = {"transport": "http"}
WHOSE = {
    "its own": ({**KEYLESS, "key": Secret("sk-upstreams")}, (), "to the key that is set for it"),
    "its own, of a keyed gateway": (
        {**KEYLESS, "key": Secret("sk-upstreams")},
        keys("a"),
        "to the key that is set for it",
    ),
    "none": (KEYLESS, keys("a"), "and was asked without a key"),
    "the client's": (KEYLESS, (), "to the client's own key, or to none"),
}


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("whose", WHOSE)
def test_the_log_says_that_it_was_the_upstream_who_refused_a_key_and_the_client_gets_its_words(
    whose, status
):
    configured, own_keys, said = WHOSE[whose]
    refusal = error_body("Incorrect API key provided.", "invalid_api_key")

    async def work():
        async with both(**{f"up_{k}": v for k, v in configured.items()}, keys=own_keys) as (up, gw):
            for asked, body in ASKED.items():
                method, _, path = asked.partition(" ")
                up.then(refusing(refusal, status))
                async with gw.client.request(
                    method,
                    gw.url + path,
                    json={"model": "m", **body},
                    headers={"authorization": "Bearer lsk_a"},
                ) as told:
                    assert (told.status, await told.json()) == (status, refusal), asked
            ws = await gw.socket(key="lsk_a")
            up.then(refusing(refusal, status))
            await ws.send_json({"type": "response.create", "model": "m", "input": "x"})
            assert (await next_end(ws))["error"] == refusal["error"]
            await ws.close()

    lines = [line for line in lines_logged(work()) if line["status"] == status]
    assert len(lines) == len(ASKED) + 1
    for line in lines:
        (note,) = [one for one in line["notes"] if one.startswith(f"up said {status} ")]
        assert said in note
        assert "key_env or key_file" in note
        assert "OPENAI_API_KEY" in note
        assert not {"sk-upstreams", "lsk_a"} & set(re.findall(r"[\w-]+", json.dumps(line)))


def test_the_log_says_nothing_of_an_upstream_when_the_gateway_itself_refuses_a_key():
    async def work():
        async with both(keys=keys("a")) as (_, gw):
            assert (await gw.ask(input="x", key="lsk_z"))["http"] == 401

    (line,) = lines_logged(work())
    assert "notes" not in line


def test_the_log_says_which_upstream_refused_its_key_where_others_list_their_models():
    async def work():
        async with provider() as one, provider() as other:
            one.then(refusing(error_body("Incorrect API key provided."), 401))
            other.then(raw(b'{"data": [{"id": "m"}]}', kind="application/json"))
            async with (
                gateway(upstream(one, "one"), upstream(other, "other")) as gw,
                gw.client.get(f"{gw.url}/models") as told,
            ):
                assert (told.status, len((await told.json())["data"])) == (200, 1)

    (line,) = lines_logged(work())
    assert [note[:12] for note in line["notes"]] == ["one said 401"]


@pytest.mark.parametrize("path", ["/realtime?model=m", "/responses", "/other"])
def test_the_log_says_why_no_websocket_leads_to_an_upstream(path):
    port = nobody()

    async def work():
        one = Upstream(name="away", url=f"http://127.0.0.1:{port}/v1", retries=0)
        async with gateway(one) as gw:
            if path == "/responses":
                ws = await gw.socket()
                await ws.send_json({"type": "response.create", "model": "m", "input": "x"})
                assert "it refused" in (await next_end(ws))["error"]["message"]
                await ws.close()
                return
            with pytest.raises(aiohttp.WSServerHandshakeError, match="502"):
                await gw.client.ws_connect(gw.url + path)

    line = lines_logged(work())[0]
    (note,) = [one for one in line["notes"] if one.startswith("away: ")]
    assert f"127.0.0.1:{port}" in note


def test_tls_to_a_port_that_speaks_none_is_told_as_that():
    async def work():
        async with provider() as up:
            url = up.url.replace("http:", "https:")
            async with gateway(Upstream(name="plain", url=url, retries=0)) as gw:
                told = await gw.ask(input="x")
                assert told["error"]["message"].startswith(
                    "The upstream 'plain' cannot be reached: TLS failed."
                )

    (line,) = lines_logged(work())
    assert any("SSL" in note for note in line["notes"])


def test_a_stream_that_breaks_says_in_the_log_how_and_to_the_client_only_that():
    async def work():
        async with both() as (up, gw):
            up.then(saying(told_by("resp_1", message())[:3], then="cut"))
            end = (await gw.stream(input="x"))[-1]
            assert end["type"] == "response.failed"
            told = end["response"]["error"]["message"]
            assert told.startswith("The upstream 'up' was lost before the end of its answer.")
            assert "127.0.0.1" not in told

    (line,) = lines_logged(work())
    assert any(note.startswith("up: The upstream 127.0.0.1:") for note in line["notes"])


def test_an_ordinary_turn_of_an_upstream_without_state_does_not_look_like_a_repair():
    counted = {}

    async def work():
        async with both(up_state="gateway") as (_, gw):
            first = await gw.ask(input="x")
            await gw.ask(input="y", previous_response_id=first["id"])
            page = gw.world.metrics.exposition()[0].decode()
            counted.update(re.findall(r'replays_total\{why="(\w+)"\} ([0-9.]+)', page))

    lines = lines_logged(work())
    assert [line.get("notes") for line in lines] == [None, ["from the journal"]]
    assert counted == {"kept_here": "1.0"}


@pytest.mark.parametrize(
    ("keyed", "words"),
    [(True, "no upstream that this key may use."), (False, "no upstream of this gateway.")],
)
def test_a_model_that_nobody_has_is_told_without_a_key_that_is_not_there(keyed, words):
    async def work(up, gw):
        told = await gw.ask(input="x", model="other", key="lsk_a" if keyed else None)
        assert told["http"] == 404
        assert told["error"]["message"] == f"The model 'other' is served by {words}"
        assert up.asked == []

    served(work, up_models=("m",), keys=keys("a") if keyed else ())


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"requests_per_minute": 1}, "too many requests (more than 1 a minute)"),
        ({"concurrent": 1}, "too many requests (more than 1 at a time)"),
    ],
)
def test_a_key_that_is_used_up_is_told_what_it_may(limits, words):
    async def work(up, gw):
        go = asyncio.Event()

        async def waits(asked):
            await go.wait()
            return await streaming("resp_1", message())(asked)

        up.then(waits)
        first = asyncio.create_task(gw.ask(input="x", key="lsk_a"))
        await until(lambda: up.asked)
        told = await gw.ask(input="x", key="lsk_a")
        go.set()
        assert (await first)["http"] == 200
        assert told["http"] == 429
        assert words in told["error"]["message"]

    served(work, keys=keys("a", **limits))
