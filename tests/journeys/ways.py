"""Every way into one gateway, and every way out of it: what a client sends, what it sees, and the servers behind it.

One gateway and one set of servers serve all tests of a module. Each way in carries the same request in its own form, and reports what the
client sees in the same form.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pactgate.app import Gateway
from pactgate.config.model import Config, ResponseSection
from pactgate.config.sections.cache import Cache, CacheRule
from pactgate.config.sections.limits import Limits, Timeouts
from pactgate.config.sections.listen import ListenSection
from pactgate.config.sections.rate_limits import RateLimits, ToolRate
from pactgate.config.server_settings import ServerConfig
from pactgate.inbound.stdio_frontend import serve_stdio
from pactgate.protocol.framing import EventDecoder
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN
from tests.support import rest_api
from tests.support.facing import META, initialize, notification
from tests.support.http_upstream import upstream
from tests.support.raw_http import WAIT_S, Answer, RawClient, post
from tests.support.scripted_http import Peer, ScriptedHttp, answer
from tests.support.servers import UPSTREAM

ENVELOPE = "dev.pactgate/envelope"
BATCHES = "2025-03-26"
MAX_RESULT_BYTES = 20_000
CALL_MS = 20

# Ways out: what a server is called there says how it is reached.

MCP = ("http", "modern", "stdio")
EVERY_OUT = (*MCP, "python", "rest")
FRAIL = "frail"
"""A server over stdio for each way in, because one that has died is not started again at once."""
_LIGHT = ("-I", "-S", str(Path(__file__).with_name("light_server.py")), "healthy")
_TOOLS = ("echo", "wire", "slow", "slow_and_patient", "crash", "progress", "raw", "refuse", "limited", "counted")
_INTEGER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
_DEFINITIONS: list[dict[str, Any]] = [
    *({"name": name, "inputSchema": {"type": "object"}} for name in _TOOLS),
    {"name": "strict", "inputSchema": {**_INTEGER, "additionalProperties": False}},
    {"name": "raw_typed", "inputSchema": {"type": "object"}, "outputSchema": _INTEGER},
]
_PYTHON = '''
"""Tools for tests."""
from pactgate import Call, ToolError, tool


@tool(category="query", idempotent=True, effects=[])
def echo(text: str) -> str:
    """Returns its argument."""
    return text


@tool(category="query", idempotent=True, effects=[])
def slow(call: Call) -> None:
    """Waits until it is cancelled."""
    call.wait(60)


@tool(category="query", idempotent=True, effects=[])
def strict(n: int) -> int:
    """Takes an integer."""
    return n


@tool(category="query", idempotent=True, effects=[], errors={"GONE": "It is not there any more."})
def fail() -> None:
    """Fails with its own code."""
    raise ToolError("GONE", "It is gone.")


@tool(category="query", idempotent=True, effects=[])
def limited() -> str:
    """May be called once."""
    return "limited"


@tool(category="query", idempotent=True, effects=[])
def counted() -> str:
    """Is cached."""
    return "counted"
'''


def _get(name: str, **settings: Any) -> Any:
    return rest_api.plain(name=name, path=f"/{name}", **settings)


def _argument(name: str, kind: str) -> list[dict[str, Any]]:
    return [{"name": name, "in": "query", "required": True, "schema": {"type": kind}}]


_ENDPOINTS = (
    _get("echo", parameters=_argument("text", "string")),
    _get("strict", parameters=_argument("n", "integer")),
    *map(_get, ("slow", "crash", "limited", "counted", "unavailable", "garbled", "nothing")),
)
_REST_ANSWERS = {
    "/unavailable": answer(b"later", "503 Service Unavailable", "text/plain", retry_after="7"),
    "/garbled": answer(b"<p>no", content_type="application/json"),
    "/nothing": answer(b""),
}


async def _play_rest(peer: Peer) -> None:
    while True:
        received = await peer.request()
        path = received.path.partition("?")[0]
        if path == "/slow":
            await peer.gone()
        elif path == "/crash":
            peer.reset()
            return
        else:
            await peer.send(_REST_ANSWERS.get(path) or answer({"path": received.path}))


@asynccontextmanager
async def _servers(folder: Path) -> AsyncIterator[list[ServerConfig]]:
    tools = folder / "tools_of_ours.py"
    tools.write_text(_PYTHON, encoding="utf-8")
    log = {"definitions": _DEFINITIONS, "log": str(folder / "received.jsonl")}
    words = json.dumps(log)
    async with upstream(**log) as legacy, upstream(era="modern", **log) as modern, ScriptedHttp(_play_rest) as api:
        yield [
            ServerConfig(id="http", url=legacy.url),
            ServerConfig(id="modern", url=modern.url),
            ServerConfig(id="stdio", command=sys.executable, args=(str(UPSTREAM), words)),
            *(ServerConfig(id=f"{FRAIL}-{way}", command=sys.executable, args=_LIGHT) for way in range(len(WAYS_IN))),
            ServerConfig(id="python", tools=str(tools)),
            ServerConfig(id="rest", base_url=api.url.removesuffix("/mcp"), endpoints=_ENDPOINTS),
        ]


# Ways in: the same request in the form of each, and what its client sees.


class Request(NamedTuple):
    """A `tools/call`. `arguments`, `more` (members beside them) and `meta` (members of `_meta`) are JSON as the client writes it."""

    tool: str
    arguments: str = "{}"
    more: str = ""
    meta: str = ""
    layout: str = "plain"

    def params(self, *meta: str) -> str:
        said = ",".join(filter(None, [*meta, self.meta]))
        written = [f'"name":"{self.tool}"', '"arguments":' + self.arguments, self.more]
        return "{" + ",".join(filter(None, [*written, said and '"_meta":{' + said + "}"])) + "}"

    def message(self, id_: int, *meta: str) -> bytes:
        params = self.params(*meta)
        if self.layout == "typescript":
            return f'{{"method":"tools/call","params":{params},"jsonrpc":"2.0","id":{id_}}}'.encode()
        if self.layout == "spaces":
            return f'{{ "jsonrpc" : "2.0", "id" : {id_} ,\t"method": "tools/call", "params" : {params} }}'.encode()
        return f'{{"jsonrpc":"2.0","id":{id_},"method":"tools/call","params":{params}}}'.encode()


class Seen(NamedTuple):
    """What a client sees: the response as it was written, the notifications before it, and the status over HTTP."""

    data: bytes
    before: tuple[dict[str, Any], ...] = ()
    status: int | None = None

    @property
    def message(self) -> dict[str, Any]:
        decoded: dict[str, Any] = json.loads(self.data)
        return decoded


MODERN_META = json.dumps(META)[1:-1]


class WayIn:
    """One client of the gateway, used by one test after the other."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._ids = count(100)

    def new_id(self) -> int:
        return next(self._ids)

    async def call(self, request: Request) -> Seen:
        raise NotImplementedError

    async def close(self) -> None:
        return


