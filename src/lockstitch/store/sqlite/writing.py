"""What is written to a SQLite store, inside a transaction that somebody else begins and commits.

Appends are checked at once and written together when the group is whole. Groups, the thread they
are written on and what becomes of a failure are in `writer`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import apsw
import msgspec

from lockstitch.core.records import Name, Naming, Record
from lockstitch.store.bodies import LARGE_BODY_BYTES, digest
from lockstitch.store.contract import Claim
from lockstitch.store.errors import OutOfStep
from lockstitch.store.sqlite.queries import QUERIES
from lockstitch.store.stepping import check_numbers, claim_lost, conversation_busy, out_of_step

HEADS = 2_000
"""How many conversations are remembered between appends. About 1 MB; all are forgotten at once."""

ROWS = (64, *range(16, 0, -1))
"""How many rows are inserted at once."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[tuple[Naming, str]])


def names_of(kept: bytes | None) -> tuple[Name, ...]:
    """The names of a record, as they are kept beside it."""
    if kept is None:
        return ()
    return tuple(Name(naming, name) for naming, name in _decoder.decode(kept))


def _of_many_rows(statement: str) -> Mapping[int, str]:
    """An insert of one row, as inserts of many rows, the longest first. Few are one statement.

    Each statement lets go of the interpreter's lock, and waits to have it back while the event
    loop is at work: the fewer there are, the sooner a group is committed."""
    insert, row = statement.removesuffix(";").split("VALUES")
    return {many: f"{insert}VALUES{', '.join([row] * many)}" for many in ROWS}


_APPEND_RECORDS = _of_many_rows(QUERIES["append_record"])
_APPEND_NAMES = _of_many_rows(QUERIES["append_name"])


class _Head:
    """What an append must know of its conversation."""

    __slots__ = ("id", "length", "owner", "token", "until")

    def __init__(
        self, id: int, owner: str | None, token: int | None, until: float | None, length: int
    ) -> None:
        self.id = id
        self.owner = owner
        self.token = token
        self.until = until
        self.length = length


