"""Certificates made when a test needs them: a self-signed one for 127.0.0.1 and `localhost`, and an authority that signs others."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def _openssl(*arguments: str) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("TLS IS NOT TESTED: the `openssl` program is missing")
    subprocess.run([openssl, *arguments], check=True, capture_output=True, timeout=30)


def tls_pair(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The context of a server with a self-signed certificate, and that of a client that trusts it."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost"
    made = ("-subj", "/CN=test", "-days", "2", "-addext", names, "-keyout", str(key), "-out", str(certificate))
    _openssl("req", "-x509", *_KEY, "-nodes", *made)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=str(certificate))


class Authority:
    """A certificate authority of a test. `file` is its certificate."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self.file = folder / f"{name}.pem"
        self._key = folder / f"{name}.key"
        self._name = name
        made = ("-subj", f"/CN={name}", "-days", "2", "-keyout", str(self._key), "-out", str(self.file))
        _openssl("req", "-x509", *_KEY, "-nodes", *made)

    def issue(self, name: str, *, password: str = "") -> tuple[Path, Path]:
        """A certificate for a host or a client, and its private key."""
        certificate, key = (self._folder / f"{self._name}-{name}.{ending}" for ending in ("pem", "key"))
        kind = "IP" if name[0].isdigit() else "DNS"
        protection = ("-passout", f"pass:{password}") if password else ("-nodes",)
        made = ("-subj", f"/CN={name}", "-days", "2", "-addext", f"subjectAltName={kind}:{name}")
        signed = ("-CA", str(self.file), "-CAkey", str(self._key), "-keyout", str(key), "-out", str(certificate))
        _openssl("req", "-x509", *_KEY, *protection, *made, *signed)
        return certificate, key

    def server_context(self, name: str, *, clients_of: Authority | None = None) -> ssl.SSLContext:
        """A server with a certificate for this name; with `clients_of` it demands a client certificate of that authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(name))
        if clients_of is not None:
            context.load_verify_locations(clients_of.file)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.file))
