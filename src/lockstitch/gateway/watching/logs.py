"""What the gateway says about itself, to standard error: one line for each event, as JSON, or for
people on a terminal.

Never bodies, keys or headers. Whatever looks like a key is hidden at the very end all the same."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Final, TextIO

import msgspec
import structlog
from msgspec import Struct

from lockstitch.core.terminal import printable
from lockstitch.gateway.config.model import LogFormat, LogSettings
from lockstitch.gateway.config.secrets import redactor

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
SERVER_ERROR: Final = 500
_least = logging.INFO
"""What is said at all, from this level on."""

DEEPEST: Final = 8
"""A fact that is nested deeper is not worth reading in a log line."""


class RequestEnded(Struct, frozen=True, kw_only=True):
    """All that is logged about one request."""

    request_id: str
    method: str
    path: str
    """A query is left out: it may hold what is nobody's business."""
    status: int
    milliseconds: float
    key: str | None = None
    """The name of the key."""
    upstream: str | None = None
    events: int = 0
    notes: Sequence[str] = ()
    """What was out of the ordinary: replayed, retried, guarded."""


def configure(
    settings: LogSettings, *, hide: Iterable[str] = (), stream: TextIO | None = None
) -> None:
    """Log like this from now on. ``hide``: secrets that must not be seen, whatever they look
    like."""
    finishing: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.format_exc_info,
        _Hiding(hide),
        _WRITERS[settings.format or _format_for(stream or sys.stderr)],
    ]
    # Its only word is a warning with all subprotocols that a client offers, and one may be a key.
    logging.getLogger("aiohttp.websocket").setLevel(logging.ERROR)
    global _least  # noqa: PLW0603  (as structlog's own configuration, which is one for all)
    _least = _LEVELS[settings.level]
    structlog.configure(
        processors=finishing,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.level]),
        logger_factory=lambda *_: _Lines(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.getLogger().addHandler(_libraries)


def _format_for(stream: TextIO | None) -> LogFormat:
    return "text" if stream is not None and stream.isatty() else "json"


def request_ended(ended: RequestEnded) -> None:
    """A request is over: one line."""
    if ended.status < SERVER_ERROR and _least > logging.INFO:
        return  # a line that nobody wants need not be made
    facts: dict[str, Any] = {
        "request_id": ended.request_id,
        "method": ended.method,
        "path": ended.path.partition("?")[0],
        "status": ended.status,
        "milliseconds": round(ended.milliseconds, 1),
    }
    if ended.key is not None:
        facts["key"] = ended.key
    if ended.upstream is not None:
        facts["upstream"] = ended.upstream
    if ended.events:
        facts["events"] = ended.events
    if ended.notes:
        facts["notes"] = list(ended.notes)
    logger = structlog.get_logger()
    (logger.warning if ended.status >= SERVER_ERROR else logger.info)("request", **facts)


def detail(event: str, **facts: object) -> None:
    """Something that only matters to whoever looks for a mistake."""
    structlog.get_logger().debug(event, **facts)


def happened(event: str, **facts: object) -> None:
    """Something that is as it should be."""
    structlog.get_logger().info(event, **facts)


def careful(event: str, **facts: object) -> None:
    """Something that went wrong and was dealt with."""
    structlog.get_logger().warning(event, **facts)


def went_wrong(event: str, error: BaseException | None = None, **facts: object) -> None:
    """Something that went wrong; with the error, if it is a mistake of our own."""
    structlog.get_logger().error(event, exc_info=error, **facts)


class _Lines:
    """Writes lines. A reader of the log that is gone must not stop the gateway."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        if self._stream is None:  # a process without standard error
            return
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except (OSError, ValueError):
            pass

    debug = info = warning = error = msg


class _Libraries(logging.Handler):
    """What aiohttp, asyncio and others say is a line like any other, and holds no key either."""

    def emit(self, record: logging.LogRecord) -> None:
        said = structlog.get_logger()
        say = said.error if record.levelno >= logging.ERROR else said.warning
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # its words do not fit what stands in them
            message = str(record.msg)
        say(message, logger=record.name, exc_info=record.exc_info)


_libraries: Final = _Libraries(logging.WARNING)


class _Hiding:
    """Hides what looks like a key, in every text of a line, wherever it is."""

    def __init__(self, known: Iterable[str]) -> None:
        self._redact: Callable[[str], str] = redactor(known)

    def __call__(
        self, logger: Any, method: str, line: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        return {self._redact(str(name)): self._hidden(fact, DEEPEST) for name, fact in line.items()}

    def _hidden(self, fact: Any, depth: int) -> Any:
        match fact:
            case str():
                return self._redact(fact)
            case None | bool() | int() | float():
                return fact
            case Mapping() if depth:
                return {
                    self._redact(str(name)): self._hidden(one, depth - 1)
                    for name, one in fact.items()
                }
            case list() | tuple() | set() | frozenset() if depth:
                return [self._hidden(one, depth - 1) for one in fact]
            case bytes() | bytearray() | memoryview():
                return f"{len(fact)} bytes"
            case _:
                return self._redact(str(fact))


_encode: Final = msgspec.json.Encoder(enc_hook=str).encode


def _line_of_json(logger: Any, method: str, line: MutableMapping[str, Any]) -> str:
    first = {name: line.pop(name) for name in ("time", "level", "event") if name in line}
    try:
        return _ascii_escapes(_encode(first | dict(line)).decode())
    except (UnicodeEncodeError, ValueError):
        # A lone surrogate, as a header that is not UTF-8 has them; or a number beyond 64 bits.
        return _encode({name: ascii(fact) for name, fact in (first | dict(line)).items()}).decode()


def _ascii_escapes(text: str) -> str:
    """JSON that means the same, without the characters that a terminal obeys or cannot show. JSON
    itself escapes only those below U+0020."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def _line_of_text(logger: Any, method: str, line: MutableMapping[str, Any]) -> str:
    head = " ".join(str(line.pop(name, "")) for name in ("time", "level", "event"))
    trace = line.pop("exception", None)
    facts = " ".join(f"{name}={_word(fact)}" for name, fact in line.items())
    return "\n".join([f"{head}  {facts}".rstrip(), *_indented(trace)])


def _indented(trace: str | None) -> list[str]:
    # What an error says may come from outside, too, and moves no cursor on a terminal.
    lines = [] if trace is None else trace.split("\n")
    return [f"    {printable(one)}" for one in lines]


_WRITERS: Final[dict[LogFormat, Callable[[Any, str, MutableMapping[str, Any]], str]]] = {
    "json": _line_of_json,
    "text": _line_of_text,
}


def _word(fact: object) -> str:
    if isinstance(fact, list):
        return ",".join(_word(one) for one in fact)
    said = str(fact)
    # A text from outside must not be able to look like a line of its own.
    return said if said.isprintable() and " " not in said and said else ascii(said)
