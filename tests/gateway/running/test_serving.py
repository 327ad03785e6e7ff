"""A gateway in one process: signals, reloading, TLS, and what it says when it cannot begin."""

from __future__ import annotations

import os
import signal
import socket
import time

import pytest

from lockstitch.core.errors import LockstitchError
from lockstitch.gateway.access.keys import hash_of, new_key
from lockstitch.gateway.config import Config, Server
from lockstitch.gateway.running import run, serve
from tests.gateway.running.certificates import write_certificate
from tests.gateway.running.processes import (
    PATIENCE_SECONDS,
    begin,
    heard,
    serving,
    started,
    trusting,
    until,
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_runs_is_finished_before_it_ends(tmp_path, number):
    with serving(tmp_path) as one, one.connect() as connection:
        begin(connection, "wait")
        one.signal(number)
        until(lambda: "draining" in one.events())
        with pytest.raises(ConnectionRefusedError):
            until(one.connect, seconds=0.4)
        assert heard(connection) == "waited"
        assert one.end() == 0
        assert one.events() == ["draining", "stopped"]


def test_it_ends_within_the_limit(tmp_path):
    with serving(tmp_path, drain_seconds=0.3) as one, one.connect() as connection:
        begin(connection, "hang")
        began = time.monotonic()
        one.signal(signal.SIGTERM)
        assert one.end() == 0
        assert time.monotonic() - began < PATIENCE_SECONDS / 2


def test_a_second_signal_stops_it_at_once(tmp_path):
    with serving(tmp_path, drain_seconds=60) as one, one.connect() as connection:
        begin(connection, "hang")
        one.signal(signal.SIGTERM)
        until(lambda: "draining" in one.events())
        one.signal(signal.SIGINT)
        assert one.end() == 130
        assert one.events() == ["draining", "stopped at once"]


def with_key(text, name):
    return f'{text}\n[[keys]]\nname = "{name}"\nhash = "{hash_of(new_key())}"\n'


def test_a_changed_file_is_read_and_a_wrong_one_is_not_used(tmp_path):
    with serving(tmp_path) as one, one.connect() as connection:
        file = tmp_path / "gateway.toml"
        good = file.read_text()

        def keys():
            connection.sendall(b"keys\n")
            return heard(connection)

        assert keys() == "none"
        file.write_text(with_key(good, "anna"))
        until(lambda: keys() == "anna")
        file.write_text(with_key(good, "bert") + "[limts]\n")
        until(lambda: "configuration not loaded" in one.events())
        assert keys() == "anna"
        (line,) = [line for line in one.log if line["event"] == "configuration not loaded"]
        assert "limts: is not known. Did you mean limits?" in line["problems"][0]
        file.write_text(with_key(good.replace("port = 0", f"port = {one.port + 1}"), "carl"))
        until(lambda: keys() == "carl")
        until(lambda: "configuration needs a restart" in one.events())
        one.signal(signal.SIGTERM)
        assert one.end() == 0


def test_sighup_reads_it_again(tmp_path):
    with serving(tmp_path) as one:
        one.signal(signal.SIGHUP)
        until(lambda: "configuration read" in one.events())
        assert one.ask("who") == str(one.process.pid)


def test_tls_and_a_certificate_that_is_renewed(tmp_path):
    certificate, key = write_certificate(tmp_path)
    with serving(tmp_path, tls_certificate=str(certificate), tls_key=str(key)) as one:
        assert one.ask("who", trusting(certificate)) == str(one.process.pid)
        other = tmp_path / "other"
        other.mkdir()
        new, new_key_file = write_certificate(other)
        new_key_file.replace(key)
        new.replace(certificate)

        def is_renewed():
            try:
                return one.ask("who", trusting(certificate))
            except OSError:
                return False

        until(is_renewed)


def test_a_drain_that_fails_is_logged_without_secrets(tmp_path):
    with serving(tmp_path, gateway="DrainsBadly") as one:
        one.signal(signal.SIGTERM)
        assert one.end() == 2
        assert "draining failed" in one.events()
        assert "ZeroDivisionError: [hidden]" in one.said


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("store", "server", "said"),
    [
        ("", {"host": "192.0.2.1"}, "192.0.2.1 is no address of this machine"),
        ("", {"host": "no.such.host.invalid"}, "There is no address 'no.such.host.invalid' here"),
        ("sqlite:////no/such/folder/x.db", {}, "/no/such/folder"),
        ("sqlite:///.", {}, "open"),
        ("oracle://anna:sk-secret-word@x", {}, "is not a store URL"),
        ("", {"tls_certificate": "no.pem", "tls_key": "no.key"}, "no.pem cannot be read"),
    ],
)
def test_what_keeps_it_from_beginning_is_told_in_words(workers, store, server, said):
    server = Server(**({"port": 0, "workers": workers} | server))
    config = Config(store=store or "memory:", server=server)
    with pytest.raises(LockstitchError) as caught:
        run(serve(config, gateway="tests.gateway.running.stand_in:StandIn"))
    assert said in str(caught.value)
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_in_use_is_one_message(tmp_path, workers):
    with serving(tmp_path, workers=workers) as one:
        other = tmp_path / "other"
        other.mkdir()
        with started(other, port=one.port, workers=workers) as second:
            assert second.end() == 2
            assert f"127.0.0.1:{one.port} is in use: another program listens there" in second.said
            assert "Traceback" not in second.said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may have any port")
def test_a_port_of_the_system_is_one_message(tmp_path):
    with started(tmp_path, port=1) as one:
        assert one.end() == 2
        assert "ports below 1024 belong to the system" in one.said


def test_an_error_of_the_gateway_at_its_start_is_one_message(tmp_path):
    with started(tmp_path, gateway="CannotBegin") as one:
        assert one.end() == 2
        assert one.said == "lockstitch: The stand-in does not want to.\n"


def test_the_port_is_free_again_at_once(tmp_path):
    with serving(tmp_path) as one:
        one.ask("who")
        port = one.port
        one.signal(signal.SIGTERM)
        assert one.end() == 0
    with serving(tmp_path, port=port) as one:
        assert one.port == port


def test_localhost_is_all_of_its_addresses(tmp_path):
    with serving(tmp_path, host="localhost") as one:
        found = {address[4][0] for address in socket.getaddrinfo("localhost", one.port)}
        for address in found:
            try:
                socket.create_connection((address, one.port), 5).close()
            except OSError:
                assert ":" in address  # a machine without IPv6
