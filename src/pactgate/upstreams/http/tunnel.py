"""CONNECT: asks an HTTP proxy for a tunnel to one host and port (RFC 9110, 9.3.6), before any byte of a request is sent.

The reply of the proxy is read up to the end of its head, within a bound. Must not: send anything through the tunnel, take bytes behind the
head for an answer of the server, or quote what a proxy says: its pages may repeat our credentials.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final

from pactgate.upstreams.http.proxy import Proxy

MAX_HEAD_BYTES: Final = 16 * 1024
_END: Final = b"\r\n\r\n"
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: |\r)")


class TunnelReplyError(OSError):
    """The proxy replied with something that is not HTTP, or ended the connection instead."""


class TunnelRefusedError(OSError):
    """The proxy replied with a status that is no success."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


async def establish(
    reader: asyncio.StreamReader, transport: asyncio.WriteTransport, proxy: Proxy, host: str, port: int
) -> None:
    """Ask for the tunnel and wait for the reply. Raises TunnelRefusedError or TunnelReplyError."""
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: pactgate\r\n"
    transport.write(b"%b%b\r\n" % (lines.encode("ascii"), proxy.authorization))
    received = b""
    while _END not in received and len(received) <= MAX_HEAD_BYTES:
        try:
            data = await reader.read(MAX_HEAD_BYTES)
        except OSError:
            data = b""  # reset
        if not data:
            raise TunnelReplyError("it closed the connection")
        received += data
    status = _STATUS.match(received)
    if status is None:
        raise TunnelReplyError("it does not speak HTTP/1.1")
    if not 200 <= int(status[1]) < 300:
        raise TunnelRefusedError(int(status[1]))
    if (
        not received.endswith(_END) or received.count(_END) > 1
    ):  # behind a success nothing may follow: TLS begins with us
        raise TunnelReplyError("its reply to CONNECT is too long")
