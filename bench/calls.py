"""`python -m bench calls`: how many Python and C functions one tool call runs, by module.

Counts don't depend on what else the machine does, so they show small changes that CPU times hide. The gateway is built as
`pactgate serve` builds it, between a client and a server in this process: the loop's connections are lists of bytes, and everything above
them is the real code. What the counts leave out: the event loop, system calls, and constructors written in C.

`--order NAME` lists the functions of one call in the order in which they run. `--repeat N` makes N calls uncounted and prints the CPU time
of each, for comparing two versions in turn or below a profiler.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import msgspec
import uvloop
from msgspec import Struct

from bench.answers import Upstream
from bench.tokens import NO_TOKENS, Tokens
from bench.traffic import MIXED, Text, Writer, texts
from pactgate.app import Gateway
from pactgate.cli.allocator import search_garbage_rarely
from pactgate.config.model import Config
from pactgate.config.sections.auth import Auth
from pactgate.config.sections.cache import Cache, CacheRule
from pactgate.config.sections.rate_limits import RateLimits
from pactgate.config.server_settings import ServerConfig

_SOURCES: Final = str(Path(sys.modules[Gateway.__module__].__file__ or "").parent)
_VERSION: Final = "2025-11-25"
_TOOLS: Final = 23
_CALLS: Final = 96
"""Counted for each row: a multiple of the six templates of `MIXED`."""
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
_ACCEPTED: Final = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
_HEAD_END: Final = b"\r\n\r\n"
_ANSWER_S: Final = 5.0


class CallRow(Struct, frozen=True):
    """What is counted."""

    name: str
    era: str = "legacy"
    is_cached: bool = False
    tokens: Tokens = NO_TOKENS

    def config(self) -> Config:
        cache = Cache(tools={"*.*": CacheRule(ttl_ms=600_000)}) if self.is_cached else Cache()
        return Config(
            servers={"up": ServerConfig(id="up", url="http://127.0.0.1:9/mcp")},
            categories={"*.*": "query"} if self.is_cached else {},
            cache=cache,
            rate_limits=RateLimits(enabled=False),
            auth=msgspec.convert(self.tokens.settings(), Auth),
        )


ROWS: Final = (
    CallRow("legacy"),
    CallRow("modern", era="modern"),
    CallRow("token", tokens=Tokens(1)),
    CallRow("jwt", tokens=Tokens(1, "jwt")),
    CallRow("cached", is_cached=True),
)


class CallCounts(Struct):
    """Calls by module, for all calls of a row: functions written in Python, and in C."""

    python: Counter[str]
    c: Counter[str]

    @property
    def python_per_call(self) -> float:
        return self.python.total() / _CALLS


class _Wire(asyncio.Transport):
    """One end of a connection: what the gateway wrote waits in `written`."""

    def __init__(self, on_write: Callable[[_Wire], object] | None = None) -> None:
        super().__init__()
        self.protocol: asyncio.Protocol
        self.written: list[bytes] = []
        self.on_write = on_write

    def write(self, data: Any) -> None:
        self.written.append(data)
        if self.on_write is not None:
            self.on_write(self)

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        self.protocol.connection_lost(None)

    abort = close

    def take(self) -> bytes:
        """The whole message that was written last."""
        data = b"".join(self.written)
        self.written.clear()
        return data


class _Listener:
    """Stands for the listening socket."""

    def __init__(self) -> None:
        self.sockets = (self,)

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 1

    def close(self) -> None:
        return

    async def wait_closed(self) -> None:
        return


class MemoryLoop(uvloop.Loop):
    """A loop whose listening socket and whose connections to servers are in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.accept: Callable[[], asyncio.Protocol]
        self.answers_at_once = True
        """Whether the server answers by itself; else its requests wait in `asked`."""
        self.asked: list[_Wire] = []
        self._server = Upstream(_TOOLS, "both")

    async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        self.accept = protocol_factory
        return _Listener()

    async def create_connection(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        wire = _Wire(self._requested)
        wire.protocol = protocol_factory()
        wire.protocol.connection_made(wire)
        return wire, wire.protocol

    def answer(self, wire: _Wire) -> bytes:
        """The server's response to what waits on a wire."""
        answer = self._server.answer(wire.take().partition(_HEAD_END)[2] or b"{}")
        return _HEAD % (len(answer), answer) if isinstance(answer, bytes) else _ACCEPTED

    def _requested(self, wire: _Wire) -> None:
        if self.answers_at_once:
            self.call_soon(lambda: wire.protocol.data_received(self.answer(wire)))
        else:
            self.asked.append(wire)


class _Client:
    """One client connection, and one call after the other on it."""

    def __init__(self, loop: MemoryLoop, row: CallRow) -> None:
        self._loop = loop
        self._row = row
        self._wire = _Wire()
        self._wire.protocol = loop.accept()
        self._wire.protocol.connection_made(self._wire)
        headers = ["Host: 127.0.0.1:1"] + ([f"Authorization: Bearer {row.tokens.of(0)}"] if row.tokens.count else [])
        self._writer = Writer(
            start_line="POST /mcp HTTP/1.1".removeprefix("POST "),
            headers=headers,
            era=row.era,
            version=_VERSION,
            shape=MIXED,
        )

    async def start(self) -> None:
        if self._row.era == "legacy":
            answer = await self._ask(self._writer.initialize())
            self._writer.session = answer.partition(b"Mcp-Session-Id: ")[2].partition(b"\r\n")[0].decode()
            await self._ask(self._writer.initialized())
        warm = self.requests()
        for _ in range(_CALLS):
            await self._ask(next(warm)[0])

    def requests(self) -> Iterator[tuple[bytes, Text]]:
        """The mixed requests, the same in each run, and what each must be answered with."""
        templates, all_texts = self._writer.calls("up__echo"), texts(MIXED)
        for number in count():
            text = all_texts[number % (_CALLS if self._row.is_cached else len(all_texts))]
            yield templates[number % len(templates)].fill(b"%d" % (number + 1), text.encoded), text

    def call(self, request: bytes, text: Text) -> None:
        """One call, without a turn of the loop."""
        self._wire.protocol.data_received(request)
        if not self._row.is_cached:
            wire = self._loop.asked.pop()
            wire.protocol.data_received(self._loop.answer(wire))
        answer = self._wire.take()
        if b'"result"' not in answer or text.encoded not in answer:
            raise RuntimeError(f"not answered with its own text: {answer[:300]!r}")

    async def _ask(self, request: bytes) -> bytes:
        answered = asyncio.Event()
        self._wire.on_write = lambda wire: answered.set()
        self._wire.protocol.data_received(request)
        await asyncio.wait_for(answered.wait(), _ANSWER_S)
        self._wire.on_write = None
        return self._wire.take()


class _Counter:
    """Counts while it is the profiler of this thread. Calls of this module are not counted."""

    def __init__(self) -> None:
        self.python: Counter[str] = Counter()
        self.c: Counter[str] = Counter()
        self.order: list[str] = []
        self._modules: dict[CodeType, str] = {}

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "c_call"):
            return
        module = self._modules.get(frame.f_code) or self._named(frame.f_code)
        if not module:
            return
        if event == "call":
            self.python[module] += 1
            self.order.append(f"{module}  {frame.f_code.co_qualname}")
        else:
            self.c[module] += 1
            self.order.append(f"{module}      {frame.f_code.co_qualname} -> {argument.__qualname__}")

    def _named(self, code: CodeType) -> str:
        """The module of some code, by its path; nothing for this one and those of the benchmark."""
        path = Path(code.co_filename)
        if path.is_relative_to(Path(__file__).parent):
            name = ""
        elif path.is_relative_to(_SOURCES):
            name = str(path.relative_to(_SOURCES).with_suffix("")).replace("/", ".")
        else:
            name = path.stem
        self._modules[code] = name
        return name


