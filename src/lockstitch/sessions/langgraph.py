"""Databases of LangGraph's `SqliteSaver`: the newest checkpoint of each thread.

A conversation is a channel that holds messages. A repair adds a checkpoint behind the newest one,
as `update_state` does; nothing that was stored is changed. How a checkpoint is stored is known in
`langgraph_checkpoints`."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec import Raw, Struct
from msgspec.msgpack import Ext

from lockstitch.core import mending
from lockstitch.core.families import Family
from lockstitch.core.findings import Finding
from lockstitch.core.items import Part
from lockstitch.core.mending import Edit, Policy
from lockstitch.core.outcomes import Evidence, Outcome, Settlement
from lockstitch.core.pairing import read_through
from lockstitch.dialects.base import Dialect, Wire, text_of
from lockstitch.dialects.detection import detect, sign
from lockstitch.dialects.examination import Examination
from lockstitch.dialects.rewriting import Rewriter, capture
from lockstitch.sessions.agents_sqlite_opening import copied, opened
from lockstitch.sessions.agents_sqlite_tables import columns_of, table_names
from lockstitch.sessions.changes import ChangeLog
from lockstitch.sessions.errors import CannotRead, CannotWrite, EmptyFile, NotASession
from lockstitch.sessions.langgraph_checkpoints import (
    DAMAGED,
    EXT_DELTA_SNAPSHOT,
    Codec,
    Message,
    UnknownSerialization,
    merged,
    message_of,
    metadata_after,
    new_message,
    next_id,
    next_version,
    texts_in,
    written,
)
from lockstitch.sessions.model import Change, Conversation, Scan, Sink, examined
from lockstitch.sessions.source import Source

CHECKPOINTS: Final = "checkpoints"
WRITES: Final = "writes"
_CHECKPOINT_COLUMNS: Final = frozenset(
    {
        "thread_id",
        "checkpoint_ns",
        "checkpoint_id",
        "parent_checkpoint_id",
        "type",
        "checkpoint",
        "metadata",
    }
)
_WRITE_COLUMNS: Final = frozenset(
    {"thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value"}
)
_OLD_COLUMNS: Final = frozenset({"thread_id", "thread_ts", "checkpoint"})
"""What the table was before LangGraph 0.2."""

_MESSAGES: Final = "messages"
_ROOTS: Final = frozenset({_MESSAGES, "__root__"})
"""Channels whose list is a history, whatever is in it."""

_INPUT: Final = "__start__"
_TASKS: Final = "__pregel_tasks"
_TRIGGER: Final = "branch:"
"""Channels of LangGraph itself: what was passed in, calls of nodes to come, and edges taken."""

_INTERRUPT: Final = "__interrupt__"
_CONTROL: Final = frozenset({"__error__", "__error_source_node__", _INTERRUPT, "__resume__"})
"""Writes that say what happened to a task. A task with any other write is finished."""

_COUNTERS: Final = "counters_since_delta_snapshot"


def is_langgraph(connection: sqlite3.Connection) -> bool:
    """Does this database have the tables of a saver?"""
    tables = set(table_names(connection))
    if CHECKPOINTS not in tables:
        return False
    columns = set(columns_of(connection, CHECKPOINTS))
    if columns >= _OLD_COLUMNS:
        return True
    return (
        columns >= _CHECKPOINT_COLUMNS
        and WRITES in tables
        and set(columns_of(connection, WRITES)) >= _WRITE_COLUMNS
    )


class _Place(Struct, frozen=True):
    """Where a list of messages is in a checkpoint."""

    channel: str
    field: str | None = None
    """The field of the channel's value, where that is an object."""

    def __str__(self) -> str:
        return self.channel if self.field is None else f"{self.channel}.{self.field}"


class _Thread(Struct):
    """A thread, or a subgraph of one, at its newest checkpoint."""

    thread: str
    namespace: str
    checkpoint: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.thread, self.namespace, self.checkpoint

    def __str__(self) -> str:
        inside = f" subgraph {self.namespace}" if self.namespace else ""
        return f"thread {self.thread}{inside}"