class _Http(WayIn):
    async def _post(self, data: bytes, **headers: str) -> Answer:
        assert self._gateway.http.address is not None
        async with RawClient(int(self._gateway.http.address.rpartition(":")[2])) as client:
            return await client.ask(post(data, **headers))

    @staticmethod
    def _read(reply: Answer) -> Seen:
        if reply.header("content-type") != "text/event-stream":
            return Seen(reply.body, (), reply.status)
        events = [event.data for event in EventDecoder(2**24).feed(reply.body) if event.data]
        return Seen(events[-1], tuple(json.loads(data) for data in events[:-1]), reply.status)


class HttpModern(_Http):
    async def call(self, request: Request) -> Seen:
        headers = {"mcp_protocol_version": LATEST_MODERN, "mcp_method": "tools/call", "mcp_name": request.tool}
        return self._read(await self._post(request.message(self.new_id(), MODERN_META), **headers))


class HttpLegacy(_Http):
    version = LATEST_LEGACY

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self._session: dict[str, str] = {}

    async def call(self, request: Request) -> Seen:
        return self._read(await self._post(request.message(self.new_id()), **await self._headers()))

    async def _headers(self) -> Mapping[str, str]:
        if not self._session:
            opened = await self._post(json.dumps(initialize(self.version)).encode())
            self._session["mcp_session_id"] = opened.header("mcp-session-id") or ""
            self._session["mcp_protocol_version"] = self.version
            await self._post(json.dumps(notification("notifications/initialized")).encode(), **self._session)
        return self._session


