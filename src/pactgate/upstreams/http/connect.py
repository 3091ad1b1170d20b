"""Opens connections to servers: directly, through a proxy, with TLS where the URL says https. One time limit for all of it.

Nothing of a request is sent here, so every failure says that the request did not run, and what the operator can do. Must not: choose a
proxy (the target knows its own), reuse a connection, or hand a proxy a host that the SSRF rule has not checked (`egress.py`).
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import ssl
from collections.abc import Callable
from typing import Final, TypeVar

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.client_connection import ClientConnection
from pactgate.upstreams.http.egress import Resolve, checked_addresses, resolve_host
from pactgate.upstreams.http.proxy import Proxy, credentials_refused
from pactgate.upstreams.http.request_message import HttpTarget
from pactgate.upstreams.http.tls import TlsContexts, certificate_refused, why_untrusted
from pactgate.upstreams.http.tunnel import MAX_HEAD_BYTES, TunnelRefusedError, TunnelReplyError, establish

_NUMBER: Final = re.compile(r"\[Errno (\d{1,4})\]")
_REASONS: Final = {
    errno.ECONNREFUSED: "nothing listens there (connection refused); start it or correct its address",
    errno.ENETUNREACH: "the network can't be reached",
    errno.EHOSTUNREACH: "the host can't be reached",
    errno.ECONNRESET: "it reset the connection while connecting",
    errno.EMFILE: "this process has no file descriptors left",
}

_P = TypeVar("_P", bound=asyncio.Protocol)


class _ProxyUnreachableError(OSError):
    """No connection to the proxy itself."""

    def __init__(self, problem: OSError | UnicodeError) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Connector:
    """Opens connections for all pools of a client."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, resolve: Resolve = resolve_host) -> None:
        """`tls` replaces the default context, for servers without `tls` settings."""
        self._contexts = TlsContexts(tls)
        self._resolve = resolve

    async def connect(
        self, target: HttpTarget, make: Callable[[], ClientConnection], timeout_s: float
    ) -> ClientConnection:
        """A connection with nothing written on it. Raises a failure; cancelling leaves no socket."""
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self._connect(target, make)
        except (OSError, UnicodeError) as problem:
            raise _unreachable(target, problem, timeout_s) from problem
        if not connection.is_open:
            raise _failed(target, "it closed the connection at once")
        return connection

    async def _connect(self, target: HttpTarget, make: Callable[[], ClientConnection]) -> ClientConnection:
        """To the first host that accepts. Hosts that were checked are addresses, so nothing is looked up twice."""
        hosts = await checked_addresses(target, self._resolve) if target.is_guarded else (target.host,)
        tls = self._contexts.for_settings(target.server, target.tls) if target.is_tls else None
        problem: OSError | None = None
        for host in hosts:
            try:
                if target.proxy is None:
                    return (await _open(host, target.port, make, tls, target.host))[1]
                if tls is None:
                    return (await self._open_proxy(target.proxy, make))[1]
                return await self._open_tunnel(target, target.proxy, host, make, tls)
            except OSError as refusal:
                problem = refusal
        raise problem or OSError("it has no address")

    async def _open_proxy(self, proxy: Proxy, make: Callable[[], _P]) -> tuple[asyncio.Transport, _P]:
        tls = self._contexts.default() if proxy.is_tls else None
        try:
            return await _open(proxy.host, proxy.port, make, tls, proxy.host)
        except (OSError, UnicodeError) as problem:
            raise _ProxyUnreachableError(problem) from problem

    async def _open_tunnel(
        self, target: HttpTarget, proxy: Proxy, host: str, make: Callable[[], ClientConnection], tls: ssl.SSLContext
    ) -> ClientConnection:
        reader = asyncio.StreamReader(MAX_HEAD_BYTES)
        transport, _ = await self._open_proxy(proxy, lambda: asyncio.StreamReaderProtocol(reader))
        encrypted: asyncio.Transport | None = None
        try:
            await establish(reader, transport, proxy, host, target.port)
            connection = make()
            loop = asyncio.get_running_loop()
            encrypted = await loop.start_tls(transport, connection, tls, server_hostname=target.host)
        except TunnelRefusedError as refusal:
            if refusal.status < 500:
                raise _proxy_refusal(target, proxy, refusal.status) from refusal
            raise  # the proxy can't reach this address; there may be another
        finally:
            if encrypted is None:
                transport.abort()
        assert encrypted is not None
        connection.connection_made(encrypted)  # `start_tls` leaves this to its caller
        return connection


