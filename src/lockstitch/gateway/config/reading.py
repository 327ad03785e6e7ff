"""Reads a TOML document into a configuration: every key there is, in the order of the document.

Options and the environment are `loading`; how a single value is read is `tables`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from lockstitch.gateway.config.model import (
    DEFAULT_GUARD,
    Api,
    Config,
    DeletesInFlight,
    Guard,
    Key,
    Level,
    Limits,
    LogFormat,
    LogSettings,
    MetricsSettings,
    RealtimeSettings,
    Server,
    State,
    Transport,
    UnknownChains,
    Upstream,
    apis_of,
)
from lockstitch.gateway.config.secrets import Secret
from lockstitch.gateway.config.tables import Problems, Table

MOST_WORKERS: Final = 256
"""More than the cores of most machines; a slip of the finger should not start 10,000 processes."""
MOST_BYTES: Final = 1 << 40
MOST_COUNT: Final = 1_000_000_000
MOST_RETRIES: Final = 10

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""A name goes into log lines, metrics and names of conversations."""
NAME_SAYS: Final = "must be 1 to 64 letters, digits, dots, hyphens or underscores"

_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN_VARIABLE: Final = re.compile(r"[A-Z]+(_[A-Z0-9]+)+")
_SHOWN_FILE: Final = re.compile(r"(~|\.{0,2})/.+|.+\.[a-z]{2,5}")
"""What cannot be the key itself, which somebody put where its name belongs. Only that is shown."""
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_KEY_TEXT: Final = re.compile(r"[\x21-\x7e]+")

