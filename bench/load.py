"""A raw load generator for MCP over HTTP: `python -m bench.load --url http://127.0.0.1:7411/mcp --tool up__echo`.

Keep-alive connections on a bare protocol, each sending its next call when the last was answered. Legacy callers hold
one session per connection and end it afterwards; modern ones send the envelope with every call. Every answer is
checked: status, id, a result that is no error, and the very text sent, so an answer to somebody else counts as failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from array import array
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httptools
import uvloop
from msgspec import Struct, structs

from bench.answers import MODERN, token
from bench.cpu import cpu_us

_ID_MARK: Final = 77777777
_TEXT_MARK: Final = "\u00b6" * 8
_FIRST_ID: Final = 10_000_000
_GIVE_UP_AFTER: Final = 20
_HANDSHAKE_S: Final = 10.0
_ANSWER_S: Final = 30.0
_INFO: Final = {"name": "pactgate-bench", "version": "1"}


class Load(Struct, frozen=True):
    """What to send. `kind` is echo, blob or list; the run ends after `calls` or `seconds`, whichever comes first."""

    url: str
    tool: str = "echo"
    kind: str = "echo"
    era: str = "legacy"
    version: str = "2025-11-25"
    connections: int = 1
    calls: int = 10_000_000
    seconds: float = 5.0
    warmup: int = 100
    size: int = 32
    tools: int = 0
    repeats: bool = False
    """The same text in every call, so that a gateway may keep the answer."""
    calls_per_s: float | None = None
    """At most so many calls in a second, all connections together; none: as fast as they are answered."""
    tokens: int = 0  # how many callers the connections belong to, by their bearer tokens; 0: nobody says who it is


class Measured(Struct, frozen=True):
    calls: int
    failed: int
    last_failure: str
    calls_per_s: float
    p50_us: float
    p99_us: float
    cpu_us: float | None
    answer_bytes: int


class LoadError(Exception):
    """Nothing could be measured, and why."""


class _Round:
    """What the connections of one run share: when to stop, and what they saw."""

    def __init__(self, calls: int, seconds: float) -> None:
        self.left = calls
        self.until = time.perf_counter() + seconds
        self.latencies_s = array("d")
        self.failed = 0
        self.last_failure = ""
        self.answer_bytes = 0

    def take(self) -> bool:
        if self.left <= 0 or self.failed >= _GIVE_UP_AFTER or time.perf_counter() >= self.until:
            return False
        self.left -= 1
        return True

    def fail(self, why: str) -> None:
        self.failed += 1
        self.last_failure = why


class _Connection(asyncio.Protocol):
    """One keep-alive connection; whole answers go to `owner.answered`, its end to `owner.lost`."""

    def __init__(self, owner: _Caller) -> None:
        self._owner = owner
        self.session: str | None = None
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is not a subclass
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()
        self._owner.lost()

    def on_message_begin(self) -> None:
        self._body = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) == 14 and name.lower() == b"mcp-session-id":
            self.session = value.decode()

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._owner.answered(self._parser.get_status_code(), body)


class _Caller:
    """One client: its connection, its session, its calls one after the other."""

    def __init__(self, load: Load, number: int) -> None:
        self._load = load
        self._number = number
        parts = urlsplit(load.url)
        self._host, self._port, self._path = parts.hostname or "127.0.0.1", parts.port or 80, parts.path or "/"
        self._connection: _Connection | None = None
        self._session: str | None = None
        self._count = 0
        self._listed = 0
        self._asked: asyncio.Future[tuple[int, bytes]] | None = None
        self._round: _Round | None = None
        self._finished: asyncio.Future[None] | None = None
        self._reconnecting: asyncio.Task[None] | None = None
        self._id = self._want = b""
        self._sent_at = 0.0
        self._due_s = 0.0

    async def start(self) -> None:
        await self._connect()
        if self._load.era == "legacy":
            params = {"protocolVersion": self._load.version, "capabilities": {}, "clientInfo": _INFO}
            opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
            status, body = await self._ask(self._encode(opening))
            if status != 200 or b'"result"' not in body:
                raise LoadError(f"initialize was answered with {status}: {body[:300]!r}")
            self._session = self._live().session
            await self._ask(self._encode({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        self._pieces = self._template(None)

    async def run(self, shared: _Round) -> None:
        self._round = shared
        self._finished = asyncio.get_running_loop().create_future()
        self._due_s = time.perf_counter()
        self._next()
        try:
            await asyncio.wait_for(self._finished, max(0.0, shared.until - time.perf_counter()) + _ANSWER_S)
        except TimeoutError:
            shared.fail(f"no answer within {_ANSWER_S:.0f} s")
        self._round = None

    async def end_session(self) -> None:
        if self._session is not None and self._connection is not None and not self._connection.transport.is_closing():
            await self._ask(self._head("DELETE", []) + b"Content-Length: 0\r\n\r\n")

    async def close(self) -> None:
        self._round = None
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.wait([self._reconnecting])
        if self._connection is not None:
            self._connection.transport.close()
            await self._connection.ended.wait()

    def answered(self, status: int, body: bytes) -> None:
        if self._asked is not None:
            asked, self._asked = self._asked, None
            if not asked.done():
                asked.set_result((status, body))
            return
        if self._round is None:
            return
        now = time.perf_counter()
        problem = self._problem(status, body)
        if problem is None and self._load.kind == "list" and b'"nextCursor"' in body:
            self._listed += body.count(b'"inputSchema"')
            self._send(self._template(_next_cursor(body)))
            return
        if problem is None:
            self._round.latencies_s.append(now - self._sent_at)
            self._round.answer_bytes = len(body)
        else:
            self._round.fail(problem)
        self._next_when_due(now)

    def lost(self) -> None:
        if self._asked is not None and not self._asked.done():
            self._asked.set_exception(ConnectionResetError("closed while an answer was due"))
        elif self._round is not None:
            self._round.fail("closed while an answer was due")
            self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect())

    def _next_when_due(self, now: float) -> None:
        """With a rate, calls have their times and a late one is sent at once, so that the rate holds on the whole."""
        if self._load.calls_per_s:
            self._due_s += self._load.connections / self._load.calls_per_s
        if self._due_s <= now:
            self._next()
        else:
            asyncio.get_running_loop().call_later(self._due_s - now, self._next)

    def _next(self) -> None:
        if self._round is None:
            return
        assert self._finished is not None
        if not self._round.take():
            if not self._finished.done():
                self._finished.set_result(None)
            return
        self._listed = 0
        self._sent_at = time.perf_counter()
        self._send(self._pieces)

    def _send(self, pieces: list[bytes]) -> None:
        self._count += 1
        self._id = b"%d" % (_FIRST_ID + self._count)
        text = b"%04d-%010d-" % ((0, 0) if self._load.repeats else (self._number, self._count))
        if self._load.kind == "echo":
            text += b"t" * (self._load.size - len(text))
            self._want = text
        self._live().transport.write(pieces[0] + self._id + pieces[1] + (text + pieces[2] if len(pieces) == 3 else b""))

    def _problem(self, status: int, body: bytes) -> str | None:
        is_good = (
            status == 200
            and b'"result"' in body
            and self._id in body
            and self._want in body
            and b'"isError":true' not in body
            and b'"isError": true' not in body
        )
        if not is_good:
            return f"{status}: {body[:300]!r}"
        if self._load.kind == "list" and self._load.tools and b'"nextCursor"' not in body:
            listed = self._listed + body.count(b'"inputSchema"')
            if listed != self._load.tools:
                return f"{listed} tools listed, {self._load.tools} expected"
        return None

    def _template(self, cursor: str | None) -> list[bytes]:
        """The request, split around its id and (for echo) its text; both have a fixed width, so its length is fixed."""
        load = self._load
        if load.kind == "list":
            params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
            self._want = b'"tools"'
            return self._split({"jsonrpc": "2.0", "id": _ID_MARK, "method": "tools/list", "params": params}, None)
        arguments: dict[str, Any] = {"text": _TEXT_MARK}
        if load.kind == "blob":
            arguments, self._want = {"size": load.size}, b"b" * load.size
        params = {"name": load.tool, "arguments": arguments}
        return self._split({"jsonrpc": "2.0", "id": _ID_MARK, "method": "tools/call", "params": params}, load.tool)

    def _split(self, message: dict[str, Any], name: str | None) -> list[bytes]:
        mark = _TEXT_MARK.encode()
        width = max(self._load.size, 16) - len(mark)
        head, rest = self._encode(message, name, width).split(str(_ID_MARK).encode())
        return [head, *rest.split(mark)]

    def _encode(self, message: dict[str, Any], name: str | None = None, wider: int = 0) -> bytes:
        method = message["method"]
        headers = ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
        if self._load.era == "modern":
            headers += [f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}"]
            headers += [f"Mcp-Name: {name}"] if name else []
            message = {**message, "params": {**message.get("params", {}), "_meta": _envelope()}}
        elif method != "initialize":
            headers.append(f"MCP-Protocol-Version: {self._load.version}")
        body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
        length = len(body) + (wider if _TEXT_MARK.encode() in body else 0)
        return self._head("POST", headers) + b"Content-Length: %d\r\n\r\n" % length + body

    def _head(self, verb: str, headers: list[str]) -> bytes:
        session = [f"Mcp-Session-Id: {self._session}"] if self._session else []
        session += [f"Authorization: Bearer {token(self._number % self._load.tokens)}"] if self._load.tokens else []
        lines = [f"{verb} {self._path} HTTP/1.1", f"Host: {self._host}:{self._port}", *session, *headers]
        return ("\r\n".join(lines) + "\r\n").encode()

    async def _ask(self, raw: bytes) -> tuple[int, bytes]:
        self._asked = asyncio.get_running_loop().create_future()
        self._live().transport.write(raw)
        return await asyncio.wait_for(self._asked, _HANDSHAKE_S)

    def _live(self) -> _Connection:
        if self._connection is None:
            raise LoadError("not connected")
        return self._connection

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        _, self._connection = await loop.create_connection(lambda: _Connection(self), self._host, self._port)

    async def _reconnect(self) -> None:
        try:
            await self._connect()
        except OSError as problem:
            if self._round is not None:
                self._round.fail(f"can't connect again: {problem}")
                self._round.left = 0
        if self._round is not None:
            self._next()


def _envelope() -> dict[str, Any]:
    prefix = "io.modelcontextprotocol/"
    return {f"{prefix}protocolVersion": MODERN, f"{prefix}clientInfo": _INFO, f"{prefix}clientCapabilities": {}}


def _next_cursor(body: bytes) -> str:
    text = body if body.startswith(b"{") else body[body.index(b"{") : body.rindex(b"}") + 1]
    return str(json.loads(text)["result"]["nextCursor"])


async def measure(load: Load, pid: int | None = None) -> Measured:
    """Run the load once, after a warm-up; with `pid`, charge the processor time of that process tree to the calls."""
    callers = [_Caller(load, number) for number in range(load.connections)]
    try:
        for caller in callers:
            await caller.start()
        if load.warmup:
            warming = _Round(load.warmup, load.seconds + _HANDSHAKE_S)
            await asyncio.gather(*(caller.run(warming) for caller in callers))
            if warming.failed:
                raise LoadError(f"{load.url} {load.tool}: {warming.last_failure}")
        shared = _Round(load.calls, load.seconds)
        cpu_before, began = cpu_us(pid) if pid else 0.0, time.perf_counter()
        await asyncio.gather(*(caller.run(shared) for caller in callers))
        wall_s, cpu_used = time.perf_counter() - began, (cpu_us(pid) if pid else 0.0) - cpu_before
        for caller in callers:
            await caller.end_session()
    except (OSError, TimeoutError) as problem:
        raise LoadError(f"{load.url}: {problem or type(problem).__name__}") from problem
    finally:
        for caller in callers:
            await caller.close()
    return _summary(shared, wall_s, cpu_used if pid else None)


def _summary(shared: _Round, wall_s: float, cpu_used_us: float | None) -> Measured:
    count = len(shared.latencies_s)
    if not count:
        raise LoadError(shared.last_failure or "no call was answered in time")
    ordered = sorted(shared.latencies_s)
    return Measured(
        calls=count,
        failed=shared.failed,
        last_failure=shared.last_failure,
        calls_per_s=count / wall_s,
        p50_us=ordered[count // 2] * 1e6,
        p99_us=ordered[min(count - 1, int(count * 0.99))] * 1e6,
        cpu_us=None if cpu_used_us is None else cpu_used_us / count,
        answer_bytes=shared.answer_bytes,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--tool", default="echo")
    parser.add_argument("--kind", choices=["echo", "blob", "list"], default="echo")
    parser.add_argument("--era", choices=["legacy", "modern"], default="legacy")
    parser.add_argument("--version", default="2025-11-25", help="the revision a legacy caller asks for")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--calls", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--warmup", type=int, default=100)
    parser.add_argument("--size", type=int, default=32, help="echo: length of the argument; blob: length of the answer")
    parser.add_argument("--tools", type=int, default=0, help="list: how many tools must be listed")
    parser.add_argument("--pid", type=int, help="whose processor time to charge")
    options = vars(parser.parse_args())
    pid = options.pop("pid")
    try:
        result = uvloop.run(measure(Load(**options), pid))
    except LoadError as problem:
        raise SystemExit(f"bench.load: {problem}") from None
    print(json.dumps(structs.asdict(result)))


if __name__ == "__main__":
    main()
