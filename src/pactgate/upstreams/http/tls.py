"""TLS contexts for requests to servers: one for all servers without settings of their own, and one for each `tls` setting.

The default context trusts the authorities of the system, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`. A file that has changed is read
again before the next new connection, so that renewed certificates need no restart. Must not: ask for a password on the terminal, or show
the content of a file.
"""

from __future__ import annotations

import os
import ssl
from typing import Final

from pactgate.config.file_access import FileState, file_state
from pactgate.config.sections.network import TlsSettings
from pactgate.core.failures import GatewayFailure, Kind

_MAX_CONTEXTS: Final = 1000
_CERTIFICATE_ALERTS: Final = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")


class TlsContexts:
    """Made when they are needed: a gateway without https servers loads no certificates."""

    def __init__(self, default: ssl.SSLContext | None = None) -> None:
        self._default = default
        self._contexts: dict[TlsSettings, tuple[list[FileState | None], ssl.SSLContext]] = {}

    def default(self) -> ssl.SSLContext:
        if self._default is None:
            self._default = _http1_only(ssl.create_default_context())
        return self._default

    def for_settings(self, server: str, settings: TlsSettings | None) -> ssl.SSLContext:
        """Raises an INVALID_CONFIG failure that names the setting that can't be used."""
        if settings is None:
            return self.default()
        paths = (settings.ca_file, settings.cert_file, settings.key_file)
        states = [
            file_state(path) for path in paths if path is not None
        ]  # a missing file has none: reading it says why
        stored = self._contexts.get(settings)
        if stored is not None and stored[0] == states:
            return stored[1]
        context = _make(server, settings)
        if len(self._contexts) >= _MAX_CONTEXTS:
            self._contexts.clear()
        self._contexts[settings] = (states, context)
        return context


def why_untrusted(problem: ssl.SSLCertVerificationError, server: str, settings: TlsSettings | None) -> str:
    """Why a server's certificate was refused, and what the operator can do about it."""
    why = f"its certificate is not valid: {problem.verify_message}; "
    if settings is not None and settings.ca_file is not None:
        return f"{why}was it signed by an authority in `tls.caFile` of {server}?"
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        if (path := os.environ.get(name)) and not os.access(path, os.R_OK):
            return f"{why}{name} names a file that can't be read"
    return f"{why}if a private authority signed it, name that authority's file in `tls.caFile` of {server} or in SSL_CERT_FILE"


def certificate_refused(problem: ssl.SSLError, server: str, settings: TlsSettings | None) -> GatewayFailure | None:
    """What a TLS alert about the client certificate means; None for any other problem. The server has read no request then."""
    reason = problem.reason or ""
    if "ALERT" not in reason or not any(word in reason for word in _CERTIFICATE_ALERTS):
        return None
    if settings is None or settings.cert_file is None:
        why = f"it asks for a client certificate; name one in `tls.certFile` of {server}"
    else:
        why = f"it refused the client certificate in `tls.certFile` of {server}"
    return GatewayFailure(
        Kind.CONNECTION_FAILED, f"{server} can't be reached: {why}.", server=server, details={"permanent": True}
    )


def _http1_only(context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_alpn_protocols(["http/1.1"])
    return context


def _make(server: str, settings: TlsSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ValueError) as problem:
        raise _unusable(server, "caFile", _why(problem, "it holds no certificate in PEM form")) from problem
    if settings.cert_file is not None:
        password = settings.key_password or ""  # without one, OpenSSL would ask on the terminal
        try:
            context.load_cert_chain(settings.cert_file, settings.key_file, password=lambda: password)
        except (OSError, ValueError) as problem:
            raise _unusable(server, *_certificate_problem(settings, problem)) from problem
    return _http1_only(context)


def _certificate_problem(settings: TlsSettings, problem: OSError | ValueError) -> tuple[str, str]:
    assert settings.cert_file is not None
    key = "keyFile" if settings.key_file is not None else "certFile"
    if getattr(problem, "reason", None) == "KEY_VALUES_MISMATCH":
        return key, "it is not the private key of the certificate"
    if not os.access(settings.cert_file, os.R_OK):
        return "certFile", _why(problem, "it can't be read")
    password = "is `tls.keyPassword` right?" if settings.key_password else "does it need `tls.keyPassword`?"
    return key, _why(problem, f"a certificate and its private key in PEM form are needed; {password}")


def _why(problem: OSError | ValueError, otherwise: str) -> str:
    """The system's reason where a file can't be opened. OpenSSL's own reasons say little, so they are put in other words."""
    if isinstance(problem, OSError) and not isinstance(problem, ssl.SSLError) and problem.errno:
        return os.strerror(problem.errno).lower()
    return otherwise


def _unusable(server: str, setting: str, why: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.INVALID_CONFIG,
        f"`tls.{setting}` of {server} can't be used: {why}.",
        server=server,
        details={"permanent": True},
    )
