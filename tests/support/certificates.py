"""A certificate of our own for 127.0.0.1 and `localhost`, made when a test needs one."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest


def tls_pair(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The context of a server with a self-made certificate, and that of a client that trusts it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("TLS IS NOT TESTED: the `openssl` program is missing")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=test", "-days", "2", "-addext", names, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=str(certificate))
