"""`lockstitch serve`: runs the gateway, with an emulator as its upstream where there is no other;
and `lockstitch key`."""

from __future__ import annotations

import re
import secrets
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import click

from lockstitch.cli.app import CLEAN
from lockstitch.cli.missing_parts import PartMissing, needs
from lockstitch.core.terminal import printable
from lockstitch.gateway.access.keys import hash_of, new_key
from lockstitch.gateway.config import Config, ConfigError, Options, Problem, load
from lockstitch.gateway.config.model import is_loopback
from lockstitch.gateway.config.reading import NAME, NAME_SAYS
from lockstitch.gateway.running import run as run_loop
from lockstitch.gateway.running import serve
from lockstitch.store.urls import public_url


def run(
    *,
    host: str | None,
    port: int | None,
    upstream: str | None,
    store: str | None,
    config: str | None,
    workers: int | None,
    guard: str | None,
) -> int:
    """Serve until SIGINT or SIGTERM; the exit code."""
    options = Options(
        host=host,
        port=port,
        upstream=upstream,
        store=store,
        config=config,
        workers=workers,
        guard=guard,
    )
    return run_loop(_serve(options))


async def _serve(options: Options) -> int:
    config = load(options)
    async with AsyncExitStack() as stack:
        source = _Source(options, await _emulator(stack) if config.emulator else None)
        return await serve(source.completed(config), load=source.again, ready=_greet)


@dataclass(frozen=True, slots=True)
class _Source:
    """What the configuration is made of."""

    options: Options
    emulator: str | None
    """Where one runs."""

    def again(self) -> Config:
        """The configuration as it is now."""
        return self.completed(load(self.options, again=True))

    def completed(self, config: Config) -> Config:
        """One that was read, with the emulator where it names no upstream."""
        if not config.emulator:
            return config
        if self.emulator is None:
            says = "there is none any more. Name one, or start the gateway again for an emulator."
            raise ConfigError([Problem(path=("upstreams",), says=says)], file=config.file)
        return config.with_emulator(self.emulator)


async def _emulator(stack: AsyncExitStack) -> str:
    """Start an emulator; where it is. Raises `PartMissing`."""
    try:
        with needs("the emulator", "gateway", "emulator"):
            from lockstitch.emulator import Emulator, Settings
    except PartMissing as missing:
        raise PartMissing(
            "There is no upstream. Set OPENAI_API_KEY or ANTHROPIC_API_KEY, or name one (--upstream"
            f" URL, --config FILE). To use a local emulator instead: {missing}"
        ) from None
    # A provider of its own each time: its ids must not be those in the journal of an earlier one.
    emulator = await stack.enter_async_context(
        Emulator(settings=Settings(seed=secrets.randbits(32)))
    )
    return emulator.base_url


_API_NAMES: Final = {
    "responses": "Responses",
    "chat": "Chat Completions",
    "messages": "Anthropic Messages",
}
_GUARDS: Final = {
    "mend": "broken tool-call histories are repaired before they are sent",
    "report": "broken tool-call histories are logged and sent unchanged",
    "refuse": "broken tool-call histories are rejected",
    "off": "tool-call histories are not checked",
}


def _greet(config: Config) -> None:
    """Say where the gateway is, what it does, and what to put into a client's configuration."""
    server = config.server
    lines = [
        f"Lockstitch is running at {server.url}",
        *_upstreams(config),
        *_guard(config),
        f"  Store: {public_url(config.store).removeprefix('sqlite:///')}",
        "",
        *_client_settings(config),
        "Stop with Ctrl-C.",
    ]
    click.echo("\n".join(map(printable, lines)))
    for one in config.upstreams if config.keys else ():
        if one.key is None:
            click.echo(
                f"Warning: upstream {one.name} has no key (key_env, key_file). Clients' keys are"
                " for the gateway and are not forwarded, so requests go out without a key.",
                err=True,
            )
    if not server.has_tls and not is_loopback(server.host):
        click.echo(
            f"Warning: {printable(server.host)} can be reached from other machines, and without TLS"
            " anyone on the network can read keys and conversations (tls_certificate, tls_key).",
            err=True,
        )


