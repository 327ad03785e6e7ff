"""`lockstitch emulate`: run the emulator until it is stopped, then print a summary."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click

from lockstitch.cli.app import CLEAN, TROUBLE
from lockstitch.cli.streams import complain, discard
from lockstitch.core.terminal import printable

try:
    from lockstitch.emulator import Emulator, EmulatorError, Script, Settings, load
    from lockstitch.emulator.faults import COMMON, FAULTS, POINTS, Setting
    from lockstitch.emulator.record import Entry, Record
except ModuleNotFoundError as missing:
    MISSING: str | None = missing.name
else:
    MISSING = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    host: str = "127.0.0.1"
    port: int = 0
    seed: int = 0
    script: Path | None = None
    faults: tuple[str, ...] = ()
    record: Path | None = None
    key: str = ""
    pace: float = 0.0
    connection_minutes: float = 60.0
    quiet: bool = False


def run(options: Options) -> int:
    """Serve until SIGINT or SIGTERM. Returns the exit code."""
    if MISSING is not None:
        return _without_parts()
    try:
        with ExitStack() as stack:
            file = _opened(options.record, stack)
            emulator = _made(options, file)
            return asyncio.run(_serve(emulator, options))
    except EmulatorError as error:
        complain(str(error))
        return TROUBLE


def list_faults() -> int:
    """Print every fault, what it does, and its settings."""
    if MISSING is not None:
        return _without_parts()
    for kind in FAULTS.values():
        click.echo(f"{kind.name}  (triggered by {_ON[kind.strikes]})")
        click.echo(f"    {kind.does}.")
        if kind.point is not None:
            click.echo(f"    Default place: {kind.point[0]}={kind.point[1]}")
        _list_settings(kind.settings)
    click.echo("\nSettings of all faults:")
    _list_settings(COMMON)
    click.echo("\nPlace in a stream, for faults that are triggered by an event:")
    _list_settings(POINTS)
    click.echo('\nExample: --fault "cut before=response.completed how=reset"')
    return CLEAN


_ON = {"event": "an event", "request": "a request", "upgrade": "a WebSocket handshake"}


def _list_settings(settings: dict[str, Setting]) -> None:
    for name, setting in settings.items():
        choices = f": {', '.join(setting.choices)}" if setting.choices else ""
        default = f" (default {setting.default})" if setting.default not in {"", 0} else ""
        click.echo(f"    {name}=  {setting.means}{choices}{default}")


def _without_parts() -> int:
    complain(
        f"emulate needs {MISSING}, which is not installed. Run: pip install 'lockstitch[emulator]'"
    )
    return TROUBLE


def _made(options: Options, file: TextIO | None) -> Emulator:
    script = load(options.script) if options.script is not None else Script()
    settings = Settings(
        seed=options.seed,
        key=options.key,
        pace=options.pace,
        connection_seconds=options.connection_minutes * 60,
    )
    return Emulator(script=script, faults=options.faults, record=file, settings=settings)


def _opened(path: Path | None, stack: ExitStack) -> TextIO | None:
    if path is None:
        return None
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as problem:
        raise EmulatorError(
            f"Cannot write {path}: {problem.strerror}. Choose another --record FILE."
        ) from problem
    stack.callback(_close, file)
    return file


def _close(file: TextIO) -> None:
    with suppress(OSError):  # a write error was reported when it happened
        file.close()


async def _serve(emulator: Emulator, options: Options) -> int:
    await emulator.start(options.host, options.port)
    if not options.quiet:
        emulator.record.watch(_tell)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(name, stopped.set)
    _greet(emulator, options)  # last: whoever waits for this may send a signal at once
    await stopped.wait()
    await emulator.stop()
    _summarise(emulator.record, emulator)
    if emulator.record.unwritten is not None:
        complain(f"{options.record} is incomplete: {emulator.record.unwritten}.")
        return TROUBLE
    return CLEAN


def _greet(emulator: Emulator, options: Options) -> None:
    _say(f"The emulator listens on {emulator.url} (seed {options.seed}).")
    _say(f"    export OPENAI_BASE_URL={emulator.base_url} OPENAI_API_KEY=any")
    _say(f"    Recorded requests: {emulator.url}/_emulator    Stop: Ctrl-C")
    if not _is_loopback(options.host):
        click.echo(
            f"Warning: other machines can reach {printable(options.host)}"
            + (
                "."
                if options.key
                else ", and any API key is accepted. Choose one with --api-key KEY."
            ),
            err=True,
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tell(entry: Entry) -> None:
    """Print a line for each request, error response, fault and lost connection."""
    if entry.kind == "event" or (entry.kind == "frame" and entry.sent and not entry.broke):
        return
    arrow = "<-" if entry.sent else "->"
    reason = f"  {entry.broke}" if entry.broke else f"  fault: {entry.fault}" * bool(entry.fault)
    _say(f"{entry.connection:>5} {arrow} {entry.what}{reason}")


def _say(text: str) -> None:
    try:
        click.echo(printable(text))
    except OSError:  # the reader is gone (`| head`); keep serving
        discard(sys.stdout)


def _summarise(record: Record, emulator: Emulator) -> None:
    _say("")
    _say("Requests:")
    for what, times in sorted(record.requests.items()):
        _say(f"{times:>7}  {what}")
    if not record.requests:
        _say("    none")
    _summarise_part("Rules broken", dict(record.broken))
    _summarise_part("Faults triggered", dict(record.struck))
    never = [fault.text for fault in emulator.faults.unstruck()]
    if never:
        _say("Faults never triggered:")
        for text in never:
            _say(f"         {text}")
    if record.dropped:
        _say(f"The record is full: its oldest {record.dropped} entries were dropped.")


def _summarise_part(title: str, counted: dict[str, int]) -> None:
    if counted:
        _say(f"{title}:")
        for what, times in sorted(counted.items()):
            _say(f"{times:>7}  {what}")
