"""Which format is this file? Told from its first bytes and records, never from its name."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from lockstitch.dialects import signs
from lockstitch.dialects.base import Dialect, text_of
from lockstitch.dialects.detection import by_name, sign
from lockstitch.sessions.bodies import RequestBodies, list_path
from lockstitch.sessions.claude_code import ClaudeTranscript
from lockstitch.sessions.codex import CodexRollout
from lockstitch.sessions.codex_records import RECORD_TYPES
from lockstitch.sessions.documents import JsonDocument, elements
from lockstitch.sessions.errors import CannotRead, EmptyFile, NotASession
from lockstitch.sessions.lines import BYTE_ORDER_MARK, decoded, numbered_lines
from lockstitch.sessions.model import Format
from lockstitch.sessions.opencode_files import (
    OpencodeExport,
    OpencodeStoredFile,
    holds_messages,
    is_message,
    is_stored,
    stored_record,
)
from lockstitch.sessions.pi import PiSession
from lockstitch.sessions.plain_lines import PlainLines
from lockstitch.sessions.source import Source

HEAD_BYTES = 1 << 16
LOOK_AT_LINES = 200
"""A torn head must not hide what a file is; so many lines without a sign are another kind."""

LOOK_AT_BYTES = 1 << 24
LOOK_AT_LEVELS = 12
"""How much of a file of an unknown format is searched for calls, and how deep."""

KNOWN_FORMATS: Final = (
    "sessions of Codex, Claude Code, pi, OpenClaw, opencode, the OpenAI Agents SDK, LangGraph and"
    " LiveKit; JSON and JSONL of OpenAI, Anthropic, Gemini, Bedrock, LangChain, Pydantic AI and"
    " Vercel AI SDK messages, and of request bodies"
)

_SQLITE: Final = b"SQLite format 3\x00"
_OTHER_ENCODINGS: Final = {
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\x00\x00\xfe\xff": "UTF-32",
}
_OPENCODE_FIELD: Final = b'"sessionID"'
_CLAUDE_TYPES: Final = frozenset(
    {"user", "assistant", "system", "summary", "file-history-snapshot", "queue-operation"}
)


def detect_format(source: Source, dialect: str | None = None) -> Format:
    """The format of a file; raises `CannotRead` if it is none that we know."""
    chosen = by_name(dialect) if dialect is not None else None
    head = source.head(HEAD_BYTES)
    if head.startswith(_SQLITE):
        return _database(source, chosen)
    _refuse(head, source.name)
    text = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if text.startswith(b"["):
        return _list_of_items(source, chosen)
    found = _by_lines(source, chosen)
    if found is not None:
        return found
    if text.startswith(b"{"):
        if _OPENCODE_FIELD in head:
            if stored_record(source) is not None:
                return OpencodeStoredFile()
            return _document(source, chosen)
        return JsonDocument(chosen)
    raise NotASession(
        source.name,
        "is not a session: no line of it is a JSON record.",
        f"Known formats: {KNOWN_FORMATS}.",
    )


def sign_of_calls(source: Source) -> str | None:
    """What makes a file of an unknown format look like a history with tool calls. Looks at its
    first `LOOK_AT_BYTES`, or at the first rows of each table of a database."""
    head = source.head(LOOK_AT_BYTES).removeprefix(BYTE_ORDER_MARK)
    values = _values_in_rows(source) if head.startswith(_SQLITE) else _values_in_text(head)
    found = (
        signs.sign_within(value, level=LOOK_AT_LEVELS, sign=signs.certain_sign_of)
        for value in values
    )
    return next((sign for sign in found if sign is not None), None)


def _values_in_text(text: bytes) -> Iterator[Any]:
    """A document, or the records of its lines."""
    try:
        yield decoded(text)
    except (ValueError, RecursionError):
        for _, line in numbered_lines(io.BytesIO(text), ""):
            with suppress(ValueError, RecursionError):
                yield decoded(line)


def _values_in_rows(source: Source) -> Iterator[Any]:
    """What the first rows of each table hold as JSON."""
    from lockstitch.sessions.agents_sqlite_opening import opened  # noqa: PLC0415
    from lockstitch.sessions.agents_sqlite_tables import (  # noqa: PLC0415
        is_store,
        quoted,
        table_names,
    )

    with opened(source) as connection:
        if is_store(connection):
            return  # `lockstitch check store:` reads it
        for table in table_names(connection):
            for row in connection.execute(f"SELECT * FROM {quoted(table)} LIMIT {LOOK_AT_LINES}"):
                for value in row:
                    if isinstance(value, str | bytes) and value[:1] in ("{", "[", b"{", b"["):
                        with suppress(ValueError, RecursionError):
                            yield decoded(value)


def _database(source: Source, dialect: Dialect | None) -> Format:
    # Only now: sqlite3 is slow to import, and most sessions are not databases.
    from lockstitch.sessions.agents_sqlite import AgentsDatabase  # noqa: PLC0415
    from lockstitch.sessions.agents_sqlite_opening import opened  # noqa: PLC0415
    from lockstitch.sessions.langgraph import LangGraphDatabase, is_langgraph  # noqa: PLC0415
    from lockstitch.sessions.opencode import OpencodeDatabase, holds_opencode  # noqa: PLC0415

    if holds_opencode(source):
        return OpencodeDatabase()
    with opened(source) as connection:
        langgraph = is_langgraph(connection)
    return LangGraphDatabase(dialect) if langgraph else AgentsDatabase(dialect)


def _refuse(head: bytes, name: str) -> None:
    """What cannot be a session at all."""
    if len(head) < HEAD_BYTES and not head.removeprefix(BYTE_ORDER_MARK).strip():
        raise EmptyFile(name, "is empty.", "There is nothing in it to check or to mend.")
    for mark, encoding in _OTHER_ENCODINGS.items():
        if head.startswith(mark):
            raise CannotRead(name, f"is {encoding}.", "Convert it to UTF-8 first.")
    if b"\x00" in head:
        raise NotASession(name, "is a binary file.", "Name a session file.")


def _list_of_items(source: Source, dialect: Dialect | None) -> Format:
    """A list is a history if it is empty or if one of its first elements looks like an item."""
    looked = False
    for wire in islice(elements(source), LOOK_AT_LINES):
        looked = True
        if is_message(wire):
            return OpencodeExport()
        if isinstance(wire, dict) and _looks_like_item(wire):
            return JsonDocument(dialect)
    if looked:
        raise NotASession(
            source.name, "is a JSON list, but not of items or messages.", "Name a session file."
        )
    return JsonDocument(dialect)


def _looks_like_item(wire: dict[str, Any]) -> bool:
    return "role" in wire or isinstance(wire.get("type"), str) or sign(wire) is not None


def _by_lines(source: Source, dialect: Dialect | None) -> Format | None:
    """The format of the first line that tells. A document spread over lines has none."""
    records = 0
    with source.open() as stream:
        reader = numbered_lines(stream, source.name)
        for number, line in islice(reader, LOOK_AT_LINES):
            try:
                record = decoded(line)
            except (ValueError, RecursionError):
                continue
            if not isinstance(record, dict):
                continue
            records += 1
            kind = text_of(record.get("type"))
            if isinstance(record.get("payload"), dict) and kind in RECORD_TYPES:
                return CodexRollout()
            if _is_pi(record):
                return PiSession()
            if _is_claude(record):
                return ClaudeTranscript()
            if list_path(record) is not None:
                alone = next(reader, None) is None
                document = alone and number == 1 and "body" not in record
                return _document(source, dialect) if document else RequestBodies(dialect)
            if is_stored(record) and number == 1 and next(reader, None) is None:
                return OpencodeStoredFile()
            if _looks_like_item(record):
                return PlainLines(dialect)
    if records > 1:
        raise NotASession(
            source.name,
            "is JSONL, but none of its records is an item, a message or a request.",
            "Name a session file.",
        )
    return None


def _is_pi(record: dict[str, Any]) -> bool:
    kind, own = text_of(record.get("type")), text_of(record.get("id"))
    if kind == "session":
        return own is not None and not record.keys().isdisjoint(("cwd", "version"))
    return kind is not None and own is not None and "parentId" in record


def _document(source: Source, dialect: Dialect | None) -> Format:
    """The format of a JSON document that is an object."""
    return OpencodeExport() if holds_messages(source) else JsonDocument(dialect)


def _is_claude(record: dict[str, Any]) -> bool:
    if "parentUuid" in record and "uuid" in record:
        return True
    return text_of(record.get("type")) in _CLAUDE_TYPES and (
        "sessionId" in record or "leafUuid" in record or "messageId" in record
    )
