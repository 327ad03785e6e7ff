"""`lockstitch store …`: the commands and their options. What they do is in `storing`, imported
when one of them runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

store = typer.Typer(
    name="store",
    help="Look after a store: list, export, import, deletion, keys.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Output(StrEnum):
    text = "text"
    json = "json"


Url = Annotated[
    str,
    typer.Argument(
        help="sqlite:///FILE, or postgresql://USER@HOST/DATABASE.",
        metavar="URL",
        show_default=False,
    ),
]
Said = Annotated[Output, typer.Option("--output", help="How to say it.")]


@store.command()
def stats(url: Url, output: Said = Output.text) -> None:
    """How much a store holds."""
    from lockstitch.cli import storing

    raise typer.Exit(storing.stats(url, output.value))


@store.command("list")
def list_(url: Url, output: Said = Output.text) -> None:
    """The conversations of a store, by name.

    One in each line: when it was last written to (UTC), how many records it has, and its name.
    Names are not encrypted, so an encrypted store can be listed without its key."""
    from lockstitch.cli import storing

    raise typer.Exit(storing.list_(url, output.value))


@store.command()
def export(
    url: Url,
    file: Annotated[
        str, typer.Argument(help="Where to write; - for standard output.", metavar="FILE")
    ] = "-",
    conversation: Annotated[
        list[str] | None,
        typer.Option(help="Only this one; may be given again.", metavar="ID", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE if it exists.")] = False,
) -> None:
    """Write all that a store holds as JSONL. It is plain text, also of an encrypted store."""
    from lockstitch.cli import storing

    raise typer.Exit(storing.export(url, file, tuple(conversation or ()), force=force))


@store.command("import")
def import_(
    url: Url,
    file: Annotated[
        str, typer.Argument(help="An export; - for standard input.", metavar="FILE")
    ] = "-",
    output: Said = Output.text,
) -> None:
    """Read an export into a store. What is there already is skipped.

    Exit code 0: all of it is in the store, 1: a conversation is there with other records and was
    left as it is, 2: the export or the store could not be read."""
    from lockstitch.cli import storing

    raise typer.Exit(storing.import_(url, None if file == "-" else Path(file), output.value))


@store.command()
def migrate(url: Url, output: Said = Output.text) -> None:
    """Make a store, or bring one of an older version up to date."""
    from lockstitch.cli import storing

    raise typer.Exit(storing.migrate(url, output.value))


@store.command()
def delete(
    url: Url,
    conversation: Annotated[
        list[str] | None,
        typer.Option(help="This one; may be given again.", metavar="ID", show_default=False),
    ] = None,
    older_than: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Every one that was not written to for as many days.",
            metavar="DAYS",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    vacuum: Annotated[
        bool, typer.Option("--vacuum", help="Give the space back, which takes a while.")
    ] = False,
    output: Said = Output.text,
) -> None:
    """Delete conversations. They cannot be brought back."""
    from lockstitch.cli import storing

    if bool(conversation) == (older_than is not None):
        raise typer.BadParameter("name what to delete: --conversation ID, or --older-than DAYS.")
    which = storing.Which(tuple(conversation or ()), older_than)
    raise typer.Exit(storing.delete(url, which, output.value, yes=yes, vacuum=vacuum))


@store.command()
def key() -> None:
    """Print a new key for an encrypted store. Whoever has it can read the store; without it nobody
    can."""
    from lockstitch.cli import storing

    raise typer.Exit(storing.key())


@store.command()
def rotate(
    url: Url,
    vacuum: Annotated[
        bool,
        typer.Option("--vacuum", help="Give the space of what was sealed otherwise back."),
    ] = False,
    output: Said = Output.text,
) -> None:
    """Seal every record with the first of the keys. Those that are plain are encrypted.

    The keys are those of LOCKSTITCH_STORE_KEY_FILE or LOCKSTITCH_STORE_KEY, one in each line: the
    new one first, behind it those that were used before."""
    from lockstitch.cli import storing

    raise typer.Exit(storing.rotate(url, output.value, vacuum=vacuum))
