"""Binds the sockets of a gateway, and says in words why it cannot."""

from __future__ import annotations

import errno
import os
import socket
import sys
from contextlib import suppress
from typing import Any, Final

from lockstitch.gateway.config.model import Server
from lockstitch.gateway.running.contract import CannotServe

BACKLOG: Final = 1024
"""Connections that may wait to be accepted: everybody who comes back after a restart."""

BALANCES: Final = sys.platform == "linux" and hasattr(socket, "SO_REUSEPORT")
"""Does the system spread connections over the sockets of one port? Elsewhere workers share one."""

_NOT_HERE: Final = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}


def bound(server: Server, *, sets: int = 1) -> list[list[socket.socket]]:
    """Listening sockets: for each of ``sets`` workers one for each address of the host. Raises
    `CannotServe`."""
    addresses = _addresses(server)
    # Without sharing the port at first: two gateways that shared one would each get half of the
    # connections, and nobody would know why.
    first, port = _every(addresses, server, server.port, shared=False)
    if sets == 1 or not BALANCES:
        return [first for _ in range(sets)]
    close(first)
    return [_every(addresses, server, port, shared=True)[0] for _ in range(sets)]


def close(sockets: list[socket.socket]) -> None:
    for one in sockets:
        with suppress(OSError):
            one.close()


def port_of(sockets: list[socket.socket]) -> int:
    return int(sockets[0].getsockname()[1])


_Address = tuple[socket.AddressFamily, tuple[Any, ...]]


def _addresses(server: Server) -> list[_Address]:
    try:
        found = socket.getaddrinfo(
            server.host or None, server.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (socket.gaierror, UnicodeError):
        raise CannotServe(
            f"There is no address {server.host!r} here. Choose another host: 127.0.0.1 for this"
            " machine alone, 0.0.0.0 for everybody."
        ) from None
    every = ((family, tuple(address)) for family, _, _, _, address in found)
    return list(dict.fromkeys(every))


def _every(
    addresses: list[_Address], server: Server, port: int, *, shared: bool
) -> tuple[list[socket.socket], int]:
    sockets: list[socket.socket] = []
    absent: OSError | None = None
    for family, address in addresses:
        try:
            sockets.append(_one(family, (address[0], port, *address[2:]), shared=shared))
        except OSError as problem:
            if problem.errno in _NOT_HERE:  # such as ::1 where IPv6 is off
                absent = problem
                continue
            close(sockets)
            raise CannotServe(_why(problem, server, port)) from None
        port = port or port_of(sockets)
    if not sockets:
        raise CannotServe(_why(absent or OSError(), server, port))
    return sockets, port


def _one(family: socket.AddressFamily, address: tuple[Any, ...], *, shared: bool) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            # Elsewhere it would let two processes have one port.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        # Now, and not when a worker is ready: only a port that is listened on is taken for sure.
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def _why(problem: OSError, server: Server, port: int) -> str:
    place = f"{server.host}:{port}"
    match problem.errno:
        case errno.EADDRINUSE:
            return (
                f"{place} is in use: another program listens there, or this gateway already does."
                " Stop it, or choose another port (--port; 0 takes any that is free)."
            )
        case errno.EACCES | errno.EPERM:
            return (
                f"{place} is not allowed: ports below 1024 belong to the system. Choose another"
                " port (--port), and let a proxy or the firewall lead there."
            )
        case errno.EADDRNOTAVAIL | errno.EAFNOSUPPORT:
            return (
                f"{server.host} is no address of this machine. Choose another (--host): 127.0.0.1"
                " for this machine alone, 0.0.0.0 for everybody."
            )
        case _:
            return f"Cannot listen on {place}: {problem.strerror or problem}."
