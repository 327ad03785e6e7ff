"""TLS from files, with errors in words."""

from __future__ import annotations

import ssl
from pathlib import Path

from lockstitch.gateway.config.model import Server
from lockstitch.gateway.running.contract import CannotServe


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
    for path, what in ((certificate, "tls_certificate"), (key or certificate, "tls_key")):
        _readable(path, what)
    # A file of a pair that does not fit must not replace half of a pair that does.
    _into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate, key)
    _into(context, certificate, key)


def _readable(path: str, what: str) -> None:
    try:
        with Path(path).open("rb") as file:
            is_text = b"-----BEGIN " in file.read(1024 * 1024)
    except OSError as problem:
        raise CannotServe(f"{what}: {path} cannot be read: {problem.strerror}.") from None
    if not is_text:
        raise CannotServe(
            f"{what}: {path} holds no PEM (-----BEGIN …). Convert it:"
            f" openssl x509 -inform der -in FILE -out FILE.pem"
        )


def _into(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except _HasPassword:
        raise CannotServe(
            f"tls_key: {key} has a password. Nobody is there to type it when the gateway starts:"
            " remove it (openssl pkey -in FILE -out FILE), and let only its owner read the file."
        ) from None
    except ssl.SSLError as problem:
        fits = "KEY_VALUES_MISMATCH" in str(problem)
        why = (
            f"is not the key of the certificate in {certificate}. Each certificate has its own."
            if fits
            else f"or {certificate} is damaged, or not what its name says."
        )
        raise CannotServe(f"tls_key: {key} {why}") from None


class _HasPassword(Exception):
    """The key is encrypted."""


def _no_password() -> str:
    raise _HasPassword
