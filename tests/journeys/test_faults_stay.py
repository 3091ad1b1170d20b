"""A fault stays with its call: the other call, whose answer was read in the same chunk, gets its own answer at once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pactgate.app import Gateway
from pactgate.config.model import Config
from pactgate.config.sections.capture import Capture
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import Event, InternalFailure, RequestFinished
from pactgate.inbound.http_exchange import HttpExchange
from pactgate.pipeline.call import Call
from pactgate.pipeline.post_gates import CheckResult

ANSWERS_TOGETHER = """
import json, sys
waiting = []
for line in sys.stdin:
    message = json.loads(line)
    method, id_ = message.get("method"), message.get("id")
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in "ab"]}
    elif method == "tools/call":
        waiting.append((id_, message["params"]["name"]))
        if len(waiting) == 2:
            waiting.sort(key=lambda call: call[1])
            lines = [{"jsonrpc": "2.0", "id": i, "result": {"content": [{"type": "text", "text": n}]}} for i, n in waiting]
            sys.stdout.write("".join(json.dumps(line) + chr(10) for line in lines))
            sys.stdout.flush()
            waiting.clear()
        continue
    elif id_ is None:
        continue
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": id_, "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}), flush=True)
"""


def breaks_for_a(event: Event) -> None:
    if isinstance(event, RequestFinished) and event.record.tool == "s.a":
        raise ZeroDivisionError("a listener")


def settings(folder: Path, **further: Any) -> Config:
    script = folder / "together.py"
    script.write_text(ANSWERS_TOGETHER)
    server = ServerConfig(id="s", command=sys.executable, args=(str(script),), request_timeout_ms=4000)
    return Config(servers={"s": server}, **further)


async def both(gateway: Gateway) -> tuple[dict[str, Any], dict[str, Any]]:
    """The envelopes of both calls. The server answers them in one write, that of `a` first; their own time limit is longer than ours."""
    await gateway.discover()
    async with asyncio.timeout(3):
        return await asyncio.gather(gateway.invoke("s.a"), gateway.invoke("s.b"))


def text(envelope: dict[str, Any]) -> str:
    assert envelope["success"], envelope
    return str(envelope["data"]["content"][0]["text"])


@pytest.mark.requirement("S4/R1")
@pytest.mark.parametrize("listener", ["embedder", "metrics", "call history"])
async def test_a_listener_that_raises_is_counted_and_named_once_and_nobody_else_notices(
    listener: str, tmp_path: Path
) -> None:
    events: list[Event] = []

    def emit(event: Event) -> None:
        events.append(event)
        if listener == "embedder":
            breaks_for_a(event)

    async with Gateway.open(settings(tmp_path), emit) as gateway:
        if listener != "embedder":
            inner = gateway.observers.listeners._listeners[listener]

            def broken(event: Event) -> None:
                breaks_for_a(event)
                inner(event)

            gateway.observers.listeners.add(listener, broken)
        for _ in range(2):
            first, second = await both(gateway)
            assert (text(first), text(second)) == ("a", "b")
        assert gateway.observers.listeners.faults[listener] == 2
    named = [event.where for event in events if isinstance(event, InternalFailure)]
    assert named == [f"listener {listener}"]


@pytest.mark.requirement("S4/R1")
async def test_a_gate_that_breaks_for_one_call_makes_that_call_internal_and_the_other_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks: Callable[[CheckResult, Call], None] = CheckResult.__call__

    def breaks(self: CheckResult, call: Call) -> None:
        if call.requested == "s.a":
            raise ZeroDivisionError("a gate")
        checks(self, call)

    monkeypatch.setattr(CheckResult, "__call__", breaks)
    async with Gateway.open(settings(tmp_path)) as gateway:
        first, second = await both(gateway)
    assert first["error"]["context"]["failure_mode"] == "internal"
    assert text(second) == "b"


async def test_a_recorder_that_raises_is_reported_and_both_calls_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pactgate.capture import transcript

    def breaks(data: bytes, mask: object) -> None:
        if b'"a"' in data:
            raise ZeroDivisionError("a recorder")

    monkeypatch.setattr(transcript, "classify", breaks)
    events: list[Event] = []
    async with Gateway.open(settings(tmp_path, capture=Capture(dir=str(tmp_path / "c"))), events.append) as gateway:
        first, second = await both(gateway)
    assert (text(first), text(second)) == ("a", "b")
    assert [event.where for event in events if isinstance(event, InternalFailure)] == ["recorder"]


async def test_a_writer_that_raises_ends_its_own_exchange_and_the_other_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = HttpExchange.respond_result

    def breaks(self: HttpExchange, id_: bytes, result: bytes) -> None:
        if b'"text": "a"' in result:
            raise ZeroDivisionError("a writer")
        writes(self, id_, result)

    monkeypatch.setattr(HttpExchange, "respond_result", breaks)
    async with Gateway.open(settings(tmp_path, listen=Config().listen.__class__(port=0))) as gateway:
        address = await gateway.serve_http()
        await gateway.discover()
        port = int(address.rsplit(":", 1)[1])
        async with asyncio.timeout(3):
            first, second = await asyncio.gather(modern_call(port, "a"), modern_call(port, "b"))
    assert (first[0], first[1]["error"]["code"]) == (500, -32603)
    assert second[1]["result"]["content"][0]["text"] == "b"


async def modern_call(port: int, tool: str) -> tuple[int, dict[str, Any]]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    }
    params = {"name": f"s.{tool}", "arguments": {}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
        f"Mcp-Name: s.{tool}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.encode() + body)
        answer = await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()
    top, _, said = answer.partition(b"\r\n\r\n")
    return int(top.split(b" ")[1]), json.loads(said)
