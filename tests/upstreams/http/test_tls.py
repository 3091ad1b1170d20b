"""The TLS contexts of servers: made once, made again when a file changes, and clear about a file that can't be used."""

from __future__ import annotations

import os
import shutil
import ssl
from pathlib import Path

import pytest

from pactgate.config.sections.network import TlsSettings
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.tls import TlsContexts
from tests.support.certificates import Authority


def refusal(settings: TlsSettings) -> str:
    with pytest.raises(GatewayFailure) as caught:
        TlsContexts().for_settings("files", settings)
    assert caught.value.kind is Kind.INVALID_CONFIG
    assert caught.value.details == {"permanent": True}
    assert "files" in caught.value.message
    return caught.value.message


def test_a_context_is_made_once_and_again_when_a_file_has_changed(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("client")
    settings = TlsSettings(ca_file=str(authority.file), cert_file=str(certificate), key_file=str(key))
    contexts = TlsContexts()
    first = contexts.for_settings("files", settings)
    assert contexts.for_settings("other", settings) is first
    newer, newer_key = authority.issue("newer")
    shutil.copy(newer, certificate)
    shutil.copy(newer_key, key)
    os.utime(key, ns=(1, 1))
    assert contexts.for_settings("files", settings) is not first


def test_a_file_of_authorities_replaces_those_of_the_system(tmp_path: Path) -> None:
    context = TlsContexts().for_settings("files", TlsSettings(ca_file=str(Authority(tmp_path).file)))
    assert [dict(one["subject"][0])["commonName"] for one in context.get_ca_certs()] == ["authority"]  # type: ignore[arg-type]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_ssl_cert_file_names_the_authorities_of_all_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(Authority(tmp_path).file))
    assert [one["subject"] for one in TlsContexts().default().get_ca_certs()] == [((("commonName", "authority"),),)]


def test_missing_and_unusable_files_are_named_by_their_setting(tmp_path: Path) -> None:
    certificate, key = map(str, Authority(tmp_path).issue("client"))
    other = str(Authority(tmp_path, "other").issue("client")[1])
    junk = tmp_path / "junk.pem"
    junk.write_text("no certificate at all")
    gone = str(tmp_path / "gone.pem")
    assert "`tls.caFile`" in refusal(TlsSettings(ca_file=gone))
    assert "no such file" in refusal(TlsSettings(ca_file=gone))
    assert "`tls.caFile`" in refusal(TlsSettings(ca_file=str(junk)))
    assert "`tls.certFile` of files can't be used: no such file" in refusal(TlsSettings(cert_file=gone, key_file=key))
    assert "`tls.keyFile` of files can't be used: no such file" in refusal(
        TlsSettings(cert_file=certificate, key_file=gone)
    )
    assert "not the private key of the certificate" in refusal(TlsSettings(cert_file=certificate, key_file=other))
    assert "PEM" in refusal(TlsSettings(cert_file=str(junk), key_file=key))
    assert "PEM" in refusal(TlsSettings(cert_file=certificate))


def test_a_key_with_a_password_is_opened_with_it_and_nobody_is_asked_on_the_terminal(tmp_path: Path) -> None:
    certificate, key = map(str, Authority(tmp_path).issue("client", password="open sesame"))
    good = TlsSettings(cert_file=certificate, key_file=key, key_password="open sesame")
    assert TlsContexts().for_settings("files", good)
    assert "does it need `tls.keyPassword`?" in refusal(TlsSettings(cert_file=certificate, key_file=key))
    wrong = refusal(TlsSettings(cert_file=certificate, key_file=key, key_password="wrong-one"))
    assert "is `tls.keyPassword` right?" in wrong
    assert "wrong-one" not in wrong
