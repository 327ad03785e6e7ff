"""Where a session's bytes come from: a file, compressed or not, or standard input.

A source can be opened again and again: some histories need a second reading. What the bytes mean
is not known here (`formats`)."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, cast

from lockstitch.sessions.errors import CannotRead

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GZIP_LEVEL = 6
"""The level that the gzip program uses."""

LARGEST_DECOMPRESSED_BYTES: Final = 8 * 1024**3
"""No session is that large. A few megabytes of gzip or zstd can hold petabytes of zeros."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"


class Source:
    """Bytes that can be read more than once."""

    def __init__(
        self,
        path: Path,
        *,
        name: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """``progress`` is called with the number of bytes after each read from the disk."""
        self.path = path
        self.name = str(path) if name is None else name
        self._progress = progress
        self.compression = _compression(path, self.name)

    def __repr__(self) -> str:
        return f"<Source {self.name}>"

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The bytes, decompressed. Whatever fails while reading becomes `CannotRead`."""
        try:
            with self._opened() as raw:
                yield self._decompressed(raw)
        except (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError) as error:
            raise CannotRead(
                self.name,
                f"the compressed data is damaged ({error}).",
                "Decompress it with its own tool first, and check what comes out.",
            ) from error
        except OSError as error:
            raise CannotRead(self.name, _os_problem(error), _os_advice(error)) from error

    def _decompressed(self, raw: BinaryIO) -> BinaryIO:
        if self.compression == "gzip":
            return cast("BinaryIO", _Limited(gzip.GzipFile(fileobj=raw), self.name))
        if self.compression == "zstd":
            return cast("BinaryIO", _Limited(zstd.ZstdFile(raw), self.name))
        return raw

    def _opened(self) -> BinaryIO:
        if self._progress is None:
            return self.path.open("rb")
        return cast("BinaryIO", io.BufferedReader(_Counted(self.path, self._progress)))

    def head(self, size: int) -> bytes:
        """The first bytes, decompressed."""
        with self.open() as stream:
            return stream.read(size)

    def compressing(self, raw: IO[bytes]) -> BinaryIO:
        """A stream that writes into ``raw`` with this source's compression."""
        if self.compression == "gzip":
            # mtime=0: the same content always gives the same file.
            return cast(
                "BinaryIO",
                gzip.GzipFile(
                    filename="", mode="wb", compresslevel=GZIP_LEVEL, fileobj=raw, mtime=0
                ),
            )
        if self.compression == "zstd":
            return cast("BinaryIO", zstd.ZstdFile(raw, "w"))
        return cast("BinaryIO", raw)


class _Limited(io.RawIOBase):
    """What is decompressed, up to a limit."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream = stream
        self._name = name
        self._left = LARGEST_DECOMPRESSED_BYTES

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if size < 0:
            return self.readall()
        data: bytes = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            most = f"{LARGEST_DECOMPRESSED_BYTES / 1024**3:g}"
            raise CannotRead(
                self._name,
                f"is more than {most} GiB when it is decompressed.",
                "No session is that large. If this one is, decompress it first.",
            )
        return data


class _Counted(io.FileIO):
    """A file that reports how much is read of it."""

    def __init__(self, path: Path, progress: Callable[[int], None]) -> None:
        super().__init__(path)
        self._progress = progress

    def readinto(self, buffer: Any, /) -> int | None:
        count = super().readinto(buffer)
        self._progress(count or 0)
        return count

    def readall(self) -> bytes:
        data = super().readall()
        self._progress(len(data))
        return data


@contextlib.contextmanager
def standard_input() -> Iterator[Source]:
    """Standard input as a source, for as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="lockstitch-") as folder:
        path = Path(folder, "stdin")
        try:
            with path.open("wb") as spool:
                shutil.copyfileobj(sys.stdin.buffer, spool)
        except OSError as error:
            problem = f"cannot be read, or kept in {folder} meanwhile: {error.strerror}."
            raise CannotRead("<stdin>", problem) from error
        yield Source(path, name="<stdin>")


def companions(path: Path) -> list[Path]:
    """The files that SQLite keeps beside a database. They are part of it: a `-wal` that is left
    beside another database of the same name would be written into that one."""
    names = [path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal")]
    return [name for name in names if name.exists()]


def stamp(path: Path) -> list[tuple[str, int, int]]:
    """What a writer of the file cannot help changing."""
    files = [path, *(one for one in companions(path) if not one.name.endswith("-shm"))]
    stats = [(file.name, file.stat()) for file in files]
    return [(name, one.st_size, one.st_mtime_ns) for name, one in stats if one.st_size]


def _is_made_by_the_kernel(path: Path) -> bool:
    """Is this one of the files, as under /proc, that say to be regular and empty, and give what
    the kernel makes while it is read? Some of them wait for that, and some never end."""
    if path.stat().st_size:
        return False
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        # A file that was begun just now has a size by the time that it gives something.
        return bool(os.read(file, 1)) and os.fstat(file).st_size == 0
    except BlockingIOError:
        return True
    finally:
        os.close(file)


def _compression(path: Path, name: str) -> str | None:
    """Told from the first bytes: a name can lie."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise CannotRead(name, "is a directory.", "Name a file.")
        if not stat.S_ISREG(mode) or _is_made_by_the_kernel(path):
            raise CannotRead(name, "is not a regular file.", "Pipe it in, and name it - instead.")
        with path.open("rb") as raw:
            magic = raw.read(4)
    except OSError as error:
        raise CannotRead(name, _os_problem(error), _os_advice(error)) from error
    if magic.startswith(_GZIP_MAGIC):
        return "gzip"
    return "zstd" if magic == _ZSTD_MAGIC else None


def _os_problem(error: OSError) -> str:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"cannot be read: {reason}."


def _os_advice(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "Run as a user who may read it, or copy it first."
    if isinstance(error, FileNotFoundError):
        return "Check the path."
    return ""
