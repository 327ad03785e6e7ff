"""What a running gateway is told to do, and how a worker is told: over its standard input.

Not by signals: whoever stops a service often signals every process of it, and then a worker could
not tell a second order from a second copy of the first. And when the parent is gone the input ends,
which is an order, too."""

from __future__ import annotations

import asyncio
import struct
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from lockstitch.gateway.config.model import Config


class Begin(Struct, frozen=True, tag=True, kw_only=True):
    """Serve. A worker's first order."""

    config: Config
    gateway: str
    sockets: list[int]
    """The numbers of open files."""


class Reload(Struct, frozen=True, tag=True):
    """Go on with this configuration."""

    config: Config


class Drain(Struct, frozen=True, tag=True):
    """Accept no more, finish what runs, end."""


class Stop(Struct, frozen=True, tag=True):
    """End at once."""


Order: TypeAlias = Reload | Drain | Stop
Orders: TypeAlias = "asyncio.Queue[Order]"

_LENGTH: Final = struct.Struct("!I")
_decode: Final = msgspec.msgpack.Decoder(Begin | Reload | Drain | Stop).decode


def written(order: Begin | Order) -> bytes:
    """An order, for a worker's input."""
    said = msgspec.msgpack.encode(order)
    return _LENGTH.pack(len(said)) + said


async def read(reader: asyncio.StreamReader) -> Begin | Order | None:
    """The next order; None: whoever gave them is gone."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        order: Begin | Order = _decode(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return order