class _Clients:
    """Two clients that call in turn: what is kept of the last caller must not make a call look cheap."""

    def __init__(self, loop: MemoryLoop, row: CallRow) -> None:
        self._clients = (_Client(loop, row), _Client(loop, row))

    async def start(self) -> None:
        for client in self._clients:
            await client.start()

    def calls(self) -> Iterator[Callable[[], None]]:
        for each in zip(*(client.requests() for client in self._clients), strict=True):
            for client, request in zip(self._clients, each, strict=True):
                yield partial(client.call, *request)


async def _with_clients(row: CallRow, use: Callable[[_Clients], None]) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, MemoryLoop)
    async with Gateway.open(row.config()) as gateway:
        await gateway.serve_http()
        await gateway.connections.session("up")
        await gateway.connections.settle()
        clients = _Clients(loop, row)
        await clients.start()
        search_garbage_rarely()
        loop.answers_at_once = False
        use(clients)
        loop.answers_at_once = True


def _run(row: CallRow, use: Callable[[_Clients], None]) -> None:
    with asyncio.Runner(loop_factory=MemoryLoop) as runner:
        runner.run(_with_clients(row, use))


def measure_calls(row: CallRow) -> CallCounts:
    """Count the calls of a row."""
    counter = _Counter()
    _run(row, lambda clients: _count(clients, counter))
    return CallCounts(counter.python, counter.c)


