"""Short words for the tests of stores: a store with something in it, and what it holds."""

from __future__ import annotations

from lockstitch.core.records import Name, Naming, Record
from lockstitch.store.contract import Store
from lockstitch.store.keys import Key, Keys

LARGE = b'{"large":"' + b"x" * 10_000 + b'"}'


def a_key(n: int) -> Key:
    """The nth key, the same each time."""
    return Key(bytes([n]) * 64)


def some_keys(*numbers: int) -> Keys:
    return Keys(map(a_key, numbers))


async def keep(store: Store, conversation: str, *records: Record) -> None:
    """Append records, and let the conversation go."""
    claim = await store.claim(conversation, owner="test", seconds=60)
    await store.append(claim, claim.length, records)
    await store.release(claim)


async def held(store: Store) -> dict[str, list[Record]]:
    """All that a store holds."""
    return {
        summary.conversation: [record async for record in store.read(summary.conversation)]
        async for summary in store.conversations()
    }


def odd_records() -> list[Record]:
    """Records that an export could lose something of."""
    names = (Name(Naming.CALL, "call\0\u2028"), Name(Naming.RESPONSE, "resp \U0001f9f5"))
    return [
        Record(1, b'{"fact":"opened"}', None, (), 1.5),
        Record(2, b"{}", b'{"text":"\\u00e9 \xc3\xa9\\n"}', names, 1 / 3),
        Record(3, b"{ }", b"", (), 1_234_567_890.123456),
        Record(4, b"", b"\xff\0\n\r", names[:1], 2.0),
        Record(5, bytes(range(256)), "line\u2028end\r\n".encode(), (), 3.0),
        Record(6, b"{}", LARGE, (), 4.0),
        Record(7, b"{}", LARGE, (), 5.0),
    ]
