"""TLS files: every mistake in words, and a wrong renewal changes nothing."""

from __future__ import annotations

import pytest

from lockstitch.gateway.config import Server
from lockstitch.gateway.running import CannotServe
from lockstitch.gateway.running.tls import renew, tls_context
from tests.gateway.running.certificates import write_certificate


def server(certificate, key):
    return Server(tls_certificate=str(certificate), tls_key=str(key))


def test_without_files_there_is_no_tls():
    assert tls_context(Server()) is None


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a.pem", "b.key"), r"b\.key is not the key of the certificate in .*a\.pem"),
        (("a.pem", "hidden.key"), r"hidden\.key has a password"),
        (("nothing.pem", "a.key"), r"tls_certificate: .*nothing\.pem cannot be read: No such file"),
        (
            ("a.pem", "nothing.key"),
            r"tls_key: .*nothing\.key cannot be read: No such file.*Name the file with the private",
        ),
        (("binary.pem", "a.key"), r"tls_certificate: .*binary\.pem holds no PEM.*openssl x509 "),
        (("a.pem", "binary.pem"), r"tls_key: .*binary\.pem holds no PEM.*openssl pkey "),
        (("a.pem", "a.pem"), r"tls_key: .*a\.pem holds no private key, but something else"),
        (("a.key", "a.pem"), r"tls_certificate: .*a\.key holds no certificate, but something else"),
        (("torn.pem", "a.key"), r"torn\.pem is damaged"),
    ],
)
def test_a_mistake_is_told_in_words(tmp_path, names, said):
    write_certificate(tmp_path, "a")
    write_certificate(tmp_path, "b")
    write_certificate(tmp_path, "hidden", password=b"sesame")
    (tmp_path / "binary.pem").write_bytes(b"\x30\x82\x00")
    (tmp_path / "torn.pem").write_text("-----BEGIN CERTIFICATE-----\nMIIB\n")
    with pytest.raises(CannotServe, match=said):
        tls_context(server(*(tmp_path / name for name in names)))


def test_half_a_renewal_is_refused(tmp_path):
    certificate, key = write_certificate(tmp_path, "a")
    write_certificate(tmp_path, "b")
    context = tls_context(server(certificate, key))
    with pytest.raises(CannotServe):
        renew(context, server(tmp_path / "b.pem", key))
    renew(context, server(certificate, key))
