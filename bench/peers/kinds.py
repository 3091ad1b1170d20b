"""The peers, as data: their names, their installations, and the commands that start them in front of the benchmark's server.

Each peer runs as its documentation says, as one process with its defaults, except where its title says more.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

ROOT: Final = Path(__file__).resolve().parent.parent.parent
INSTALLED: Final = ROOT / ".tools" / "peers"
PINS: Final = Path(__file__).resolve().parent / "pins"
_FASTMCP_SCRIPT: Final = str(Path(__file__).with_name("fastmcp_proxy.py"))


class PeerOptions(Struct, frozen=True):
    """The port a peer listens on, and the server behind it, as a URL and as a program."""

    port: int
    upstream_url: str
    upstream_program: tuple[str, ...]


class Peer(Struct, frozen=True):
    """Another gateway."""

    name: str
    title: str
    environment: str
    """The name of the folder of its installation and of the file of its pins."""
    package: str
    transport: str
    """How the peer reaches the server: `http`, or `stdio` with the server as its child, whose CPU time counts too."""
    command: Callable[[PeerOptions], list[str]]
    path: str = "/mcp"


def _python(environment: str, program: str) -> str:
    return str(INSTALLED / environment / "bin" / program)


def _node(program: str) -> str:
    return str(INSTALLED / "node" / "node_modules" / ".bin" / program)


def _fastmcp(setting: str) -> Callable[[PeerOptions], list[str]]:
    return lambda options: [
        _python("fastmcp", "python"),
        _FASTMCP_SCRIPT,
        str(options.port),
        options.upstream_url,
        setting,
    ]


def _mcp_proxy(options: PeerOptions) -> list[str]:
    program = _python("mcp-proxy", "mcp-proxy")
    return [program, "--port", str(options.port), "--log-level", "WARNING", "--", *options.upstream_program]


def _supergateway(options: PeerOptions) -> list[str]:
    over_http = ["--outputTransport", "streamableHttp", "--stateful", "--port", str(options.port), "--logLevel", "none"]
    return [_node("supergateway"), "--stdio", shlex.join(options.upstream_program), *over_http]


def _mcp_proxy_node(options: PeerOptions) -> list[str]:
    over_http = ["--host", "127.0.0.1", "--port", str(options.port), "--server", "stream"]
    return [_node("mcp-proxy"), *over_http, "--", *options.upstream_program]


PEERS: Final = (
    Peer("fastmcp", "FastMCP proxy, default", "fastmcp", "fastmcp", "http", _fastmcp("default")),
    Peer("fastmcp-shared", "FastMCP proxy, one shared client", "fastmcp", "fastmcp", "http", _fastmcp("shared")),
    Peer("mcp-proxy", "mcp-proxy (PyPI)", "mcp-proxy", "mcp-proxy", "stdio", _mcp_proxy),
    Peer("supergateway", "supergateway (npm)", "node", "supergateway", "stdio", _supergateway),
    Peer("mcp-proxy-npm", "mcp-proxy (npm)", "node", "mcp-proxy", "stdio", _mcp_proxy_node),
)
