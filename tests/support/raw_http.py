"""An HTTP client that sends exactly the bytes it is given and reads exactly one answer at a time. Every wait is bounded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, cast

from pactgate.protocol.framing import EventDecoder, ServerEvent

WAIT_S = 5.0


class Answer:
    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def header(self, name: str) -> str | None:
        values = [value for key, value in self.headers if key == name.lower()]
        assert len(values) <= 1, f"{name} was sent {len(values)} times"
        return values[0] if values else None

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error_code(self) -> int:
        code: int = self.json["error"]["code"]
        return code


class RawClient:
    """One connection, from the address `host`."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._port = port
        self._host = host
        self._events = EventDecoder(16 * 1024 * 1024)
        self._waiting: list[ServerEvent] = []

    async def __aenter__(self) -> Self:
        opened = asyncio.open_connection("127.0.0.1", self._port, limit=64 * 1024 * 1024, local_addr=(self._host, 0))
        self.reader, self.writer = await asyncio.wait_for(opened, WAIT_S)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def transport(self) -> asyncio.Transport:
        """The transport of both directions: a reader that stops reading can be played with it."""
        return cast("asyncio.Transport", self.writer.transport)

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError, TimeoutError):
            await asyncio.wait_for(self.writer.wait_closed(), WAIT_S)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        with suppress(ConnectionError):  # the server was quicker to end it; its answer can still be read
            await asyncio.wait_for(self.writer.drain(), WAIT_S)

    async def ask(self, data: bytes) -> Answer:
        await self.send(data)
        return await self.answer()

    async def post(self, body: Any, path: str = "/mcp", **headers: str) -> Answer:
        return await self.ask(post(body, path, **headers))

    async def head(self) -> Answer:
        """Status and headers; the body stays to be read."""
        raw = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), WAIT_S)
        first, *lines = raw[:-4].decode("latin-1").split("\r\n")
        assert first.startswith("HTTP/1.1 "), first
        pairs = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        return Answer(int(first.split(" ")[1]), pairs, b"")

    async def answer(self) -> Answer:
        """One whole answer; interim ones are passed over."""
        answer = await self.head()
        while answer.status == 100:
            answer = await self.head()
        if answer.header("transfer-encoding") == "chunked":
            while chunk := await self.chunk():
                answer.body += chunk
        elif answer.header("content-length") is not None:
            exactly = self.reader.readexactly(int(answer.header("content-length") or 0))
            answer.body = await asyncio.wait_for(exactly, WAIT_S)
        elif answer.status != 204:
            answer.body = await asyncio.wait_for(self.reader.read(), WAIT_S)
        return answer

    async def chunk(self) -> bytes:
        """One chunk of a streamed answer; nothing at its end."""
        line = await asyncio.wait_for(self.reader.readuntil(b"\r\n"), WAIT_S)
        data = await asyncio.wait_for(self.reader.readexactly(int(line, 16) + 2), WAIT_S)
        assert data.endswith(b"\r\n")
        return data[:-2]

    async def event(self) -> ServerEvent | None:
        """The next event of a streamed answer; None at its end."""
        while not self._waiting:
            chunk = await self.chunk()
            if not chunk:
                return None
            self._waiting += self._events.feed(chunk)
        return self._waiting.pop(0)

    async def rest(self) -> bytes:
        """Everything until the server ends the connection."""
        try:
            return await asyncio.wait_for(self.reader.read(), WAIT_S)
        except ConnectionError:
            return b""


def encode_body(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def post(body: Any, path: str = "/mcp", **headers: str) -> bytes:
    """A well-formed POST; header names are given with underscores, and a value of "-" leaves a default out."""
    data = encode_body(body)
    defaults = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(data)),
    }
    return request("POST", path, {**defaults, **spelled(headers)}) + data


def get(path: str, **headers: str) -> bytes:
    return request("GET", path, {"host": "127.0.0.1", **spelled(headers)})


def request(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value != "-")
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


def spelled(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
