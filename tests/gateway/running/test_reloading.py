"""What can change while a gateway runs, and what cannot."""

from __future__ import annotations

import asyncio
import json
import time
from io import StringIO

import pytest

from lockstitch.gateway.access.keys import Keyring, hash_of, new_key
from lockstitch.gateway.config import (
    Config,
    ConfigError,
    Key,
    Limits,
    LogSettings,
    Problem,
    Server,
    Upstream,
)
from lockstitch.gateway.running.reloading import SHUT, Reloading, changed
from lockstitch.gateway.watching import logs
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


ANNA = new_key()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_the_last_key_that_is_taken_out_is_revoked_and_nobody_is_let_in_in_its_place(host):
    old = config(host=host, keys=(Key(name="anna", hash=hash_of(ANNA)),))
    going_on, _ = changed(old, config(host="127.0.0.1"))
    keyring = Keyring(going_on.keys)
    assert keyring  # nobody comes in without a key
    assert keyring.holder(ANNA, now=time.time()) is None
    # It stays so, until there is a key again.
    still, _ = changed(going_on, config(host="127.0.0.1"))
    assert still.keys == SHUT
    again, _ = changed(still, old)
    assert Keyring(again.keys).holder(ANNA, now=time.time()).name == "anna"


def test_a_gateway_without_keys_goes_on_without_keys():
    assert changed(config(), config())[0].keys == ()
    with pytest.raises(ConfigError, match="can be reached from other machines"):
        changed(config(host="0.0.0.0"), config())


def logged(reloading):
    written = StringIO()
    logs.configure(LogSettings(), stream=written)
    try:
        found = reloading.again()
    finally:
        logs.configure(LogSettings())
    return found, [json.loads(line) for line in written.getvalue().splitlines()]


def test_the_log_says_that_no_keys_are_left():
    found, lines = logged(Reloading(config(keys=(KEY,)), load=config))
    assert found.keys == SHUT
    assert [(line["level"], line["event"]) for line in lines] == [
        ("error", "no keys are left"),
        ("info", "configuration read"),
    ]
    assert "lockstitch key NAME" in lines[0]["holds"]
    assert lines[1]["keys"] == 0


def test_the_log_says_which_keys_stay_valid_while_the_file_has_a_mistake():
    def wrong():
        raise ConfigError([Problem(path=("server",), says="is wrong.")])

    found, (line,) = logged(Reloading(config(keys=(KEY,)), load=wrong))
    assert found is None
    assert (line["level"], line["event"]) == ("error", "configuration not loaded")
    assert "keys (anna): one that was taken out is valid until" in line["holds"]


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