@dataclass(slots=True, kw_only=True)
class Channel(Conversation):
    """One list of messages."""

    thread: _Thread
    place: _Place
    dialect: Dialect


@dataclass(slots=True, kw_only=True)
class _History:
    """The messages of a channel, and the results that tasks of an unfinished step have written."""

    messages: list[Message]
    is_delta: bool = False
    """Is the channel stored as what was written to it?"""
    pending: dict[str, Message] = field(default_factory=dict)
    """Results by call id."""

    @property
    def wires(self) -> list[Wire]:
        return [message.wire for message in self.messages]


class LangGraphDatabase:
    """The format of the saver's databases."""

    name = "langgraph"

    def __init__(self, dialect: Dialect | None = None) -> None:
        self._dialect = dialect

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        scan = Scan(format=self.name, conversations=[], records=0, word="message", linked=True)
        with opened(source) as connection:
            reader = _Reader(connection, source.name)
            threads = reader.threads()
            if not threads:
                raise EmptyFile(source.name, "has no checkpoint.", "There is nothing to check.")
            for thread in threads:
                checkpoint = reader.checkpoint(thread)
                for place, history in checkpoint.histories():
                    dialect = detect(history.wires, self._dialect)
                    conversation = _examined(dialect, history, anchored=anchored)
                    scan.records += len(history.messages)
                    scan.conversations.append(
                        Channel(
                            findings=conversation.findings,
                            label=_label(thread, place, checkpoint),
                            unread=conversation.unread,
                            recognised=conversation.recognised,
                            thread=thread,
                            place=place,
                            dialect=dialect,
                        )
                    )
        if not scan.conversations:
            raise NotASession(
                source.name,
                "is a LangGraph database, but no thread has a list of messages.",
                "There is nothing to check.",
            )
        return scan

    def write(self, source: Source, out: Sink, scan: Scan, policy: Policy) -> list[Change]:
        broken: dict[tuple[str, str, str], list[Channel]] = {}
        for one in scan.conversations:
            if isinstance(one, Channel) and one.findings:
                broken.setdefault(one.thread.key, []).append(one)
        if not broken:
            return []
        with tempfile.TemporaryDirectory(prefix="lockstitch-") as folder:
            path = Path(folder, "mended.db")
            with copied(source, path) as copy:
                changes = _mend(copy, source.name, scan, list(broken.values()), policy)
            if changes:
                with path.open("rb") as mended:
                    shutil.copyfileobj(mended, out)
        return changes


def _label(thread: _Thread, place: _Place, checkpoint: _Checkpoint) -> str:
    channel = "" if str(place) == _MESSAGES else f" channel {place}"
    waits = ", waiting at an interrupt" if checkpoint.is_interrupted else ""
    return f"{thread}{channel}{waits}"


# --- reading -----------------------------------------------------------------------------------


