"""How the gateway reaches a server over HTTP: the settings `proxy` and `tls` of one entry of `mcpServers`.

A file that can't be read is worth a warning and no more: it may be there when the server is connected,
and one server must not stop the others. Must not: open a connection, or read a certificate.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from pactgate.config import value_checks
from pactgate.config.problems import ConfigFindings, Path, ValueFault
from pactgate.config.sections import Folder, Section, doc

if TYPE_CHECKING:
    from urllib.parse import SplitResult

NO_PROXY: Final = "none"
"""The value of `proxy` that makes a server direct whatever the environment says."""
_FILES: Final = ("caFile", "certFile", "keyFile")


def check_proxy(text: str) -> ValueFault | None:
    """The URL of a proxy, or `none`. A proxy without a scheme is an http proxy, as in other tools."""
    if text == NO_PROXY:
        return None
    try:
        parts = split_proxy(text)
        port = parts.port
    except ValueError:
        return ValueFault("The host or port of this proxy can't be read.", "Write it as http://proxy.example:3128.")
    if parts.scheme not in ("http", "https"):
        return ValueFault(
            "This proxy is neither http nor https; SOCKS is not supported.", "Write it as http://proxy.example:3128."
        )
    is_host = parts.hostname and parts.netloc.isascii() and parts.netloc.isprintable() and " " not in parts.netloc
    if not is_host or port == 0 or "\\" in text:
        return ValueFault("This proxy has no usable host or port.", "Write it as http://proxy.example:3128.")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        return ValueFault("A proxy has no path.", "Write it as http://proxy.example:3128.")
    return None


def split_proxy(text: str) -> SplitResult:
    from urllib.parse import urlsplit  # only configurations with a proxy need it

    return urlsplit(text if "://" in text else f"http://{text}")


def proxy_secrets(text: str) -> tuple[str, ...]:
    """The password in a proxy's URL, as written and as meant. The rest of the URL may be shown."""
    from urllib.parse import unquote

    try:
        password = split_proxy(text).password
    except ValueError:
        return ()
    return (password, unquote(password)) if password else ()


ProxyUrl = Annotated[
    str, Meta(min_length=1, max_length=2000, extra={"expand": True, "secret": proxy_secrets, "check": check_proxy})
]
KeyPassword = Annotated[
    str,
    Meta(min_length=1, max_length=1000, extra={"expand": True, "secret": True, "check": value_checks.check_env_value}),
]


class TlsSettings(Section, frozen=True, kw_only=True):
    """Certificates for one server over https, in PEM files. A changed file is read at the next new connection."""

    ca_file: Annotated[
        Folder | None, doc("Certificate authorities of the server's certificate, instead of those of the system.")
    ] = None
    cert_file: Annotated[Folder | None, doc("Client certificate (mutual TLS), with its chain.")] = None
    key_file: Annotated[Folder | None, doc("Private key of `certFile`. Default: the key is in `certFile`.")] = None
    key_password: Annotated[KeyPassword | None, doc("Password of the private key, if it has one.")] = None


ServerProxy = Annotated[
    ProxyUrl | None,
    doc(
        "Proxy for this server, as `http://user:password@proxy.example:3128`, or `none`. Default: `HTTPS_PROXY`, "
        "`HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` decide. Loopback addresses are always called directly."
    ),
]
ServerTls = Annotated[TlsSettings | None, doc("Certificate authorities and client certificate for this server.")]


def check_tls(tls: Mapping[str, Any], path: Path, found: ConfigFindings) -> None:
    """Warn of files that can't be read, and check what belongs together."""
    for key in _FILES:
        if (file := tls.get(key)) is not None and not os.access(file, os.R_OK):
            what = "can't be read" if os.path.exists(file) else "does not exist"
            found.warn((*path, key), f"This file {what}.", "The server can't be connected.")
    for key in ("keyFile", "keyPassword"):
        if tls.get(key) is not None and tls.get("certFile") is None:
            found.add((*path, key), f"{key} belongs to a certFile.", "Name it, too.")
