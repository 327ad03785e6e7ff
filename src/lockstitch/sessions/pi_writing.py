"""Writing a pi session with its edits: new entries become part of the tree, and what referred to
an entry that goes refers to its neighbour. Every other line keeps its bytes."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from typing import Any, Final, Protocol

from lockstitch.core import rules
from lockstitch.core.mending import Policy
from lockstitch.dialects.base import Wire, as_json, text_of, without
from lockstitch.dialects.pi import Pi
from lockstitch.sessions.line_writing import Envelope, LineWriter, Touch
from lockstitch.sessions.lines import decoded, encoded
from lockstitch.sessions.model import Change, Scan, Sink
from lockstitch.sessions.pi_tree import PiTree
from lockstitch.sessions.plain_lines import read_objects
from lockstitch.sessions.source import Source

ID_CHARACTERS: Final = 8
"""pi's entries have ids of so many hexadecimal digits."""

_REFERENCES: Final = re.compile(
    rb'"(?:id|parentId|firstKeptEntryId|targetId|fromId)"\s*:\s*"((?:[^"\\]|\\.)*)"'
)
CURRENT_VERSION: Final = 3
"""The version of entries with ids and parents, as pi 0.73 writes them."""

_SESSION: Final = re.compile(r"_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl")
"""pi's files are named by the session's time and id."""
_NO_TIME: Final = "1970-01-01T00:00:00.000Z"
_ROOT: Final = "root"
"""What pi writes as the `fromId` of a branch that begins before the first entry."""
_LEAF: Final[Wire] = {"role": "custom"}
"""In place of the last message, when it goes and the line before it is on another branch."""


class _Messages(Pi):
    """Messages of a session. The last entry says which branch is resumed, so it stays."""

    def emptied(self, wire: Wire) -> Wire | None:
        return _LEAF


class _Links(Envelope, Touch, Protocol):
    """How the entries of one version are linked."""


def write(source: Source, out: Sink, scan: Scan, policy: Policy) -> list[Change]:
    """Write the file with the findings of ``scan`` repaired."""
    tree: PiTree = scan.facts
    links: _Links = _Numbering() if tree.linear else _Relinking(tree, source)
    stays = tree.leaf_line if tree.branched else None
    writer = LineWriter(scan, _Messages(), links, policy, stays=stays)
    if tree.header is None:
        line = encoded(_header(source))
        out.write(line)
        what = "the session does not begin with its header: wrote one"
        writer.log.add(Change(code=rules.NO_HEADER.code, at=1, what=what, after=[line]))
    elif writer.idle:
        return []
    writer.write(source, out, links)
    return writer.log.all()


def _header(source: Source) -> dict[str, Any]:
    """A header from what the file's name and its first entry with a time still tell. Without a
    folder in it, pi takes the one that it runs in."""
    entries = (record for _, record, _ in read_objects(source) if record is not None)
    times = (text_of(record.get("timestamp")) for record in entries)
    time = next((time for time in times if time is not None), _NO_TIME)
    named = _SESSION.search(source.path.name)
    if named is not None:
        own = named[1]
    else:
        digest = hashlib.sha256(time.encode(errors="backslashreplace")).hexdigest()
        own = f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
    return {"type": "session", "version": CURRENT_VERSION, "id": own, "timestamp": time}


def _entry(record: dict[str, Any], wire: Wire, **links: Any) -> dict[str, Any]:
    """A new entry with the time of its neighbour."""
    time = {"timestamp": record["timestamp"]} if "timestamp" in record else {}
    return {"type": "message", **links, **time, "message": wire}