class _Reader:
    """The rows of a database."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._execute = connection.execute
        self.name = name
        columns = set(columns_of(connection, CHECKPOINTS))
        if not columns >= _CHECKPOINT_COLUMNS:
            raise CannotRead(
                name,
                "was written by LangGraph 0.1, whose checkpoints cannot be read.",
                "Open it once with a newer LangGraph, and check what that wrote.",
            )
        has_path = "task_path" in columns_of(connection, WRITES)
        self._write_order = f"{'task_path' if has_path else chr(39) * 2}, task_id, idx"

    def threads(self) -> list[_Thread]:
        found = self._execute(
            f"SELECT thread_id, checkpoint_ns, MAX(checkpoint_id) FROM {CHECKPOINTS}"
            " GROUP BY thread_id, checkpoint_ns ORDER BY thread_id, checkpoint_ns"
        )
        return [_Thread(str(thread), str(name), str(newest)) for thread, name, newest in found]

    def checkpoint(self, thread: _Thread) -> _Checkpoint:
        """A checkpoint, decoded as far as its channels. Raises `CannotRead`."""
        row = self._execute(
            f"SELECT parent_checkpoint_id, type, checkpoint, metadata FROM {CHECKPOINTS}"
            " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
            thread.key,
        ).fetchone()
        if row is None:
            raise self.problem(thread, "is missing")
        parent, kind, data, metadata = row
        with self.reading(thread):
            codec = Codec(kind)
            fields = codec.table(data)
            values = codec.table(fields["channel_values"])
            versions = codec.decode(fields["channel_versions"], dict[str, Any])
        return _Checkpoint(self, thread, parent, codec, fields, values, versions, metadata)

    def has(self, thread: _Thread) -> bool:
        query = (
            f"SELECT 1 FROM {CHECKPOINTS} WHERE thread_id = ? AND checkpoint_ns = ?"
            " AND checkpoint_id = ?"
        )
        return self._execute(query, thread.key).fetchone() is not None

    def writes(self, thread: _Thread, channel: str | None = None) -> list[tuple[Any, ...]]:
        """What the tasks of the step after a checkpoint wrote: (task, channel, type, value)."""
        only = "" if channel is None else " AND channel = ?"
        return self._execute(
            f"SELECT task_id, channel, type, value FROM {WRITES} WHERE thread_id = ?"
            f" AND checkpoint_ns = ? AND checkpoint_id = ?{only} ORDER BY {self._write_order}",
            (*thread.key, *(() if channel is None else (channel,))),
        ).fetchall()

    @contextlib.contextmanager
    def reading(self, thread: _Thread) -> Iterator[None]:
        try:
            yield
        except UnknownSerialization as error:
            raise self.problem(
                thread,
                f"is stored as {error!s}, which cannot be read",
                "MessagePack and JSON can be read, encrypted and pickled checkpoints cannot.",
            ) from error
        except (KeyError, IndexError, *DAMAGED) as error:
            raise self.problem(thread, f"cannot be decoded ({error})") from error

    def problem(self, thread: _Thread, what: str, advice: str = "") -> CannotRead:
        return CannotRead(self.name, f"checkpoint {thread.checkpoint} of {thread} {what}.", advice)


@dataclass(slots=True)
class _Checkpoint:
    """One checkpoint: its fields and its channels as bytes."""

    reader: _Reader
    thread: _Thread
    parent: str | None
    codec: Codec
    fields: dict[str, Raw]
    values: dict[str, Raw]
    versions: dict[str, Any]
    metadata: Any

    @property
    def is_interrupted(self) -> bool:
        """Does a task of the step after this checkpoint wait for an answer?"""
        writes = self.reader.writes(self.thread)
        finished = {task for task, channel, *_ in writes if channel not in _CONTROL}
        return any(channel == _INTERRUPT and task not in finished for task, channel, *_ in writes)

    def histories(self) -> list[tuple[_Place, _History]]:
        """Every list of messages in it."""
        found: list[tuple[_Place, _History]] = []
        with self.reader.reading(self.thread):
            for channel, value in self.values.items():
                if channel in (_INPUT, _TASKS) or channel.startswith(_TRIGGER):
                    continue
                for place, history in self._in_channel(channel, value):
                    found.append((place, self._with_pending(history, place)))
            for channel in self._delta_channels():
                messages = self._replayed(channel)
                if _is_history(channel, messages):
                    history = _History(messages=messages, is_delta=True)
                    place = _Place(channel)
                    found.append((place, self._with_pending(history, place)))
        return found

    def history(self, place: _Place) -> _History:
        return next(history for where, history in self.histories() if where == place)

    def _in_channel(self, channel: str, value: Raw) -> Iterator[tuple[_Place, _History]]:
        elements = self.codec.elements(value)
        if elements is not None:
            messages = [message_of(raw, self.codec) for raw in elements]
            if _is_history(channel, messages):
                is_delta = self.codec.snapshot(value) is not None
                yield _Place(channel), _History(messages=messages, is_delta=is_delta)
            return
        inside = _table(self.codec, value).get(_MESSAGES)
        elements = None if inside is None else self.codec.elements(inside)
        if elements is not None:
            messages = [message_of(raw, self.codec) for raw in elements]
            if _is_history(channel, messages):
                yield _Place(channel, _MESSAGES), _History(messages=messages)

    def _with_pending(self, history: _History, place: _Place) -> _History:
        if place.field is None:
            for _, _, kind, value in self.reader.writes(self.thread, place.channel):
                if kind == "null":
                    continue
                self._expect_alike(kind)
                for message in written(value, Codec(kind))[0]:
                    key = text_of(message.wire.get("tool_call_id"))
                    if key is not None:
                        history.pending.setdefault(key, message)
        return history

    def _expect_alike(self, kind: str) -> None:
        """Messages are put into a checkpoint as they were stored elsewhere."""
        if Codec(kind).kind != self.codec.kind:
            raise UnknownSerialization(f"a mix of {self.codec.kind} and {kind}")

    # --- channels that are stored as what was written to them ----------------------------------

    def _delta_channels(self) -> list[str]:
        """Channels that have a version and no value, and are not LangGraph's own."""
        try:
            metadata = json.loads(self.metadata)
        except (TypeError, ValueError):
            metadata = None
        counters = metadata.get(_COUNTERS) if isinstance(metadata, dict) else None
        named = {_MESSAGES, *(counters if isinstance(counters, dict) else ())}
        return sorted(name for name in named if name in self.versions and name not in self.values)

    def _replayed(self, channel: str) -> list[Message]:
        """The value of a `DeltaChannel`: the newest one that is stored in full before this
        checkpoint, and everything that was written to the channel since."""
        batches: list[list[tuple[Any, ...]]] = []
        base: list[Message] = []
        seen = {self.thread.checkpoint}
        parent = self.parent
        while parent is not None and parent not in seen:
            seen.add(parent)
            thread = _Thread(self.thread.thread, self.thread.namespace, parent)
            if not self.reader.has(thread):
                break
            before = self.reader.checkpoint(thread)
            batches.append(self.reader.writes(thread, channel))
            if channel in before.values:
                self._expect_alike(before.codec.kind)
                elements = before.codec.elements(before.values[channel]) or []
                base = [message_of(raw, before.codec) for raw in elements]
                break
            parent = before.parent
        for batch in reversed(batches):
            for _, _, kind, value in batch:
                if kind == "null":
                    continue
                self._expect_alike(kind)
                messages, replaces = written(value, Codec(kind))
                base = messages if replaces else merged(base, messages)
        return base

    # --- the checkpoint behind it --------------------------------------------------------------

    def followed(self, new: Mapping[_Place, _Mended]) -> tuple[str, bytes, bytes]:
        """A checkpoint behind this one, with these messages: its id, itself and its metadata."""
        codec = self.codec
        name = next_id(self.thread.checkpoint)
        if name is None:
            raise CannotWrite(
                f"{self.reader.name}: checkpoint {self.thread.checkpoint} of {self.thread} does not"
                " have an id of LangGraph's, so none can be put behind it. Nothing was changed."
            )
        values, versions = dict(self.values), dict(self.versions)
        version = next_version(versions)
        settled: set[str] = set()
        for place, made in new.items():
            messages = [message.encoded(codec) for message in made.messages]
            values[place.channel] = self._stored(place, messages, is_delta=made.is_delta)
            versions[place.channel] = version
            settled |= made.settled
        if settled:
            values = self._without_tasks(values, settled)
            for channel in self._edges_taken():
                values[channel] = Raw(codec.encode(None))
                versions[channel] = version
        channels = sorted(name for name in versions if versions[name] is version)
        changed: dict[str, Any] = {
            "id": name,
            "channel_values": values,
            "channel_versions": versions,
            "updated_channels": None,  # look at every node: some may have been to come before
        }
        if "updated_channels" not in self.fields:
            del changed["updated_channels"]
        data = codec.encode({**self.fields, **changed})
        return name, data, metadata_after(self.metadata, channels)

    def _stored(self, place: _Place, messages: list[Raw], *, is_delta: bool) -> Raw:
        codec = self.codec
        data = codec.encode(messages)
        if place.field is not None:
            table = _table(codec, self.values[place.channel])
            return Raw(codec.encode({**table, place.field: Raw(data)}))
        if is_delta:
            return Raw(codec.encode(Ext(EXT_DELTA_SNAPSHOT, data)))
        return Raw(data)

    def _without_tasks(self, values: dict[str, Raw], settled: set[str]) -> dict[str, Raw]:
        """The channels without what would run the calls that have a result now. Which node does
        that is not stored; so no edge that was taken is followed again."""
        codec = self.codec
        left = {name: value for name, value in values.items() if not name.startswith(_TRIGGER)}
        if _TASKS in left:
            sends = codec.elements(left[_TASKS]) or []
            kept = [raw for raw in sends if settled.isdisjoint(texts_in(codec.decode(raw), codec))]
            left[_TASKS] = Raw(codec.encode(kept))
        return left

    def _edges_taken(self) -> list[str]:
        """Where the tasks that finished after this checkpoint sent the graph."""
        return [
            channel
            for _, channel, kind, _ in self.reader.writes(self.thread)
            if channel.startswith(_TRIGGER) and kind == "null"
        ]


