"""The bytes that benchmark clients send: texts, member orders, tools and headers. Pure.

A `Shape` says how the requests of one load differ from each other. `MIXED` is the traffic of real clients: texts of 1 to
2,000 bytes, the member orders of both official SDKs, three tools in turn and ids that count from 1. `FIXED` is one request
of one length over and over, which no real client sends. The shapes must not be fitted to what the gateway does well.
"""

from __future__ import annotations

import json
import math
import random
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from bench.answers import MODERN

_SEED: Final = 20_260_728
_TEXTS: Final = 1021
"""A prime number, so that texts, tools and member orders do not repeat in step with each other."""
_REPEATED_TEXTS: Final = 48
_UNIQUE_FROM_BYTES: Final = 16
_ID_MARK: Final = 7_777_777
_TEXT_MARK: Final = "\u00b6\u00b6"
_INFO: Final = {"name": "pactgate-bench", "version": "1"}
_WORDS: Final = (
    *("a", "the", "of", "in", "to", "id", "invoice", "weather", "update", "please", "report", "2026-07-28", "0.75"),
    *(
        "search",
        "customer",
        "and",
        "for",
        "which",
        "repository",
        "configuration",
        "temperature",
        "(optional)",
        "{x: 1}",
    ),
    *("Zürich", "naïve", "東京", "\n", '"quoted"', "C:\\temp", "e.g.", "https://example.com/a?b=1&c=2"),
)
_SDK_HEADERS: Final = (
    "User-Agent: node",
    "Connection: keep-alive",
    "Accept-Encoding: gzip, deflate",
    "Accept-Language: *",
    "Sec-Fetch-Mode: cors",
)


class Shape(Struct, frozen=True):
    """How the requests of a load are written and what changes from one to the next."""

    text_bytes: tuple[int, int] = (32, 32)
    """Shortest and longest text; lengths between them are spread evenly over the orders of magnitude."""
    orders: tuple[str, ...] = ("python",)
    """Member orders in turn: `python` (jsonrpc, id, method, params) and `typescript` (method, params, jsonrpc, id)."""
    tools: int = 1
    """How many tools are called in turn."""
    first_id: int = 10_000_000
    is_spaced: bool = False
    """JSON with a space after each comma and colon."""
    is_traced: bool = False
    """A `traceparent` header that differs in each request."""
    has_sdk_headers: bool = False
    """The headers that the HTTP library of an SDK adds."""
    is_prose: bool = False
    """Texts as people write them, with line breaks, quotes and letters beyond ASCII; otherwise `a` to `z` only."""
    repeats: bool = False
    """The same few texts again and again, from all clients, so that a gateway may cache the responses."""


FIXED: Final = Shape()
MIXED: Final = Shape(text_bytes=(1, 2000), orders=("python", "typescript"), tools=3, first_id=1, is_prose=True)
TOOLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("echo", {"text": _TEXT_MARK}),
    ("filler_0000", {"text": _TEXT_MARK, "limit": 20}),
    ("filler_0001", {"tags": ["open", "mine"], "text": _TEXT_MARK, "limit": 5}),
)
"""The tools that are called in turn, with the arguments that clients send to them."""


class Text(Struct, frozen=True):
    """One text, as the characters between the quotes in JSON and decoded. A unique one follows a prefix of the call."""

    encoded: bytes
    decoded: str
    is_unique: bool

    def with_prefix(self, client: int, call: int) -> tuple[bytes, str]:
        """The text of one call: encoded for the request, decoded for the comparison with the response."""
        if not self.is_unique:
            return self.encoded, self.decoded
        prefix = b"%02x%06x-" % (client & 0xFF, call & 0xFFFFFF)
        return prefix + self.encoded, prefix.decode() + self.decoded


_PREFIX_BYTES: Final = 9


class Template(Struct, frozen=True):
    """A request with gaps for the content length, the id and the text, in the order in which they stand."""

    head: bytes
    parts: tuple[bytes, bytes, bytes]
    is_id_first: bool

    def fill(self, request_id: bytes, text: bytes, further_headers: bytes = b"") -> bytes:
        one, two = (request_id, text) if self.is_id_first else (text, request_id)
        first, second, third = self.parts
        length = len(first) + len(one) + len(second) + len(two) + len(third)
        head = b"%bContent-Length: %d\r\n%b\r\n" % (self.head, length, further_headers)
        return b"".join((head, first, one, second, two, third))


def traceparent(client: int, call: int) -> bytes:
    """The header of one call in a trace of its own (W3C Trace Context)."""
    number = (client + 1) * 0x9E3779B97F4A7C15 + call * 0xBF58476D1CE4E5B9
    return b"traceparent: 00-%032x-%016x-01\r\n" % (number & (2**128 - 1), number * 3 & (2**64 - 1))


