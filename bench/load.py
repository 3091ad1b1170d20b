"""A raw load generator for MCP over HTTP: `python -m bench.load --url http://127.0.0.1:7411/mcp --tool up__echo`.

Each client has one keep-alive connection on a bare protocol and sends its next call when the last one is answered. A legacy
client opens one session and ends it afterwards; a modern client sends `_meta` with each call. Each response is decoded and
checked: status, id, no error, and exactly the text that this call sent. A response that belongs to another call is a failure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from array import array
from typing import Final, cast
from urllib.parse import urlsplit

import httptools
import msgspec
import uvloop
from msgspec import Struct, structs

from bench.cpu import cpu_us
from bench.tokens import NO_TOKENS, Tokens
from bench.traffic import FIXED, MIXED, Shape, Template, Writer, texts, traceparent

_GIVE_UP_AFTER: Final = 20
_HANDSHAKE_S: Final = 10.0
_ANSWER_S: Final = 30.0


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
    """blob: bytes of the result."""
    tools: int = 0
    """list: how many tools must be listed."""
    shape: Shape = FIXED
    calls_per_s: float | None = None
    """At most so many calls in a second, all connections together; none: as fast as they are answered."""
    tokens: Tokens = NO_TOKENS
    """To how many principals the connections belong."""


class _Content(Struct):
    text: str = ""


class _Result(Struct):
    content: list[_Content] = []
    isError: bool = False  # noqa: N815 - the protocol's spelling
    nextCursor: str | None = None  # noqa: N815 - the protocol's spelling


class _Response(Struct):
    id: int | str | None = None
    result: _Result | None = None


_response: Final = msgspec.json.Decoder(_Response)


class LoadResult(Struct, frozen=True):
    """The figures of one run. `cpu_us` is CPU time per call, None when no process was charged."""

    calls: int
    failed: int
    last_failure: str
    calls_per_s: float
    p50_us: float
    p99_us: float
    cpu_us: float | None
    answer_bytes: int


class LoadError(Exception):
    """Nothing could be measured; the message has the reason."""


class _Round:
    """The state that all clients of one run share: when to stop, latencies and failures."""

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
    """One keep-alive connection. It passes each whole response to `owner.answered`, and its end to `owner.lost`."""

    def __init__(self, owner: _Client) -> None:
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


class _Client:
    """One client with one connection and one session, which sends its calls one after the other."""

    def __init__(self, load: Load, number: int) -> None:
        self._load = load
        self._number = number
        parts = urlsplit(load.url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        headers = [f"Host: {self._host}:{self._port}"]
        headers += [f"Authorization: Bearer {load.tokens.of(number)}"] if load.tokens.count else []
        start_line = f"{parts.path or '/'} HTTP/1.1"
        self._writer = Writer(
            start_line=start_line, headers=headers, era=load.era, version=load.version, shape=load.shape
        )
        self._templates: tuple[Template, ...] = ()
        self._texts = texts(load.shape)
        self._connection: _Connection | None = None
        self._count = 0
        self._listed = 0
        self._asked: asyncio.Future[tuple[int, bytes]] | None = None
        self._round: _Round | None = None
        self._finished: asyncio.Future[None] | None = None
        self._reconnecting: asyncio.Task[None] | None = None
        self._id = 0
        self._want = "b" * load.size if load.kind == "blob" else ""
        self._sent_at = 0.0
        self._due_s = 0.0

    async def start(self) -> None:
        await self._connect()
        if self._load.era == "legacy":
            status, body = await self._ask(self._writer.initialize())
            if status != 200 or b'"result"' not in body:
                raise LoadError(f"initialize was answered with {status}: {body[:300]!r}")
            self._writer.session = self._live().session
            await self._ask(self._writer.initialized())
        if self._load.kind == "list":
            self._templates = self._writer.lists()
        elif self._load.kind == "blob":
            self._templates = self._writer.blobs(self._load.tool, self._load.size)
        else:
            self._templates = self._writer.calls(self._load.tool)

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
        is_open = self._connection is not None and not self._connection.transport.is_closing()
        if self._writer.session is not None and is_open:
            await self._ask(self._writer.delete_session())

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
        result = self._result(status, body)
        if result is not None and result.nextCursor is not None:
            self._listed += body.count(b'"inputSchema"')
            self._send(self._writer.lists(result.nextCursor))
            return
        problem = f"{status}: {body[:300]!r}" if result is None else self._problem(result, body)
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
        """Send the next call now, or with a rate when it is due; a late call is sent at once, so that the rate is kept overall."""
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
        self._send(self._templates)

    def _send(self, templates: tuple[Template, ...]) -> None:
        count, number, shape = self._count, self._number, self._load.shape
        self._count = count + 1
        self._id = shape.first_id + count
        text = b""
        if self._load.kind == "echo":
            chosen = self._texts[(count + number * 31) % len(self._texts)]
            text, self._want = chosen.with_prefix(number, count)
        further = traceparent(number, count) if shape.is_traced else b""
        template = templates[count % len(templates)]
        self._live().transport.write(template.fill(b"%d" % self._id, text, further))

    def _result(self, status: int, body: bytes) -> _Result | None:
        """The result of the call that was sent last; None when the answer is anything else."""
        try:
            response = _response.decode(body if body.startswith(b"{") else _event(body))
        except msgspec.MsgspecError:
            return None
        result = response.result
        return result if status == 200 and response.id == self._id and result and not result.isError else None

    def _problem(self, result: _Result, body: bytes) -> str | None:
        if self._load.kind == "list":
            listed = self._listed + body.count(b'"inputSchema"')
            is_short = self._load.tools and listed != self._load.tools
            return f"{listed} tools listed, {self._load.tools} expected" if is_short else None
        text = result.content[0].text if result.content else ""
        if text == self._want or text == f'{{"text":"{self._want}"}}':  # the second from a REST endpoint
            return None
        return f"not the text that was sent: {body[:300]!r}"

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


def _event(body: bytes) -> bytes:
    """The message in an event stream of one event."""
    return body[body.find(b"{") : body.rfind(b"}") + 1]


async def measure(load: Load, pid: int | None = None) -> LoadResult:
    """Run the load once, after a warm-up; with `pid`, charge the CPU time of that process tree to the calls."""
    clients = [_Client(load, number) for number in range(load.connections)]
    try:
        for client in clients:
            await client.start()
        if load.warmup:
            warming = _Round(load.warmup, load.seconds + _HANDSHAKE_S)
            await asyncio.gather(*(client.run(warming) for client in clients))
            if warming.failed:
                raise LoadError(f"{load.url} {load.tool}: {warming.last_failure}")
        shared = _Round(load.calls, load.seconds)
        cpu_before, began = cpu_us(pid) if pid else 0.0, time.perf_counter()
        await asyncio.gather(*(client.run(shared) for client in clients))
        wall_s, cpu_used = time.perf_counter() - began, (cpu_us(pid) if pid else 0.0) - cpu_before
        for client in clients:
            await client.end_session()
    except (OSError, TimeoutError) as problem:
        raise LoadError(f"{load.url}: {problem or type(problem).__name__}") from problem
    finally:
        for client in clients:
            await client.close()
    return _summary(shared, wall_s, cpu_used if pid else None)


def _summary(shared: _Round, wall_s: float, cpu_used_us: float | None) -> LoadResult:
    count = len(shared.latencies_s)
    if not count:
        raise LoadError(shared.last_failure or "no call was answered in time")
    ordered = sorted(shared.latencies_s)
    return LoadResult(
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
    parser.add_argument("--version", default="2025-11-25", help="the version a legacy client asks for")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--calls", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--warmup", type=int, default=100)
    parser.add_argument("--size", type=int, default=32, help="blob: bytes of the result")
    parser.add_argument("--mixed", action="store_true", help="requests as real clients send them, not one fixed shape")
    parser.add_argument("--tools", type=int, default=0, help="list: how many tools must be listed")
    parser.add_argument("--pid", type=int, help="the process tree whose CPU time to charge")
    options = vars(parser.parse_args())
    pid = options.pop("pid")
    options["shape"] = MIXED if options.pop("mixed") else FIXED
    try:
        result = uvloop.run(measure(Load(**options), pid))
    except LoadError as problem:
        raise SystemExit(f"bench.load: {problem}") from None
    print(json.dumps(structs.asdict(result)))


if __name__ == "__main__":
    main()
