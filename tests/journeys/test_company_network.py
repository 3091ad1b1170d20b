"""A gateway in a company's network: a server behind a proxy, with a private authority and a client certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import pactgate
from tests.support.certificates import Authority
from tests.support.proxy_server import ProxyServer
from tests.support.scripted_http import Peer, ScriptedHttp, answer, result

NAME = "crm.corp.example"
TOOL = {"name": "look", "inputSchema": {"type": "object"}}


async def serve_mcp(peer: Peer) -> None:
    """A legacy server with one tool."""
    while True:
        request = await peer.request()
        message = request.message if request.body else {}
        match message.get("method"):
            case "initialize":
                about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
                reply = result(message["id"], **about, serverInfo={"name": "crm", "version": "1"})
            case "tools/list":
                reply = result(message["id"], tools=[TOOL])
            case "tools/call":
                reply = result(message["id"], content=[{"type": "text", "text": "seen"}])
            case _:
                await peer.send(answer(b"", "202 Accepted" if request.method == "POST" else "405 No", None))
                continue
        await peer.send(answer(reply))


def configuration(folder: Path, **settings: Any) -> Path:
    file = folder / "pactgate.json"
    entry = {"url": f"https://{NAME}/mcp", "era": "legacy", "maxRetries": 0, **settings}
    file.write_text(json.dumps({"mcpServers": {"crm": entry}}))
    file.chmod(0o600)
    return file


@pytest.mark.parametrize("by", ["environment", "setting"])
async def test_a_call_reaches_a_server_behind_a_proxy_with_a_client_certificate(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, clients = Authority(tmp_path), Authority(tmp_path, "clients")
    certificate, key = clients.issue("gateway")
    tls = {"caFile": authority.file.name, "certFile": certificate.name, "keyFile": key.name}
    server_tls = authority.server_context(NAME, clients_of=clients)
    async with (
        ScriptedHttp(serve_mcp, tls=server_tls) as server,
        ProxyServer(server.port, credentials="gate:pass-word") as proxy,
    ):
        url = proxy.url("gate:pass-word")
        if by == "environment":
            monkeypatch.setenv("HTTPS_PROXY", url)
            file = configuration(tmp_path, tls=tls)
        else:
            monkeypatch.setenv("HTTPS_PROXY", "http://localhost:1")
            file = configuration(tmp_path, tls=tls, proxy=url)
        async with pactgate.Gateway.open(file) as gateway:
            envelope = await gateway.invoke("crm.look", {})
    assert envelope["success"] is True, envelope
    assert envelope["data"]["content"] == [{"type": "text", "text": "seen"}]
    assert proxy.asked
    assert {asked.split("\r\n")[0] for asked in proxy.asked} == {f"CONNECT {NAME}:443 HTTP/1.1"}


async def test_a_call_that_the_proxy_refuses_did_not_run_and_names_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ProxyServer(1, credentials="gate:right-word") as proxy:
        monkeypatch.setenv("https_proxy", proxy.url("gate:wrong-word"))
        async with pactgate.Gateway.open(configuration(tmp_path)) as gateway:
            envelope = await gateway.invoke("crm.look", {})
    text = json.dumps(envelope)
    assert envelope["success"] is False
    assert f"http://localhost:{proxy.port}" in text
    assert "https_proxy" in text
    assert envelope["error"]["context"]["dispatched"] is False
    assert "wrong-word" not in text


async def test_a_client_certificate_that_can_not_be_read_is_named_by_its_setting(tmp_path: Path) -> None:
    file = configuration(tmp_path, url="https://localhost:1/mcp", tls={"certFile": "gone.pem"})
    async with pactgate.Gateway.open(file) as gateway:
        envelope = await gateway.invoke("crm.look", {})
    assert "`tls.certFile` of crm can't be used: no such file" in json.dumps(envelope)


async def test_a_proxy_that_does_not_answer_is_named_by_the_failure_of_connecting(tmp_path: Path) -> None:
    async with ProxyServer(1, reply=b"") as proxy:
        file = configuration(tmp_path, proxy=proxy.url(), connectionTimeoutMs=1000)
        async with pactgate.Gateway.open(file) as gateway:
            envelope = await gateway.invoke("crm.look", {})
    assert f"was not reached through the proxy http://localhost:{proxy.port} within 0.9 s" in json.dumps(envelope)
