"""What the gateway counts, for Prometheus. All of it, in one file.

With several workers each counts into files of a folder that their parent made, and whichever is
asked adds them up (`PROMETHEUS_MULTIPROC_DIR`; to be set before the library is imported)."""

from __future__ import annotations

import os
from typing import Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"

_APPEND_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""A group commit takes about 1 ms on a good disk; a checkpoint 30 ms; more is trouble."""
_FIRST_BYTE_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""A model takes tenths of a second to begin, and minutes where it thinks first."""

PREFIX: Final = "lockstitch_"

# When each counter began is half of the page, and nothing that anybody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Every counter there is. Labels are names from the configuration or from short lists: nothing
    that a client can make up becomes one."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self.requests = Counter(
            f"{PREFIX}requests",
            "Requests that have ended.",
            ("api", "upstream", "status"),
            registry=registry,
        )
        self.streams = Gauge(
            f"{PREFIX}streams",
            "Answers that are being streamed now.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.events = Counter(
            f"{PREFIX}events",
            "Events relayed to clients; added when a response ends.",
            registry=registry,
        )
        self.replays = Counter(
            f"{PREFIX}replays",
            "Requests rebuilt from the journal, by what made it necessary; kept_here: nothing, the"
            " state is the gateway's.",
            ("why",),
            registry=registry,
        )
        self.retries = Counter(
            f"{PREFIX}retries",
            "Requests sent again, by what had gone wrong.",
            ("why",),
            registry=registry,
        )
        self.guarded = Counter(
            f"{PREFIX}guard_findings",
            "Findings in histories that clients sent, by rule and by what was done.",
            ("rule", "guard"),
            registry=registry,
        )
        self.repairs = Counter(
            f"{PREFIX}repairs",
            "Problems in histories that clients sent and that the guard repaired, by rule.",
            ("rule",),
            registry=registry,
        )
        self.refused = Counter(
            f"{PREFIX}refused",
            "Requests that the gateway itself refused, by why.",
            ("why",),
            registry=registry,
        )
        self.realtime = Counter(
            f"{PREFIX}realtime",
            "Realtime events that did not just pass, by what was done.",
            ("what",),
            registry=registry,
        )
        self.append_seconds = Histogram(
            f"{PREFIX}journal_append_seconds",
            "From handing records to the store until they are durable.",
            registry=registry,
            buckets=_APPEND_SECONDS,
        )
        self.first_byte_seconds = Histogram(
            f"{PREFIX}upstream_first_byte_seconds",
            "From sending a request until its upstream says anything.",
            ("upstream",),
            registry=registry,
            buckets=_FIRST_BYTE_SECONDS,
        )
        self._of_requests: dict[tuple[str, str, str], Counter] = {}
        self._of_first_bytes: dict[str, Histogram] = {}
        self.clients_gone = Counter(
            f"{PREFIX}clients_gone",
            "Clients that left before their answer ended.",
            registry=registry,
        )
        self.held_bytes = Gauge(
            f"{PREFIX}held_bytes",
            "Bytes held for clients: unread, or kept for one that may come back.",
            registry=registry,
            multiprocess_mode="livesum",
        )

    def request_ended(self, *, api: str, upstream: str, status: int) -> None:
        labels = (api, upstream, status_class(status))
        counter = self._of_requests.get(labels)
        if counter is None:
            counter = self._of_requests[labels] = self.requests.labels(*labels)
        counter.inc()

    def first_byte_came(self, upstream: str, seconds: float) -> None:
        histogram = self._of_first_bytes.get(upstream)
        if histogram is None:
            histogram = self._of_first_bytes[upstream] = self.first_byte_seconds.labels(upstream)
        histogram.observe(seconds)

    def exposition(self) -> tuple[bytes, str]:
        """The page, and its content type; of all workers together, where there are several."""
        registry = self._registry
        if os.environ.get(FOLDER_VARIABLE):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST


def status_class(status: int) -> str:
    """`2xx`: single codes would be too many series for too little."""
    return f"{status // 100}xx" if 100 <= status < 600 else "other"
