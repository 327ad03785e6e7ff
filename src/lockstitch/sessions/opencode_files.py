"""JSON files of opencode: what `opencode export` writes, and the files of its older storage.

Versions before 1.2 store every message and every part in a file of its own:
`storage/message/SESSION/MESSAGE.json` and `storage/part/MESSAGE/PART.json`. A part holds a call
together with its result, so each file is checked alone. Nothing is written into that storage."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from lockstitch.core import mending
from lockstitch.core.errors import CannotMend
from lockstitch.core.items import Place
from lockstitch.core.mending import Policy
from lockstitch.dialects.base import Wire
from lockstitch.dialects.detection import by_name
from lockstitch.dialects.examination import examine
from lockstitch.sessions.documents import JsonDocument, View, elements, pieces
from lockstitch.sessions.lines import decoded
from lockstitch.sessions.model import Change, Scan, Sink, examined
from lockstitch.sessions.opencode_context import Head, Revert, head_of, parts_sent, revert_of, sent
from lockstitch.sessions.source import Source
from lockstitch.sessions.splitting import Element, Field

LONGEST_STORED_BYTES: Final = 64 * 1024 * 1024
"""A file of the older storage holds one message or one part; a larger file is something else."""

_DIALECT: Final = by_name("opencode")


def is_message(wire: object) -> bool:
    """Is this a message with its parts, as opencode's API and its export give it?"""
    return isinstance(wire, dict) and _DIALECT.claims(wire)


def holds_messages(source: Source) -> bool:
    """Does a JSON document hold a list that begins with such a message?"""
    return any(map(is_message, islice(elements(source), 1)))


class OpencodeExport(JsonDocument):
    """What `opencode export` writes, `{"info": …, "messages": […]}`, or the list of messages."""

    name = "opencode"

    def __init__(self) -> None:
        super().__init__(_DIALECT)

    def view(self, source: Source) -> View:
        heads, revert = _heads(source)
        live = sent(heads, revert)

        def counts(at: int, wire: Wire) -> Wire | None:
            if at not in live:
                return None
            if revert is None or not isinstance(parts := wire.get("parts"), list):
                return wire
            return {**wire, "parts": parts_sent(parts, heads[at].id, revert)}

        return counts


def _heads(source: Source) -> tuple[list[Head], Revert | None]:
    heads: list[Head] = []
    revert: Revert | None = None
    for piece in pieces(source):
        if isinstance(piece, Field) and piece.name == "info" and isinstance(piece.value, dict):
            revert = revert_of(piece.value.get("revert"))
        elif isinstance(piece, Element):
            heads.append(_head(piece))
    return heads, revert


def _head(element: Element) -> Head:
    try:
        wire = decoded(element.text)
    except (ValueError, RecursionError):
        wire = None
    wire = wire if isinstance(wire, dict) else {}
    info, parts = wire.get("info"), wire.get("parts")
    info = info if isinstance(info, dict) else {}
    message = info.get("id")
    return head_of(
        message if isinstance(message, str) else "", info, parts if isinstance(parts, list) else []
    )


# --- the older storage -------------------------------------------------------------------------


def stored_record(source: Source) -> Wire | None:
    """The message or part that a file of the older storage holds; None if it is another file."""
    with source.open() as stream:
        data = stream.read(LONGEST_STORED_BYTES + 1)
    if len(data) > LONGEST_STORED_BYTES:
        return None
    try:
        record = decoded(data)
    except (ValueError, RecursionError):
        return None
    return record if is_stored(record) else None


def is_stored(record: object) -> bool:
    """Is this a message or a part as the older storage has it?"""
    if not isinstance(record, dict) or not isinstance(record.get("sessionID"), str):
        return False
    return isinstance(record.get("type" if "messageID" in record else "role"), str)


class OpencodeStoredFile:
    """One file of the older storage: a part, or a message, which has no call in itself."""

    name = "opencode"

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        conversation = examined(examine(_DIALECT, _history(source)))
        return _StoredScan(format=self.name, conversations=[conversation], records=1, word="part")

    def write(self, source: Source, out: Sink, scan: Scan, policy: Policy) -> list[Change]:
        if not mending.plan(scan.conversations[0].findings, policy):
            return []
        raise CannotMend(
            "a stored part cannot be repaired here: opencode takes every file in its folder for a "
            "part, so a copy or a backup would stop it. Export the session, repair that file and "
            "import it: opencode export SESSION_ID > FILE, lockstitch mend --in-place FILE, "
            "opencode import FILE"
        )


class _StoredScan(Scan):
    """One reading of a file that holds one part."""

    def where(self, place: Place) -> str:
        return "the part"


def _history(source: Source) -> list[Any]:
    record = stored_record(source) or {}
    if "messageID" in record:
        return [{"info": {"role": "assistant"}, "parts": [record]}]
    return [{"info": record, "parts": []}]
