"""Several workers: started, replaced, told of changes, and ended with their parent."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import time

from lockstitch.gateway.config import Config, Server
from lockstitch.gateway.running import run, serve
from tests.gateway.running.processes import (
    PATHS,
    PATIENCE_SECONDS,
    begin,
    heard,
    is_alive,
    serving,
    started,
    until,
)
from tests.gateway.running.test_serving import with_key

TRIES = 60
"""Connections to reach both of two workers: the system spreads them as it likes."""


def pids(one):
    return {int(one.ask("who")) for _ in range(TRIES)}


def test_workers_share_the_work_and_end_together(tmp_path):
    with serving(tmp_path, workers=2) as one:
        workers = pids(one)
        assert len(workers) == 2
        assert one.process.pid not in workers
        with one.connect() as connection:
            begin(connection, "wait")
            one.signal(signal.SIGTERM)
            assert heard(connection) == "waited"
        assert one.end() == 0
        assert not any(map(is_alive, workers))
        assert one.events().count("stopped") == 2


def test_a_worker_that_died_is_replaced(tmp_path):
    with serving(tmp_path, workers=2) as one:
        before = pids(one)
        assert one.ask("die") == ""
        until(lambda: one.events().count("worker serves") == 3)
        after = pids(one)
        assert len(after) == 2
        assert len(before & after) == 1
        assert [line["how"] for line in one.log if line["event"] == "worker died"] == ["SIGKILL"]


def test_a_worker_that_was_asked_to_end_is_replaced_and_nothing_is_cut(tmp_path):
    with serving(tmp_path, workers=2) as one, one.connect() as connection:
        connection.sendall(b"who\nwait\n")
        lines = connection.makefile()
        worker = int(lines.readline())
        assert lines.readline() == "begun\n"
        os.kill(worker, signal.SIGTERM)
        assert lines.readline() == "waited\n"
        until(lambda: one.events().count("worker serves") == 3)
        assert "worker died" not in one.events()


def test_workers_that_die_again_and_again_end_it_all(tmp_path):
    with started(tmp_path, gateway="DiesAtOnce", workers=2) as one:
        assert one.end() == 2
        assert "workers died within 60 seconds, the last one by exit code 3" in one.said
        assert "Traceback" not in one.said


def test_a_worker_that_cannot_begin_ends_it_all(tmp_path):
    with started(tmp_path, gateway="CannotBegin", workers=2) as one:
        assert one.end() == 2
        assert "lockstitch: The stand-in does not want to." in one.said
        assert "lockstitch: A worker could not begin; what it said is above." in one.said
        assert "Traceback" not in one.said


def test_every_worker_gets_a_changed_file(tmp_path):
    with serving(tmp_path, workers=2) as one:
        file = tmp_path / "gateway.toml"
        file.write_text(with_key(file.read_text(), "anna"))
        until(lambda: "configuration read" in one.events())
        until(lambda: {one.ask("keys") for _ in range(TRIES)} == {"anna"})
        # Also one that begins later.
        assert one.ask("die") == ""
        until(lambda: one.events().count("worker serves") == 3)
        assert {one.ask("keys") for _ in range(TRIES)} == {"anna"}


def test_a_second_signal_stops_all_at_once(tmp_path):
    with serving(tmp_path, workers=2, drain_seconds=60) as one, one.connect() as connection:
        workers = pids(one)
        begin(connection, "hang")
        one.signal(signal.SIGTERM)
        until(lambda: "draining" in one.events())
        began = time.monotonic()
        one.signal(signal.SIGTERM)
        assert one.end() == 130
        assert time.monotonic() - began < PATIENCE_SECONDS
        assert not any(map(is_alive, workers))


def test_a_signal_to_every_process_at_once_still_drains(tmp_path):
    with serving(tmp_path, workers=2) as one, one.connect() as connection:
        workers = pids(one)
        begin(connection, "wait")
        # As a service manager does it.
        for pid in (*workers, one.process.pid):
            os.kill(pid, signal.SIGTERM)
        assert heard(connection) == "waited"
        assert one.end() == 0


def test_workers_do_not_outlive_a_parent_that_was_killed(tmp_path):
    with serving(tmp_path, workers=2) as one:
        workers = pids(one)
        one.signal(signal.SIGKILL)
        one.end()
        until(lambda: not any(map(is_alive, workers)))


def test_metrics_are_those_of_all_workers(tmp_path):
    with serving(tmp_path, workers=2) as one:
        assert len(pids(one)) == 2
        for number in range(1, 21):
            assert float(one.ask("count")) == number
        one.signal(signal.SIGTERM)
        assert one.end() == 0


def test_an_allowance_is_that_of_all_workers_and_what_a_dead_one_had_comes_back(tmp_path):
    with serving(tmp_path, with_key("", "anna") + "concurrent = 10", workers=2) as one:
        said = [one.ask("take") for _ in range(TRIES)]
        assert sorted(said) == ["concurrent"] * (TRIES - 10) + ["taken"] * 10
        assert one.ask("die") == ""
        until(lambda: one.events().count("worker serves") == 3)
        assert 0 < [one.ask("take") for _ in range(TRIES)].count("taken") <= 10


def test_a_worker_that_the_system_does_not_start_is_tried_again(tmp_path, monkeypatch):
    starts = []
    real = asyncio.create_subprocess_exec

    async def refusing(*arguments, **options):
        starts.append(1)
        if len(starts) <= 2:
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        return await real(*arguments, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refusing)
    config = Config(store=f"sqlite:///{tmp_path}/x.db", server=Server(port=0, workers=2))
    served = []

    def ready(config):
        served.append(config.server.port)
        os.kill(os.getpid(), signal.SIGTERM)

    gateway = "tests.gateway.running.stand_in:StandIn"
    monkeypatch.setenv("PYTHONPATH", PATHS)
    assert run(serve(config, ready=ready, gateway=gateway)) == 0
    assert len(served) == 1
    assert len(starts) == 4