class Writing:
    """The writer's connection, and what it remembers from one transaction to the next."""

    def __init__(self, connection: apsw.Connection, url: str, now: Callable[[], float]) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._url = url
        self._now = now
        self._moment = 0.0
        self._heads: dict[str, _Head] = {}
        self._others = -1
        self._records: list[tuple[Any, ...]] = []
        self._names: list[tuple[Any, ...]] = []

    # The transaction

    def begin(self) -> None:
        self._execute("BEGIN IMMEDIATE")
        # Changes when another process, or another connection, has committed: what we remember
        # may no longer be so.
        others = self._execute("PRAGMA data_version").get
        if others != self._others or len(self._heads) > HEADS:
            self._heads.clear()
            self._others = others
        self._moment = self._now()

    def commit(self) -> None:
        self.flush()
        self._execute("COMMIT")

    def rollback(self) -> None:
        """Leave the transaction, if SQLite has not left it already."""
        self._heads.clear()
        self._records.clear()
        self._names.clear()
        if self._connection.in_transaction:
            with contextlib.suppress(apsw.Error):  # the transaction is over even so
                self._execute("ROLLBACK")

    def flush(self) -> None:
        """Write the appends that were checked."""
        if self._records:
            self._insert(_APPEND_RECORDS, self._records)
        if self._names:
            self._insert(_APPEND_NAMES, self._names)

    def _insert(self, statements: Mapping[int, str], rows: list[tuple[Any, ...]]) -> None:
        done = 0
        for many, statement in statements.items():
            while len(rows) - done >= many:
                values = chain.from_iterable(rows[done : done + many])
                self._execute(statement, tuple(values))
                done += many
        rows.clear()

    # Claims

    def claim(self, conversation: str, owner: str, seconds: float) -> Claim:
        head = self._head(conversation)
        if head is None:
            begun = self._begin(conversation, owner, seconds)
            assert begun is not None, "nobody else writes in this transaction"
            return begun
        if head.until is not None and head.until > self._moment:
            raise conversation_busy(
                self._url,
                conversation,
                owner=head.owner or "",
                token=head.token or 0,
                seconds_left=head.until - self._moment,
            )
        head.token = token = self._execute(QUERIES["next_token"]).get
        head.owner = owner
        head.until = self._moment + seconds
        self._execute(QUERIES["claim"], (owner, token, head.until, head.id))
        return Claim(conversation, owner, token, head.length)

    def begin_conversation(
        self,
        conversation: str,
        records: Sequence[Record],
        owner: str,
        seconds: float,
        release: bool,
    ) -> Claim | None:
        """Claim one that is new, and append its first records; None if there is one already."""
        check_numbers(self._url, conversation, records)  # before it begins
        if conversation in self._heads:
            return None
        claim = self._begin(conversation, owner, seconds)
        if claim is not None:
            self.append(claim, 0, records, release)
        return claim

    def _begin(self, conversation: str, owner: str, seconds: float) -> Claim | None:
        """One that is new, and claimed; None if there is one already."""
        token = self._execute(QUERIES["next_token"]).get
        until = self._moment + seconds
        new = self._execute(
            QUERIES["begin_conversation"], (conversation, self._moment, owner, token, until)
        ).get
        if new is None:
            return None
        self._heads[conversation] = _Head(new, owner, token, until, 0)
        return Claim(conversation, owner, token, 0)

    def renew(self, claim: Claim, seconds: float) -> None:
        head = self._held(claim)
        head.until = self._moment + seconds
        self._execute(QUERIES["renew"], (head.until, head.id))

    def release(self, claim: Claim) -> None:
        head = self._head(claim.conversation)
        if head is not None and head.token == claim.token:
            head.owner = head.token = head.until = None
            self._execute(QUERIES["release"], (head.id,))

    def _held(self, claim: Claim) -> _Head:
        """The conversation, if the claim is still its claim."""
        head = self._head(claim.conversation)
        if head is not None and head.token == claim.token:
            return head
        owner = None if head is None else head.owner
        raise claim_lost(self._url, claim.conversation, there=head is not None, owner=owner)

    def _head(self, conversation: str) -> _Head | None:
        head = self._heads.get(conversation)
        if head is None:
            row: Any = self._execute(QUERIES["conversation"], (conversation,)).fetchone()
            if row is None:
                return None
            length = self._execute(QUERIES["length"], row[:1]).get
            head = self._heads[conversation] = _Head(row[0], row[1], row[2], row[3], length)
        return head

    # Records

    def append(
        self, claim: Claim, after: int, records: Sequence[Record], release: bool = False
    ) -> None:
        """Check an append, and have it written with the others of the group."""
        head = self._heads.get(claim.conversation)
        if head is None or head.token != claim.token:
            head = self._held(claim)
        if head.length != after:
            raise out_of_step(
                self._url, claim.conversation, length=head.length, after=after, count=len(records)
            )
        check_numbers(self._url, claim.conversation, records, after=after)
        for record in records:
            names = written = None
            at = record.at
            if at is None:
                at = self._moment
            else:
                written = self._moment
            body, large = self._placed(head.id, record.body)
            if record.names:
                pairs = [(name.naming.value, name.id) for name in record.names]
                names = _encoder.encode(pairs)
                self._names += [(name, naming, head.id, record.seq) for naming, name in pairs]
            self._records.append(
                (head.id, record.seq, at, written, record.payload, body, large, names)
            )
        head.length = after + len(records)
        if release:
            self.release(claim)

    def replace(self, conversation: str, records: Sequence[Record]) -> None:
        self.flush()
        head = self._head(conversation)
        length = 0 if head is None else head.length
        missing = [record.seq for record in records if not 1 <= record.seq <= length]
        if missing or head is None:
            raise OutOfStep(
                f"Conversation {conversation!r} in {self._url} has {length} records: there is"
                f" none to replace at {missing[:1]}. Nothing was written."
            )
        unused = set()
        for record in records:
            unused.add(self._execute(QUERIES["replaced_record"], (head.id, record.seq)).get)
            body, large = self._placed(head.id, record.body)
            self._execute(
                QUERIES["replace_record"], (record.payload, body, large, head.id, record.seq)
            )
        self._connection.executemany(
            QUERIES["drop_unused_body"], [(large,) for large in unused if large is not None]
        )

    def _placed(self, conversation: int, body: bytes | None) -> tuple[bytes | None, int | None]:
        """Where a body goes: into its record, or apart, where it may be already."""
        if body is None or len(body) < LARGE_BODY_BYTES:
            return body, None
        key = (conversation, digest(body))
        large = self._execute(QUERIES["large_body"], key).get
        if large is None:
            large = self._execute(QUERIES["keep_large_body"], (*key, body)).get
        return None, large

    # Forgetting

    def delete(self, conversation: str) -> bool:
        self.flush()
        head = self._head(conversation)
        if head is None:
            return False
        del self._heads[conversation]
        named: Any = self._execute(QUERIES["names_of_conversation"], (head.id,))
        for seq, kept in named:
            self._connection.executemany(
                QUERIES["delete_name"],
                [(name.id, name.naming.value, head.id, seq) for name in names_of(kept)],
            )
        for query in ("delete_records", "delete_bodies", "delete_conversation"):
            self._execute(QUERIES[query], (head.id,))
        return True

    def vacuum(self) -> None:
        """Write the whole file anew. In no transaction; everybody else waits."""
        self._execute("VACUUM")
        # What the new file is shorter by is given back when the log has been copied into it.
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def delete_unchanged(self, conversations: Sequence[str], moment: float) -> int:
        """Forget those of the conversations that were not written to since; how many."""
        self.flush()
        deleted = 0
        for conversation in conversations:
            head = self._head(conversation)
            if head is not None and self._execute(QUERIES["changed"], (head.id,)).get < moment:
                deleted += self.delete(conversation)
        return deleted