def _table(codec: Codec, value: Raw) -> dict[str, Raw]:
    try:
        return codec.table(value)
    except DAMAGED:
        return {}


def _is_history(channel: str, messages: list[Message]) -> bool:
    """Is this list a history? Lists of other channels must show that they are: results alone, or
    objects that are no messages, are something that a graph works with."""
    if channel in _ROOTS:
        return bool(messages)
    shown = [message.wire for message in messages if sign(message.wire) is not None]
    return any(text_of(wire.get("tool_call_id")) is None for wire in shown)


# --- examining and mending ---------------------------------------------------------------------


def _examined(dialect: Dialect, history: _History, *, anchored: bool) -> Conversation:
    examination, _ = read_through(
        Examination(dialect), lambda one: _feed(one, history.wires, history.pending)
    )
    return examined(examination, anchored=anchored)


def _feed(examination: Examination, wires: list[Wire], pending: Mapping[str, Message]) -> None:
    for at, wire in enumerate(wires):
        examination.add(wire, at)
    for key, message in pending.items():
        if examination.pairing.open_call(key) is not None:
            content = message.wire.get("content")
            known = Evidence(
                Outcome.FINISHED,
                "finished, and its result is a pending write of the checkpoint",
                content if isinstance(content, str) else "",
                failed=message.wire.get("status") == "error",
            )
            examination.pairing.witness(key, known, len(wires))


