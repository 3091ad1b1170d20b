"""A relay between any HTTP client and one MCP server: it forwards all bytes, and a recorder gets the requests and responses in them.

Only two header lines of a request change: `Host`, because the server expects its own, and `Accept-Encoding`, so that the response is not
compressed. Responses are forwarded byte for byte, streams included, with the back-pressure of either side. Listens on 127.0.0.1 only.
Must not: answer for the server, except to report that it can't be reached.
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
    """The URL can't be relayed."""


class Origin:
    """The server that requests go to."""

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

    def __init__(self, url: str, recorder: ConnectionRecorder) -> None:
        self.origin = Origin(url)
        self._recorder = recorder
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self, port: int) -> int:
        """Listen and return the port. Raises OSError."""
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
        self._recorder.closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.close())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect one client to the server, until either ends the connection."""
        try:
            source, target = await self.origin.connect()
        except (OSError, TimeoutError) as problem:
            await self._refuse(writer, problem)
            return
        traffic = _TrafficReader(self._recorder, self.origin.path)
        try:
            async with asyncio.TaskGroup() as pumps:
                upwards = pumps.create_task(_forward_requests(reader, target, self.origin.authority, traffic))
                downwards = pumps.create_task(_forward_answers(source, writer, traffic))
                done, _ = await asyncio.wait({upwards, downwards}, return_when=asyncio.FIRST_COMPLETED)
                traffic.close(by_client=upwards in done)
                for pump in (upwards, downwards):
                    pump.cancel()
        finally:
            traffic.close(by_client=True)
            target.close()

    async def _refuse(self, writer: asyncio.StreamWriter, problem: BaseException) -> None:
        why = str(problem) or "no connection in time"
        text = f"pactgate record: {self.origin.host}:{self.origin.port} can't be reached: {why}\n".encode()
        with suppress(OSError):
            writer.write(_UNREACHABLE % (len(text), text))
            await writer.drain()


async def _forward_requests(
    reader: asyncio.StreamReader, target: asyncio.StreamWriter, authority: bytes, traffic: _TrafficReader
) -> None:
    """Forward requests: each head is rewritten, each body is forwarded as it is."""
    rest = b""
    with suppress(OSError, httptools.HttpParserError):
        while True:
            while b"\r\n\r\n" not in rest:
                data = await reader.read(_READ_BYTES)
                if not data or len(rest) > MAX_HEAD_BYTES:
                    return
                rest += data
            end = rest.index(b"\r\n\r\n") + 4
            target.write(_rewritten(rest[:end], authority))
            traffic.request_bytes(rest[:end])
            rest = await _forward_body(reader, target, traffic, rest[end:])


async def _forward_body(
    reader: asyncio.StreamReader, target: asyncio.StreamWriter, traffic: _TrafficReader, rest: bytes
) -> bytes:
    """Forward until the request is complete, and return the bytes that belong to the next one."""
    while (after := traffic.body_bytes(rest)) is None:
        target.write(rest)
        await target.drain()
        rest = await reader.read(_READ_BYTES)
        if not rest:
            raise ConnectionResetError("the client went away in the middle of a request")
    target.write(rest[: len(rest) - len(after)])
    await target.drain()
    return after


async def _forward_answers(source: asyncio.StreamReader, writer: asyncio.StreamWriter, traffic: _TrafficReader) -> None:
    with suppress(OSError):
        while data := await source.read(_READ_BYTES):
            writer.write(data)
            traffic.answer_bytes(data)
            await writer.drain()


def _rewritten(head: bytes, authority: bytes) -> bytes:
    first, *lines = head.split(b"\r\n")
    kept = [line for line in lines if not _REWRITTEN.match(line)]
    return b"\r\n".join([first, b"Host: " + authority, b"Accept-Encoding: identity", *kept])


class _TrafficReader:
    """Parses the traffic of one connection for the recorder. Bytes that it can't parse are forwarded all the same."""

    def __init__(self, recorder: ConnectionRecorder, path: str) -> None:
        self._recorder = recorder
        self._path = path
        self._open: list[HttpExchangeRecorder | None] = []
        """The requests without a response so far. None stands for a request outside of MCP, such as one about OAuth."""
        self._request = _MessageParser(httptools.HttpRequestParser)
        self._answer: _MessageParser | None = _MessageParser(httptools.HttpResponseParser)

    def request_bytes(self, head: bytes) -> None:
        self._request = _MessageParser(httptools.HttpRequestParser)
        self._request.feed(head)

    def body_bytes(self, data: bytes) -> bytes | None:
        """None while the request is incomplete, else the bytes after it."""
        request = self._request
        due = len(data) if request.length is None else request.length - request.received_bytes
        request.feed(data[:due])
        request.received_bytes += len(data[:due])
        is_complete = request.is_complete if request.length is None else request.received_bytes >= request.length
        if not is_complete:
            return None
        self._requested()
        return data[due:]

    def answer_bytes(self, data: bytes) -> None:
        answer = self._answer
        if answer is None:
            return
        try:
            answer.feed(data)
        except httptools.HttpParserError:
            self._answer = None
            return
        self._report(answer)

    def close(self, *, by_client: bool) -> None:
        waiting, self._open = self._open, []
        for exchange in filter(None, waiting):
            exchange.ended(by_client=by_client)

    def _requested(self) -> None:
        request = self._request
        verb = request.parser.get_method().decode()
        path = request.url.partition(b"?")[0].decode("latin-1")
        is_mcp = path == self._path or (verb == "POST" and b'"jsonrpc"' in request.body)
        self._open.append(
            self._recorder.requested(verb, path, request.headers(), bytes(request.body)) if is_mcp else None
        )

    def _report(self, answer: _MessageParser) -> None:
        """Report what has arrived: heads of streams, parts of streams, and complete responses."""
        while answer.heads and self._open:
            head, exchange = answer.heads[0], self._open[0]
            if exchange is not None:
                head.report(exchange)
            if not head.is_complete:
                return
            answer.heads.pop(0)
            self._open.pop(0)


