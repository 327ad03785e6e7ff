"""Makes a configuration of a file, options and the environment; options win.

What no single value can tell is checked here: who may reach the gateway, and whether it would be
its own upstream."""

from __future__ import annotations

import os
import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast, get_args
from urllib.parse import urlsplit

from msgspec import Struct, structs

from lockstitch.gateway.config.errors import ConfigError, Problem
from lockstitch.gateway.config.line_numbers import line_numbers
from lockstitch.gateway.config.model import (
    OPENAI_APIS,
    Config,
    Guard,
    Server,
    Upstream,
    apis_of,
    is_loopback,
)
from lockstitch.gateway.config.reading import MOST_WORKERS, Reading, wrong_with_url
from lockstitch.gateway.config.secrets import Secret
from lockstitch.gateway.config.tables import Problems
from lockstitch.store.data_folder import data_folder

OPENAI_URL: Final = "https://api.openai.com/v1"
ANTHROPIC_URL: Final = "https://api.anthropic.com"
"""Where OPENAI_API_KEY is for, if OPENAI_BASE_URL does not say otherwise."""

STORE_FILE: Final = "gateway.db"


class Options(Struct, frozen=True, kw_only=True):
    """What the command line says; None: nothing."""

    host: str | None = None
    port: int | None = None
    upstream: str | None = None
    store: str | None = None
    config: str | None = None
    workers: int | None = None
    guard: str | None = None


def load(
    options: Options, environment: Mapping[str, str] | None = None, *, again: bool = False
) -> Config:
    """The configuration. Raises `ConfigError`, with every problem there is. ``again``: for one that
    runs; what it means there that no keys are in it is for `running.reloading` to say."""
    environment = os.environ if environment is None else environment
    text = "" if options.config is None else _text(options.config)
    document = _document(text, options.config)
    problems = Problems(line_numbers(text))
    folder = str(Path(options.config).resolve().parent) if options.config else ""
    reading = Reading(problems, environment, folder)
    config = reading.config(document, default_store=default_store(environment))
    config = structs.replace(
        config,
        server=_server(config, options, problems),
        store=options.store or config.store,
        file=options.config,
    )
    if options.guard is not None:
        config = _with_guard(config, options.guard, problems)
    config = _with_upstream(config, options, environment, problems)
    check_whole(config, problems)
    if not again:
        check_open(config, problems)
    if problems:
        raise ConfigError(problems.in_order(), file=options.config)
    return config


def default_store(environment: Mapping[str, str]) -> str:
    """A file in the data folder of whoever runs this."""
    return f"sqlite:///{data_folder(environment) / STORE_FILE}"


def check_open(config: Config, problems: Problems) -> None:
    """Who may come in where there are no keys."""
    server = config.server
    if config.keys or is_loopback(server.host):
        return
    if not _is_known(server.host):
        problems.add(
            ("server", "host"),
            f"{server.host} is not known here: no address has that name. Choose another host:"
            " 127.0.0.1 for this machine alone, 0.0.0.0 for everybody who has a key.",
        )
    else:
        problems.add(
            ("server", "host"),
            f"{server.host} can be reached from other machines, and there are no keys: anybody"
            " could use your upstreams and read your conversations. Make a key (lockstitch key"
            " NAME), put what it prints into the file of --config, or listen on 127.0.0.1.",
        )


