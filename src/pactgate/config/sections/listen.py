"""The section `listen`: where clients reach the gateway. Addresses, TLS, and the Unix socket.

Must not: bind anything. The files of `tls` are read once, so that a file that can't be used is a problem with its line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from pactgate.config import value_checks
from pactgate.config.problems import ConfigFindings, ValueFault, show
from pactgate.config.sections import Folder, Section, doc
from pactgate.config.server_certificate import CertificateError, ServerCertificate, load_certificate

OFF: Final = "off"
_MAX_SOCKET_BYTES: Final = 100
"""Of the 107 that Linux allows in the address of a socket."""

AllowedHost = Annotated[str, Meta(max_length=255, extra={"check": value_checks.check_allowed_host})]
TrustedProxy = Annotated[str, Meta(max_length=64, extra={"check": value_checks.check_network})]
AllowedOrigin = Annotated[str, Meta(max_length=255, extra={"check": value_checks.check_origin})]


def _check_off(text: str) -> ValueFault | None:
    return None if text == OFF else ValueFault(f"{show(text)} is not a port.", "Write a number without quotes.")


class ListenTls(Section, frozen=True, kw_only=True):
    """TLS for clients, from 1.2 on. Changed files are read again while the gateway runs; new connections get the new certificate."""

    certificate: Annotated[Folder, doc("Certificate of the gateway with its chain, in a PEM file.")]
    key: Annotated[Folder, doc("Its private key, without a password, in a PEM file.")]
    client_ca: Annotated[
        Folder | None,
        doc(
            "Certificate authorities of clients, in a PEM file: only clients with a certificate of theirs may connect."
        ),
    ] = None

    def files(self) -> ServerCertificate:
        return ServerCertificate(self.certificate, self.key, self.client_ca)


class ListenSection(Section, frozen=True, kw_only=True):
    """Where clients reach the gateway."""

    host: Annotated[
        str, doc("Address to listen on.", min_length=1, max_length=255, extra={"check": value_checks.check_host})
    ] = "127.0.0.1"
    port: Annotated[
        Annotated[int, Meta(ge=0, le=65535)] | Annotated[str, Meta(pattern=f"^{OFF}$", extra={"check": _check_off})],
        doc('Port to listen on; 0 takes a free one, `"off"` serves only `socket`.'),
    ] = 7411
    socket: Annotated[
        Folder | None,
        doc(
            "Unix socket to listen on beside the port. Clients there need no token: the system says which user they are, and "
            "the user who started the gateway may manage it."
        ),
    ] = None
    socket_mode: Annotated[
        Literal["0600", "0660", "0666"],
        doc("Who may use the socket: this user, also the group of the socket file, or every user of the machine."),
    ] = "0600"
    tls: Annotated[ListenTls | None, doc("Certificate for `https`. Default: `http`.")] = None
    allowed_hosts: Annotated[
        tuple[AllowedHost, ...],
        doc("Names to accept in the Host header, beside the address itself, as `gateway.example`.", max_length=100),
    ] = ()
    allowed_origins: Annotated[
        tuple[AllowedOrigin, ...],
        doc("Origins of web pages that may call, as `https://app.example`; others are refused.", max_length=100),
    ] = ()
    trusted_proxies: Annotated[
        tuple[TrustedProxy, ...],
        doc(
            "Addresses and networks of the proxies before the gateway, as `10.0.0.0/8`. Of a request from one of them, "
            "`X-Forwarded-For` says which client sent it, for the log, the audit log and wrong credentials.",
            max_length=100,
        ),
    ] = ()
    max_connections_per_address: Annotated[
        int,
        doc(
            "Open connections from one address (for IPv6: one /64 network). More are needed behind a proxy, whose address "
            "all its clients share.",
            ge=1,
            le=3072,
        ),
    ] = 1024
    reuse_port: Annotated[
        bool, doc("Whether other gateways on this machine may listen on the same port; the kernel spreads connections.")
    ] = False
    drain_ms: Annotated[
        int,
        doc(
            "Milliseconds between SIGTERM and the end of listening, in which `/health/ready` answers 503 and a load "
            "balancer takes the gateway out.",
            ge=0,
            le=600000,
        ),
    ] = 0

    @property
    def tcp_port(self) -> int | None:
        """None where the gateway serves only its Unix socket."""
        return self.port if isinstance(self.port, int) else None

    def shown(self) -> str:
        """Where it listens, for people."""
        scheme = "" if self.tls is None else "https://"
        places = [*([f"{scheme}{self.host}:{self.port}"] if self.port != OFF else []), *filter(None, [self.socket])]
        return " and ".join(places)


def check_listen(listen: Mapping[str, Any], found: ConfigFindings) -> None:
    """Check what belongs together, and that the certificate can be used."""
    socket = listen.get("socket")
    if socket is None and listen.get("port") == OFF:
        found.add(("listen", "port"), "The gateway would listen nowhere.", "Set listen.socket, or a port.")
    if socket is None and "socketMode" in listen:
        found.add(("listen", "socketMode"), "This has no effect without socket.", "Set listen.socket, or remove it.")
    if socket is not None and len(socket.encode()) > _MAX_SOCKET_BYTES:
        message = f"The path of a socket has at most {_MAX_SOCKET_BYTES} bytes, with its folder."
        found.add(("listen", "socket"), message, "Use a shorter path, as /run/user/1000/pactgate.sock.", at_value=True)
    tls = listen.get("tls")
    if tls is None:
        return
    if listen.get("port") == OFF:
        found.add(("listen", "tls"), "This has no effect without a port.", "Set a port, or remove it.")
    elif "certificate" in tls and "key" in tls:
        try:
            load_certificate(ServerCertificate(tls["certificate"], tls["key"], tls.get("clientCa")))
        except CertificateError as problem:
            found.add(("listen", "tls", problem.setting), problem.message, problem.hint, at_value=True)


def warn_of_plain_tokens(listen: ListenSection, *, wants_token: bool, found: ConfigFindings) -> None:
    """Warn where everybody on the way can read the tokens of clients."""
    if wants_token and listen.tls is None and listen.tcp_port is not None and not value_checks.is_loopback(listen.host):
        message = f"Tokens and keys reach {listen.host} without TLS: everybody on the way can read them."
        hint = "Set listen.tls, or put a proxy with TLS before the gateway on this machine and listen on 127.0.0.1."
        found.warn(("listen", "host"), message, hint, at_value=True)
