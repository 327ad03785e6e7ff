"""The options of `lockstitch serve`, `lockstitch key` and `lockstitch emulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lockstitch.cli.missing_parts import needs
from lockstitch.cli.options import Command, Integer, Number, option


@click.command(
    cls=Command,
    examples=(
        "OPENAI_API_KEY=sk-… lockstitch serve",
        "lockstitch serve --config gateway.toml --store postgresql://me@localhost/db",
    ),
)
@option("--host", metavar="ADDRESS", help="Address to listen on. Default: 127.0.0.1.")
@option(
    "--port",
    type=Integer(min=0, max=65535),
    help="Port to listen on; 0 for any free port. Default: 8770.",
)
@option(
    "--upstream", metavar="URL", help="Provider's base URL. Default: OPENAI_BASE_URL, or OpenAI."
)
@option(
    "--guard",
    type=click.Choice(["mend", "report", "refuse", "off"]),
    metavar="MODE",
    help="What to do with broken tool-call histories: mend (default) repairs them, report only"
    " logs them, refuse rejects them, off does not look.",
)
@option(
    "--store",
    metavar="URL",
    help="Where to store conversations: sqlite:///FILE or postgresql://USER@HOST/DATABASE."
    " Default: a SQLite file in your data folder.",
)
@option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML file with upstreams, keys, limits and more. Options override it.",
)
@option("--workers", type=Integer(min=1, max=256), help="Number of processes. Default: 1.")
def serve(config: Path | None, **options: Any) -> int:
    """Run a proxy that repairs broken tool-call histories.

    Clients of the OpenAI and Anthropic APIs connect to it instead of the provider. The provider's
    key is OPENAI_API_KEY; with ANTHROPIC_API_KEY, Anthropic is served too. Without a key, a local
    emulator answers.

    Ctrl-C and SIGTERM stop it after running requests have finished; a second one stops it at once.
    A changed configuration file is loaded again, without a restart."""
    with needs("serve", "gateway"):
        from lockstitch.cli.serving import run

    return run(config=None if config is None else str(config), **options)


@click.command(cls=Command, examples=("lockstitch key alice --expires 90d >> gateway.toml",))
@click.argument("name", metavar="NAME")
@option(
    "--expires",
    metavar="WHEN",
    help="When the key expires: 90d, 12h, 4w, or a date like 2027-01-31. Default: never.",
)
@option(
    "--requests-per-minute",
    type=Integer(min=1),
    help="Requests the key may start per minute. Default: no limit.",
)
@option(
    "--concurrent",
    type=Integer(min=1),
    help="Requests the key may have running at once. Default: no limit.",
)
def key(
    name: str, expires: str | None, requests_per_minute: int | None, concurrent: int | None
) -> int:
    """Create a client key for the gateway.

    Prints the key on standard error, once; only its hash is stored. The block for the
    configuration file goes to standard output. NAME identifies the key in logs."""
    with needs("key", "gateway"):
        from lockstitch.cli.serving import make_key

    return make_key(name, expires, requests_per_minute, concurrent)


@click.command(
    cls=Command,
    examples=(
        'lockstitch emulate --fault "cut before=response.completed"',
        "lockstitch emulate --script weather.yaml",
    ),
)
@option("--host", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on.")
@option(
    "--port",
    type=Integer(min=0, max=65535),
    default=8765,
    help="Port to listen on; 0 for any free port. Default: 8765.",
)
@option(
    "--script",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What the model answers: a .yaml, .json or .py file.",
)
@option(
    "--fault",
    "faults",
    multiple=True,
    metavar="FAULT",
    help='Fault to inject, such as "status code=429 times=2"; repeatable.',
)
@option("--faults", "list_faults", is_flag=True, help="List all faults and exit.")
@option(
    "--record",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write all requests and responses to a JSONL file.",
)
@option(
    "--api-key",
    "key",
    default="",
    envvar="LOCKSTITCH_EMULATOR_KEY",
    metavar="KEY",
    help="The only API key to accept; also LOCKSTITCH_EMULATOR_KEY. Default: any.",
)
@option("--seed", type=int, default=0, metavar="N", help="Seed for generated ids. Default: 0.")
@option(
    "--pace",
    type=Number(min=0),
    default=0.0,
    metavar="SECONDS",
    help="Seconds between two events of a stream. Default: 0.",
)
@option(
    "--connection-minutes",
    type=Number(min=0.01),
    default=60.0,
    help="How long a WebSocket connection may last. Default: 60.",
)
@option("-q", "--quiet", is_flag=True, help="Do not print each request.")
def emulate(list_faults: bool, **options: Any) -> int:
    """Run a strict local mock of the OpenAI and Anthropic APIs.

    It checks every request as the provider would and can inject faults. Serves OpenAI's
    Responses (HTTP, SSE, WebSocket), Conversations, Realtime and Chat Completions, and
    Anthropic's Messages. Ctrl-C stops it and prints a summary."""
    from lockstitch.cli import emulating

    if list_faults:
        return emulating.list_faults()
    return emulating.run(emulating.Options(**options))
