"""Between any HTTP client and one MCP server: bytes are passed on, and a tap is told of the requests and answers in them.

Of a request only two header lines change: `Host`, because the server expects its own, and `Accept-Encoding`, so that what comes back
can be read. Answers are passed on byte for byte, streams included, with the back-pressure of either side. Listens on 127.0.0.1 only.
Must not: answer for the server, except to say that it can't be reached.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import httptools

from pactgate.core.recording import ConnectionRecorder, HttpExchangeRecorder

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_RECORDED_BYTES: Final = 16 * 1024 * 1024
_READ_BYTES: Final = 64 * 1024
_CONNECT_S: Final = 10.0
_REWRITTEN: Final = re.compile(rb"(?:host|accept-encoding|proxy-connection)[ \t]*:", re.IGNORECASE)
_UNREACHABLE: Final = (
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
)


class BadUrlError(ValueError):
    """The address can't be recorded."""


class Origin:
    """Where requests go."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as problem:
            raise BadUrlError(str(problem)) from None
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise BadUrlError("it must be http://host/path or https://host/path, without a user name")
        self.host = parts.hostname
        self.is_tls = parts.scheme == "https"
        self.port = port or (443 if self.is_tls else 80)
        self.path = parts.path or "/"
        self.authority = parts.netloc.encode("idna" if not parts.netloc.isascii() else "ascii")

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        tls = ssl.create_default_context() if self.is_tls else None
        async with asyncio.timeout(_CONNECT_S):
            return await asyncio.open_connection(
                self.host, self.port, ssl=tls, server_hostname=self.host if tls else None
            )


class HttpRelay:
    """`open` once, `close` once."""

    def __init__(self, url: str, tap: ConnectionRecorder) -> None:
        self.origin = Origin(url)
        self._tap = tap
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self, port: int) -> int:
        """Listen; the port that was bound. Raises OSError."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, limit=MAX_HEAD_BYTES)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """End every connection."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._tap.closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _Conversation(self.origin, self._tap, reader, writer).run()
        finally:
            writer.close()


