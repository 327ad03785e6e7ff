"""What is counted, in one process and in several."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lockstitch.gateway.watching.metrics import FOLDER_VARIABLE, Metrics, status_class


def test_everything_is_counted_under_its_name():
    metrics = Metrics()
    metrics.request_ended(api="responses", upstream="openai", status=404)
    metrics.events.inc(200)
    metrics.streams.inc()
    metrics.replays.labels("anchor_lost").inc()
    metrics.retries.labels("status").inc()
    metrics.guarded.labels("LS001", "mend").inc()
    metrics.refused.labels("rate").inc()
    metrics.realtime.labels("delete_held").inc()
    metrics.append_seconds.observe(0.002)
    metrics.first_byte_seconds.labels("openai").observe(0.3)
    metrics.clients_gone.inc()
    metrics.held_bytes.set(10)
    page, kind = metrics.exposition()
    said = page.decode()
    assert kind.startswith("text/plain")
    for line in (
        'lockstitch_requests_total{api="responses",status="4xx",upstream="openai"} 1.0',
        "lockstitch_events_total 200.0",
        "lockstitch_streams 1.0",
        'lockstitch_replays_total{why="anchor_lost"} 1.0',
        'lockstitch_retries_total{why="status"} 1.0',
        'lockstitch_guard_findings_total{guard="mend",rule="LS001"} 1.0',
        'lockstitch_refused_total{why="rate"} 1.0',
        'lockstitch_realtime_total{what="delete_held"} 1.0',
        'lockstitch_journal_append_seconds_bucket{le="0.0025"} 1.0',
        'lockstitch_upstream_first_byte_seconds_count{upstream="openai"} 1.0',
        "lockstitch_clients_gone_total 1.0",
        "lockstitch_held_bytes 10.0",
    ):
        assert line in said


GATEWAY_PAGE = Path(__file__).parents[2] / "docs" / "gateway.md"


def test_the_page_of_the_gateway_names_every_metric_with_its_labels():
    page = GATEWAY_PAGE.read_text()
    told = {
        metric: set(re.findall(r"`(\w+)`", labels))
        for metric, labels in re.findall(r"^\| `(lockstitch_\w+)` \| (.*?) \|", page, re.MULTILINE)
    }
    metrics = [one for one in vars(Metrics()).values() if hasattr(one, "describe")]
    there = {
        f"{one._name}{'_total' if one._type == 'counter' else ''}": set(one._labelnames)
        for one in metrics
    }
    assert told == there


@pytest.mark.parametrize(
    ("status", "said"), [(101, "1xx"), (200, "2xx"), (599, "5xx"), (0, "other"), (999, "other")]
)
def test_classes_of_status(status, said):
    assert status_class(status) == said


WORK = """
from lockstitch.gateway.watching.metrics import Metrics
metrics = Metrics()
metrics.events.inc(5)
metrics.streams.inc(2)
print(metrics.exposition()[0].decode())
"""


def test_several_processes_are_added_up(tmp_path):
    def work():
        ran = subprocess.run(
            [sys.executable, "-c", WORK],
            env=os.environ | {FOLDER_VARIABLE: str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        return ran.stdout

    assert "lockstitch_events_total 5.0" in work()
    said = work()
    assert "lockstitch_events_total 10.0" in said
    assert "lockstitch_streams 4.0" in said