class _IncomingResponse:
    """One response as it arrives."""

    def __init__(self, status: int, headers: bytes, *, is_stream: bool) -> None:
        self.status = status
        self.headers = headers
        self.is_stream = is_stream
        self.body = bytearray()
        self.is_complete = False
        self._is_announced = False

    def report(self, exchange: HttpExchangeRecorder) -> None:
        if not self.is_stream:
            if self.is_complete:
                exchange.answered(self.status, self.headers, bytes(self.body))
            return
        if not self._is_announced:
            self._is_announced = True
            exchange.streaming(self.status, self.headers)
        if self.body:
            exchange.events(bytes(self.body))
            self.body.clear()
        if self.is_complete:
            exchange.ended(by_client=False)


class _MessageParser:
    """The callbacks of httptools, for requests and responses."""

    def __init__(self, parser: Any) -> None:
        self.parser = parser(self)
        self.url = b""
        self.body = bytearray()
        self.received_bytes = 0
        self.is_complete = False
        self.heads: list[_IncomingResponse] = []
        """The responses that are not reported yet."""
        self._lines: list[tuple[bytes, bytes]] = []
        self._is_answer = parser is httptools.HttpResponseParser

    @property
    def length(self) -> int | None:
        """The length of the body, or None for a chunked one."""
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
        self.heads.append(_IncomingResponse(self.parser.get_status_code(), self.headers(), is_stream=is_stream))

    def on_body(self, body: bytes) -> None:
        kept = self.heads[-1].body if self._is_answer and self.heads else self.body
        if len(kept) + len(body) <= MAX_RECORDED_BYTES:
            kept += body

    def on_message_complete(self) -> None:
        self.is_complete = True
        if self._is_answer and self.heads:
            self.heads[-1].is_complete = True