def _count(clients: _Clients, counter: _Counter) -> None:
    for call in islice(clients.calls(), _CALLS):
        sys.setprofile(counter.note)
        call()
        sys.setprofile(None)


def _print_order(row: CallRow) -> None:
    counter = _Counter()

    def one(clients: _Clients) -> None:
        call = next(clients.calls())
        sys.setprofile(counter.note)
        call()
        sys.setprofile(None)

    _run(row, one)
    print("\n".join(counter.order))


def _print_time(row: CallRow, calls: int) -> None:
    def repeat(clients: _Clients) -> None:
        several = list(islice(clients.calls(), _CALLS))
        best = 1e9
        for _ in range(max(1, calls // _CALLS)):
            began = time.process_time_ns()
            for call in several:
                call()
            best = min(best, (time.process_time_ns() - began) / _CALLS / 1000)
        print(
            f"{row.name:<10}{best:8.2f} us per call, the best of {max(1, calls // _CALLS)} rounds; with the server's part"
        )

    _run(row, repeat)


def table(counts: dict[str, CallCounts]) -> str:
    """Python and C calls of one tool call, a column for each row."""
    modules = sorted({name for one in counts.values() for name in (*one.python, *one.c)})
    lines = [f"{'calls of one tool call, Python + C':<42}" + "".join(f"{name:>16}" for name in counts)]
    for module in modules:
        cells = "".join(_cell(one.python[module], one.c[module]) for one in counts.values())
        lines.append(f"{module:<42}{cells}")
    totals = "".join(_cell(one.python.total(), one.c.total()) for one in counts.values())
    return "\n".join((*lines, f"{'in all':<42}{totals}"))


def _cell(python: int, c: int) -> str:
    return f"{python / _CALLS:9.1f} +{c / _CALLS:5.1f}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench calls", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [row.name for row in ROWS]
    parser.add_argument("--order", choices=names, help="list the functions of one call in their order")
    parser.add_argument(
        "--repeat", type=int, metavar="N", help="make N calls of each row, uncounted, and print their CPU time"
    )
    parser.add_argument("--only", choices=names, help="one row instead of all")
    options = parser.parse_args(arguments)
    chosen = [row for row in ROWS if options.only in (None, row.name)]
    if options.order:
        _print_order(next(row for row in ROWS if row.name == options.order))
    elif options.repeat:
        for row in chosen:
            _print_time(row, options.repeat)
    else:
        print(table({row.name: measure_calls(row) for row in chosen}))
    return 0
