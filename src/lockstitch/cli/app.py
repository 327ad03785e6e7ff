"""Commands and their options. What they do is in a module for each, imported when it runs:
`lockstitch --help` must not wait for readers of session files."""

from __future__ import annotations

import errno
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from lockstitch.cli.runner_commands import chat, demo
from lockstitch.cli.serve_commands import key, serve
from lockstitch.cli.store_commands import store
from lockstitch.cli.streams import complain, let_go
from lockstitch.core.errors import LockstitchError

CLEAN, FINDINGS, TROUBLE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: nothing wrong, something found, something could not be read or done, Ctrl-C."""

app = typer.Typer(
    name="lockstitch",
    help="Keeps tool-calling conversations whole: every call has exactly one output.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(store)


class Output(StrEnum):
    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"


class DialectName(StrEnum):
    responses = "responses"
    chat = "chat"
    messages = "messages"
    realtime = "realtime"


class Keep(StrEnum):
    first = "first"
    last = "last"


Dialect = Annotated[
    DialectName | None,
    typer.Option(help="How items are written, where the file does not tell.", show_default=False),
]
Anchored = Annotated[
    bool,
    typer.Option(
        "--anchored",
        help="The items go on from an anchor (previous_response_id, a conversation): an output"
        " without its call is right.",
    ),
]


@app.command()
def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files, folders, store:URL, or - for standard input.",
            metavar="PATH",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Output, typer.Option(help="How to say it.")] = Output.text,
    select: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these codes, with commas between them, or codes that begin so.",
            metavar="CODES",
            show_default=False,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            help="Not these codes, or codes that begin so.", metavar="CODES", show_default=False
        ),
    ] = None,
    statistics: Annotated[bool, typer.Option("--statistics", help="Count each code.")] = False,
    explain: Annotated[
        str | None, typer.Option(help="Explain a code, and check nothing.", metavar="CODE")
    ] = None,
    dialect: Dialect = None,
    anchored: Anchored = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes for many files; default: all cores.")
    ] = None,
) -> None:
    """Find broken pairs, torn lines and lost headers in session files.

    Exit code 0: clean, 1: something was found, 2: something could not be read."""
    if explain is not None:
        from lockstitch.cli.explaining import explain as show

        raise typer.Exit(show(explain))
    if not paths:
        raise typer.BadParameter("name a file, a folder, store:URL, or - for standard input.")
    from lockstitch.cli.checking import Options, run

    options = Options(
        output=output.value,
        select=tuple(_codes(select)),
        ignore=tuple(_codes(ignore)),
        statistics=statistics,
        dialect=dialect.value if dialect else None,
        anchored=anchored,
        jobs=jobs,
    )
    raise typer.Exit(run(paths, options))


@app.command()
def mend(
    path: Annotated[
        str, typer.Argument(help="A file, or - from standard input to output.", metavar="FILE")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="Where to write; default: FILE.mended beside it.", metavar="OUT"
        ),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Replace the file; a backup is kept beside it.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show what would change; write nothing.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite OUT, or REPORT, if it exists.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Also write what was done, with all that was removed, as JSON; - is standard"
            " output, and the only place with --dry-run.",
            metavar="REPORT",
        ),
    ] = None,
    keep: Annotated[
        Keep, typer.Option(help="Which of two outputs of one call stays.")
    ] = Keep.first,
    settle: Annotated[
        bool, typer.Option(help="Give an open call an output that says how it ended.")
    ] = True,
    drop_orphans: Annotated[bool, typer.Option(help="Remove outputs that have no call.")] = True,
    move_outputs: Annotated[
        bool, typer.Option(help="Move outputs to where their call wants them.")
    ] = True,
    dialect: Dialect = None,
    anchored: Anchored = False,
) -> None:
    """Repair a session file so that it can be resumed. Says what was done and why.

    Exit code 0: it is whole now (or was), 1: something is left, 2: it could not be done."""
    from lockstitch.cli.mending import Options, run
    from lockstitch.core.mending import Policy

    if sum((in_place, out is not None, diff or dry_run)) > 1 and (in_place or diff or dry_run):
        raise typer.BadParameter("choose one of -o, --in-place, and --diff or --dry-run.")
    policy = Policy(
        settle=settle,
        drop_orphans=drop_orphans,
        move_outputs=move_outputs,
        keep="last" if keep is Keep.last else "first",
    )
    options = Options(
        out=out,
        in_place=in_place,
        diff=diff,
        dry_run=dry_run,
        force=force,
        report=report,
        policy=policy,
        dialect=dialect.value if dialect else None,
        anchored=anchored,
    )
    raise typer.Exit(run(path, options))


@app.command()
def emulate(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")
    ] = 8765,
    seed: Annotated[int, typer.Option(help="What ids follow from.")] = 0,
    script: Annotated[
        Path | None,
        typer.Option(
            help="What the model says: a .yaml, .json or .py file.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            help='A fault, such as "status code=429 times=2"; may be given again.',
            metavar="FAULT",
            show_default=False,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            help="Write all that goes over the wire here, as JSONL.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    faults: Annotated[
        bool, typer.Option("--faults", help="List the faults, and what each does.")
    ] = False,
    api_key: Annotated[
        str,
        typer.Option(
            help="The only key that is taken; default: any.",
            envvar="LOCKSTITCH_EMULATOR_KEY",
            show_default=False,
            show_envvar=True,
        ),
    ] = "",
    pace: Annotated[
        float, typer.Option(min=0, help="Seconds between two events of a stream.")
    ] = 0.0,
    connection_minutes: Annotated[
        float, typer.Option(min=0.01, help="How long a WebSocket connection lives.")
    ] = 60.0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line for each request.")] = False,
) -> None:
    """Be a strict provider on loopback that breaks on command.

    Speaks OpenAI's Responses (HTTP, SSE, WebSocket), Conversations, Realtime and Chat Completions,
    and Anthropic's Messages. Ctrl-C stops it and tells what happened."""
    from lockstitch.cli.emulating import Options, list_faults, run

    if faults:
        raise typer.Exit(list_faults())
    options = Options(
        host=host,
        port=port,
        seed=seed,
        script=script,
        faults=tuple(fault or ()),
        record=record,
        key=api_key,
        pace=pace,
        connection_minutes=connection_minutes,
        quiet=quiet,
    )
    raise typer.Exit(run(options))


