"""What can change while a gateway runs, and what cannot."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.gateway.config import Config, ConfigError, Key, Limits, Server, Upstream
from lockstitch.gateway.running.reloading import Reloading, changed
from tests.gateway.building import until

HASH = "sha256:" + "0" * 64
UPSTREAM = Upstream(name="a", url="http://h")
KEY = Key(name="anna", hash=HASH)


def config(host="127.0.0.1", port=8770, store="memory:", **rest):
    rest = {"upstreams": (UPSTREAM,)} | rest
    return Config(server=Server(host=host, port=port), store=store, **rest)


def test_keys_limits_and_upstreams_change():
    new = config(keys=(KEY,), limits=Limits(body_bytes=1), upstreams=())
    assert changed(config(), new) == (new, [])


def test_what_is_bound_or_open_stays_and_is_named():
    old, new = config(keys=(KEY,)), config(port=1, store="sqlite:///x", host="::1", keys=(KEY,))
    going_on, fixed = changed(old, new)
    assert going_on == old
    assert fixed == ["server.host", "server.port", "store"]


def test_a_port_that_was_taken_for_any_is_no_change():
    assert changed(config(port=40000), config(port=0))[1] == []


def test_the_last_key_cannot_go_while_it_runs():
    with pytest.raises(ConfigError, match="keys: all of them are gone"):
        changed(config(keys=(KEY,)), config())
    with pytest.raises(ConfigError, match="can be reached from other machines"):
        changed(config(host="0.0.0.0", keys=(KEY,)), config(host="127.0.0.1"))


def test_a_file_is_read_again_when_it_has_come_to_rest(tmp_path):
    file = tmp_path / "gateway.toml"
    file.write_text("")
    told = []

    async def work():
        reloading = Reloading(config(file=str(file)), load=lambda: config(file=str(file)))

        def differs():
            told.append(file.read_text())
            reloading.again()

        watching = asyncio.create_task(reloading.watch(0.05, differs))
        for number in range(8):  # somebody who writes slowly
            with file.open("a") as stream:
                stream.write(f"# {number}\n")
            await asyncio.sleep(0.03)
        await until(lambda: told)
        await asyncio.sleep(0.2)  # for more of it, if it were wrong
        watching.cancel()

    asyncio.run(work())
    assert [text.count("\n") for text in told] == [8]