@lru_cache(maxsize=32)
def texts(shape: Shape) -> tuple[Text, ...]:
    """The texts of a shape, the same in each run."""
    chosen = random.Random(_SEED)
    shortest, longest = shape.text_bytes
    low, high = math.log(shortest), math.log(longest + 1)
    count = _REPEATED_TEXTS if shape.repeats else _TEXTS
    lengths = (min(longest, int(math.exp(chosen.uniform(low, high)))) for _ in range(count))
    return tuple(_text(length, chosen, shape) for length in lengths)


def _text(length: int, chosen: random.Random, shape: Shape) -> Text:
    is_unique = length >= _UNIQUE_FROM_BYTES and not shape.repeats
    left = length - _PREFIX_BYTES if is_unique else length
    words: list[str] = []
    while left > 0:
        word = chosen.choice(_WORDS) + " "
        size = len(_inside(word))
        if not shape.is_prose or size > left:
            word = "".join(chosen.choices("abcdefghijklmnopqrstuvwxyz", k=min(left, 5)))
            size = len(word)
        words.append(word)
        left -= size
    decoded = "".join(words)
    return Text(_inside(decoded), decoded, is_unique)


def _inside(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()[1:-1]


class Writer:
    """Writes the requests of one client of one protocol era to one URL path."""

    def __init__(self, *, start_line: str, headers: list[str], era: str, version: str, shape: Shape) -> None:
        self._start_line = start_line
        self._headers = headers
        self._is_modern = era == "modern"
        self._version = version
        self._shape = shape
        self.session: str | None = None

    def initialize(self) -> bytes:
        params = {"protocolVersion": self._version, "capabilities": {}, "clientInfo": _INFO}
        return self._whole({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})

    def initialized(self) -> bytes:
        return self._whole({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def delete_session(self) -> bytes:
        return self._head("DELETE", []) + b"Content-Length: 0\r\n\r\n"

    def calls(self, echo: str) -> tuple[Template, ...]:
        """Requests to take in turn: the tool `echo`, and as many more of `TOOLS` as the shape wants, named alike."""
        prefix = echo.removesuffix("echo")
        tools = [(echo, TOOLS[0][1]), *((prefix + name, arguments) for name, arguments in TOOLS[1 : self._shape.tools])]
        return self._in_turn([({"name": name, "arguments": arguments}, name) for name, arguments in tools])

    def blobs(self, tool: str, size: int) -> tuple[Template, ...]:
        return self._in_turn([({"name": tool, "arguments": {"size": size}}, tool)])

    def lists(self, cursor: str | None = None) -> tuple[Template, ...]:
        return self._in_turn([({} if cursor is None else {"cursor": cursor}, None)])

    def _in_turn(self, params: list[tuple[dict[str, Any], str | None]]) -> tuple[Template, ...]:
        orders = self._shape.orders
        count = math.lcm(len(params), len(orders))
        return tuple(self._template(*params[n % len(params)], orders[n % len(orders)]) for n in range(count))

    def _template(self, params: dict[str, Any], name: str | None, order: str) -> Template:
        method = "tools/list" if name is None else "tools/call"
        body = self._body(_message(method, self._params(params), _ID_MARK, order))
        marks = (str(_ID_MARK).encode(), _TEXT_MARK.encode())
        is_id_first = marks[1] not in body or body.index(marks[0]) < body.index(marks[1])
        one, two = marks if is_id_first else marks[::-1]
        first, _, rest = body.partition(one)
        second, _, third = rest.partition(two)
        return Template(self._post(method, name), (first, second, third), is_id_first)

    def _whole(self, message: dict[str, Any]) -> bytes:
        body = self._body(message)
        return self._post(message["method"], None) + b"Content-Length: %d\r\n\r\n" % len(body) + body

    def _body(self, message: dict[str, Any]) -> bytes:
        separators = (", ", ": ") if self._shape.is_spaced else (",", ":")
        return json.dumps(message, ensure_ascii=False, separators=separators).encode()

    def _params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**params, "_meta": _envelope()} if self._is_modern else params

    def _post(self, method: str, name: str | None) -> bytes:
        headers = ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
        if self._is_modern:
            headers += [f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}"]
            headers += [f"Mcp-Name: {name}"] if name else []
        elif method != "initialize":
            headers.append(f"MCP-Protocol-Version: {self._version}")
        return self._head("POST", headers)

    def _head(self, verb: str, headers: list[str]) -> bytes:
        session = [f"Mcp-Session-Id: {self.session}"] if self.session else []
        sdk = _SDK_HEADERS if self._shape.has_sdk_headers else ()
        lines = [f"{verb} {self._start_line}", *self._headers, *sdk, *session, *headers]
        return ("\r\n".join(lines) + "\r\n").encode()


def _message(method: str, params: dict[str, Any], request_id: int, order: str) -> dict[str, Any]:
    if order == "typescript":
        return {"method": method, "params": params, "jsonrpc": "2.0", "id": request_id}
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def _envelope() -> dict[str, Any]:
    prefix = "io.modelcontextprotocol/"
    return {f"{prefix}protocolVersion": MODERN, f"{prefix}clientInfo": _INFO, f"{prefix}clientCapabilities": {}}
