"""What the commands of `lockstitch store` do, and what they print."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import click

from lockstitch.cli.app import CLEAN, FINDINGS, TROUBLE
from lockstitch.cli.places import Kind, place, writing_into
from lockstitch.cli.streams import complain
from lockstitch.cli.transcript import Head, entries, fit, lines, model_of, width
from lockstitch.core import records
from lockstitch.core.errors import LockstitchError
from lockstitch.core.records import Record, UnreadableRecord
from lockstitch.core.terminal import printable
from lockstitch.sessions.source import Source, standard_input
from lockstitch.store.contract import Store, Summary
from lockstitch.store.errors import CannotWrite, Damaged, NotAKey, StoreError, WrongKey
from lockstitch.store.keys import (
    KEY_FILE_VARIABLE,
    KEY_VARIABLE,
    checked_plain,
    keys_from_environment,
    new_key,
)
from lockstitch.store.opening import open_store
from lockstitch.store.transfer import expect_export, export_store, import_store

DAY_SECONDS = 86_400

HEAD_RECORDS = 12
HEAD_BYTES = 262_144
"""How much of a conversation is read to list it: the model and the first user message are among the
first records. A store reads records in pages, so one large item more may be read."""

PAGE_CONVERSATIONS = 64
"""How many conversations of a list are read at once."""

MODEL_CELLS = 20
ALIGNED_THREAD_CELLS = 40
THREAD_CELLS = 120
WORDS_CELLS = 20
LINE_CELLS = 140
"""The widths of a list. Threads are aligned up to their first width and cut at the second; the
first words have at least their own, and the line is as wide as the terminal."""

COMPARED_NAMES = 20_000
"""How many names a name that does not exist is compared with."""
NEAR_NAMES = 3

Advance = Callable[[int], None]


class Which(NamedTuple):
    """What to delete: some conversations, or those of an age."""

    conversations: tuple[str, ...]
    older_than_days: float | None


def stats(url: str, output: str) -> int:
    async def work() -> int:
        async with open_store(url, create=False) as store:
            held = await store.stats()
            _say(
                output,
                {
                    "store": store.url,
                    "conversations": held.conversations,
                    "records": held.records,
                    "large bodies": held.bodies,
                    "bytes": held.size_bytes,
                    "schema": held.schema,
                },
            )
        return CLEAN

    return _run(work())


def list_(url: str, output: str) -> int:
    async def work() -> int:
        async with open_store(url, create=False) as store:
            await (_list_as_json(store) if output == "json" else _list_as_text(store))
        return CLEAN

    return _run(work())


async def _list_as_text(store: Store) -> None:
    """Print a line for each conversation, as they are read. Columns are as wide as the first page
    needs; the first words come last and fill the line."""
    columns: _Columns | None = None
    async for page in _pages(store):
        if columns is None:
            columns = _Columns(page)
            if sys.stdout.isatty():
                print(columns.line("LAST WRITE (UTC)", "RECORDS", "MODEL", "THREAD", "FIRST WORDS"))
        for one in page:
            changed = datetime.fromtimestamp(one.summary.changed, UTC)
            print(
                columns.line(
                    f"{changed:%Y-%m-%d %H:%M}",
                    f"{one.summary.length:,}",
                    one.model,
                    one.thread,
                    one.words,
                )
            )
    if columns is None:
        _complain(f"There is no conversation in {store.url}.")


async def _list_as_json(store: Store) -> None:
    """Print one document, of which no more than a page is in memory."""
    print(f'{{"store": {json.dumps(store.url)}, "conversations": [', end="")
    between = "\n"
    async for page in _pages(store):
        for one in page:
            listed = {
                "conversation": one.summary.conversation,
                "model": one.head.model,
                "first_words": one.head.words,
                "records": one.summary.length,
                "created": one.summary.created,
                "changed": one.summary.changed,
            }
            print(between, json.dumps(listed), sep="", end="")
            between = ",\n"
    print("\n]}")


class _Listed(NamedTuple):
    """One conversation of a list."""

    summary: Summary
    head: Head

    @property
    def thread(self) -> str:
        return printable(self.summary.conversation)

    @property
    def model(self) -> str:
        return printable(self.head.model or "-")

    @property
    def words(self) -> str:
        return printable(self.head.words or "-")


class _Columns:
    """The columns of a list, aligned."""

    def __init__(self, first_page: Sequence[_Listed]) -> None:
        widest_thread = max(width(one.thread) for one in first_page)
        widest_model = max(width(one.model) for one in first_page)
        self._thread = min(max(widest_thread, len("THREAD")), ALIGNED_THREAD_CELLS)
        self._model = min(max(widest_model, len("MODEL")), MODEL_CELLS)
        self._line = LINE_CELLS
        if sys.stdout.isatty():
            self._line = shutil.get_terminal_size((LINE_CELLS, 24)).columns

    def line(self, changed: str, records: str, model: str, thread: str, words: str) -> str:
        # A longer name is printed in full: it is what `store show` is given.
        named = fit(thread, min(max(width(thread), self._thread), THREAD_CELLS))
        begins = f"{changed}  {records:>7}  {fit(model, self._model)}  {named}  "
        left = max(self._line - width(begins), WORDS_CELLS)
        return f"{begins}{fit(words, left)}".rstrip()


async def _pages(store: Store) -> AsyncIterator[list[_Listed]]:
    """The conversations of a store with what a list shows of them, a page at a time. What was read
    before an error is given first."""
    page: list[Summary] = []
    failure = None
    try:
        async for summary in store.conversations():
            page.append(summary)
            if len(page) == PAGE_CONVERSATIONS:
                yield await _with_heads(store, page)
                page = []
    except StoreError as error:
        failure = error
    if page:
        yield await _with_heads(store, page)
    if failure is not None:
        raise failure


async def _with_heads(store: Store, page: Sequence[Summary]) -> list[_Listed]:
    heads = await asyncio.gather(*(_head(store, one.conversation) for one in page))
    return list(map(_Listed, page, heads))


async def _head(store: Store, conversation: str) -> Head:
    """What the first records say. A record that cannot be read, for want of its key or because it
    is damaged, says nothing: the conversation is listed all the same."""
    head, size = Head(), 0
    try:
        async for record in store.read(conversation, limit=HEAD_RECORDS):
            head.add(records.decoded(record))
            size += len(record.body or b"")
            if head.complete or size > HEAD_BYTES:
                break
    except (UnreadableRecord, WrongKey, Damaged):
        pass
    return head


def show(url: str, conversation: str, output: str) -> int:
    """Print one conversation."""

    async def work() -> int:
        async with open_store(url, create=False) as store:
            if output == "json":
                await _show_as_json(store, conversation)
            else:
                await _show_as_text(store, conversation)
        return CLEAN

    return _run(work())


async def _show_as_text(store: Store, conversation: str) -> None:
    stored = [record async for record in store.read(conversation)]
    if not stored:
        await _check_exists(store, conversation)
    facts = [records.decoded(checked_plain(one, conversation, store.url)) for one in stored]
    print(printable(f"{conversation} in {store.url}"))
    told = [f"model {model}"] if (model := model_of(facts)) else []
    told.append(_many(len(stored), "record"))
    if stored and stored[-1].at is not None:
        told.append(
            f"last write {datetime.fromtimestamp(stored[-1].at, UTC):%Y-%m-%d %H:%M:%S} UTC"
        )
    print(printable(", ".join(told)))
    for entry in entries(facts):
        print()
        for line in lines(entry):
            print(line)


async def _show_as_json(store: Store, conversation: str) -> None:
    """Print one document: every record, with its item as it is. One record is in memory."""
    between = ""
    async for record in store.read(conversation):
        checked_plain(record, conversation, store.url)
        if not between:
            named = json.dumps(conversation)
            print(f'{{"store": {json.dumps(store.url)}, "conversation": {named}, "records": [')
        print(between, json.dumps(_record(record)), sep="", end="")
        between = ",\n"
    if between:
        print("\n]}")
        return
    await _check_exists(store, conversation)
    print(json.dumps({"store": store.url, "conversation": conversation, "records": []}))


def _record(record: Record) -> dict[str, Any]:
    """A record as JSON: the fact, and its item or note under the name that the fact has for it."""
    fact = _json(record.payload)
    if not isinstance(fact, dict):
        fact = {"payload": fact}
    told = {"seq": record.seq, "at": record.at, **fact}
    if record.body is not None:
        told["note" if fact.get("fact") == "noted" else "item"] = _json(record.body)
    return told


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")


async def _check_exists(store: Store, conversation: str) -> None:
    """Raise an error with similar names if there is no such conversation; it may also be empty."""
    names: list[str] = []
    async for one in store.conversations():
        if one.conversation == conversation:
            return
        if len(names) < COMPARED_NAMES:
            names.append(one.conversation)
    near = [name for name in names if conversation and conversation in name][:NEAR_NAMES]
    near = near or get_close_matches(conversation, names, NEAR_NAMES)
    meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise LockstitchError(
        f"There is no conversation {conversation!r} in {store.url}.{meant}"
        f" List all of them with: lockstitch store list {store.url}"
    )


def export(url: str, file: str, conversations: tuple[str, ...], *, force: bool) -> int:
    async def work(file: BinaryIO) -> int:
        async with open_store(url, create=False) as store:
            total = (await store.stats()).records if not conversations else None
            with _progress("Exporting", total) as advance:
                wanted = conversations or None
                done = await export_store(store, file, conversations=wanted, advance=advance)
        said = f"{_many(done.conversations, 'conversation')}, {_many(done.records, 'record')}."
        print(f"Exported {said}", file=sys.stderr if target.is_stdout else sys.stdout)
        return CLEAN

    target = place(file)
    target.refuse([Path(url.removeprefix("sqlite:///"))], "the store itself", "Name another file.")
    if target.kind is Kind.FILE and not force:
        raise CannotWrite(f"{target.name} exists. Choose another name, or say --force.")
    into = target.is_stdout or target.is_node
    with writing_into(target) if into else _beside(target.path) as stream:
        return _run(work(stream))


def import_(url: str, path: Path | None, output: str) -> int:
    async def work(file: BinaryIO, name: str, total: int | None) -> int:
        async with open_store(url) as store:
            with _progress("Importing", total) as advance:
                done = await import_store(store, file, name=name, advance=advance)
            _say(
                output,
                {
                    "store": store.url,
                    "conversations": done.conversations,
                    "records": done.records,
                    "skipped": done.skipped,
                    "refused": list(done.refused),
                },
            )
        for conversation in done.refused:
            _complain(
                f"Conversation {conversation!r} is there with other records, and was left as it is."
                " Delete it first to have the one of the export."
            )
        return FINDINGS if done.refused else CLEAN

    with ExitStack() as stack:
        source = stack.enter_context(standard_input()) if path is None else Source(path)
        total = None if source.compression else source.path.stat().st_size
        with source.open() as beginning:
            expect_export(beginning, source.name)  # before a store is made for nothing
        file = stack.enter_context(source.open())
        return _run(work(file, source.name, total))


def migrate(url: str, output: str) -> int:
    async def work() -> int:
        async with open_store(url, migrate=True) as store:
            schema = (await store.stats()).schema
            _say(output, {"store": store.url, "schema": schema})
        return CLEAN

    return _run(work())


def delete(url: str, which: Which, output: str, *, yes: bool, vacuum: bool) -> int:
    async def work() -> int:
        async with open_store(url, create=False) as store:
            moment = time.time() - (which.older_than_days or 0) * DAY_SECONDS
            if not yes:
                _ask(await _meant(store, which, moment))
            missing = []
            if which.conversations:
                there = [name for name in which.conversations if await store.delete(name)]
                deleted = len(there)
                missing = [name for name in which.conversations if name not in there]
            else:
                deleted = await store.delete_unchanged_since(moment)
            if vacuum:
                await store.vacuum()
            _say(output, {"store": store.url, "deleted": deleted})
        for name in missing:
            _complain(f"There is no conversation {name!r}.")
        return TROUBLE if missing else CLEAN

    return _run(work())


async def _meant(store: Store, which: Which, moment: float) -> str:
    """What would be deleted, in words."""
    if which.conversations:
        return f"{', '.join(map(repr, which.conversations))} from {store.url}"
    count = 0
    async for summary in store.conversations():
        count += summary.changed < moment
    return f"{_many(count, 'conversation')} from {store.url}"


def _ask(what: str) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise LockstitchError(f"This would delete {printable(what)}. Say --yes to do it.")
    click.confirm(f"Delete {printable(what)}, for good?", abort=True, err=True)


def key() -> int:
    print(new_key())
    return CLEAN


def rotate(url: str, output: str, *, vacuum: bool) -> int:
    async def work() -> int:
        keys = keys_from_environment()
        if keys is None:
            raise NotAKey(
                f"There is no key to encrypt with. Set {KEY_FILE_VARIABLE} to a file with the new"
                f" key in the first line and the old ones after it, or {KEY_VARIABLE} to the same."
            )
        async with open_store(url, keys=keys, create=False) as store:
            from lockstitch.store.rotation import rotate as sealed_again
            from lockstitch.store.sealing import Sealed

            assert isinstance(store, Sealed)
            with _progress("Sealing", (await store.stats()).records) as advance:
                done = await sealed_again(store, advance=advance)
            if vacuum:
                await store.vacuum()
            _say(
                output,
                {
                    "store": store.url,
                    "key": keys.first.id.hex(),
                    "records": done.records,
                    "sealed": done.resealed,
                },
            )
        return CLEAN

    return _run(work())


def _run(work: Coroutine[Any, Any, int]) -> int:
    return asyncio.run(work)


def _say(output: str, told: dict[str, Any]) -> None:
    """Print what was done or found: a line for each thing, or JSON."""
    if output == "json":
        print(json.dumps({name.replace(" ", "_"): value for name, value in told.items()}, indent=2))
        return
    wide = max(map(len, told))
    for name, value in told.items():
        if isinstance(value, list):
            value = len(value)  # noqa: PLW2901
        shown = f"{value:,}" if isinstance(value, int) else printable(value)
        print(f"{name:<{wide}}  {shown}")


def _complain(text: str) -> None:
    sys.stdout.flush()
    complain(text)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


@contextmanager
def _progress(what: str, total: int | None) -> Iterator[Advance | None]:
    """A progress bar on a terminal, if it is known how much there is to do."""
    if total is None or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=total, label=what, file=sys.stderr) as bar:
        yield bar.update


@contextmanager
def _beside(target: Path) -> Iterator[BinaryIO]:
    """A new file beside the target, which takes its place when all went well. What is exported may
    be what an encrypted store hides, so nobody else may read it."""
    scratch = None
    try:
        # As `mkstemp` makes it: for its owner alone.
        descriptor, scratch = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, target)
    except OSError as problem:
        why, advice = f"{problem.strerror}", "Name a file in a folder that you may write to"
        if not target.parent.is_dir():
            why, advice = f"there is no folder {target.parent}", "Create it, or name another file"
        raise CannotWrite(
            f"{target} cannot be written: {why}. {advice}, or - for standard output."
        ) from None
    finally:
        if scratch is not None:
            Path(scratch).unlink(missing_ok=True)
