"""CONNECT: asks an HTTP proxy for a tunnel to one host and port (RFC 9110, 9.3.6), before any byte of a request is sent.

The reply of the proxy is read up to the end of its head, within a bound. Must not: send anything through the tunnel, take bytes behind the
head for an answer of the server, or quote what a proxy says: its pages may repeat our credentials.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final, cast

from pactgate.upstreams.http.proxy import Proxy

_MAX_HEAD_BYTES: Final = 16 * 1024
_END: Final = b"\r\n\r\n"
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: |\r)")


class TunnelReplyError(OSError):
    """The proxy replied with something that is not HTTP, or ended the connection instead."""


class TunnelRefusedError(OSError):
    """The proxy replied with a status that is no success."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class ConnectReply(asyncio.Protocol):
    """The protocol of a connection to a proxy until the tunnel stands."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._head: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._received = b""

    async def establish(self, proxy: Proxy, host: str, port: int) -> None:
        """Ask for the tunnel and wait for the reply. Raises TunnelRefusedError or TunnelReplyError."""
        authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: pactgate\r\n"
        self.transport.write(b"%b%b\r\n" % (lines.encode("ascii"), proxy.authorization))
        status = _STATUS.match(await self._head)
        if status is None:
            raise TunnelReplyError("it does not speak HTTP/1.1")
        if not 200 <= int(status[1]) < 300:
            raise TunnelRefusedError(int(status[1]))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transports are no subclass

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(_END)
        if end < 0 and len(self._received) <= _MAX_HEAD_BYTES:
            return
        if self._head.done():
            return
        is_refusal = not self._received.startswith((b"HTTP/1.1 2", b"HTTP/1.0 2"))
        if end < 0 or (end + len(_END) < len(self._received) and not is_refusal):
            self._fail("its reply to CONNECT is too long")  # behind a success nothing may follow: TLS begins with us
        else:
            self._head.set_result(self._received)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail("it closed the connection")

    def _fail(self, why: str) -> None:
        if not self._head.done():
            self._head.set_exception(TunnelReplyError(why))
            self._head.exception()  # it may be that nobody waits any more
