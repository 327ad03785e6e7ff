"""`lockstitch serve` and `lockstitch key`: their options. What they do is in `serving`, imported
when one of them runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    host: Annotated[
        str | None,
        typer.Option(help="The address to listen on; default: 127.0.0.1.", show_default=False),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="The port; 0 takes any that is free; default: 8770.",
            show_default=False,
        ),
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(
            help="Where the provider is; default: OPENAI_BASE_URL, or OpenAI's own.",
            metavar="URL",
            show_default=False,
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="Where the journal is kept: sqlite:///FILE, or postgresql://USER@HOST/DATABASE;"
            " default: a file in your data folder.",
            metavar="URL",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file: upstreams, keys, limits and more. Options win.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Processes; default: 1.", show_default=False),
    ] = None,
) -> None:
    """Stand between clients and providers; keep conversations whole.

    The key of the provider is OPENAI_API_KEY; without a key and an address an emulator is the
    provider. SIGTERM and Ctrl-C let what runs finish, and a second one stops at once. SIGHUP, and a
    changed file, load keys, limits and upstreams anew."""
    from lockstitch.cli.serving import run

    code = run(
        host=host,
        port=port,
        upstream=upstream,
        store=store,
        config=None if config is None else str(config),
        workers=workers,
    )
    raise typer.Exit(code)


def key(
    name: Annotated[
        str, typer.Argument(help="Whose it is. Logs and the journal name it so.", metavar="NAME")
    ],
    expires: Annotated[
        str | None,
        typer.Option(
            help="When it ends: 90d, 12h, 4w, or a date as 2027-01-31; default: never.",
            metavar="WHEN",
            show_default=False,
        ),
    ] = None,
    requests_per_minute: Annotated[
        int | None,
        typer.Option(min=1, help="How many it may begin; default: any.", show_default=False),
    ] = None,
    concurrent: Annotated[
        int | None,
        typer.Option(min=1, help="How many may run at a time; default: any.", show_default=False),
    ] = None,
) -> None:
    """Make a key for the gateway. It is shown once; only its hash is kept.

    The key goes to standard error, and the block for the file of `serve --config` to standard
    output: `lockstitch key NAME >> gateway.toml` keeps the one apart from the other."""
    from lockstitch.cli.serving import make_key

    raise typer.Exit(make_key(name, expires, requests_per_minute, concurrent))