class HttpBatch(HttpLegacy):
    """The call between two pings, in one array."""

    version = BATCHES

    async def call(self, request: Request) -> Seen:
        before, own, after = (self.new_id() for _ in range(3))
        pings = [b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % id_ for id_ in (before, after)]
        data = b"[%b,%b,%b]" % (pings[0], request.message(own), pings[1])
        seen = self._read(await self._post(data, **await self._headers()))
        elements = map(bytes, msgspec.json.decode(seen.data, type=list[msgspec.Raw]))
        answers = {json.loads(element)["id"]: element for element in elements}
        assert answers.keys() == {before, own, after}
        return seen._replace(data=answers[own])


class Stdio(WayIn):
    """A conversation over a pair of sockets; `is_modern` decides its era."""

    is_modern = False

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self._serving: asyncio.Task[None] | None = None

    async def call(self, request: Request) -> Seen:
        id_ = self.new_id()
        await self.send(request.message(id_, *([MODERN_META] if self.is_modern else [])))
        return await self.answer(id_)

    async def send(self, *lines: bytes) -> None:
        await self._open()
        self._writer.write(b"".join(line + b"\n" for line in lines))

    async def answer(self, id_: int) -> Seen:
        before: list[dict[str, Any]] = []
        while True:
            line = await asyncio.wait_for(self._reader.readline(), WAIT_S)
            message = json.loads(line)
            if message.get("id") == id_ and "method" not in message:
                return Seen(line.rstrip(b"\n"), tuple(before))
            before.append(message)

    async def _open(self) -> None:
        if self._serving is not None:
            return
        ours, theirs = socket.socketpair()
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=2**24)
        streams = await asyncio.open_connection(sock=theirs, limit=2**24)
        serving = serve_stdio(self._gateway.kernel, *streams, emit=lambda event: None)
        self._serving = asyncio.get_running_loop().create_task(serving)
        if not self.is_modern:
            self._writer.write(json.dumps(initialize()).encode() + b"\n")
            await self.answer(1)
            self._writer.write(json.dumps(notification("notifications/initialized")).encode() + b"\n")

    async def close(self) -> None:
        if self._serving is not None:
            self._writer.close()
            await asyncio.wait_for(self._serving, WAIT_S)


class StdioModern(Stdio):
    is_modern = True


class Library(WayIn):
    """The program that holds the gateway. Its envelope is put into the form of a response, with the words of both."""

    async def call(self, request: Request) -> Seen:
        view = await self._gateway.invoke(request.tool, json.loads(request.arguments))
        metadata = view["metadata"]
        if view["success"]:
            result = {**view["data"], "_meta": {**view["data"].get("_meta", {}), ENVELOPE: metadata}}
            return Seen(json.dumps({"result": result}).encode())
        error = view["error"]
        failure = {**error["context"], "code": error["code"], "message": error["message"]}
        return Seen(json.dumps({"error": {"data": failure}}).encode())


WAYS_IN: dict[str, type[WayIn]] = {
    "legacy HTTP": HttpLegacy,
    "modern HTTP": HttpModern,
    "HTTP batch": HttpBatch,
    "legacy stdio": Stdio,
    "modern stdio": StdioModern,
    "library": Library,
}


class House(NamedTuple):
    """The gateway with all its servers connected, a client for each way in, and the file where servers log what they receive."""

    clients: dict[str, WayIn]
    log: Path


@asynccontextmanager
async def housed(folder: Path) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(_servers(folder))
        config = Config(
            servers={server.id: server for server in servers},
            listen=ListenSection(host="127.0.0.1", port=0),
            timeouts=Timeouts(tool_overrides={f"{name}.slow": CALL_MS for name in EVERY_OUT}),
            limits=Limits(max_array_size=10),
            response=ResponseSection(max_response_bytes=MAX_RESULT_BYTES),
            cache=Cache(tools={f"{name}.counted": CacheRule(ttl_ms=60_000) for name in EVERY_OUT}),
            rate_limits=RateLimits(
                tools={"*": ToolRate(rpm=100_000, burst=10_000), "*.limited": ToolRate(rpm=1, burst=1)}
            ),
        )
        gateway = await stack.enter_async_context(Gateway.open(config))
        await gateway.serve_http()
        await gateway.discover()
        clients = {name: kind(gateway) for name, kind in WAYS_IN.items()}
        for client in clients.values():  # with such a call the gateway learns that a server speaks the modern era only
            await client.call(Request("modern.echo", '{"text":"first"}'))
        try:
            yield House(clients, folder / "received.jsonl")
        finally:
            for client in clients.values():
                await client.close()
