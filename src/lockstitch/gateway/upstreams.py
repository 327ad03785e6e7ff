"""The upstreams of a running gateway: their lines, and whether they can be reached.

What an upstream is told to be is in `config`; which one answers is decided in `routing`."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Iterator

from lockstitch.gateway.config.model import Limits, Upstream
from lockstitch.gateway.headers import has_key, to_upstream
from lockstitch.gateway.lines import Asking, Headers, Hearing, Line
from lockstitch.gateway.wire import HttpLimits, HttpLines, SocketHearing, SocketLimits
from lockstitch.gateway.wire.socket_line import UpstreamSocket, open_socket

NO_WEBSOCKET = frozenset({404, 405, 426, 501})
"""How servers say that they do not speak WebSocket here."""

KEY_REFUSED = frozenset({401, 403})
"""How an upstream says that a key is none, or may not do this."""

FALL_BACK_SECONDS = 300.0
"""A balancer that is being changed says so, too, for a moment."""


class Reached:
    """One upstream, with its lines."""

    def __init__(self, told: Upstream, limits: Limits, *, keyed: bool) -> None:
        self.told = told
        self.keyed = keyed
        self.cooling_until = 0.0
        self.silence_seconds = told.silence_seconds or limits.silence_seconds
        self._tls = ssl.create_default_context() if told.url.startswith("https:") else None
        self._http = HttpLines(
            told.url,
            ssl=self._tls,
            limits=HttpLimits(
                connections=limits.connections,
                connect_seconds=told.connect_seconds,
                silence_seconds=self.silence_seconds,
            ),
        )
        self._socket_limits = SocketLimits(open_seconds=told.connect_seconds)
        self._http_until = 0.0
        self.speaks_http = told.transport != "websocket"

    @property
    def name(self) -> str:
        return self.told.name

    @property
    def speaks_websocket(self) -> bool:
        return self.told.transport != "http" and time.monotonic() >= self._http_until

    @property
    def keeps_state(self) -> bool:
        return self.told.state == "upstream"

    def is_reached_as(self, other: Reached) -> bool:
        """Is a connection to this one as one to that would be? Both may be the same upstream, in
        one configuration and the next."""
        mine, its = self.told, other.told
        return (mine.url, mine.key, mine.headers) == (
            its.url,
            its.key,
            its.headers,
        ) and self.keyed == other.keyed

    def headers(self, client: Headers) -> Headers:
        key = self.told.key.reveal() if self.told.key is not None else None
        return to_upstream(client, key=key, own=self.told.headers, keyed=self.keyed)

    def why_refused(self, status: int) -> str | None:
        """Whose key the upstream did not take, and what to set, for the log; None: it did. No key
        is in it."""
        if status not in KEY_REFUSED:
            return None
        told = self.told
        if told.key is not None:
            whose = "to the key that is set for it: look at its key_env or key_file, or at"
        elif has_key(told.headers):
            return f"{self.name} said {status} to the key in the headers that are set for it"
        elif self.keyed:
            whose = "and was asked without a key: set its key_env or key_file, or"
        else:
            whose = "to the client's own key, or to none: set its key_env or key_file, or"
        return f"{self.name} said {status} {whose} OPENAI_API_KEY"

    async def ask(self, asking: Asking, hearing: Hearing) -> Line:
        return await self._http.ask(asking, hearing)

    async def socket(self, target: str, headers: Headers, hearing: SocketHearing) -> UpstreamSocket:
        return await open_socket(
            f"{self.told.url}{target}",
            headers,
            hearing,
            ssl=self._tls,
            limits=self._socket_limits,
        )

    def falls_back(self, status: int) -> bool:
        """A handshake was answered so: is HTTP used for a while?"""
        if status not in NO_WEBSOCKET or self.told.transport != "both":
            return False
        self._http_until = time.monotonic() + FALL_BACK_SECONDS
        return True

    async def close(self) -> None:
        await self._http.close()

    def __repr__(self) -> str:
        return f"<Reached {self.name}>"


class Upstreams:
    """All of them, in the order of the configuration."""

    def __init__(self, told: Iterable[Upstream], limits: Limits, *, keyed: bool) -> None:
        self.by_name = {one.name: Reached(one, limits, keyed=keyed) for one in told}

    def __iter__(self) -> Iterator[Reached]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    def get(self, name: str) -> Reached | None:
        return self.by_name.get(name)

    async def close(self) -> None:
        for one in self.by_name.values():
            await one.close()
