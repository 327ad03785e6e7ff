"""Sockets: bound before anything else is done, or a reason in words."""

from __future__ import annotations

import errno
import socket

import pytest

from lockstitch.gateway.config import Server
from lockstitch.gateway.running import CannotServe
from lockstitch.gateway.running.sockets import BALANCES, bound, close, port_of


def test_every_worker_has_its_own_on_the_same_port():
    made = bound(Server(port=0), sets=3)
    try:
        assert len({port_of(one) for one in made}) == 1
        numbers = {one[0].fileno() for one in made}
        assert len(numbers) == (3 if BALANCES else 1)
    finally:
        for one in made:
            close(one)


@pytest.mark.parametrize("sets", [1, 2])
def test_a_port_that_is_shared_is_still_in_use(sets):
    first = bound(Server(port=0), sets=2)
    try:
        with pytest.raises(CannotServe, match="is in use"):
            bound(Server(port=port_of(first[0])), sets=sets)
    finally:
        for one in first:
            close(one)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EACCES, "ports below 1024 belong to the system"),
        (errno.EADDRINUSE, "is in use"),
        (errno.EADDRNOTAVAIL, "is no address of this machine"),
        (errno.ENOBUFS, "Cannot listen on 127.0.0.1:80: No buffer space"),
    ],
)
def test_why_not_in_words(monkeypatch, number, said):
    made = []

    class Refusing(socket.socket):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

        def bind(self, address):
            raise OSError(number, "No buffer space")

    monkeypatch.setattr("lockstitch.gateway.running.sockets.socket.socket", Refusing)
    with pytest.raises(CannotServe, match=said):
        bound(Server(port=80))
    assert made
    assert all(one.fileno() == -1 for one in made)


def test_an_address_that_is_not_here_is_passed_over(monkeypatch):
    found = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::1", 0, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    (made,) = bound(Server(host="both", port=0))
    try:
        assert [one.getsockname()[0] for one in made] == ["127.0.0.1"]
    finally:
        close(made)