class _Recovering:
    """A dialect that writes the results that really came in place of synthetic ones."""

    def __init__(self, dialect: Dialect, pending: Mapping[str, Message]) -> None:
        self._dialect = dialect
        self._pending = pending

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dialect, name)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        if said.outcome is Outcome.FINISHED and key is not None and key in self._pending:
            return self._pending[key].wire
        return self._dialect.output(family, key, said, name)


@dataclass(slots=True, kw_only=True)
class _Mended:
    """The messages of a channel after mending."""

    messages: list[Message]
    is_delta: bool
    settled: set[str] = field(default_factory=set)
    """The ids of the newest calls, which got results."""


def _mend(
    connection: sqlite3.Connection,
    name: str,
    scan: Scan,
    broken: list[list[Channel]],
    policy: Policy,
) -> list[Change]:
    reader = _Reader(connection, name)
    newest = {(thread.thread, thread.namespace): thread for thread in reader.threads()}
    log = ChangeLog(scan)
    changed = False
    for channels in broken:
        thread = channels[0].thread
        if newest.get((thread.thread, thread.namespace)) != thread:
            raise CannotWrite(
                f"{name}: it changed while it was being mended. Nothing was changed. "
                "Stop the program that writes it, then try again."
            )
        checkpoint = reader.checkpoint(thread)
        new: dict[_Place, _Mended] = {}
        for channel in channels:
            history = checkpoint.history(channel.place)
            mended = _mended(channel, history, policy, log)
            if mended is not None:
                new[channel.place] = mended
        if new:
            changed = True
            next_name, data, metadata = checkpoint.followed(new)
            connection.execute(
                f"INSERT INTO {CHECKPOINTS} (thread_id, checkpoint_ns, checkpoint_id,"
                " parent_checkpoint_id, type, checkpoint, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    thread.thread,
                    thread.namespace,
                    next_name,
                    thread.checkpoint,
                    checkpoint.codec.kind,
                    data,
                    metadata,
                ),
            )
    return log.all() if changed else []


