"""The options of `lockstitch chat` and `lockstitch demo`."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import click

from lockstitch.cli.missing_parts import needs
from lockstitch.cli.options import OUTPUT, Command, option

MODEL: Final = "gpt-5.5"
"""The model that a chat uses by default."""

MODES: Final = ("previous_response_id", "conversation", "full")


@click.command(cls=Command, examples=("lockstitch chat", "lockstitch chat my-thread"))
@click.argument("thread", required=False, metavar="[THREAD]")
@option("--model", default=MODEL, metavar="NAME", help=f"Model to use. Default: {MODEL}.")
@option(
    "--store",
    metavar="URL",
    help="Where to store threads: sqlite:///FILE or postgresql://USER@HOST/DATABASE. Default: a"
    " SQLite file in your data folder.",
)
@option(
    "--base-url",
    envvar="OPENAI_BASE_URL",
    metavar="URL",
    help="Provider's base URL; also OPENAI_BASE_URL. Default: OpenAI.",
)
@option(
    "--mode",
    type=click.Choice(MODES),
    default=MODES[0],
    metavar="MODE",
    help="How a request continues the one before: previous_response_id (default), conversation or"
    " full (send the whole history).",
)
@option(
    "--yes-to",
    multiple=True,
    metavar="TOOL",
    help="Do not ask before this tool runs: write_file, run_shell; repeatable.",
)
def chat(base_url: str | None, yes_to: tuple[str, ...], **options: Any) -> int:
    """Chat with a model that can work in this folder.

    It can read files, and asks before it writes a file or runs a command. You can kill it at any
    time: run it again with the same THREAD to continue. The key is OPENAI_API_KEY; without a key
    and a base URL, a local emulator answers.

    Ctrl-C stops a turn, and a second one ends the chat. Input that is not a terminal is read as
    one message or answer per line."""
    if base_url is not None and not _is_address(base_url):
        raise click.BadParameter(
            "--base-url (OPENAI_BASE_URL) must begin with http:// or https:// and a host, such as"
            " https://api.openai.com/v1"
        )
    with needs("chat", "demo"):
        from lockstitch.cli.chatting import Options, run

    tools = tuple(name.strip() for one in yes_to for name in one.split(","))
    return run(Options(base_url=base_url, yes_to=tools, **options))


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number, an open bracket
        return False


@click.command(cls=Command, examples=("lockstitch demo D",))
@click.argument("cases", nargs=-1, metavar="[CASE]...")
@OUTPUT
def demo(cases: tuple[str, ...], output: str) -> int:
    """Show the four original bugs, with and without Lockstitch.

    CASE is A, B, C or D. Default: all. Both sides get the same script and the same faults.

    Exit codes: 0 the demo behaved as expected, 1 it did not, 2 it could not run."""
    from lockstitch.cli.demonstrating import run

    return run(cases, output)
