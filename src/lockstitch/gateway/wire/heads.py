"""What a request's head is made of, checked before a byte of it is written. Pure.

Nothing that came from outside can end a line or a head here. Sending is `http_line`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from lockstitch.core.errors import LockstitchError
from lockstitch.gateway.lines import Asking, Headers, LineFailure

HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""RFC 9110, 7.6.1: these are about one connection, and are not forwarded."""

_OURS: Final = HOP_BY_HOP | {"accept-encoding", "content-length", "expect", "host"}
"""What the line itself says. `expect` would make the server wait for us to wait for it."""

_WITH_BODY: Final = frozenset({"PATCH", "POST", "PUT"})
"""RFC 9110, 8.6: their length is told even if it is nothing."""

# RFC 9110, 5.6.2 and 5.5; RFC 3986 allows nothing outside of ASCII in a target.
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_TARGET: Final = re.compile(r"/[\x21-\x22\x24-\x7e]*")


class Unwritable(LineFailure):
    """The request has something that no head can hold. Nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class NotABase(LockstitchError):
    """The address of an upstream is none that can be asked."""


class Base(Struct, frozen=True, kw_only=True):
    """Where an upstream is."""

    secure: bool
    host: str
    """As a resolver takes it: an IPv6 address without its brackets."""
    port: int
    authority: str
    """As the `host` header says it."""
    path: str
    """Stands before every target; empty, or without a slash at its end."""
    query: str


def base_of(url: str) -> Base:
    """The parts of an upstream's address, such as `https://api.example.com/v1`."""
    parts, port = _split(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise NotABase(f"{url!r} is no http:// or https:// address with a host.")
    if parts.username is not None or parts.password is not None:
        raise NotABase(
            f"The address of {parts.hostname} has a user or a password in it: use a header instead."
        )
    path = parts.path.rstrip("/")
    if not _TARGET.fullmatch(path or "/") or not _TARGET.fullmatch("/" + parts.query):
        raise NotABase(f"{url!r} has characters that must be percent-encoded.")
    secure = parts.scheme == "https"
    host = parts.hostname
    # What a resolver takes for a name can still end a line of a head.
    if not re.fullmatch(r"[\x21-\x7e]+", host):
        raise NotABase(f"The host of {url!r} is not ASCII: write it in its xn-- form.")
    shown = f"[{host}]" if ":" in host else host
    usual = 443 if secure else 80
    return Base(
        secure=secure,
        host=host,
        port=port or usual,
        authority=shown if port in {None, usual} else f"{shown}:{port}",
        path=path,
        query=parts.query,
    )


def _split(url: str) -> tuple[SplitResult, int | None]:
    # urlsplit takes line ends and tabs out without a word.
    if re.search(r"[\x00-\x20\x7f]", url):
        raise NotABase(f"{url!r} has a space or a control character in it.")
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError as error:
        raise NotABase(f"{url!r} is no address: {error}.") from error


def own_target(base: Base) -> str:
    """The target that the base itself names."""
    path = base.path or "/"
    return f"{path}?{base.query}" if base.query else path


def target_of(base: Base, target: str) -> str:
    """A target behind the base's own path; the base's own query comes first."""
    if not _TARGET.fullmatch(target):
        raise Unwritable(f"The target {target!r} is not a path of printable ASCII from / on.")
    path, _, query = target.partition("?")
    queries = "&".join(part for part in (base.query, query) if part)
    return f"{base.path}{path}?{queries}" if queries else base.path + path


def request_head(base: Base, asking: Asking) -> bytes:
    """The head of a request, to its empty line; `Unwritable` if that is not what it would be."""
    if not _TOKEN.fullmatch(asking.method):
        raise Unwritable(f"{asking.method!r} is no method.")
    lines = [
        f"{asking.method} {target_of(base, asking.target)} HTTP/1.1",
        f"host: {base.authority}",
        # The answer is looked into as it comes.
        "accept-encoding: identity",
    ]
    if asking.body or asking.method in _WITH_BODY:
        lines.append(f"content-length: {len(asking.body)}")
    lines += [f"{name}: {value}" for name, value in written(asking.headers, without=_OURS)]
    return "\r\n".join((*lines, "", "")).encode("utf-8", "surrogateescape")


def written(headers: Headers, *, without: frozenset[str]) -> list[tuple[str, str]]:
    """The headers that go on to the next hop, each of them safe to write."""
    names = [name for name, _ in headers]
    # All at once: each is safe if all of them together are, and none is empty.
    if not all(names) or not _is_safe("".join(names), "".join([value for _, value in headers])):
        for name, value in headers:
            _check(name, value)
    lowered = [name.lower() for name in names]
    if "connection" in lowered:
        without = without | named_by_connection(headers)
    return [one for name, one in zip(lowered, headers, strict=True) if name not in without]


def named_by_connection(headers: Iterable[tuple[str, str]]) -> set[str]:
    """What `connection` names is about one connection, too."""
    named: set[str] = set()
    for name, value in headers:
        if name.lower() == "connection":
            named.update(word.strip().lower() for word in value.split(","))
    return named


def _check(name: str, value: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise Unwritable(f"{name!r} is no name of a header.")
    if not _is_safe(name, value):
        # The value may be a secret.
        raise Unwritable(f"The header {name} has a character that a head cannot hold.")


def _is_safe(name: str, value: str) -> bool:
    if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
        return False
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    # Escaped bytes below 0x80 do not exist, so nothing that ends a line can hide in them.
    return True
