"""The reply to CONNECT, cut anywhere: its status counts, and nothing behind its head is taken for the server's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pactgate.upstreams.http.proxy import Proxy
from pactgate.upstreams.http.tunnel import MAX_HEAD_BYTES, TunnelRefusedError, TunnelReplyError, establish


class Written:
    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data


async def established(reply: bytes, *cuts: int, host: str = "api.example") -> bytes:
    """What was written to the proxy, if it gave the tunnel."""
    reader, written = asyncio.StreamReader(MAX_HEAD_BYTES), Written()
    transport: Any = written
    proxy = Proxy(scheme="http", host="p", port=1, source="x", authorization=b"Proxy-Authorization: y\r\n")
    asking = asyncio.ensure_future(establish(reader, transport, proxy, host, 443))
    await asyncio.sleep(0)
    for start, end in zip((0, *cuts), (*cuts, len(reply)), strict=True):
        reader.feed_data(reply[start:end])
    reader.feed_eof()
    await asking
    return written.data


@pytest.mark.parametrize("host", ["api.example", "2606:4700::1"])
async def test_a_tunnel_is_asked_for_in_authority_form(host: str) -> None:
    written = await established(b"HTTP/1.1 200 OK\r\n\r\n", host=host)
    authority = b"[2606:4700::1]:443" if ":" in host else b"api.example:443"
    assert written == (
        b"CONNECT %b HTTP/1.1\r\nHost: %b\r\nUser-Agent: pactgate\r\nProxy-Authorization: y\r\n\r\n"
        % (authority, authority)
    )


async def test_a_reply_may_come_in_any_pieces() -> None:
    reply = b"HTTP/1.0 200 Connection established\r\nVia: x\r\n\r\n"
    for cut in range(1, len(reply)):
        await established(reply, cut)


@pytest.mark.parametrize("status", [301, 403, 407, 502])
async def test_any_other_status_is_a_refusal(status: int) -> None:
    with pytest.raises(TunnelRefusedError) as caught:
        await established(b"HTTP/1.1 %d No\r\nContent-Length: 4\r\n\r\nbody" % status)
    assert caught.value.status == status


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"\x16\x03\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nmore",
        b"HTTP/1.1 200 OK\r\n" + b"x" * 20_000,
    ],
)
async def test_anything_else_is_no_tunnel(reply: bytes) -> None:
    with pytest.raises(TunnelReplyError):
        await established(reply)
