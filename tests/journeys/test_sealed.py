"""Whatever becomes of a request that came over HTTP, its record is sealed once and says it: answered, failed, or left by its caller."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pactgate.app import build
from pactgate.config.model import Config
from pactgate.config.sections.listen import ListenSection
from pactgate.core.context import ExecutionRecord
from pactgate.core.events import Event, RequestFinished
from tests.support.raw_http import WAIT_S, RawClient
from tests.support.rest_api import Api, plain
from tests.support.scripted_http import Peer, ScriptedHttp, answer


class Finished:
    """The records of finished requests, and a wait for the next."""

    def __init__(self) -> None:
        self.records: list[ExecutionRecord] = []
        self.news = asyncio.Event()

    def __call__(self, event: Event) -> None:
        if isinstance(event, RequestFinished):
            self.records.append(event.record)
            self.news.set()


CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "shop.ask",
        "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}


@pytest.mark.requirement("S4/R4")
@pytest.mark.parametrize("ending", ["ok", "http_status", "cancelled"])
async def test_a_record_is_sealed_on_every_way_out(ending: str) -> None:
    arrived = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        arrived.set()
        if ending == "cancelled":
            await peer.gone()
        else:
            await peer.send(answer({"a": 1}, status="200 OK" if ending == "ok" else "500 Oops"))

    finished = Finished()
    async with ScriptedHttp(play) as server, asyncio.timeout(WAIT_S):
        servers = {"shop": Api(server).config(plain())}
        gateway = build(Config(servers=servers, listen=ListenSection(port=0)), finished)
        address = await gateway.serve_http()
        await gateway.start()
        try:
            async with RawClient(int(address.rpartition(":")[2])) as client:
                await client.send(request(CALL))
                await arrived.wait()
                if ending != "cancelled":
                    await client.answer()
            await finished.news.wait()
        finally:
            await gateway.stop(grace_s=0)
    (record,) = finished.records
    assert (record.outcome, record.tool, record.server) == (ending, "shop.ask", "shop")
    assert (record.failure is None) == (ending == "ok")
    with pytest.raises(AttributeError):
        record.outcome = "better"  # type: ignore[misc]


def request(message: dict[str, Any]) -> bytes:
    body = msgspec.json.encode(message)
    lines = [
        "POST /mcp HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: shop.ask",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
