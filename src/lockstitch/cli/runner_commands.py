"""`lockstitch chat` and `lockstitch demo`: their options. What they do is in `chatting` and
`demonstrating`, imported when one of them runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from lockstitch.cli.store_commands import Output, Said

MODEL: Final = "gpt-5.5"
"""The model that a chat asks, if nobody says which."""


class ModeName(StrEnum):
    chain = "previous_response_id"
    conversation = "conversation"
    full = "full"


def chat(
    thread: Annotated[
        str | None,
        typer.Argument(
            help="The thread to go on with; default: a new one.",
            metavar="THREAD",
            show_default=False,
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="Which model to ask.")] = MODEL,
    store: Annotated[
        str | None,
        typer.Option(
            help="Where threads are kept: sqlite:///FILE, or postgresql://USER@HOST/DATABASE;"
            " default: a file in your data folder.",
            metavar="URL",
            show_default=False,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            help="Where the provider is; default: OpenAI's own.",
            metavar="URL",
            envvar="OPENAI_BASE_URL",
            show_default=False,
            show_envvar=True,
        ),
    ] = None,
    mode: Annotated[
        ModeName, typer.Option(help="How a request goes on from the one before it.")
    ] = ModeName.chain,
    yes_to: Annotated[
        list[str] | None,
        typer.Option(
            help="Do not ask before this tool runs: write_file, run_shell; may be given again.",
            metavar="TOOL",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Talk to a model that works in this folder, if you let it.

    It can read files, and asks before it writes one or runs a command. Kill it whenever you like:
    run it again with the same THREAD, and it goes on. The key is OPENAI_API_KEY; without a key and
    a base URL it talks to an emulator. Input that is no terminal is read as one message, or one
    answer, in each line. Ctrl-C stops a turn, and once more, the chat."""
    if base_url is not None and not _is_address(base_url):
        raise typer.BadParameter(
            "--base-url (OPENAI_BASE_URL) must begin with http:// or https:// and a host, such as"
            " https://api.openai.com/v1"
        )
    from lockstitch.cli.chatting import Options, run

    options = Options(
        thread=thread,
        model=model,
        store=store,
        base_url=base_url,
        mode=mode.value,
        yes_to=tuple(name.strip() for one in yes_to or () for name in one.split(",")),
    )
    raise typer.Exit(run(options))


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, brackets that are not closed
        return False


def demo(
    cases: Annotated[
        list[str] | None,
        typer.Argument(
            help="Their letters: A, B, C, D; default: all.", metavar="CASE", show_default=False
        ),
    ] = None,
    output: Said = Output.text,
) -> None:
    """Play the founding cases, without Lockstitch and with it. Script and faults are the same.

    Exit code 0: Lockstitch held and the other failed, 1: it was not so, 2: it could not be
    played."""
    from lockstitch.cli.demonstrating import run

    raise typer.Exit(run(cases or (), output.value))
