"""The options of `lockstitch store …`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from lockstitch.cli.options import FILE_OR_DASH, OUTPUT, Group, Number, option

_URL: Final = click.argument("url", metavar="URL")
_FILE: Final = click.argument("file", type=FILE_OR_DASH, default="-", metavar="[FILE]")
_CONVERSATION: Final = option(
    "--conversation", multiple=True, metavar="ID", help="Only this conversation; repeatable."
)


@click.group(cls=Group, examples=("lockstitch store list sqlite:///agent.db",))
def store() -> None:
    """List, show, export and delete stored conversations.

    URL is sqlite:///FILE or postgresql://USER@HOST/DATABASE."""


@store.command("list", examples=("lockstitch store list sqlite:///agent.db",))
@_URL
@OUTPUT
def list_(url: str, output: str) -> int:
    """List the conversations in a store.

    Shows each conversation's id, model, first words, last change (UTC) and number of records. An
    encrypted store can be listed without its key, but then model and words are not shown."""
    from lockstitch.cli import storing

    return storing.list_(url, output)


@store.command(examples=("lockstitch store show sqlite:///agent.db thread-42",))
@_URL
@click.argument("conversation", metavar="ID")
@OUTPUT
def show(url: str, conversation: str, output: str) -> int:
    """Print one conversation."""
    from lockstitch.cli import storing

    return storing.show(url, conversation, output)


@store.command(examples=("lockstitch store stats sqlite:///agent.db",))
@_URL
@OUTPUT
def stats(url: str, output: str) -> int:
    """Show how much a store holds."""
    from lockstitch.cli import storing

    return storing.stats(url, output)


@store.command(examples=("lockstitch store export sqlite:///agent.db backup.jsonl",))
@_URL
@_FILE
@_CONVERSATION
@option("--force", is_flag=True, help="Overwrite FILE if it exists.")
def export(url: str, file: str, conversation: tuple[str, ...], force: bool) -> int:
    """Export conversations as JSONL.

    FILE is - (default) for standard output. An encrypted store is exported as plain text."""
    from lockstitch.cli import storing

    return storing.export(url, file, conversation, force=force)


@store.command("import", examples=("lockstitch store import sqlite:///new.db backup.jsonl",))
@_URL
@_FILE
@OUTPUT
def import_(url: str, file: str, output: str) -> int:
    """Import an export into a store.

    FILE is - (default) for standard input. Records that are there already are skipped.

    Exit codes: 0 everything is in the store, 1 a conversation exists with other records and was
    left unchanged, 2 the export or the store could not be read."""
    from lockstitch.cli import storing

    return storing.import_(url, None if file == "-" else Path(file), output)


@store.command(examples=("lockstitch store migrate sqlite:///agent.db",))
@_URL
@OUTPUT
def migrate(url: str, output: str) -> int:
    """Create a store, or update one from an older version."""
    from lockstitch.cli import storing

    return storing.migrate(url, output)


@store.command(examples=("lockstitch store delete sqlite:///agent.db --older-than 90",))
@_URL
@_CONVERSATION
@option(
    "--older-than",
    type=Number(min=0),
    metavar="DAYS",
    help="All conversations that have not changed for this many days.",
)
@option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@option("--vacuum", is_flag=True, help="Return the freed space to the disk; takes a while.")
@OUTPUT
def delete(
    url: str,
    conversation: tuple[str, ...],
    older_than: float | None,
    yes: bool,
    vacuum: bool,
    output: str,
) -> int:
    """Delete conversations. This cannot be undone."""
    from lockstitch.cli import storing

    if bool(conversation) == (older_than is not None):
        raise click.UsageError("Name what to delete: --conversation ID, or --older-than DAYS.")
    which = storing.Which(conversation, older_than)
    return storing.delete(url, which, output, yes=yes, vacuum=vacuum)


@store.command(examples=("lockstitch store key > store.key",))
def key() -> int:
    """Print a new key for an encrypted store.

    Anyone who has the key can read the store. Without it, nobody can."""
    from lockstitch.cli import storing

    return storing.key()


@store.command(examples=("lockstitch store rotate sqlite:///agent.db",))
@_URL
@option("--vacuum", is_flag=True, help="Return the freed space to the disk; takes a while.")
@OUTPUT
def rotate(url: str, vacuum: bool, output: str) -> int:
    """Encrypt every record again with the newest key.

    The keys are in LOCKSTITCH_STORE_KEY_FILE or LOCKSTITCH_STORE_KEY, one per line: the new key
    first, then the old ones. Plain records are encrypted too."""
    from lockstitch.cli import storing

    return storing.rotate(url, output, vacuum=vacuum)
