"""The TLS context of the gateway's certificate. What can't be used: `sections/test_listen.py`."""

from __future__ import annotations

import ssl
from pathlib import Path

from pactgate.config.server_certificate import ServerCertificate, load_certificate
from tests.support.certificates import Authority


def test_the_context_speaks_tls_1_2_and_newer_with_forward_secrecy(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path).issue("localhost")
    context = load_certificate(ServerCertificate(str(certificate), str(key)))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.verify_mode == ssl.CERT_NONE
    names = [cipher["name"] for cipher in context.get_ciphers()]
    assert all(name.startswith(("TLS_", "ECDHE-")) for name in names)


def test_with_an_authority_of_clients_a_certificate_is_demanded(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("localhost")
    context = load_certificate(ServerCertificate(str(certificate), str(key), str(authority.file)))
    assert context.verify_mode == ssl.CERT_REQUIRED


def test_a_file_that_is_replaced_has_another_state(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path).issue("localhost")
    files = ServerCertificate(str(certificate), str(key))
    before = files.states()
    key.unlink()
    assert files.states() != before
