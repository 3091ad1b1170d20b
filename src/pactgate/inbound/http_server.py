"""The HTTP/1.1 server: listens, owns what all connections share, and stops in order.

One handler serves every exchange. One sweep a second checks all deadlines, so a request costs no timer.
Must not: route or read a request. Connections stay below the descriptor limit
and are refused beyond it, so that many clients can't keep the gateway from reaching its servers.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pactgate.config.server_certificate import CertificateError, ServerCertificate
from pactgate.core.events import Emit
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.inbound.connection import Admit, Handle, InboundConnection
from pactgate.inbound.connection_table import ConnectionTable
from pactgate.inbound.held_bytes import HeldBytes
from pactgate.inbound.http_exchange import HttpExchange
from pactgate.inbound.peer_address import NO_PROXIES, TrustedProxies
from pactgate.inbound.server_limits import ServerLimits
from pactgate.inbound.unix_socket import SocketFile

if TYPE_CHECKING:
    from pactgate.inbound.tls_listener import TlsListener

_BACKLOG: Final = 1024
_LAST_WORDS_S: Final = 1.0

_BIND_PROBLEMS: Final = {
    errno.EADDRINUSE: "port {port} is in use; choose another with --port or listen.port",
    errno.EACCES: "port {port} needs rights this process does not have; choose one above 1023 with --port or listen.port",
    errno.EADDRNOTAVAIL: "{host} is not an address of this machine; choose another with --host or listen.host",
}


def _admit_all(exchange: HttpExchange) -> bool:
    return True


class HttpServer:
    """Call `listen` or `listen_tls`, and `listen_locally`, once each; `close` once."""

    def __init__(
        self,
        handle: Handle,
        limits: ServerLimits,
        emit: Emit,
        admit: Admit = _admit_all,
        *,
        proxies: TrustedProxies = NO_PROXIES,
    ) -> None:
        self.handle = handle
        self.admit = admit
        self.proxies = proxies
        self.barrier = FaultBarrier(emit)
        self.limits = limits
        self.emit = emit
        self.is_closing = False
        self.held = HeldBytes(limits.max_held_bytes)
        self._connections = ConnectionTable(limits, emit)
        self._listeners: list[asyncio.Server] = []
        self._tls: TlsListener | None = None
        self._socket_file: SocketFile | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._emptied = asyncio.Event()

    async def listen(self, host: str, port: int, *, reuse_port: bool = False) -> tuple[str, int]:
        """The address that was bound. Raises INVALID_CONFIG with what to do about it."""
        loop = asyncio.get_running_loop()
        try:
            listener = await loop.create_server(
                lambda: InboundConnection(self, loop),
                host,
                port,
                backlog=_BACKLOG,
                reuse_address=True,
                reuse_port=reuse_port or None,
            )
        except OSError as problem:
            raise GatewayFailure(Kind.INVALID_CONFIG, _why_not_bound(problem, host, port)) from None
        self._opened(listener)
        bound = listener.sockets[0].getsockname()
        return bound[0], bound[1]

    async def listen_tls(
        self, host: str, port: int, files: ServerCertificate, *, reuse_port: bool = False
    ) -> tuple[str, int]:
        """The same for clients over TLS."""
        from pactgate.inbound.tls_listener import (
            CertificateFiles,
            TlsListener,
        )  # only gateways with a certificate need it

        loop = asyncio.get_running_loop()
        make = partial(InboundConnection, self, loop)
        try:
            certificate = CertificateFiles(files, self.emit)
            self._tls = TlsListener(certificate, make, self.emit, self.limits.max_connections)
            bound = await self._tls.open(host, port, reuse_port=reuse_port)
        except CertificateError as problem:
            raise GatewayFailure(Kind.INVALID_CONFIG, str(problem)) from None
        except OSError as problem:
            raise GatewayFailure(Kind.INVALID_CONFIG, _why_not_bound(problem, host, port)) from None
        self._opened(None)
        return bound

    async def listen_locally(self, path: str, mode: str) -> None:
        """Serve local clients at a Unix socket. Raises INVALID_CONFIG."""
        loop = asyncio.get_running_loop()
        self._socket_file = SocketFile(path, mode)
        make = partial(InboundConnection, self, loop)
        self._opened(await loop.create_unix_server(make, sock=self._socket_file.socket))

    def _opened(self, listener: asyncio.Server | None) -> None:
        if listener is not None:
            self._listeners.append(listener)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(self.limits.sweep_s, self._sweep)

    async def close(self, grace_s: float) -> None:
        """Accept no new connections, end idle ones, and give running exchanges `grace_s`; then cancel and abort them."""
        self.is_closing = True
        if self._socket_file is not None:
            self._socket_file.remove()  # while it is open: until then no other file has its number
        for listener in self._listeners:
            listener.close()
        if self._tls is not None:
            self._tls.close()
        self._each(InboundConnection.close_idle)
        if not await self._empty_within(grace_s):
            self._each(_cancel)
            if not await self._empty_within(_LAST_WORDS_S):
                self._each(InboundConnection.abort)
                await self._empty_within(_LAST_WORDS_S)
        if self._sweeper is not None:
            self._sweeper.cancel()
        for listener in self._listeners:
            await _bounded(listener.wait_closed(), _LAST_WORDS_S)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def held_bytes(self) -> int:
        return self.held.total

    @property
    def is_crowded(self) -> bool:
        return self._connections.is_crowded

    def enter(self, connection: InboundConnection) -> None:
        if self.is_closing:
            connection.abort()
        else:
            self._connections.enter(connection)

    def leave(self, connection: InboundConnection) -> None:
        self._connections.leave(connection)
        if not self._connections:
            self._emptied.set()

    def exchanges(self) -> list[HttpExchange]:
        """Everything that is being answered now."""
        return [connection.exchange for connection in self._connections if connection.exchange is not None]

    def may_serve(self, connection: InboundConnection, subject: str) -> bool:
        return self._connections.may_serve(connection, subject)

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._each(lambda connection: self.barrier.run("sweep", connection.sweep, now))
        if self._tls is not None:
            self.barrier.run("sweep", self._tls.certificate.look)
        self._sweeper = loop.call_later(self.limits.sweep_s, self._sweep)

    def _each(self, act: Callable[[InboundConnection], object]) -> None:
        for connection in self._connections:
            act(connection)

    async def _empty_within(self, timeout_s: float) -> bool:
        self._emptied.clear()
        if self._connections:
            await _bounded(self._emptied.wait(), timeout_s)
        return not self._connections


def _cancel(connection: InboundConnection) -> None:
    if connection.exchange is not None:
        connection.exchange.cancel()


async def _bounded(work: Awaitable[Any], timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await work
    except TimeoutError:
        return


def _why_not_bound(problem: OSError, host: str, port: int) -> str:
    if isinstance(problem, socket.gaierror):
        return f"{host} can't be resolved; choose another with --host or listen.host"
    known = _BIND_PROBLEMS.get(problem.errno or 0)
    return (
        known.format(host=host, port=port) if known else f"can't listen on {host}:{port}: {problem.strerror or problem}"
    )
