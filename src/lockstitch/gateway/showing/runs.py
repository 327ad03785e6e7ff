"""The responses that this process hears now, and those it heard lately, for clients that come back.

Bounded: what ended longest ago goes first, and a single answer that grows too large is not kept.
What is no longer here is told from the journal, without its deltas."""

from __future__ import annotations

from collections import OrderedDict

from lockstitch.gateway.showing.streams import Log


class Runs:
    """Logs of responses, by tenant and id."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._running: dict[tuple[str, str], Log] = {}
        self._ended: OrderedDict[tuple[str, str], Log] = OrderedDict()
        self._sizes: dict[tuple[str, str], int] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._running)

    @property
    def size(self) -> int:
        """How many bytes of ended responses are kept."""
        return self._size

    def begin(self, tenant: str, response: str, log: Log) -> None:
        self._forget((tenant, response))
        self._running[tenant, response] = log

    def end(self, tenant: str, response: str, *, keep: bool = True) -> None:
        """Nothing more will be heard of it."""
        log = self._running.pop((tenant, response), None)
        if log is None or not log.kept or not keep:
            return
        self._ended[tenant, response] = log
        self._sizes[tenant, response] = log.size
        self._size += log.size
        self._shrink()

    def limit(self, most_bytes: int) -> None:
        """Keep no more than this, from now on."""
        self._most = most_bytes
        self._shrink()

    def _shrink(self) -> None:
        while self._size > self._most:
            self._forget(next(iter(self._ended)))

    def find(self, tenant: str, response: str) -> Log | None:
        return self._running.get((tenant, response)) or self._ended.get((tenant, response))

    def is_running(self, tenant: str, response: str) -> bool:
        return (tenant, response) in self._running

    def forget(self, tenant: str, response: str) -> None:
        """It was deleted: nobody may hear it any more."""
        self._forget((tenant, response))

    def _forget(self, key: tuple[str, str]) -> None:
        self._ended.pop(key, None)
        self._size -= self._sizes.pop(key, 0)