def _upstreams(config: Config) -> list[str]:
    if config.emulator:
        return [
            f"  Upstream: a local emulator at {config.upstreams[0].url}, because neither"
            " OPENAI_API_KEY nor ANTHROPIC_API_KEY is set.",
            "    It repeats what it is told and calls the tools that a message names.",
        ]
    return [
        f"  Upstream {one.name}: {one.url} ({', '.join(_API_NAMES[api] for api in one.apis)})"
        for one in config.upstreams
    ]


def _guard(config: Config) -> list[str]:
    named = {one.name: one.guard for one in config.upstreams}
    named |= {f"key {one.name}": one.guard for one in config.keys if one.guard is not None}
    if len(set(named.values())) == 1:
        guard = next(iter(named.values()))
        return [f"  Guard: {guard} ({_GUARDS[guard]})"]
    return ["  Guard: " + ", ".join(f"{guard} for {name}" for name, guard in named.items())]


def _client_settings(config: Config) -> list[str]:
    """What to set in clients of the APIs that there is an upstream for."""
    apis = {api for one in config.upstreams for api in one.apis}
    url = config.server.url
    key = "any value works"
    if config.keys:
        key = "a key that `lockstitch key NAME` printed"
    elif not config.emulator and any(one.key is None for one in config.upstreams):
        key = "your own key, which is forwarded"
    lines: list[str] = []
    if apis & {"responses", "chat"}:
        lines += [
            "OpenAI clients:",
            f"    export OPENAI_BASE_URL={url}/v1",
            f"    export OPENAI_API_KEY=…    # {key}",
        ]
    if "messages" in apis:
        lines += [
            "Anthropic clients and Claude Code:",
            f"    export ANTHROPIC_BASE_URL={url}",
            f"    export ANTHROPIC_API_KEY=…    # {key}",
        ]
    if "responses" in apis:
        lines += [
            "Codex CLI (it does not read OPENAI_BASE_URL): at the top of ~/.codex/config.toml:",
            '    model_provider = "lockstitch"',
            "  and at the end of the same file:",
            "    [model_providers.lockstitch]",
            '    name = "Lockstitch"',
            f'    base_url = "{url}/v1"',
            '    wire_api = "responses"',
            '    env_key = "OPENAI_API_KEY"',
        ]
    return [*lines, ""]


# Keys

_SPANS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def make_key(
    name: str, expires: str | None, requests_per_minute: int | None, concurrent: int | None
) -> int:
    """Print a new key, and the block that makes it one."""
    if not NAME.fullmatch(name):
        raise click.BadParameter(f"NAME {NAME_SAYS}, and begin with a letter or a digit.")
    ends = None if expires is None else _moment(expires, datetime.now(UTC))
    key = new_key()
    block_is = "This goes" if sys.stdout.isatty() else "What standard output got goes"
    click.echo(
        f"The key of {name}, which is shown this once:\n\n    {key}\n\nIt is what a client of the"
        f" gateway has as its API key. {block_is} into the file of `lockstitch serve --config`"
        f"{':' if sys.stdout.isatty() else '.'}",
        err=True,
    )
    block = ["[[keys]]", f'name = "{name}"', f'hash = "{hash_of(key)}"']
    if ends is not None:
        block.append(f"expires = {ends:%Y-%m-%dT%H:%M:%SZ}")
    if requests_per_minute is not None:
        block.append(f"requests_per_minute = {requests_per_minute}")
    if concurrent is not None:
        block.append(f"concurrent = {concurrent}")
    # A line of its own, also behind a file whose last line has no end.
    click.echo("\n" + "\n".join(block))
    return CLEAN


def _moment(text: str, now: datetime) -> datetime:
    """`90d`, or a date; always in UTC."""
    span = re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", text.strip())
    try:
        if span is not None:
            return now + int(span[1]) * _SPANS[span[2]]
        said = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise click.BadParameter(
            "--expires is a time from now (90d, 12h, 4w), or a date (2027-01-31)."
        ) from None
    ends = said.astimezone(UTC) if said.tzinfo else said.replace(tzinfo=UTC)
    if ends <= now:
        raise click.BadParameter("--expires is in the past: nobody could use the key.")
    return ends
