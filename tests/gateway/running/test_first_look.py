"""Upstreams that are away when a gateway begins: told once, and nothing waits for them."""

from __future__ import annotations

import signal
import socket
from contextlib import contextmanager

import pytest

from tests.gateway.running.processes import PATIENCE_SECONDS, serving, until

AWAY = "upstream cannot be reached"


def listening():
    one = socket.create_server(("127.0.0.1", 0))
    one.settimeout(PATIENCE_SECONDS)
    return one


@contextmanager
def port_that_refuses():
    """Held, so that nobody else begins to listen there."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_upstream_that_is_away_is_told_once_and_the_gateway_serves(tmp_path, workers):
    with (
        port_that_refuses() as port,
        serving(tmp_path, upstream=f"http://127.0.0.1:{port}/v1", workers=workers) as one,
    ):
        assert one.ask("who").isdigit()
        until(lambda: AWAY in one.events())
        one.signal(signal.SIGTERM)
        assert one.end() == 0
        (line,) = [line for line in one.log if line["event"] == AWAY]
        assert (line["level"], line["upstream"]) == ("warning", "a")
        assert f"127.0.0.1:{port}" in line["why"]
        assert "refused" in line["why"]


def test_nothing_waits_for_an_upstream_that_is_slow_to_connect(tmp_path):
    with listening() as never_says_hello:
        upstream = f"https://127.0.0.1:{never_says_hello.getsockname()[1]}/v1"
        with serving(tmp_path, upstream=upstream) as one:
            looked, _ = never_says_hello.accept()
            with looked:
                assert one.ask("who").isdigit()
                one.signal(signal.SIGTERM)
                assert one.end() == 0
            assert one.events() == ["draining", "stopped"]


def test_of_an_upstream_that_is_there_nothing_is_said(tmp_path):
    with listening() as upstream:
        url = f"http://127.0.0.1:{upstream.getsockname()[1]}/v1"
        with serving(tmp_path, upstream=url) as one:
            looked, _ = upstream.accept()
            with looked:
                assert looked.recv(1) == b""  # it asks for nothing, and goes
            one.signal(signal.SIGTERM)
            assert one.end() == 0
            assert one.events() == ["draining", "stopped"]