app.command()(serve)
app.command()(key)
app.command()(chat)
app.command()(demo)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        from lockstitch import __version__

        typer.echo(f"lockstitch {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _codes(given: list[str] | None) -> list[str]:
    return [code.strip().upper() for one in given or () for code in one.split(",") if code.strip()]


def run(arguments: list[str] | None = None) -> int:
    """Run a command; errors that are meant for people are printed, not raised."""
    try:
        result: Any = app(arguments, standalone_mode=False)
        sys.stdout.flush()  # here, where it can still be told that nothing could be written
    except LockstitchError as error:
        complain(str(error))
        return TROUBLE
    except typer.Abort:
        return INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Whoever read our output has seen enough (`| head`). Typer makes a SystemExit of that, with
        # the exit code of findings.
        let_go(sys.stdout)
        return TROUBLE
    except Exception as error:
        shown = getattr(error, "show", None)
        if shown is not None:  # a mistake in the command line, which typer explains
            try:
                shown()
            except OSError:
                let_go(sys.stderr)
            return int(getattr(error, "exit_code", TROUBLE))
        if os.environ.get("LOCKSTITCH_DEBUG"):
            raise
        complain(_trouble(error))
        return TROUBLE
    return result if isinstance(result, int) else CLEAN


def _trouble(error: Exception) -> str:
    """What to say of an error that nobody saw coming."""
    if isinstance(error, OSError):
        if error.filename is not None:
            return f"{os.fsdecode(error.filename)}: {error.strerror}."
        if error.errno in _NOT_WRITTEN:
            let_go(sys.stdout)
            return f"Standard output cannot be written: {error.strerror}."
    return own_fault(error)


def own_fault(error: Exception) -> str:
    """What to say of an error that is ours."""
    return (
        f"a fault of its own, {type(error).__name__}: {error}. Nothing was changed. Please report"
        " it, with what LOCKSTITCH_DEBUG=1 shows."
    )


_NOT_WRITTEN: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""What a write can end in. Whoever writes a file tells which; `print` alone does not."""
