"""What the commands of `lockstitch store` do, and what they print."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import typer

from lockstitch.cli.app import CLEAN, FINDINGS, TROUBLE
from lockstitch.cli.places import Kind, place, writing_into
from lockstitch.cli.reporting import printable
from lockstitch.core.errors import LockstitchError
from lockstitch.sessions.source import Source, standard_input
from lockstitch.store.contract import Store, Summary
from lockstitch.store.errors import CannotWrite, NotAKey
from lockstitch.store.keys import KEY_FILE_VARIABLE, KEY_VARIABLE, keys_from_environment, new_key
from lockstitch.store.opening import open_store
from lockstitch.store.transfer import expect_export, export_store, import_store

DAY_SECONDS = 86_400

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
    """A line for each, as it comes. The name is last: how wide names are is not known before."""
    count = 0
    async for one in store.conversations():
        count += 1
        changed = datetime.fromtimestamp(one.changed, UTC)
        print(f"{changed:%Y-%m-%d %H:%M:%S}  {one.length:>7,}  {printable(one.conversation)}")
    if not count:
        _complain(f"There is no conversation in {store.url}.")


async def _list_as_json(store: Store) -> None:
    """One document, of which no more than a line is in memory."""
    print(f'{{"store": {json.dumps(store.url)}, "conversations": [', end="")
    between = "\n"
    async for one in store.conversations():
        print(between, json.dumps(_listed(one)), sep="", end="")
        between = ",\n"
    print("\n]}")


def _listed(one: Summary) -> dict[str, Any]:
    return {
        "conversation": one.conversation,
        "records": one.length,
        "created": one.created,
        "changed": one.changed,
    }


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
    typer.confirm(f"Delete {printable(what)}, for good?", abort=True, err=True)


def key() -> int:
    print(new_key())
    return CLEAN


def rotate(url: str, output: str, *, vacuum: bool) -> int:
    async def work() -> int:
        keys = keys_from_environment()
        if keys is None:
            raise NotAKey(
                f"There is no key to seal with. Set {KEY_FILE_VARIABLE} to a file with the new key"
                f" in the first line and the old ones behind it, or {KEY_VARIABLE} to the same."
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
    print(f"lockstitch: {printable(text)}", file=sys.stderr)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


@contextmanager
def _progress(what: str, total: int | None) -> Iterator[Advance | None]:
    """A bar, if somebody is there to see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda amount: progress.update(task, advance=amount)


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