_SECRET_HEADERS: Final = {"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"}
_OWN_HEADERS: Final = {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te"}

_NO_KEY_HERE: Final = (
    "a key does not belong in this file: such files are copied, backed up and shared. Put it into"
    " an environment variable and name that (key_env), or into a file of its own (key_file)."
)
_NO_OWN_KEY_HERE: Final = (
    "a key does not belong in this file, only its hash does. Make a key, with its hash, by:"
    " lockstitch key NAME"
)
_SECRET_WORDS: Final = ("key", "api_key", "apikey", "token", "secret", "password", "bearer")


class Reading:
    """One reading of a document. ``folder`` is what paths in it begin at."""

    def __init__(
        self, problems: Problems, environment: Mapping[str, str], folder: str = ""
    ) -> None:
        self._problems = problems
        self._environment = environment
        self._folder = folder

    def config(self, document: Mapping[str, Any], *, default_store: str) -> Config:
        top = Table(document, (), self._problems)
        store = top.text("store", default_store, what="the URL of a store")
        guard: Guard = top.choice("guard", DEFAULT_GUARD, Guard)
        unknown_chains = top.choice("unknown_chains", None, UnknownChains)
        server = self._server(top.table("server"))
        limits = _limits(top.table("limits"))
        upstreams = tuple(self._upstream(table, guard) for table in top.tables("upstreams"))
        names = {upstream.name for upstream in upstreams}
        keys = tuple(_key(table, names) for table in top.tables("keys"))
        realtime = _realtime(top.table("realtime"))
        log = _log(top.table("log"))
        metrics = _metrics(top.table("metrics"))
        top.finish()
        self._twice("upstreams", "name", [upstream.name for upstream in upstreams])
        self._twice("keys", "name", [key.name for key in keys])
        self._twice("keys", "hash", [key.hash for key in keys])
        return Config(
            server=server,
            store=store,
            limits=limits,
            upstreams=upstreams,
            keys=keys,
            guard=guard,
            unknown_chains=unknown_chains or ("refuse" if keys else "pass"),
            realtime=realtime,
            log=log,
            metrics=metrics,
        )

    def _server(self, table: Table) -> Server:
        default = Server()
        server = Server(
            host=table.text("host", default.host, what="an address"),
            port=table.integer("port", default.port, least=0, most=65535),
            tls_certificate=self._file(table.text("tls_certificate", None, what="a file")),
            tls_key=self._file(table.text("tls_key", None, what="a file")),
            workers=table.integer("workers", default.workers, least=1, most=MOST_WORKERS),
            drain_seconds=table.seconds("drain_seconds", default.drain_seconds, least=0),
        )
        table.finish()
        for one, other in (("tls_certificate", "tls_key"), ("tls_key", "tls_certificate")):
            if table.has(one) and not table.has(other):
                table.wrong(one, f"needs {other} beside it: TLS takes a certificate and its key.")
        return server

    def _upstream(self, table: Table, guard: Guard) -> Upstream:
        default = Upstream(name="", url="")
        written = table.text("key_file", None, what="a file")
        key_file = self._file(written)
        name, url = _name(table), _url(table)
        upstream = Upstream(
            name=name,
            url=url,
            key=self._key(table, key_file, shown=_SHOWN_FILE.fullmatch(written or "") is not None),
            key_file=key_file,
            headers=_headers(table),
            models=table.texts("models", default.models, what='models, such as "gpt-*"'),
            state=table.choice("state", default.state, State),
            transport=table.choice("transport", default.transport, Transport),
            guard=table.choice("guard", guard, Guard),
            apis=table.choices("apis", apis_of(url), Api),
            retries=table.integer("retries", default.retries, least=0, most=MOST_RETRIES),
            connect_seconds=table.seconds("connect_seconds", default.connect_seconds),
            silence_seconds=table.seconds("silence_seconds", None),
        )
        table.finish(dict.fromkeys(_SECRET_WORDS, _NO_KEY_HERE))
        return upstream

    def _key(self, table: Table, key_file: str | None, *, shown: bool) -> Secret | None:
        variable = table.text("key_env", None, what="the name of an environment variable")
        if variable is not None and key_file is not None:
            table.wrong("key_file", "is one too many: there is a key_env, too. Keep one of them.")
            return None
        if variable is not None:
            return self._key_in_variable(table, variable)
        return None if key_file is None else _key_in_file(table, key_file, shown=shown)

    def _key_in_variable(self, table: Table, variable: str) -> Secret | None:
        if not _VARIABLE.fullmatch(variable):
            table.wrong(
                "key_env",
                "must be the name of an environment variable, such as OPENAI_API_KEY. If this is"
                f" the key itself: {_NO_KEY_HERE}",
            )
            return None
        key = self._environment.get(variable, "").strip()
        shown = _SHOWN_VARIABLE.fullmatch(variable)
        named = variable if shown else "the environment variable that it names"
        if not key:
            table.wrong(
                "key_env",
                f"{named} is not set, or is empty. Set it where the gateway is started: export"
                f" {variable if shown else 'NAME'}=…",
            )
            return None
        if not _KEY_TEXT.fullmatch(key):
            table.wrong("key_env", f"{named} holds no key: there are blanks or controls in it.")
            return None
        return Secret(key)

    def _file(self, path: str | None) -> str | None:
        return None if path is None else str(Path(self._folder, path).expanduser())

    def _twice(self, tables: str, key: str, values: list[str]) -> None:
        first: dict[str, int] = {}
        for number, value in enumerate(values):
            if value and value in first:
                line = self._problems.line((tables, first[value], key))
                self._problems.add(
                    (tables, number, key), f"is that of line {line}. Each must have its own."
                )
            first.setdefault(value, number)


def _limits(table: Table) -> Limits:
    default = Limits()
    limits = Limits(
        body_bytes=table.integer("body_bytes", default.body_bytes, least=1024, most=MOST_BYTES),
        header_bytes=table.integer(
            "header_bytes", default.header_bytes, least=1024, most=16 * 1024 * 1024
        ),
        request_seconds=table.seconds("request_seconds", default.request_seconds),
        idle_seconds=table.seconds("idle_seconds", default.idle_seconds),
        silence_seconds=table.seconds("silence_seconds", default.silence_seconds),
        connections=table.integer("connections", default.connections, least=1, most=MOST_COUNT),
        events_kept_bytes=table.integer(
            "events_kept_bytes", default.events_kept_bytes, least=0, most=MOST_BYTES
        ),
        unread_bytes=table.integer(
            "unread_bytes", default.unread_bytes, least=1024, most=MOST_BYTES
        ),
        unread_seconds=table.seconds("unread_seconds", default.unread_seconds),
        unattended_seconds=table.seconds("unattended_seconds", default.unattended_seconds, least=0),
    )
    table.finish()
    return limits


def _key(table: Table, upstreams: set[str]) -> Key:
    hashed = table.text("hash", None, what="a hash")
    if hashed is None and not table.has("hash"):
        table.missing("hash", "Make a key, with its hash, by: lockstitch key NAME")
    elif hashed is not None and not _HASH.fullmatch(hashed):
        table.wrong(
            "hash",
            'must be "sha256:" and 64 hexadecimal digits, as lockstitch key NAME prints it.'
            " It is the hash of a key, not the key.",
        )
        hashed = None
    named = table.texts("upstreams", None, what="names of upstreams")
    for number, name in enumerate(named or ()):
        if name not in upstreams:
            known = f"There are: {', '.join(sorted(upstreams))}." if upstreams else "There is none."
            path = (*table.path, "upstreams", number)
            table.problems.add(path, f"names an upstream that is not in this file. {known}")
    key = Key(
        name=_name(table),
        hash=hashed or "",
        expires=table.moment("expires"),
        requests_per_minute=table.integer("requests_per_minute", None, least=1, most=MOST_COUNT),
        concurrent=table.integer("concurrent", None, least=1, most=MOST_COUNT),
        upstreams=named,
        guard=table.choice("guard", None, Guard),
    )
    table.finish(dict.fromkeys(_SECRET_WORDS, _NO_OWN_KEY_HERE))
    return key


def _realtime(table: Table) -> RealtimeSettings:
    default = RealtimeSettings()
    settings = RealtimeSettings(
        deletes_in_flight=table.choice(
            "deletes_in_flight", default.deletes_in_flight, DeletesInFlight
        ),
        held_seconds=table.seconds("held_seconds", default.held_seconds),
    )
    table.finish()
    return settings


def _log(table: Table) -> LogSettings:
    default = LogSettings()
    settings = LogSettings(
        level=table.choice("level", default.level, Level),
        format=table.choice("format", default.format, LogFormat),
    )
    table.finish()
    return settings


def _metrics(table: Table) -> MetricsSettings:
    settings = MetricsSettings(open=table.boolean("open", False))
    table.finish()
    return settings


def _name(table: Table) -> str:
    name = table.text("name", None)
    if name is None:
        if not table.has("name"):
            table.missing("name", "Logs and metrics call it by its name.")
        return ""
    if not NAME.fullmatch(name):
        table.wrong("name", f"{NAME_SAYS}, and begin with a letter or a digit.")
        return ""
    return name


def _url(table: Table) -> str:
    url = table.text("url", None, what="an address")
    if url is None:
        if not table.has("url"):
            table.missing("url", 'Such as: url = "https://api.openai.com/v1"')
        return ""
    wrong = wrong_with_url(url)
    if wrong:
        table.wrong("url", wrong)
        return ""
    return url.rstrip("/")


def wrong_with_url(url: str) -> str | None:
    """What is wrong with the address of an upstream, if anything. It does not show the address,
    which may hold a password."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is no address. It looks like https://api.openai.com/v1"
    if parts.scheme not in {"http", "https"} or not parts.hostname or not url.isascii():
        return "must begin with http:// or https:// and a host, such as https://api.openai.com/v1"
    if any(sign <= " " or sign == "\x7f" for sign in url):
        return "must not have blanks or control characters in it."
    if parts.username is not None or parts.password is not None:
        return f"must not have a user or a password in it: {_NO_KEY_HERE}"
    if parts.query or parts.fragment:
        return "must not have a query (?) or a fragment (#), because paths are appended to it."
    return None


def _headers(table: Table) -> tuple[tuple[str, str], ...]:
    headers = []
    for name, value in table.pairs("headers"):
        path = (*table.path, "headers", name)
        if not _HEADER_NAME.fullmatch(name):
            table.problems.add(path, "is no name of a header.")
        elif name.lower() in _SECRET_HEADERS:
            table.problems.add(path, f"is for keys, and {_NO_KEY_HERE}")
        elif name.lower() in _OWN_HEADERS:
            table.problems.add(path, "belongs to the connection; the gateway sets it itself.")
        elif not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            table.problems.add(path, "must be a text of printable ASCII characters, in quotes.")
        else:
            headers.append((name, value))
    return tuple(headers)


def _key_in_file(table: Table, path: str, *, shown: bool) -> Secret | None:
    named = path if shown else "the file that it names, beside this one,"
    try:
        with open(path, encoding="ascii") as file:
            key = file.read(65536).strip()
    except (OSError, UnicodeDecodeError) as problem:
        why = os.strerror(problem.errno or 0) if isinstance(problem, OSError) else "it is no text"
        table.wrong(
            "key_file",
            f"{named} cannot be read: {why}. Put the key into it, and nothing else, and let whoever"
            " runs the gateway read it.",
        )
        return None
    if not _KEY_TEXT.fullmatch(key):
        table.wrong(
            "key_file", f"{named} must hold one key, and nothing else: no blanks, one line."
        )
        return None
    return Secret(key)
