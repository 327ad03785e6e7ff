"""The configuration of a gateway, as data. Reading it from a file is in `reading`.

Nothing here shows a secret: not its `repr`, and so no message and no log line made from it."""

from __future__ import annotations

import ipaddress
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct, structs

from lockstitch.gateway.config.secrets import Secret
from lockstitch.store.urls import passwords_in

State: TypeAlias = Literal["upstream", "gateway"]
Transport: TypeAlias = Literal["http", "websocket", "both"]
Guard: TypeAlias = Literal["mend", "report", "refuse", "off"]
Api: TypeAlias = Literal["responses", "chat", "messages"]
UnknownChains: TypeAlias = Literal["pass", "refuse"]
Level: TypeAlias = Literal["debug", "info", "warning", "error"]
LogFormat: TypeAlias = Literal["json", "text"]
DeletesInFlight: TypeAlias = Literal["drop", "carry-out"]

APIS: Final[tuple[Api, ...]] = ("responses", "chat", "messages")

LOCAL_TENANT: Final = "local"
"""Whose everything is where there are no keys. A key of this name goes on with it."""

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8770

DEFAULT_GUARD: Final[Guard] = "mend"
"""Repair requests that the provider would reject for their history; pass all others unchanged."""

DRAIN_SECONDS: Final = 30.0
"""Kubernetes and systemd kill after 30 and 90 seconds; most answers are there before that."""

BODY_BYTES: Final = 64 * 1024 * 1024
"""A provider takes requests of about 50 MB, pictures and files as text included."""
HEADER_BYTES: Final = 32 * 1024
"""Coding agents send a few KB of metadata in headers; four times what most servers take."""
REQUEST_SECONDS: Final = 60.0
"""For a whole request to arrive: 64 MB at about 1 MB a second. Who is slower holds a place."""
IDLE_SECONDS: Final = 75.0
"""For a connection between two requests. Longer than the 60 seconds of most load balancers, so that
it is not ours that closes while a request is on its way."""
SILENCE_SECONDS: Final = 600.0
"""For an upstream that says nothing. A model may think for minutes; clients wait for ten."""
CONNECTIONS: Final = 10_000
"""In one process. Each costs about 20 KB when it is idle."""
EVENTS_KEPT_BYTES: Final = 16 * 1024 * 1024
"""Of all responses that have ended, for clients that come back for the rest of a stream."""
UNREAD_BYTES: Final = 256 * 1024
"""What may wait for a client that does not read, before its upstream is not read either."""
UNREAD_SECONDS: Final = 120.0
"""For a client to read something of what waits. Then it is taken for gone."""
UNATTENDED_SECONDS: Final = 600.0
"""For a response to end whose client is gone; it is read on so that the journal has its output."""

HELD_SECONDS: Final = 60.0
"""For a tool to answer whose call a realtime client wants deleted. Few take longer in a voice call,
and the client waits for what becomes of its delete."""

RETRIES: Final = 2
"""Behind the first attempt, and only while the client has seen nothing."""
CONNECT_SECONDS: Final = 10.0
"""For a connection to an upstream, with its TLS; across an ocean that is below one second."""


class Server(Struct, frozen=True, kw_only=True):
    """Where the gateway listens, and in how many processes."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    tls_certificate: str | None = None
    """The file with the certificate and those that lead to its root."""
    tls_key: str | None = None
    workers: int = 1
    drain_seconds: float = DRAIN_SECONDS

    @property
    def has_tls(self) -> bool:
        return self.tls_certificate is not None

    @property
    def url(self) -> str:
        """What a client on this machine reaches it by."""
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' * self.has_tls}://{everywhere.get(self.host, host)}:{self.port}"


class Limits(Struct, frozen=True, kw_only=True):
    """How much is too much, in one process. The reasons are with the constants above."""

    body_bytes: int = BODY_BYTES
    header_bytes: int = HEADER_BYTES
    request_seconds: float = REQUEST_SECONDS
    idle_seconds: float = IDLE_SECONDS
    silence_seconds: float = SILENCE_SECONDS
    connections: int = CONNECTIONS
    events_kept_bytes: int = EVENTS_KEPT_BYTES
    unread_bytes: int = UNREAD_BYTES
    unread_seconds: float = UNREAD_SECONDS
    unattended_seconds: float = UNATTENDED_SECONDS

    @property
    def drained_bytes(self) -> int:
        """What a client that did not read still has to take when its upstream is read again: so
        much that it does not run dry, so little that it is not full again at once."""
        return self.unread_bytes // 4


class Upstream(Struct, frozen=True, kw_only=True):
    """A provider, or a server that speaks like one."""

    name: str
    url: str
    """With its base path and no slash at its end: `https://api.openai.com/v1`."""
    key: Secret | None = None
    """None: what the client sent goes on, where the gateway has no keys of its own."""
    headers: tuple[tuple[str, str], ...] = ()
    """Set on each request. Their values may be secret."""
    models: tuple[str, ...] = ("*",)
    state: State = "upstream"
    transport: Transport = "both"
    guard: Guard = DEFAULT_GUARD
    apis: tuple[Api, ...] = APIS
    """The APIs it has. See `apis_of` for the default."""
    retries: int = RETRIES
    connect_seconds: float = CONNECT_SECONDS
    silence_seconds: float | None = None
    """None: that of the limits."""
    key_file: str | None = None
    """Where the key was read from, to see when it is another."""

    def serves(self, model: str) -> bool:
        return any(fnmatchcase(model, pattern) for pattern in self.models)

    def __repr__(self) -> str:
        return f"<Upstream {self.name} {self.url}>"


OPENAI_APIS: Final[tuple[Api, ...]] = ("responses", "chat")
APIS_OF_HOST: Final[dict[str, tuple[Api, ...]]] = {
    "api.openai.com": OPENAI_APIS,
    "api.anthropic.com": ("messages",),
}
"""Providers whose APIs are known. Any other server may have all of them."""


def apis_of(url: str) -> tuple[Api, ...]:
    """The APIs that an upstream at this address has, if its configuration does not say."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return APIS
    return APIS_OF_HOST.get(host, APIS)


