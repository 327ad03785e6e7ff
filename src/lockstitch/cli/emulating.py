"""`lockstitch emulate`: runs the emulator until it is stopped, and tells what happened."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import typer

from lockstitch.cli.app import CLEAN, TROUBLE
from lockstitch.cli.streams import complain, let_go

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
    """Serve until SIGINT or SIGTERM; the exit code."""
    if MISSING is not None:
        return _without_parts()
    try:
        with ExitStack() as stack:
            file = _opened(options.record, stack)
            emulator = _made(options, file)
            return asyncio.run(_serve(emulator, options))
    except EmulatorError as error:
        typer.echo(f"lockstitch: {error}", err=True)
        return TROUBLE


def list_faults() -> int:
    """Every fault, what it does, and its settings."""
    if MISSING is not None:
        return _without_parts()
    for kind in FAULTS.values():
        typer.echo(f"{kind.name}  (strikes {_ON[kind.strikes]})")
        typer.echo(f"    {kind.does}.")
        if kind.point is not None:
            typer.echo(f"    Where, if not said: {kind.point[0]}={kind.point[1]}")
        _list_settings(kind.settings)
    typer.echo("\nSettings of every fault:")
    _list_settings(COMMON)
    typer.echo("\nWhere in a stream, for faults that strike an event:")
    _list_settings(POINTS)
    typer.echo('\nFor example: --fault "cut after=response.output_item.done nth=2 how=reset"')
    return CLEAN


_ON = {"event": "an event", "request": "a request", "upgrade": "a WebSocket handshake"}


def _list_settings(settings: dict[str, Setting]) -> None:
    for name, setting in settings.items():
        choices = f": {', '.join(setting.choices)}" if setting.choices else ""
        default = f" (default {setting.default})" if setting.default not in {"", 0} else ""
        typer.echo(f"    {name}=  {setting.means}{choices}{default}")


def _without_parts() -> int:
    typer.echo(
        f"lockstitch: emulate needs {MISSING}, which is not installed."
        " Run: pip install 'lockstitch[emulator]'",
        err=True,
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
    with suppress(OSError):  # what could not be written was told when it happened
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
    _greet(emulator, options)  # whoever waited for this may stop it at once
    await stopped.wait()
    await emulator.stop()
    _summarise(emulator.record, emulator)
    if emulator.record.unwritten is not None:
        complain(f"{options.record}: not all of the record is in it: {emulator.record.unwritten}.")
        return TROUBLE
    return CLEAN


def _greet(emulator: Emulator, options: Options) -> None:
    _say(f"A strict provider listens on {emulator.url} (seed {options.seed}).")
    _say(f"    export OPENAI_BASE_URL={emulator.base_url} OPENAI_API_KEY=any")
    _say(f"    What happened: {emulator.url}/_emulator    Stop: Ctrl-C")
    if not _is_loopback(options.host):
        typer.echo(
            f"Careful: {options.host} can be reached from other machines"
            + ("." if options.key else ", and any key is taken (--api-key KEY)."),
            err=True,
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tell(entry: Entry) -> None:
    """One line for what matters: requests, refusals, faults, lost connections."""
    if entry.kind == "event" or (entry.kind == "frame" and entry.sent and not entry.broke):
        return
    arrow = "<-" if entry.sent else "->"
    reason = f"  {entry.broke}" if entry.broke else f"  fault: {entry.fault}" * bool(entry.fault)
    _say(f"{entry.connection:>5} {arrow} {entry.what}{reason}")


def _say(text: str) -> None:
    try:
        typer.echo(text)
    except OSError:  # nobody looks any more (`| head`); clients are answered all the same
        let_go(sys.stdout)


def _summarise(record: Record, emulator: Emulator) -> None:
    _say("\nWhat was asked:")
    for what, times in sorted(record.requests.items()):
        _say(f"{times:>7}  {what}")
    if not record.requests:
        _say("    nothing")
    _summarise_part("Rules broken", dict(record.broken))
    _summarise_part("Faults struck", dict(record.struck))
    never = [fault.text for fault in emulator.faults.unstruck()]
    if never:
        _say("Faults that never struck:")
        for text in never:
            _say(f"         {text}")
    if record.dropped:
        _say(f"The oldest {record.dropped} entries of the record were dropped.")


def _summarise_part(title: str, counted: dict[str, int]) -> None:
    if counted:
        _say(f"{title}:")
        for what, times in sorted(counted.items()):
            _say(f"{times:>7}  {what}")
