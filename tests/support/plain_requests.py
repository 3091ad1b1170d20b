"""Requests of both eras, each on a connection of its own, to whatever address a test gives."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from itertools import count
from typing import Any

from tests.interop.raw import LEGACY, MODERN

_ids = count(1)
_PV = "io.modelcontextprotocol/protocolVersion"
_CC = "io.modelcontextprotocol/clientCapabilities"
_CI = "io.modelcontextprotocol/clientInfo"


def post(
    address: str, method: str | None, params: dict[str, Any] | None = None, *, path: str = "/mcp", **headers: str
) -> tuple[int, dict[str, str], dict[str, Any]]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "params": params or {}}
    if method is not None:
        message |= {"method": method} | ({} if method.startswith("notifications/") else {"id": next(_ids)})
    both = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"{address}{path}", json.dumps(message).encode(), {**both, **named})
    try:
        with urllib.request.urlopen(request, timeout=15) as response:
            return response.status, dict(response.headers), _body(response.read())
    except urllib.error.HTTPError as refused:
        return refused.code, dict(refused.headers), _body(refused.read())


def _body(data: bytes) -> dict[str, Any]:
    lines = [line[5:] for line in data.decode().splitlines() if line.startswith("data:")]
    text = lines[-1] if lines else data.decode()
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def modern(
    address: str, method: str, params: dict[str, Any], *, path: str = "/mcp", **capabilities: Any
) -> dict[str, Any]:
    meta = {_PV: MODERN, _CC: capabilities, _CI: {"name": "t", "version": "1"}}
    name = params.get("name") or params.get("uri") or params.get("taskId")
    headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": method} | ({"Mcp_Name": name} if name else {})
    return post(address, method, {**params, "_meta": meta}, path=path, **headers)[2]


def initialize(address: str) -> str:
    client = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    session = post(address, "initialize", client)[1]["Mcp-Session-Id"]
    post(address, "notifications/initialized", Mcp_Session_Id=session, MCP_Protocol_Version=LEGACY)
    return session


def call(address: str, session: str, tool: str, **arguments: Any) -> tuple[int, dict[str, Any]]:
    headers = {"Mcp_Session_Id": session, "MCP_Protocol_Version": LEGACY}
    status, _, body = post(address, "tools/call", {"name": tool, "arguments": arguments}, **headers)
    return status, body
