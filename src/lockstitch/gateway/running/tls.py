"""TLS from files, with errors in words."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Final

from msgspec import Struct

from lockstitch.gateway.config.model import Server
from lockstitch.gateway.running.contract import CannotServe

LOOKED_AT_BYTES: Final = 1024 * 1024
"""A certificate with all those that lead to its root has a few KB."""


def tls_context(server: Server) -> ssl.SSLContext | None:
    """What connections are secured with; None: nothing. Raises `CannotServe`."""
    if server.tls_certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    renew(context, server)
    return context


def renew(context: ssl.SSLContext, server: Server) -> None:
    """Read the files again: new connections get what is in them now. Raises `CannotServe`, and
    what was there stays."""
    certificate, key = server.tls_certificate, server.tls_key
    assert certificate is not None
    _check(_CERTIFICATE, certificate)
    _check(_KEY, key or certificate)
    # A file of a pair that does not fit must not replace half of a pair that does.
    _into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate, key)
    _into(context, certificate, key)


class _Kind(Struct, frozen=True, kw_only=True):
    """What a file is to hold."""

    setting: str
    what: str
    begins: re.Pattern[bytes]
    converted_by: str


_CERTIFICATE: Final = _Kind(
    setting="tls_certificate",
    what="certificate",
    begins=re.compile(rb"-----BEGIN ([A-Z0-9]+ )?CERTIFICATE-----"),
    converted_by="openssl x509 -inform der -in FILE -out FILE.pem",
)
_KEY: Final = _Kind(
    setting="tls_key",
    what="private key",
    begins=re.compile(rb"-----BEGIN ([A-Z0-9]+ )?PRIVATE KEY-----"),
    converted_by="openssl pkey -inform der -in FILE -out FILE.pem",
)


def _check(kind: _Kind, path: str) -> None:
    try:
        with Path(path).open("rb") as file:
            held = file.read(LOOKED_AT_BYTES)
    except OSError as problem:
        raise CannotServe(
            f"server.{kind.setting}: {path} cannot be read: {problem.strerror}. Name the file with"
            f" the {kind.what}, and let whoever runs the gateway read it."
        ) from None
    if kind.begins.search(held):
        return
    if b"-----BEGIN " in held:
        raise CannotServe(
            f"server.{kind.setting}: {path} holds no {kind.what}, but something else. Are"
            " tls_certificate and tls_key exchanged?"
        )
    raise CannotServe(
        f"server.{kind.setting}: {path} holds no PEM (-----BEGIN …). If it is the {kind.what} in"
        f" another form, convert it: {kind.converted_by}"
    )


def _into(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except _HasPassword:
        raise CannotServe(
            f"server.tls_key: {key} has a password. Nobody is there to type it when the gateway"
            " starts: remove it (openssl pkey -in FILE -out FILE), and let only its owner read the"
            " file."
        ) from None
    except ssl.SSLError as problem:
        fits = "KEY_VALUES_MISMATCH" in str(problem)
        why = (
            f"is not the key of the certificate in {certificate}. Each certificate has its own."
            if fits
            else f"or {certificate} is damaged, or not what its name says."
        )
        raise CannotServe(f"server.tls_key: {key} {why}") from None


class _HasPassword(Exception):
    """The key is encrypted."""


def _no_password() -> str:
    raise _HasPassword