def _is_known(host: str) -> bool:
    """Has it an address? Asked of nobody where it is one, or is left empty for all there are."""
    try:
        return not host or bool(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    except (socket.gaierror, UnicodeError):
        return False


def check_whole(config: Config, problems: Problems) -> None:
    """What else no single key tells."""
    server = config.server
    if server.workers > 1 and config.store.startswith("memory:"):
        problems.add(
            ("store",), "is memory, which workers cannot share. Name a file or a database."
        )
    for number, upstream in enumerate(config.upstreams):
        if _is_itself(upstream.url, config):
            problems.add(
                ("upstreams", number, "url"),
                f"{upstream.url} is this gateway itself. OPENAI_BASE_URL and ANTHROPIC_BASE_URL"
                " are for clients: unset them where you start the gateway, or name the upstream.",
            )


def _is_itself(url: str, config: Config) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return False
    ours = config.server.host
    here = is_loopback(parts.hostname or "") or parts.hostname in {"0.0.0.0", "::", ours}
    listens_here = is_loopback(ours) or ours in {"0.0.0.0", "::", "", parts.hostname}
    return here and listens_here and port == config.server.port != 0


def _server(config: Config, options: Options, problems: Problems) -> Server:
    if options.workers is not None and not 1 <= options.workers <= MOST_WORKERS:
        problems.add((), f"--workers must be from 1 to {MOST_WORKERS}.")
    said = {"host": options.host, "port": options.port, "workers": options.workers}
    given = {name: value for name, value in said.items() if value is not None}
    return structs.replace(config.server, **given)


def _with_guard(config: Config, guard: str, problems: Problems) -> Config:
    if guard not in get_args(Guard):
        words = ", ".join(get_args(Guard))
        problems.add((), f"--guard must be one of: {words}.")
        return config
    return config.with_guard(cast("Guard", guard))


def _with_upstream(
    config: Config, options: Options, environment: Mapping[str, str], problems: Problems
) -> Config:
    """Where the file names none: those of the options and the environment, or an emulator."""
    if config.upstreams:
        if options.upstream is not None:
            problems.add((), "--upstream and upstreams in the file: keep one of them.")
        return config
    key = _key(environment, "OPENAI_API_KEY", problems)
    url = options.upstream or environment.get("OPENAI_BASE_URL", "").strip()
    anthropic = _anthropic(config, environment, problems)
    if not key and not url:
        if anthropic is not None:
            return structs.replace(config, upstreams=(anthropic,))
        return structs.replace(config, emulator=True)
    wrong = wrong_with_url(url) if url else None
    if wrong:
        source = "--upstream" if options.upstream else "OPENAI_BASE_URL"
        problems.add((), f"{source} {wrong}")
        return config
    url = (url or OPENAI_URL).rstrip("/")
    # OPENAI_BASE_URL is for clients of OpenAI's APIs, so a server named there need have no other.
    apis = apis_of(url) if options.upstream else OPENAI_APIS
    if anthropic is not None:
        apis = tuple(api for api in apis if api not in anthropic.apis)
    openai = Upstream(name="default", url=url, key=key, guard=config.guard, apis=apis)
    both = (openai, anthropic) if anthropic is not None and apis else (openai,)
    return structs.replace(config, upstreams=both)


def _anthropic(
    config: Config, environment: Mapping[str, str], problems: Problems
) -> Upstream | None:
    """Anthropic as an upstream, if the environment has its key."""
    key = _key(environment, "ANTHROPIC_API_KEY", problems)
    if key is None:
        return None
    url = environment.get("ANTHROPIC_BASE_URL", "").strip() or ANTHROPIC_URL
    wrong = wrong_with_url(url)
    if wrong:
        problems.add((), f"ANTHROPIC_BASE_URL {wrong}")
        return None
    # Anthropic's clients add /v1 themselves; an upstream has it in its address.
    url = url.rstrip("/").removesuffix("/v1") + "/v1"
    return Upstream(name="anthropic", url=url, key=key, guard=config.guard, apis=("messages",))


def _key(environment: Mapping[str, str], name: str, problems: Problems) -> Secret | None:
    key = environment.get(name, "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        problems.add((), f"{name} is not a key: it contains spaces or control characters.")
    return Secret(key) if key else None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as problem:
        why = problem.strerror or str(problem)
        says = f"cannot be read: {why}. Is --config right?"
    except UnicodeDecodeError:
        says = "is not UTF-8 text, as TOML must be. Is --config right?"
    raise ConfigError([Problem(path=(), says=says)], file=path)


def _document(text: str, path: str | None) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        said, _, place = str(problem).rpartition(" (at ")
        words = place.rstrip(")").split()  # "line 3, column 7", or "end of document"
        line = int(words[1].rstrip(",")) if words[:1] == ["line"] else text.count("\n") + 1
        says = f"is not TOML: {said[:1].lower()}{said[1:]}."
        raise ConfigError([Problem(path=(), says=says, line=line)], file=path) from None
    except RecursionError:
        says = "is not to be read: it is nested too deeply."
        raise ConfigError([Problem(path=(), says=says)], file=path) from None
