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

import typer

from lockstitch.cli.app import CLEAN
from lockstitch.cli.missing_parts import PartMissing, needs
from lockstitch.store.urls import public_url

with needs("serve", "gateway"):
    from lockstitch.gateway.access.keys import hash_of, new_key
    from lockstitch.gateway.config import Config, ConfigError, Options, Problem, load
    from lockstitch.gateway.config.model import is_loopback
    from lockstitch.gateway.config.reading import NAME, NAME_SAYS
    from lockstitch.gateway.running import run as run_loop
    from lockstitch.gateway.running import serve


def run(
    *,
    host: str | None,
    port: int | None,
    upstream: str | None,
    store: str | None,
    config: str | None,
    workers: int | None,
) -> int:
    """Serve until SIGINT or SIGTERM; the exit code."""
    options = Options(
        host=host, port=port, upstream=upstream, store=store, config=config, workers=workers
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
            "There is no upstream. Set OPENAI_API_KEY, or name one (--upstream URL, --config FILE)."
            f" To have an emulator in its place: {missing}"
        ) from None
    # A provider of its own each time: its ids must not be those in the journal of an earlier one.
    emulator = await stack.enter_async_context(
        Emulator(settings=Settings(seed=secrets.randbits(32)))
    )
    return emulator.base_url


def _greet(config: Config) -> None:
    """What to put into a client's configuration."""
    server = config.server
    base = f"{server.url}/v1"
    key = "one that `lockstitch key NAME` printed" if config.keys else "any"
    if not config.keys and not config.emulator and any(not one.key for one in config.upstreams):
        key = "your own: it goes on to the upstream"
    said = [
        f"Lockstitch listens on {server.url}",
        *_upstreams(config),
        f"The journal is kept in {public_url(config.store).removeprefix('sqlite:///')}",
        "",
        "For clients of OpenAI:",
        f"    export OPENAI_BASE_URL={base}",
        f"    export OPENAI_API_KEY=…    # {key}",
        *_for_anthropic(config, key),
        "For Codex, in ~/.codex/config.toml:",
        '    model_provider = "lockstitch"',
        "    [model_providers.lockstitch]",
        '    name = "Lockstitch"',
        f'    base_url = "{base}"',
        '    wire_api = "responses"',
        '    env_key = "OPENAI_API_KEY"',
        "",
        "Stop: Ctrl-C",
    ]
    typer.echo("\n".join(said))
    for one in config.upstreams if config.keys else ():
        if one.key is None:
            typer.echo(
                f"Careful: upstream {one.name} has no key (key_env, key_file), and clients' keys"
                " are for the gateway alone: it will be asked without one.",
                err=True,
            )
    if not server.has_tls and not is_loopback(server.host):
        typer.echo(
            f"Careful: {server.host} can be reached from other machines, and without TLS keys and"
            " conversations can be read on the way (tls_certificate, tls_key).",
            err=True,
        )


def _for_anthropic(config: Config, key: str) -> list[str]:
    if not any("messages" in one.apis for one in config.upstreams):
        return []
    return [
        "For clients of Anthropic, which add /v1 themselves:",
        f"    export ANTHROPIC_BASE_URL={config.server.url}",
        f"    export ANTHROPIC_API_KEY=…    # {key}",
    ]


def _upstreams(config: Config) -> list[str]:
    if config.emulator:
        return [
            f"    Its upstream is an emulator at {config.upstreams[0].url}: there is no"
            " OPENAI_API_KEY.",
            "    It repeats what it is told, and calls the tools that are named to it.",
        ]
    return [f"    Upstream {one.name}: {one.url}" for one in config.upstreams]


# Keys

_SPANS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def make_key(
    name: str, expires: str | None, requests_per_minute: int | None, concurrent: int | None
) -> int:
    """Print a new key, and the block that makes it one."""
    if not NAME.fullmatch(name):
        raise typer.BadParameter(f"NAME {NAME_SAYS}, and begin with a letter or a digit.")
    ends = None if expires is None else _moment(expires, datetime.now(UTC))
    key = new_key()
    block_is = "This goes" if sys.stdout.isatty() else "What standard output got goes"
    typer.echo(
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
    typer.echo("\n" + "\n".join(block))
    return CLEAN


def _moment(text: str, now: datetime) -> datetime:
    """`90d`, or a date; always in UTC."""
    span = re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", text.strip())
    try:
        if span is not None:
            return now + int(span[1]) * _SPANS[span[2]]
        said = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            "--expires is a time from now (90d, 12h, 4w), or a date (2027-01-31)."
        ) from None
    ends = said.astimezone(UTC) if said.tzinfo else said.replace(tzinfo=UTC)
    if ends <= now:
        raise typer.BadParameter("--expires is in the past: nobody could use the key.")
    return ends