async def _open(
    host: str, port: int, make: Callable[[], _P], tls: ssl.SSLContext | None, name: str
) -> tuple[asyncio.Transport, _P]:
    """`name` is the host the certificate must be for; `host` may be an address of it."""
    loop = asyncio.get_running_loop()
    return await loop.create_connection(make, host, port, ssl=tls, server_hostname=name if tls else None)


def _unreachable(target: HttpTarget, problem: OSError | UnicodeError, timeout_s: float) -> GatewayFailure:
    proxy = target.proxy
    match problem:
        case TimeoutError():
            how = "did not accept a connection" if proxy is None else f"was not reached through the proxy {proxy}"
            why = f"{target} {how} within {timeout_s:g} s."
            return GatewayFailure(Kind.CONNECT_TIMEOUT, why, server=target.server)
        case _ProxyUnreachableError() if proxy is not None:
            return _failed(target, _why_no_proxy(problem.problem), proxy=proxy)
        case TunnelRefusedError() if proxy is not None:
            return _proxy_refusal(target, proxy, problem.status)
        case TunnelReplyError() if proxy is not None:
            return _failed(target, str(problem), proxy=proxy)
        case ssl.SSLCertVerificationError():
            return _failed(target, why_untrusted(problem, target.server, target.tls), is_permanent=True)
        case ssl.SSLError():
            refused = certificate_refused(problem, target.server, target.tls)
            return refused or _failed(target, f"TLS failed ({problem.reason or problem}); does it speak https?")
        case _:
            return _failed(target, _why_no_connection(problem))


def _why_no_proxy(problem: OSError | UnicodeError) -> str:
    match problem:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not valid: {problem.verify_message}; name its authority's file in SSL_CERT_FILE"
        case ssl.SSLError():
            return "TLS failed; does the proxy speak https itself? Most are http:// also for https servers"
        case _:
            return _why_no_connection(problem)


def _why_no_connection(problem: OSError | UnicodeError) -> str:
    if isinstance(problem, socket.gaierror | UnicodeError):
        return "the name of its host can't be resolved; check its address and the DNS"
    # A name with several addresses fails with one error for all of them, whose text has the numbers.
    found = _NUMBER.search(str(problem))
    number = problem.errno or (int(found[1]) if found else 0)
    return _REASONS.get(number) or (os.strerror(number) if number else "connecting failed")


def _proxy_refusal(target: HttpTarget, proxy: Proxy, status: int) -> GatewayFailure:
    """A reply to CONNECT that is no success."""
    if status == 407:
        return credentials_refused(proxy, target.server)
    if status < 500:
        return _failed(target, f"it does not allow this server (HTTP {status})", is_permanent=True, proxy=proxy)
    return _failed(target, f"it could not reach the server (HTTP {status})", proxy=proxy)


def _failed(target: HttpTarget, why: str, *, proxy: Proxy | None = None, is_permanent: bool = False) -> GatewayFailure:
    """`proxy` is given where it is the proxy that failed or refused."""
    message = f"{target} can't be reached: {why}."
    if proxy is not None:
        todo = f'Correct {proxy.source}, or let the server be called directly (`proxy`: "none", or NO_PROXY).'
        message = f"{target} can't be reached through the proxy {proxy}: {why}. {todo}"
    details = {"permanent": True} if is_permanent else None
    return GatewayFailure(Kind.CONNECTION_FAILED, message, server=target.server, details=details)