class _Relinking:
    """Entries with ids and parents (versions 2 and 3)."""

    def __init__(self, tree: PiTree, source: Source) -> None:
        self._tree = tree
        self._gone: dict[str, str | None] = {}
        """For an entry that is removed, its parent."""
        self._heirs: dict[str, list[str]] = {}
        """For an entry that is removed, the entries that hung on it."""
        self._behind: dict[str, str] = {}
        """For an entry, the last new one behind it: the branch to resume goes on from that."""
        self._made: set[str] = set()
        self._bridged: dict[str, str | None] = {}
        """For an entry that hung on a torn line, what it hangs on now."""
        if tree.bridges:
            self._read_bridges(source)

    def _read_bridges(self, source: Source) -> None:
        wanted = {line for pair in self._tree.bridges.items() for line in pair}
        ids = {
            number: record["id"]
            for number, record, _ in read_objects(source)
            if record is not None and number in wanted
        }
        for line, above in self._tree.bridges.items():
            self._bridged[ids[line]] = ids.get(above)

    # --- the envelope --------------------------------------------------------------------------

    def open(self, record: dict[str, Any]) -> Wire:
        message: Wire = record["message"]
        return message

    def close(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        if wire is _LEAF:
            mark = {**without(record, "message"), "type": "custom", "customType": "lockstitch"}
            return {**mark, "data": {"removed": "toolResult"}}
        return {**record, "message": wire}

    def drop(self, record: dict[str, Any]) -> None:
        own, parent = record["id"], self._bridged.get(record["id"], record["parentId"])
        self._gone[own] = parent or None
        if parent in self._gone:
            self._heirs.setdefault(parent, []).append(own)

    def make(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        anchor = record["id"]
        parent = self._behind.get(anchor, anchor)
        own = self._behind[anchor] = self._new_id(parent, wire)
        return _entry(record, wire, id=own, parentId=parent)

    def make_before(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        raise AssertionError("results come after their calls in this dialect")

    def _new_id(self, parent: str, wire: Wire) -> str:
        """The same repair always gives the same id, and never one that is taken."""
        digest = hashlib.sha256(parent.encode(errors="backslashreplace") + as_json(wire))
        while True:
            text = digest.hexdigest()
            for at in range(0, len(text), ID_CHARACTERS):
                own = text[at : at + ID_CHARACTERS]
                if own not in self._made and not self._tree.has(own):
                    self._made.add(own)
                    return own
            digest.update(b".")

    # --- the last touch ------------------------------------------------------------------------

    def many(self, block: list[bytes]) -> list[bytes]:
        if not self._gone and not self._behind and not self._bridged:
            return block
        return [self.one(line, False) for line in block]

    def one(self, line: bytes, new: bool) -> bytes:
        """The line, with its references to what is there now."""
        if not any(map(self._knows, _REFERENCES.findall(line))):
            return line
        record = decoded(line)
        own = record.get("id")
        if not isinstance(own, str) or own in self._made:
            return line
        changed = {**record, **self._links(record, own)}
        return line if changed == record else encoded(changed)

    def _knows(self, written: bytes) -> bool:
        name = written.decode(errors="replace")
        if "\\" in name:
            name = json.loads(f'"{name}"')
        return name in self._gone or name in self._behind or name in self._bridged

    def _links(self, record: dict[str, Any], own: str) -> dict[str, Any]:
        links: dict[str, Any] = {}
        parent = self._bridged.get(own, record.get("parentId"))
        if parent in self._gone:
            self._heirs.setdefault(parent, []).append(own)
            parent = self._instead(parent)
        if parent in self._behind and self._tree.is_on_path(own):
            parent = self._behind[parent]
        links["parentId"] = parent
        kept, target, came_from = (
            record.get(name) for name in ("firstKeptEntryId", "targetId", "fromId")
        )
        if isinstance(kept, str) and kept in self._gone:
            links["firstKeptEntryId"] = self._heir(kept, own)
        if isinstance(target, str) and target in self._gone:
            links["targetId"] = self._instead(target) or target
        if isinstance(came_from, str) and came_from in self._gone:
            links["fromId"] = self._instead(came_from) or _ROOT
        return links

    def _instead(self, name: str | None) -> str | None:
        """The nearest entry above that stays."""
        while name in self._gone:
            name = self._gone[name]
        return name

    def _heir(self, kept: str, compaction: str) -> str:
        """The first entry that stays, from a removed one down to a compaction."""
        below = self._tree.named(compaction)
        while kept in self._gone:
            for one in self._heirs.get(kept, ()):
                n = self._tree.named(one)
                if n is not None and below is not None and self._tree.hangs_on(below, n):
                    kept = one
                    break
            else:
                return compaction  # nothing in front of it is kept
        return kept


class _Numbering:
    """Entries that are counted (version 1): a compaction says from which number on it keeps."""

    def __init__(self) -> None:
        self._before = self._now = 0
        """How many entries were passed: as they were, and as they are written."""
        self._from: list[int] = [0]
        self._shift: list[int] = [0]
        """From which entry on the numbers shift, and by how much."""
        self._is_old = False
        """Is the next line that is touched the one that was opened?"""

    def open(self, record: dict[str, Any]) -> Wire:
        self._is_old = True
        message: Wire = record["message"]
        return message

    def close(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        return {**record, "message": wire}

    def drop(self, record: dict[str, Any]) -> None:
        self._is_old = False
        self._before += 1
        self._note()

    def make(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        return _entry(record, wire)

    def make_before(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        raise AssertionError("results come after their calls in this dialect")

    def many(self, block: list[bytes]) -> list[bytes]:
        return [self._old(line) for line in block]

    def one(self, line: bytes, new: bool) -> bytes:
        if self._is_old:
            self._is_old = False
            return self._old(line)
        self._now += 1
        self._note()
        return line

    def _note(self) -> None:
        """The numbers from here on are shifted by what was added and removed so far."""
        self._from.append(self._before)
        self._shift.append(self._now - self._before)

    def _old(self, line: bytes) -> bytes:
        if not line.strip():
            return line
        self._before += 1
        self._now += 1
        if len(self._from) == 1 or b'"firstKeptEntryIndex"' not in line:
            return line
        record = decoded(line)
        kept = record.get("firstKeptEntryIndex")
        if record.get("type") != "compaction" or not isinstance(kept, int):
            return line
        shift = self._shift[bisect_right(self._from, kept) - 1]
        return encoded({**record, "firstKeptEntryIndex": kept + shift}) if shift else line