@dataclass(slots=True)
class _Round:
    """The messages between two rounds of mending, and the ids of calls that got results."""

    messages: list[Message]
    settled: set[str]
    first: bool = True


def _mended(channel: Channel, history: _History, policy: Policy, log: ChangeLog) -> _Mended | None:
    """The messages of a channel, mended in as many rounds as that needs."""
    pending = history.pending
    dialect: Any = _Recovering(channel.dialect, pending)
    as_object = any(message.is_object for message in history.messages)

    def findings(now: _Round) -> list[Finding]:
        wires = [message.wire for message in now.messages]
        return channel.findings if now.first else _findings(channel.dialect, wires, pending)

    def step(now: _Round) -> _Round | None:
        wires = [message.wire for message in now.messages]
        edits = mending.plan(findings(now), policy)
        if not edits:
            return None
        log.expect(edits, channel.label)
        rewriter = Rewriter(dialect, edits, capture(dialect, edits, wires.__getitem__))
        busy = rewriter.positions()
        made: list[Message] = []
        for at, message in enumerate(now.messages):
            if at not in busy:
                made.append(message)
                continue
            left, arrivals, ahead = rewriter.rewrite(at, message.wire)
            new = [
                _message_of(wire, (*pending.values(), *now.messages))
                or new_message(wire, as_object=as_object)
                for wire in (*ahead, *arrivals)
            ]
            made += new[: len(ahead)]
            if left is message.wire:
                made.append(message)
            elif left is not None:
                made.append(message.changed(left))
            made += new[len(ahead) :]
            before = [] if left is message.wire else [_shown(message.wire)]
            after = [_shown(one) for one in (*ahead, *arrivals)]
            if left is not None and left is not message.wire:
                after.insert(len(ahead), _shown(left))
            log.touched(at, before, after)
        return _Round(made, now.settled | _settled(edits), first=False)

    done = mending.in_rounds(_Round(history.messages, set()), step, findings)
    if done.first:
        return None
    newest = _newest_calls(channel.dialect, history.wires)
    return _Mended(messages=done.messages, is_delta=history.is_delta, settled=done.settled & newest)


def _findings(dialect: Dialect, wires: list[Wire], pending: Mapping[str, Message]) -> list[Finding]:
    examination, _ = read_through(Examination(dialect), lambda one: _feed(one, wires, pending))
    return examination.finish()


def _message_of(wire: Wire, messages: Iterable[Message]) -> Message | None:
    """The message that this wire item is of, unless it is new."""
    return next((message for message in messages if message.wire is wire), None)


def _settled(edits: list[Edit]) -> set[str]:
    """The ids of calls that got a result, or that are gone."""
    return {
        edit.reason.key
        for edit in edits
        if isinstance(edit, mending.Settle | mending.Drop) and edit.reason.key is not None
    }


def _newest_calls(dialect: Dialect, wires: list[Wire]) -> set[str]:
    """The ids of the calls that end a history: a step of the graph that is still to come would
    run them."""
    for wire in reversed(wires):
        items = dialect.read(wire)
        calls = {item.key for item in items if item.part is Part.CALL and item.key is not None}
        if calls:
            return calls
        if any(item.part is not Part.OUTPUT for item in items):
            break
    return set()


def _shown(wire: Wire) -> bytes:
    return json.dumps(wire, ensure_ascii=False, default=repr).encode(errors="backslashreplace")
