"""Clients that call all the time and judge each answer, and clients that misbehave.

Every call carries a text of its own. Its answer is good when it is that text, or a failure that says its code, its category, who is to act
and whether the action ran. Anything else is a problem: another call's text, no answer in time, a failure without these facts. Calls of a
steady server must succeed. Must not: stop at the first problem.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct, field

from chaos.plan import FRAGILE, STEADY

ENVELOPE: Final = "dev.pactgate/envelope"
LIMIT_MS: Final = 4000
"""The time limit of the gateway for one call."""
_GRACE_S: Final = 6.0
_FACTS: Final = ("code", "category", "failure_mode", "verdict", "party")
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "chaos", "version": "1"},
}
_MAX_PROBLEMS: Final = 50


class Endpoint(Struct, frozen=True):
    host: str
    port: int
    token: str


class Tally(Struct):
    """What was seen so far."""

    calls: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    request_ids: set[str] = field(default_factory=set)
    steady_s: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def problem(self, text: str) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(text)


class HttpError(Exception):
    """The connection ended before an answer."""


class Connection:
    """One keep-alive connection of a client."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> asyncio.StreamWriter:
        if self._writer is None or self._writer.is_closing():
            self._reader, self._writer = await asyncio.open_connection(
                self.endpoint.host, self.endpoint.port, limit=2**24
            )
        return self._writer

    async def post(self, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        writer = await self.open()
        writer.write(self.request(body, headers))
        return await self._response()

    def request(self, body: bytes, headers: dict[str, str]) -> bytes:
        lines = {
            "Host": f"{self.endpoint.host}:{self.endpoint.port}",
            "Authorization": f"Bearer {self.endpoint.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Content-Length": str(len(body)),
            **headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body

    async def _response(self) -> tuple[int, dict[str, str], bytes]:
        assert self._reader is not None
        try:
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            status = int(head.split(" ", 2)[1])
            lines = (line.partition(":") for line in head.split("\r\n")[1:] if line)
            headers = {name.lower(): value.strip() for name, _, value in lines}
            if headers.get("transfer-encoding") == "chunked":
                body = await self._chunks()
            else:
                body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        except (asyncio.IncompleteReadError, ConnectionError) as problem:
            self.close()
            raise HttpError(str(problem)) from problem
        if headers.get("connection") == "close":
            self.close()
        return status, headers, body

    async def _chunks(self) -> bytes:
        assert self._reader is not None
        body = b""
        while True:
            size = int((await self._reader.readline()).strip() or b"0", 16)
            body += (await self._reader.readexactly(size + 2))[:size]
            if not size:
                return body

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class Client:
    """Calls one server after the other, in one protocol era, and judges what comes back."""

    def __init__(self, endpoint: Endpoint, number: int, tally: Tally, seed: int) -> None:
        self.connection = Connection(endpoint)
        self._is_modern = number % 2 == 0
        self._number = number
        self._tally = tally
        self._chosen = random.Random(f"{seed}-{number}")
        self._session: dict[str, str] = {}
        self._count = 0

    async def run(self, until: float) -> None:
        while time.monotonic() < until:
            server = self._chosen.choice((*STEADY, *FRAGILE))
            delay_ms = self._chosen.choice((0, 0, 0, 5, 50)) if server in STEADY else self._chosen.choice((0, 20, 500))
            await self._call(server, delay_ms)
            await asyncio.sleep(self._chosen.uniform(0, 0.02))
        self.connection.close()

    async def _call(self, server: str, delay_ms: int) -> None:
        self._count += 1
        text = f"client {self._number} call {self._count} " + "x" * self._chosen.randrange(0, 400)
        began = time.monotonic()
        try:
            async with asyncio.timeout(LIMIT_MS / 1000 + _GRACE_S):
                answer = await self.call_tool(f"{server}__echo", {"text": text, "ms": delay_ms})
        except TimeoutError:
            self.connection.close()
            self._tally.problem(f"no answer: {server}, client {self._number}, call {self._count}")
            return
        except (HttpError, OSError) as lost:
            self.connection.close()
            self._tally.problem(f"connection lost: {server}, client {self._number}, call {self._count}: {lost}")
            return
        if server in STEADY:
            self._tally.steady_s.append(time.monotonic() - began - delay_ms / 1000)
        self._tally.calls += 1
        outcome, problem = judge(answer, text, must_succeed=server in STEADY)
        self._tally.outcomes[f"{server}: {outcome}"] += 1
        if problem is not None:
            self._tally.problem(f"{server}, client {self._number}, call {self._count}: {problem}")
        if (request_id := request_id_of(answer)) is not None:
            self._tally.request_ids.add(request_id)

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The response to one tools/call. A legacy client opens its session first, or again."""
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": self._count + 1, "method": "tools/call", "params": params}
        if self._is_modern:
            params["_meta"] = _META
            headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
        else:
            if not self._session:
                await self._initialize()
            headers = self._session
        status, found, body = await self.connection.post(json.dumps(message).encode(), headers)
        if status == 404 and not self._is_modern:
            self._session = {}
        return last_message(found, body)

    async def _initialize(self) -> None:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "chaos", "version": "1"}}
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        _, headers, _ = await self.connection.post(json.dumps(hello).encode(), {})
        self._session = {"Mcp-Session-Id": headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.connection.post(json.dumps(ready).encode(), self._session)


def last_message(headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """The response in a body: the whole body, or the last event of a stream."""
    if headers.get("content-type", "").startswith("text/event-stream"):
        events = [line[5:] for line in body.decode().splitlines() if line.startswith("data:")]
        body = events[-1].encode() if events else b"{}"
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def judge(answer: dict[str, Any], text: str, *, must_succeed: bool) -> tuple[str, str | None]:
    """What came of a call, and what is wrong with its answer, if anything is."""
    result = answer.get("result")
    if isinstance(result, dict) and not result.get("isError"):
        said = result["content"][0].get("text")
        return "ok", None if said == text else f"the answer belongs to another call: {str(said)[:60]!r}"
    failure = _failure_of(answer)
    missing = [name for name in _FACTS if failure.get(name) is None]
    if missing:
        return "no facts", f"a failure without {', '.join(missing)}: {json.dumps(answer)[:300]}"
    outcome = str(failure["failure_mode"])
    return outcome, f"a steady server failed: {json.dumps(failure)[:300]}" if must_succeed else None


def _failure_of(answer: dict[str, Any]) -> dict[str, Any]:
    error = answer.get("error")
    if isinstance(error, dict):
        data = error.get("data")
        return data if isinstance(data, dict) else {}
    envelope = (answer.get("result") or {}).get("_meta", {}).get(ENVELOPE, {})
    failure = envelope.get("failure")
    return failure if isinstance(failure, dict) else {}


def request_id_of(answer: dict[str, Any]) -> str | None:
    """The id under which the audit log must have this call."""
    envelope = ((answer.get("result") or {}).get("_meta") or {}).get(ENVELOPE) or {}
    found = envelope.get("requestId") or _failure_of(answer).get("requestId")
    return found if isinstance(found, str) else None


async def misbehave(kind: str, endpoint: Endpoint, server: str) -> None:
    """One fault of a client. What comes of it is of no interest here: other clients must not notice."""
    connection = Connection(endpoint)
    with suppress(HttpError, OSError, TimeoutError):
        async with asyncio.timeout(10):
            await _MISBEHAVIOURS[kind](connection, server)
    connection.close()


def _body(name: str, arguments: dict[str, Any]) -> tuple[bytes, dict[str, str]]:
    params = {"name": name, "arguments": arguments, "_meta": _META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(message).encode(), {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }


async def _leave(connection: Connection, server: str) -> None:
    writer = await connection.open()
    writer.write(connection.request(*_body(f"{server}__echo", {"text": "left", "ms": 1000})))
    await asyncio.sleep(0.05)
    writer.transport.abort()


async def _half_request(connection: Connection, server: str) -> None:
    writer = await connection.open()
    request = connection.request(*_body(f"{server}__echo", {"text": "half"}))
    writer.write(request[: len(request) // 2])
    await asyncio.sleep(2)


async def _large_request(connection: Connection, server: str) -> None:
    name = f"{server}__echo"
    numbers = b"1e400," * 500_000
    _, headers = _body(name, {})
    meta = json.dumps(_META).encode()
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%b","_meta":%b,"arguments":{"x":[%b0]}}}'
    await connection.post(body % (name.encode(), meta, numbers), headers)


async def _wrong_token(connection: Connection, server: str) -> None:
    for number in range(20):
        body, headers = _body(f"{server}__echo", {"text": "guess"})
        await connection.post(body, {**headers, "Authorization": f"Bearer guess-{number:016}"})


async def _cancel(connection: Connection, server: str) -> None:
    for _ in range(10):
        await _leave(connection, server)
        connection.close()


async def _idle_connections(connection: Connection, server: str) -> None:
    await connection.open()
    others = [Connection(connection.endpoint) for _ in range(50)]
    for other in others:
        await other.open()
    await asyncio.sleep(1)
    for other in others:
        other.close()


_MISBEHAVIOURS: Final[dict[str, Callable[[Connection, str], Awaitable[None]]]] = {
    "leave": _leave,
    "half_request": _half_request,
    "large_request": _large_request,
    "wrong_token": _wrong_token,
    "cancel": _cancel,
    "idle_connections": _idle_connections,
}