class Key(Struct, frozen=True, kw_only=True):
    """Somebody who may use the gateway. The name is the tenant."""

    name: str
    hash: str
    """`sha256:` and 64 hexadecimal digits. The key itself is nowhere."""
    expires: float | None = None
    """Seconds since 1970; it is no key from then on."""
    requests_per_minute: int | None = None
    concurrent: int | None = None
    upstreams: tuple[str, ...] | None = None
    """The names of those it may use; None: all."""
    guard: Guard | None = None
    """None: that of the upstream."""

    def __repr__(self) -> str:
        return f"<Key {self.name}>"


class RealtimeSettings(Struct, frozen=True, kw_only=True):
    """What becomes of a realtime client's edits that would break a pair."""

    deletes_in_flight: DeletesInFlight = "drop"
    """A delete of a call that waits for its output: the client is told that it was not carried out,
    or it is carried out once the call is settled."""
    held_seconds: float = HELD_SECONDS
    """How long it waits for that, at most; then it is dropped."""


class LogSettings(Struct, frozen=True, kw_only=True):
    """What is logged, and how."""

    level: Level = "info"
    format: LogFormat | None = None
    """None: text for people on a terminal, JSON for programs elsewhere."""


class MetricsSettings(Struct, frozen=True, kw_only=True):
    """Who may read `/metrics`."""

    open: bool = False
    """Anybody, also where there are keys."""


class Config(Struct, frozen=True, kw_only=True):
    """All that a gateway is told."""

    server: Server = Server()
    store: str
    """Its URL, which may hold a password."""
    limits: Limits = Limits()
    upstreams: tuple[Upstream, ...] = ()
    keys: tuple[Key, ...] = ()
    guard: Guard = DEFAULT_GUARD
    """The guard of upstreams that have none of their own."""
    unknown_chains: UnknownChains = "pass"
    """What becomes of an anchor that the journal does not know."""
    realtime: RealtimeSettings = RealtimeSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()
    emulator: bool = False
    """There is no upstream: an emulator is to be started as one (`with_emulator`)."""
    file: str | None = None

    def with_guard(self, guard: Guard) -> Config:
        """The same configuration with this guard for every upstream and every key."""
        return structs.replace(
            self,
            guard=guard,
            upstreams=tuple(structs.replace(one, guard=guard) for one in self.upstreams),
            keys=tuple(structs.replace(one, guard=None) for one in self.keys),
        )

    def with_emulator(self, url: str) -> Config:
        """The same with an emulator at ``url`` as its upstream. It takes any key, but wants one."""
        upstream = Upstream(name="emulator", url=url, key=Secret("any"), guard=self.guard)
        return structs.replace(self, upstreams=(upstream,))

    def secrets(self) -> tuple[str, ...]:
        """Every text in it that must not be seen anywhere."""
        revealed = [upstream.key.reveal() for upstream in self.upstreams if upstream.key]
        values = [value for upstream in self.upstreams for _, value in upstream.headers]
        return (*revealed, *values, *passwords_in(self.store))

    def files(self) -> tuple[str, ...]:
        """What it was read from: if one of these changes, it is to be read again."""
        keys = [upstream.key_file for upstream in self.upstreams]
        every = (self.file, *keys, self.server.tls_certificate, self.server.tls_key)
        return tuple(path for path in every if path)

    def __repr__(self) -> str:
        return f"<Config {self.server.url}, {len(self.upstreams)} upstreams, {len(self.keys)} keys>"

    def __rich_repr__(self) -> Any:
        yield self.server.url


def is_loopback(host: str) -> bool:
    """Can only this machine reach it?"""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_from_here(origin: str | None) -> bool:
    """Does a request come from a program, or from a page of this machine? A browser names the page
    that asks; any page of the world can reach what listens on loopback."""
    if origin is None:
        return True
    try:
        return is_loopback(urlsplit(origin).hostname or "")
    except ValueError:
        return False
