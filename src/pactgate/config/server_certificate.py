"""The TLS context of the gateway's own certificate, for its clients: TLS 1.2 and newer with forward secrecy, HTTP/1.1 only.

Must not: ask for a password on the terminal, or show the content of a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pactgate.config.file_access import FileState, file_state, other_writers, read_regular_file
from pactgate.config.problems import UnreadableError, shown_path

if TYPE_CHECKING:
    import ssl

_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2 (RFC 9325, section 4.2); those of TLS 1.3 are all good."""


class ServerCertificate(NamedTuple):
    """The files of `listen.tls`."""

    certificate: str
    key: str
    client_ca: str | None = None

    def states(self) -> list[FileState | None]:
        """Tell one state of the files from another."""
        return [file_state(path) for path in self if path is not None]


class CertificateError(Exception):
    """A file of `listen.tls` that can't be used. `setting` names it as the configuration does."""

    def __init__(self, setting: str, message: str, hint: str) -> None:
        super().__init__(f"listen.tls.{setting}: {message} {hint}")
        self.setting = setting
        self.message = message
        self.hint = hint


def load_certificate(files: ServerCertificate) -> ssl.SSLContext:
    """Raises CertificateError."""
    import ssl  # only gateways with a certificate need it

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols(["http/1.1"])
    for setting, path in (("certificate", files.certificate), ("key", files.key), ("clientCa", files.client_ca)):
        if path is not None:
            _require_readable(setting, path)
    if (writers := other_writers(files.key)) is not None:
        raise CertificateError(
            "key", f"{writers.who} may write the private key {shown_path(files.key)}.", f"{writers.hint}."
        )
    try:
        context.load_cert_chain(files.certificate, files.key, password=lambda: "")
    except (ssl.SSLError, ValueError) as problem:
        raise _unusable_pair(files, getattr(problem, "reason", None)) from None
    if files.client_ca is not None:
        try:
            context.load_verify_locations(files.client_ca)
        except (ssl.SSLError, ValueError):
            message = f"{shown_path(files.client_ca)} holds no certificate in PEM form."
            raise CertificateError("clientCa", message, "Name the certificate of an authority.") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _require_readable(setting: str, path: str) -> None:
    """OpenSSL does not say what is wrong with a file, and waits for a pipe."""
    try:
        read_regular_file(path, 1)
    except UnreadableError as problem:
        raise CertificateError(setting, f"{shown_path(path)}: {problem.message}", problem.hint) from None


def _unusable_pair(files: ServerCertificate, reason: str | None) -> CertificateError:
    """OpenSSL's own reasons say little, so they are put in other words."""
    import ssl

    if reason == "KEY_VALUES_MISMATCH":
        return CertificateError(
            "key", f"{shown_path(files.key)} is not the private key of the certificate.", "Name the other."
        )
    try:
        ssl.create_default_context(cafile=files.certificate)
    except (ssl.SSLError, ValueError):
        message = f"{shown_path(files.certificate)} holds no certificate in PEM form."
        return CertificateError("certificate", message, "Name the certificate, then its chain, in one PEM file.")
    message = f"{shown_path(files.key)} holds no private key in PEM form that needs no password."
    return CertificateError("key", message, "Remove the password with: openssl pkey -in KEY -out NEW_KEY.")
