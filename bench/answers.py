"""The responses of the benchmark's own server, bytes in and bytes out, so that HTTP and stdio share one fast server.

The message decides the protocol era: a request with the modern `_meta` gets a modern result, any other request a legacy one.
Tools: `echo` (text), `blob` (size), `slow` (ms, text) and as many `filler_NNNN` (text, limit, tags) as wanted; all but `blob`
give the text back. The server trusts its clients: it is a reference for measurements, not an example of a server.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

MODERN: Final = "2026-07-28"
ENVELOPE_MARK: Final = b"io.modelcontextprotocol/protocolVersion"
BASE_TOOLS: Final = 3
TYPESCRIPT_TOOL: Final = "filler_0001"
_NOT_FOUND: Final = b'"error":{"code":-32601,"message":"no such method"}'
_NO_TOOL: Final = b'"error":{"code":-32602,"message":"no such tool"}'


class DelayedAnswer(NamedTuple):
    """A response and the delay after which it is sent."""

    delay_s: float
    answer: bytes


class _Message(Struct):
    method: str = ""
    id: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET


class _Arguments(Struct, frozen=True):
    text: Raw = Raw(b'""')
    size: int = 0
    ms: float = 0


class _Call(Struct):
    name: str = ""
    arguments: _Arguments = _Arguments()


class _Handshake(Struct):
    protocolVersion: str = "2025-11-25"  # noqa: N815 - the protocol's spelling


_message: Final = msgspec.json.Decoder(_Message)
_call: Final = msgspec.json.Decoder(_Call)
_handshake: Final = msgspec.json.Decoder(_Handshake)


class Upstream:
    """Answers messages. `order` is the member order of its responses: `python`, `typescript`, or `both`.

    With `both` the tool `filler_0001` answers in the order of the TypeScript SDK, all others in that of the Python SDK.
    """

    def __init__(self, tools: int, order: str = "python") -> None:
        if tools < BASE_TOOLS:
            raise ValueError(f"at least {BASE_TOOLS} tools are needed")
        self._order = order
        listed = json.dumps(definitions(tools), separators=(",", ":")).encode()
        info = {"name": "bench-upstream", "version": "1"}
        self._stamp = (
            b'"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":' + json.dumps(info).encode() + b"}"
        )
        hints = b'"ttlMs":60000,"cacheScope":"public",'
        self._legacy_list = b'"result":{"tools":' + listed + b"}"
        self._modern_list = b'"result":{"tools":' + listed + b"," + hints + self._stamp + b"}"
        self._discover = (
            b'"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},' + hints + self._stamp + b"}"
        )
        self._info = json.dumps(info).encode()

    def answer(self, body: bytes) -> bytes | DelayedAnswer | None:
        """The response to one message; None for a notification."""
        message = _message.decode(body)
        if message.id is UNSET:
            return None
        request_id, is_modern = bytes(message.id), ENVELOPE_MARK in body
        if message.method == "tools/call":
            call = _call.decode(message.params)  # type: ignore[arg-type]
            outcome, order = self._called(call, is_modern), self._order
            if order == "both":
                order = "typescript" if call.name == TYPESCRIPT_TOOL else "python"
            answer = _respond(request_id, outcome, order)
            return DelayedAnswer(call.arguments.ms / 1000, answer) if call.name == "slow" else answer
        return _respond(request_id, self._plain(message, is_modern), self._order)

    def _plain(self, message: _Message, is_modern: bool) -> bytes:
        if message.method == "tools/list":
            return self._modern_list if is_modern else self._legacy_list
        if message.method == "server/discover" and is_modern:
            return self._discover
        if message.method == "initialize" and not is_modern:
            version = _handshake.decode(message.params).protocolVersion.encode()  # type: ignore[arg-type]
            return b'"result":{"protocolVersion":"%b","capabilities":{"tools":{}},"serverInfo":%b}' % (
                version,
                self._info,
            )
        if message.method == "ping" and not is_modern:
            return b'"result":{}'
        return _NOT_FOUND

    def _called(self, call: _Call, is_modern: bool) -> bytes:
        arguments = call.arguments
        if call.name == "blob":
            text = _blob(arguments.size)
        elif call.name in ("echo", "slow") or call.name.startswith("filler_"):
            text = bytes(arguments.text)
        else:
            return _NO_TOOL
        tail = b"," + self._stamp + b"}" if is_modern else b"}"
        return b'"result":{"content":[{"type":"text","text":%b}]%b' % (text, tail)


def _respond(request_id: bytes, outcome: bytes, order: str) -> bytes:
    """The whole response around `"result":...` or `"error":...`."""
    if order == "typescript":
        return b'{%b,"jsonrpc":"2.0","id":%b}' % (outcome, request_id)
    return b'{"jsonrpc":"2.0","id":%b,%b}' % (request_id, outcome)


def definitions(tools: int) -> list[dict[str, Any]]:
    """So many tool definitions: echo, blob, slow, and fillers about as long as real definitions (450 bytes)."""
    text = {"type": "string", "description": "Any text; it comes back unchanged."}
    size = {"type": "integer", "minimum": 0, "description": "How many characters the answer has."}
    delay = {"type": "number", "minimum": 0, "description": "How long to wait before answering."}
    base = [
        _tool("echo", "Gives the text back.", {"text": text}, ["text"]),
        _tool("blob", "Gives a text of the size asked for.", {"size": size}, ["size"]),
        _tool("slow", "Gives the text back after a while.", {"ms": delay, "text": text}, ["ms"]),
    ]
    filler = "One of many tools that stand in the list so that the list has the length lists have in real catalogues."
    limit = {"type": "integer", "minimum": 1, "maximum": 100, "description": "At most so many entries."}
    extra = {"text": text, "limit": limit, "tags": {"type": "array", "items": {"type": "string"}}}
    return base + [_tool(f"filler_{n:04d}", filler, extra, ["text"]) for n in range(tools - BASE_TOOLS)]


def _tool(name: str, description: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "inputSchema": schema}


@lru_cache(maxsize=8)
def _blob(size: int) -> bytes:
    return b'"' + b"b" * size + b'"'
