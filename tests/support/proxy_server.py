"""A real HTTP proxy on a real socket: tunnels (CONNECT) and requests for whole URLs, to servers on this machine only.

Every host it is asked for is the port on 127.0.0.1 given to it, so that tests can use names no resolver knows.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from collections.abc import Callable

LIMIT_S = 5


class ProxyServer:
    """`async with ProxyServer(port) as proxy`. `asked` has the head of each request it received."""

    def __init__(
        self, port: int, *, credentials: str = "", reply: bytes | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        """`credentials` are `user:password`; `reply` is sent instead of doing what was asked."""
        self._server_port = port
        self._expected = f"Basic {base64.b64encode(credentials.encode()).decode()}" if credentials else ""
        self._reply = reply
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self.asked: list[str] = []
        self._news = asyncio.Event()

    async def __aenter__(self) -> ProxyServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LIMIT_S)

    @property
    def open_connections(self) -> int:
        return len(self._tasks)

    async def until(self, condition: Callable[[ProxyServer], object]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not condition(self):
                self._news.clear()
                await self._news.wait()

    def url(self, credentials: str = "") -> str:
        user = f"{credentials}@" if credentials else ""
        return f"{'https' if self._tls else 'http'}://{user}localhost:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._handle(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError, asyncio.CancelledError):
            pass  # one side has gone, or the test is over
        finally:
            self._tasks.discard(task)
            self._news.set()
            writer.transport.abort()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.asked.append(head)
        self._news.set()
        if self._reply is not None:
            writer.write(self._reply)
            await writer.drain()
            await reader.read()
            return
        if self._expected and f"Proxy-Authorization: {self._expected}\r\n" not in head:
            writer.write(b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 4\r\n\r\nwho?")
            await writer.drain()
            return
        there, to_there = await asyncio.open_connection("127.0.0.1", self._server_port)
        try:
            if head.startswith("CONNECT "):
                writer.write(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n")
            else:
                to_there.write(_in_origin_form(head))
            await asyncio.wait(
                {asyncio.ensure_future(_pump(reader, to_there)), asyncio.ensure_future(_pump(there, writer))},
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            to_there.transport.abort()


def _in_origin_form(head: str) -> bytes:
    method, url, rest = head.split(" ", 2)
    lines = [line for line in rest.split("\r\n") if not line.lower().startswith("proxy-")]
    path = "/" + url.split("/", 3)[3]
    return f"{method} {path} ".encode() + "\r\n".join(lines).encode()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
