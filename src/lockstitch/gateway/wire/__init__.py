"""The wire: lines to upstreams, and outlets to clients. Bytes in callbacks, no task for an event.

It knows nothing of requests, events or the journal."""

from __future__ import annotations

from lockstitch.gateway.wire.client_socket import ClientSocket
from lockstitch.gateway.wire.client_stream import ClientStream
from lockstitch.gateway.wire.flow import Flow
from lockstitch.gateway.wire.heads import NotABase, Unwritable
from lockstitch.gateway.wire.http_pool import HttpLimits, HttpLines
from lockstitch.gateway.wire.socket_line import (
    HandshakeRefused,
    SocketHearing,
    SocketLimits,
    UpstreamSocket,
    open_socket,
)

__all__ = [
    "ClientSocket",
    "ClientStream",
    "Flow",
    "HandshakeRefused",
    "HttpLimits",
    "HttpLines",
    "NotABase",
    "SocketHearing",
    "SocketLimits",
    "Unwritable",
    "UpstreamSocket",
    "open_socket",
]
