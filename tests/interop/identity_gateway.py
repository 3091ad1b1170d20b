"""A gateway in front of one small server, which accepts tokens of an identity provider; and what both need to run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.interop.processes import GATEWAY, HERE, NODE, ROOT, TOOLS, Program, free_port, listens

IDENTITY_FOLDER = TOOLS / "identity"
PROVIDER = HERE / "servers" / "provider.mjs"
UPSTREAM = ROOT / "tests" / "support" / "stdio_upstream.py"


def why_no_provider() -> str | None:
    is_there = (IDENTITY_FOLDER / "node_modules" / "oidc-provider").is_dir() and NODE.exists()
    return None if is_there else "oidc-provider is not installed; run `make interop` and read what it says"


class RealProvider:
    """oidc-provider in a process of its own, with new keys at each start."""

    def __init__(self, folder: Path, resource: str) -> None:
        self._folder = folder
        self._resource = resource
        self._program: Program | None = None
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        words: list[str | Path] = [NODE, PROVIDER, IDENTITY_FOLDER, self._resource, str(self.port)]
        self._program = Program(words, self._folder / "provider.log")
        self._program.wait_until(lambda: listens(self.port), "the provider listens")

    def stop(self) -> None:
        if self._program is not None:
            self._program.stop()
            self._program = None


def start_gateway(folder: Path, port: int, auth: dict[str, Any], **settings: Any) -> Program:
    """The gateway with tools to read, to write and to run; it has to be stopped."""
    options = json.dumps({"tools": ["look", "write", "start"]})
    server = {"command": sys.executable, "args": [str(UPSTREAM), options]}
    config = {
        "mcpServers": {"files": server, "opaque": server},
        "categories": {"*.look": "query", "*.write": "mutation", "*.start": "execution"},
        "auth": auth,
        "views": {"desk": {"tools": ["files.*"], "rename": {"files.look": "look"}}},
        "rateLimits": {"enabled": False},
        **settings,
    }
    file = folder / "pactgate.json"
    file.write_text(json.dumps(config))
    program = Program([*GATEWAY, "serve", "--config", str(file), "--port", str(port)], folder / "gateway.log")
    program.wait_until(lambda: listens(port), "the gateway listens")
    return program


class CallAnswer(NamedTuple):
    status: int
    challenge: str
    """`WWW-Authenticate`, if there is one."""
    text: str


def call(port: int, tool: str, token: str, path: str = "/mcp") -> CallAnswer:
    """What the gateway says to a modern call with this token."""
    name = tool if path != "/mcp" else f"files__{tool}"
    meta = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    params = {"name": name, "arguments": {}, "_meta": {f"io.modelcontextprotocol/{k}": v for k, v in meta.items()}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
        "Authorization": f"Bearer {token}",
    }
    try:
        with urlopen(Request(f"http://127.0.0.1:{port}{path}", body, headers), timeout=15) as answer:
            return CallAnswer(answer.status, "", answer.read().decode())
    except HTTPError as refusal:
        with refusal:
            return CallAnswer(refusal.code, refusal.headers.get("WWW-Authenticate", ""), refusal.read().decode())