class _Conversation:
    """One client connection and one to the server, as long as both last."""

    def __init__(
        self, origin: Origin, tap: ConnectionRecorder, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._origin = origin
        self._reader = reader
        self._writer = writer
        self._watch = _Watch(tap, origin.path)

    async def run(self) -> None:
        try:
            up_reader, up_writer = await self._origin.connect()
        except (OSError, TimeoutError) as problem:
            await self._refuse(problem)
            return
        try:
            async with asyncio.TaskGroup() as pumps:
                upwards = pumps.create_task(self._requests(up_writer))
                downwards = pumps.create_task(self._answers(up_reader))
                done, _ = await asyncio.wait({upwards, downwards}, return_when=asyncio.FIRST_COMPLETED)
                self._watch.close(by_client=upwards in done)
                for pump in (upwards, downwards):
                    pump.cancel()
        finally:
            self._watch.close(by_client=True)
            up_writer.close()

    async def _refuse(self, problem: BaseException) -> None:
        why = str(problem) or "no connection in time"
        text = f"pactgate record: {self._origin.host}:{self._origin.port} can't be reached: {why}\n".encode()
        with suppress(OSError):
            self._writer.write(_UNREACHABLE % (len(text), text))
            await self._writer.drain()

    async def _requests(self, target: asyncio.StreamWriter) -> None:
        """Head by head: a head is rewritten, a body passed on as it is."""
        rest = b""
        with suppress(OSError, asyncio.LimitOverrunError, httptools.HttpParserError):
            while True:
                found = await self._head(rest)
                if found is None:
                    return
                head, rest = found
                target.write(_rewritten(head, self._origin.authority))
                self._watch.request_bytes(head)
                rest = await self._body(rest, target)

    async def _head(self, rest: bytes) -> tuple[bytes, bytes] | None:
        while b"\r\n\r\n" not in rest:
            data = await self._reader.read(_READ_BYTES)
            if not data or len(rest) > MAX_HEAD_BYTES:
                return None
            rest += data
        end = rest.index(b"\r\n\r\n") + 4
        return rest[:end], rest[end:]

    async def _body(self, rest: bytes, target: asyncio.StreamWriter) -> bytes:
        """Pass on until the request is whole; what follows it belongs to the next."""
        while True:
            after = self._watch.body_bytes(rest)
            if after is not None:
                target.write(rest[: len(rest) - len(after)])
                await target.drain()
                return after
            target.write(rest)
            await target.drain()
            rest = await self._reader.read(_READ_BYTES)
            if not rest:
                raise ConnectionResetError("the client went away in the middle of a request")

    async def _answers(self, source: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while data := await source.read(_READ_BYTES):
                self._writer.write(data)
                self._watch.answer_bytes(data)
                await self._writer.drain()


def _rewritten(head: bytes, authority: bytes) -> bytes:
    first, *lines = head.split(b"\r\n")
    kept = [line for line in lines if not _REWRITTEN.match(line)]
    return b"\r\n".join([first, b"Host: " + authority, b"Accept-Encoding: identity", *kept])


class _Watch:
    """Reads along, on one connection. What it can't read it leaves alone: the bytes pass all the same."""

    def __init__(self, tap: ConnectionRecorder, path: str) -> None:
        self._tap = tap
        self._path = path
        self._open: list[HttpExchangeRecorder | None] = []
        """What waits for an answer; None for requests that have nothing to do with MCP, such as those about OAuth."""
        self._request = _Incoming(httptools.HttpRequestParser)
        self._answer: _Incoming | None = _Incoming(httptools.HttpResponseParser)

    def request_bytes(self, head: bytes) -> None:
        self._request = _Incoming(httptools.HttpRequestParser)
        self._request.feed(head)

    def body_bytes(self, data: bytes) -> bytes | None:
        """None while the request goes on; else what does not belong to it."""
        request = self._request
        length = request.length
        if length is not None:
            due = length - request.received_bytes
            request.feed(data[:due])
            request.received_bytes += len(data[:due])
            if request.received_bytes < length:
                return None
            self._requested()
            return data[due:]
        request.feed(data)
        if not request.is_complete:
            return None
        self._requested()
        return b""

    def answer_bytes(self, data: bytes) -> None:
        answer = self._answer
        if answer is None:
            return
        try:
            answer.feed(data)
        except httptools.HttpParserError:
            self._answer = None
            return
        self._tell(answer)

    def close(self, *, by_client: bool) -> None:
        waiting, self._open = self._open, []
        for hop in filter(None, waiting):
            hop.ended(by_client=by_client)

    def _requested(self) -> None:
        request = self._request
        verb = request.parser.get_method().decode()
        path = request.url.partition(b"?")[0].decode("latin-1")
        is_mcp = path == self._path or (verb == "POST" and b'"jsonrpc"' in request.body)
        self._open.append(self._tap.requested(verb, path, request.headers(), bytes(request.body)) if is_mcp else None)

    def _tell(self, answer: _Incoming) -> None:
        """Hand over what is complete: heads of streams, their pieces, and whole answers."""
        while answer.heads and self._open:
            head, hop = answer.heads[0], self._open[0]
            if hop is not None:
                head.tell(hop)
            if not head.is_complete:
                return
            answer.heads.pop(0)
            self._open.pop(0)


class _Head:
    """One answer as it comes in."""

    def __init__(self, status: int, headers: bytes, *, is_stream: bool) -> None:
        self.status = status
        self.headers = headers
        self.is_stream = is_stream
        self.body = bytearray()
        self.is_complete = False
        self._is_announced = False

    def tell(self, hop: HttpExchangeRecorder) -> None:
        if not self.is_stream:
            if self.is_complete:
                hop.answered(self.status, self.headers, bytes(self.body))
            return
        if not self._is_announced:
            self._is_announced = True
            hop.streaming(self.status, self.headers)
        if self.body:
            hop.events(bytes(self.body))
            self.body.clear()
        if self.is_complete:
            hop.ended(by_client=False)


class _Incoming:
    """Callbacks of the parser, for requests and answers alike."""

    def __init__(self, parser: Any) -> None:
        self.parser = parser(self)
        self.url = b""
        self.body = bytearray()
        self.received_bytes = 0
        self.is_complete = False
        self.heads: list[_Head] = []
        """Of answers: those that are not told yet."""
        self._lines: list[tuple[bytes, bytes]] = []
        self._is_answer = parser is httptools.HttpResponseParser

    @property
    def length(self) -> int | None:
        """Bytes of the body that was announced; None for chunks."""
        named = {name.lower(): value for name, value in self._lines}
        if b"transfer-encoding" in named:
            return None
        value = named.get(b"content-length", b"0").strip()
        return int(value) if value.isdigit() else 0

    def headers(self) -> bytes:
        return b"".join(b"%b: %b\r\n" % line for line in self._lines)

    def feed(self, data: bytes) -> None:
        if data:
            self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._lines = []

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        if not self._is_answer or self.parser.get_status_code() < 200:
            return
        kinds = [value for name, value in self._lines if name.lower() == b"content-type"]
        is_stream = any(value.lower().startswith(b"text/event-stream") for value in kinds)
        self.heads.append(_Head(self.parser.get_status_code(), self.headers(), is_stream=is_stream))

    def on_body(self, body: bytes) -> None:
        kept = self.heads[-1].body if self._is_answer and self.heads else self.body
        if len(kept) + len(body) <= MAX_RECORDED_BYTES:
            kept += body

    def on_message_complete(self) -> None:
        self.is_complete = True
        if self._is_answer and self.heads:
            self.heads[-1].is_complete = True
