"""An HTTP server that plays bytes: the test says what each connection answers, down to where the pieces are cut."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from typing import Any

from pactgate.core.events import Event
from pactgate.core.failures import GatewayFailure

LIMIT_S = 5


class ReceivedRequest:
    """One request as it came: `head` are the exact bytes of its head."""

    def __init__(self, head: bytes, body: bytes) -> None:
        self.head = head
        self.body = body
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        self.method, self.path, self.protocol = first.split(" ")
        pairs = [line.split(": ", 1) for line in lines]
        self.names = [name for name, _ in pairs]
        self.headers = {name.lower(): value for name, value in pairs}

    @property
    def message(self) -> dict[str, Any]:
        decoded: dict[str, Any] = json.loads(self.body)
        return decoded


class Peer:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.number = number
        self._reader = reader
        self._writer = writer

    async def request(self) -> ReceivedRequest:
        """The next request. `asyncio.IncompleteReadError` when the client has gone."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        received = ReceivedRequest(head, b"")
        received.body = await self._reader.readexactly(int(received.headers.get("content-length", "0")))
        return received

    async def send(self, *pieces: bytes) -> None:
        """Write pieces one by one, so that a client on the same loop reads each for itself."""
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def drip(self, text: bytes, size: int = 1) -> None:
        await self.send(*(text[start : start + size] for start in range(0, len(text), size)))

    async def gone(self) -> None:
        """Waits until the client has closed its end."""
        try:
            while await self._reader.read(65536):
                pass
        except ConnectionError:
            pass

    def close(self) -> None:
        self._writer.close()

    def reset(self) -> None:
        """End the connection with a RST."""
        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Play = Callable[[Peer], Awaitable[None]]


class ScriptedHttp:
    """`async with ScriptedHttp(play) as server`: each connection is played by `play`, which ends with its connection."""

    def __init__(self, play: Play, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._play = play
        self._tls = tls
        self._host = host
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._problems: list[BaseException] = []
        self.connections = 0
        self.open_connections = 0

    async def __aenter__(self) -> ScriptedHttp:
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LIMIT_S)
        if kind is None and self._problems:
            raise self._problems[0]

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self.port}/mcp"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self.open_connections += 1
        try:
            await self._play(Peer(reader, writer, self.connections))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or the test is over
        except Exception as problem:  # noqa: BLE001 - whatever a script does wrong belongs to the test that wrote it
            self._problems.append(problem)
        finally:
            self.open_connections -= 1
            self._tasks.discard(task)
            writer.transport.abort()


def answer(
    body: bytes | str | dict[str, Any] = b"",
    status: str = "200 OK",
    content_type: str | None = "application/json",
    **headers: str,
) -> bytes:
    """A whole answer with a length. Header names are given with underscores."""
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    elif isinstance(body, str):
        body = body.encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def stream_head(**headers: str) -> bytes:
    """The head of an event stream in chunks."""
    lines = ["HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = chunk(b"")


def event(message: dict[str, Any] | str = "", **fields: str) -> bytes:
    """One event as a chunk; `fields` come before the data."""
    data = message if isinstance(message, str) else json.dumps(message)
    lines = [*(f"{name}: {value}" for name, value in fields.items()), f"data: {data}"]
    return chunk("\n".join(lines).encode() + b"\n\n")


def result(id_: Any, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": members}


class Inbox:
    """A receiver that keeps what it gets."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.failures: list[GatewayFailure] = []
        self._news = asyncio.Event()

    def receive(self, frame: bytes, for_request: int | None = None) -> bool:
        self.frames.append(frame)
        self._news.set()
        return True

    def lost(self, failure: GatewayFailure) -> None:
        self.failures.append(failure)
        self._news.set()

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(frame) for frame in self.frames]

    async def until(self, condition: Callable[[Inbox], object]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not condition(self):
                self._news.clear()
                await self._news.wait()


class Emitted:
    """What was emitted, and a wait for the next of it."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)
