"""The options of `lockstitch check` and `lockstitch mend`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from lockstitch.cli.options import (
    ANCHORED,
    COLOR,
    DIALECT,
    FILE_OR_DASH,
    Command,
    Integer,
    option,
)

_PATHS: Final = click.argument("paths", nargs=-1, type=FILE_OR_DASH, metavar="[PATH]...")
_EXCLUDE: Final = option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Skip files and folders that match a glob pattern; repeatable.",
)
_CONFIG: Final = option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Settings file. Default: lockstitch.toml, or [tool.lockstitch] in pyproject.toml, in this"
    " folder or above.",
)
_STDIN_FILENAME: Final = option(
    "--stdin-filename",
    metavar="NAME",
    help="File name to use for standard input, in reports and for settings.",
)


@click.command(
    cls=Command,
    examples=(
        "lockstitch check ~/.codex/sessions",
        "lockstitch check session.jsonl --fix",
        "lockstitch check --explain LS001",
    ),
)
@_PATHS
@option("--fix", is_flag=True, help="Repair files with problems in place; keeps backups.")
@option(
    "--output",
    type=click.Choice(["text", "json", "sarif", "github"]),
    default="text",
    metavar="FORMAT",
    help="Output format: text (default), json, sarif or github.",
)
@option(
    "--select",
    multiple=True,
    metavar="CODES",
    help="Comma-separated rule codes or prefixes to enable.",
)
@option(
    "--ignore",
    multiple=True,
    metavar="CODES",
    help="Comma-separated rule codes or prefixes to disable.",
)
@_EXCLUDE
@option("--statistics", is_flag=True, help="Show how often each rule was broken.")
@option("--explain", metavar="CODE", help="Explain a rule and exit.")
@option("--watch", is_flag=True, help="Keep running and check files again when they change.")
@option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Report only problems that are not in this baseline.",
)
@option(
    "--write-baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Save the current problems as a baseline and exit.",
)
@option("--exit-zero", is_flag=True, help="Exit with 0 even if problems were found.")
@option("-q", "--quiet", is_flag=True, help="Print problems and errors only.")
@COLOR
@_CONFIG
@_STDIN_FILENAME
@DIALECT
@ANCHORED
@option("--jobs", type=Integer(min=1), help="Number of processes. Default: one for each core.")
def check(
    paths: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    explain: str | None,
    watch: bool,
    write_baseline: Path | None,
    **options: Any,
) -> int:
    """Find broken tool calls in session files.

    Reports calls without outputs, outputs without calls, torn lines and more. A file is clean only
    if every item in it was understood: if something looks like a tool call or result and cannot be
    read as one, check exits with 2 and names it. PATH is a file, a folder, store:URL, or - for
    standard input. Default: the current folder.

    Exit codes: 0 no problems, 1 problems found, 2 something could not be read."""
    if explain is not None:
        from lockstitch.cli.explaining import explain as show

        return show(explain)
    given = list(paths) or ["."]
    if watch and (options["fix"] or write_baseline or options["output"] != "text"):
        raise click.UsageError(
            "--watch cannot be combined with --fix, --write-baseline or --output: files are still"
            " being written while they are watched."
        )
    if options["fix"] and write_baseline:
        raise click.UsageError(
            "--fix cannot be combined with --write-baseline: repair the files first, then save the"
            " problems that are left."
        )
    if watch or options["fix"]:
        _expect_files("--watch" if watch else "--fix", given)
    from lockstitch.cli import checking

    made = checking.Options(
        select=_codes(select) if select else None,
        ignore=_codes(ignore) if ignore else None,
        **options,
    )
    if watch:
        from lockstitch.cli.watcher import watch as keep_checking

        return keep_checking(given, made)
    if write_baseline is not None:
        return checking.write_baseline(given, made, write_baseline)
    return checking.run(given, made)


@click.command(
    cls=Command,
    examples=(
        "lockstitch mend --diff session.jsonl",
        "lockstitch mend --in-place ~/.codex/sessions",
    ),
)
@_PATHS
@option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write the repaired copy of a single file. Default: FILE.mended.",
)
@option("--in-place", is_flag=True, help="Replace each file; keeps a backup next to it.")
@option("--diff", is_flag=True, help="Show what would change as a diff; write nothing.")
@option("--dry-run", is_flag=True, help="Say what would change; write nothing.")
@option("--force", is_flag=True, help="Overwrite an existing copy or report.")
@option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write every change and everything removed as JSON; - for standard output.",
)
@option(
    "--keep",
    type=click.Choice(["first", "last"]),
    default="first",
    metavar="WHICH",
    help="Output to keep if a call has several: first (default) or last.",
)
@option("--settle/--no-settle", default=True, help="Add an output to calls without one.")
@option("--drop-orphans/--no-drop-orphans", default=True, help="Remove outputs without a call.")
@option(
    "--drop-incomplete/--no-drop-incomplete",
    default=True,
    help="Remove calls that were cut off before their arguments were complete.",
)
@option(
    "--move-outputs/--no-move-outputs",
    default=True,
    help="Move outputs to where the provider expects them.",
)
@option("-q", "--quiet", is_flag=True, help="Print errors only.")
@COLOR
@_EXCLUDE
@_CONFIG
@_STDIN_FILENAME
@DIALECT
@ANCHORED
def mend(
    paths: tuple[str, ...],
    settle: bool,
    drop_orphans: bool,
    drop_incomplete: bool,
    move_outputs: bool,
    keep: str,
    **options: Any,
) -> int:
    """Repair session files so that they can be resumed.

    Writes a repaired copy, FILE.mended, and says what was changed and why. PATH is a file, a
    folder, or - to read standard input and write standard output. Stop the program that writes
    the session first.

    Exit codes: 0 valid now, 1 problems left that the options keep, 2 a file could not be
    repaired."""
    if not paths:
        raise click.UsageError("Name a file, a folder, or - for standard input.")
    writes_nothing = options["diff"] or options["dry_run"]
    if sum((options["in_place"], options["out"] is not None, writes_nothing)) > 1:
        raise click.UsageError("Choose one of -o, --in-place, and --diff or --dry-run.")
    from lockstitch.cli.mending import Options, run
    from lockstitch.core.mending import Policy

    policy = Policy(
        settle=settle,
        drop_orphans=drop_orphans,
        drop_incomplete=drop_incomplete,
        move_outputs=move_outputs,
        keep="last" if keep == "last" else "first",
    )
    return run(list(paths), Options(policy=policy, **options))


def _expect_files(name: str, given: list[str]) -> None:
    """Raises `click.UsageError` if a path is not a file or a folder. ``name``: the option that
    needs them."""
    if any(path.startswith("store:") for path in given):
        raise click.UsageError(f"{name} works on files and folders, not on stores.")
    if "-" in given:
        hint = " To repair it: lockstitch mend -" if name == "--fix" else ""
        raise click.UsageError(f"{name} works on files and folders, not on standard input.{hint}")


def _codes(given: tuple[str, ...]) -> tuple[str, ...]:
    codes = (code.strip().upper() for one in given for code in one.split(","))
    return tuple(code for code in codes if code)
