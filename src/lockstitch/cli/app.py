"""The `lockstitch` command: its sub-commands, its help, and how errors reach people.

Options are declared in the `*_commands` modules; what a command does is in a module of its own,
imported when it runs, so that `lockstitch --help` does not wait for readers of session files."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, Final

import click

from lockstitch.cli.check_commands import check, mend
from lockstitch.cli.options import Group
from lockstitch.cli.runner_commands import chat, demo
from lockstitch.cli.serve_commands import emulate, key, serve
from lockstitch.cli.store_commands import store
from lockstitch.cli.streams import complain, discard
from lockstitch.core.errors import LockstitchError
from lockstitch.core.terminal import printable_lines

CLEAN, FINDINGS, TROUBLE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: nothing wrong, something found, something could not be read or done, Ctrl-C."""

SHELLS: Final = ("bash", "zsh", "fish")
"""The shells click can complete for."""


def _print_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from lockstitch import __version__

        click.echo(f"lockstitch {__version__}")
        context.exit()


@click.group(
    "lockstitch",
    cls=Group,
    sections={
        "Session files": ("check", "mend"),
        "Gateway and stores": ("serve", "key", "store"),
        "Agents and tests": ("emulate", "chat", "demo"),
        "Shell": ("completion",),
    },
    examples=("lockstitch check ~/.codex/sessions",),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version and exit.",
)
def app() -> None:
    """Make sure that every tool call in an LLM conversation has exactly one result."""


for _command in (check, mend, serve, key, store, emulate, chat, demo):
    app.add_command(_command)


@app.command(
    examples=(
        'eval "$(lockstitch completion bash)"',
        "lockstitch completion fish > ~/.config/fish/completions/lockstitch.fish",
    )
)
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
def completion(shell: str) -> int:
    """Print the shell completion script.

    SHELL is bash, zsh or fish. Load the script in your shell's start-up file."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "click completes for every shell in SHELLS"
    click.echo(kind(app, {}, "lockstitch", COMPLETION_VARIABLE).source())
    return CLEAN


COMPLETION_VARIABLE: Final = "_LOCKSTITCH_COMPLETE"
"""Where a completion script tells the program what to complete."""


def run(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code. Errors that are meant for people are printed."""
    try:
        result: Any = app.main(
            arguments,
            prog_name="lockstitch",
            complete_var=COMPLETION_VARIABLE,
            standalone_mode=False,
        )
        sys.stdout.flush()  # now, while a failed write can still be reported
    except LockstitchError as error:
        complain(*error.lines)
        return TROUBLE
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.ClickException as error:  # a mistake in the command line
        # The message may quote an argument, and so a file name that a shell put there.
        shown = io.StringIO()
        error.show(shown)
        try:
            click.echo(printable_lines(shown.getvalue()), err=True, nl=False)
        except OSError:
            discard(sys.stderr)
        return error.exit_code
    except (BrokenPipeError, SystemExit) as ended:
        if isinstance(ended, SystemExit) and not ended.code:
            return CLEAN  # click ends the completion of a shell like this
        # The reader of our output has seen enough (`| head`). Click turns that into a SystemExit.
        discard(sys.stdout)
        return TROUBLE
    except Exception as error:
        if os.environ.get("LOCKSTITCH_DEBUG"):
            raise
        complain(_trouble(error))
        return TROUBLE
    return result if isinstance(result, int) else CLEAN


def _trouble(error: Exception) -> str:
    """The message for an error that no command expected."""
    if isinstance(error, OSError):
        if error.filename is not None:
            return f"{os.fsdecode(error.filename)}: {error.strerror}."
        if error.errno in _WRITE_FAILURES:
            discard(sys.stdout)
            return f"Standard output cannot be written: {error.strerror}."
    return internal_error(error)


def internal_error(error: Exception) -> str:
    """The message for a bug in Lockstitch."""
    return (
        f"internal error: {type(error).__name__}: {error}. Nothing was changed. Please report it"
        " with the traceback that LOCKSTITCH_DEBUG=1 prints."
    )


_WRITE_FAILURES: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
)
"""How a write can fail. A file's writer says which file; `print` alone does not."""
