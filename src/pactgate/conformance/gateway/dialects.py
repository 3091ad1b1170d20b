"""The configuration that each kind of gateway reads, and what it can carry. Data and plain functions; must not: start anything."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

Servers = Mapping[str, Mapping[str, Any]]
"""The common form: `command` and `args`, or `url`, by the name of the server."""


class Dialect(Struct, frozen=True):
    """One kind of gateway. `carries` are the tags of the servers it can have behind it, `why` the reason where it is not all."""

    name: str
    write: Callable[[Servers], str]
    suffix: str = ".json"
    carries: tuple[str, ...] | None = None
    why: str = ""
    start: str = ""
    """The command that starts it as its documentation says, with `{config}`, `{port}`, and for gateways of one server `{command}`."""
    path: str = "/mcp"


def _common(servers: Servers) -> str:
    return json.dumps({"mcpServers": servers}, indent=2)


def _pactgate(servers: Servers) -> str:
    return json.dumps({"mcpServers": servers, "rateLimits": {"enabled": False}}, indent=2)


def _typed(servers: Servers) -> str:
    """1MCP and TBXark's proxy want the transport of a URL said."""
    told = {name: {**entry, **({"type": "http"} if "url" in entry else {})} for name, entry in servers.items()}
    return json.dumps({"mcpServers": told}, indent=2)


def _litellm(servers: Servers) -> str:
    """YAML, of which JSON is a part."""
    told = {
        name: {"transport": "http", **entry} if "url" in entry else {"transport": "stdio", **entry}
        for name, entry in servers.items()
    }
    return json.dumps({"mcp_servers": told, "general_settings": {}}, indent=2)


def _agentgateway(servers: Servers) -> str:
    targets = [
        {"name": name, "mcp": {"host": entry["url"]}}
        if "url" in entry
        else {"name": name, "stdio": {"cmd": entry["command"], "args": list(entry["args"])}}
        for name, entry in servers.items()
    ]
    routes = [{"backends": [{"mcp": {"targets": targets}}]}]
    return json.dumps({"binds": [{"port": "{port}", "listeners": [{"routes": routes}]}]}, indent=2).replace(
        '"{port}"', "{port}"
    )


def _docker(servers: Servers) -> str:
    """A catalog with remote servers; its stdio servers are container images."""
    told = {
        name: {
            "description": name,
            "title": name,
            "type": "remote",
            "remote": {"url": entry["url"], "transport_type": "http"},
        }
        for name, entry in servers.items()
    }
    return json.dumps({"name": "gwp", "displayName": "gwp", "registry": told}, indent=2)


def _contextforge(servers: Servers) -> str:
    """The bodies of `POST /gateways`, one for each server: it is configured through its API."""
    told = [{"name": name, "url": entry["url"], "transport": "STREAMABLEHTTP"} for name, entry in servers.items()]
    return json.dumps(told, indent=2)


def _command(servers: Servers) -> str:
    """The command of the one server, as a shell reads it."""
    entry = next(iter(servers.values()))
    return shlex.join([entry["command"], *entry["args"]])


_HTTP_ONLY: Final = ("lh", "mh", "dh", "pg")
_ONE: Final = "it has one stdio server behind it"

DIALECTS: Final[Mapping[str, Dialect]] = {
    dialect.name: dialect
    for dialect in (
        Dialect("common", _common),
        Dialect("pactgate", _pactgate, start="pactgate serve --config {config} --port {port}"),
        Dialect("fastmcp", _common, start="fastmcp run {config} --transport http --port {port}"),
        Dialect("1mcp", _typed, start="npx -y @1mcp/agent serve --config {config} --port {port}"),
        Dialect("litellm", _litellm, suffix=".yaml", start="litellm --config {config} --port {port}", path="/mcp/"),
        Dialect("agentgateway", _agentgateway, suffix=".yaml", start="agentgateway -f {config}"),
        Dialect(
            "docker",
            _docker,
            suffix=".yaml",
            carries=_HTTP_ONLY,
            why="its stdio servers are container images",
            start="docker mcp gateway run --transport streaming --port {port} --catalog {config}",
        ),
        Dialect("contextforge", _contextforge, carries=_HTTP_ONLY, why="it has HTTP servers behind it"),
        Dialect(
            "mcp-proxy",
            _command,
            suffix=".txt",
            carries=("ls",),
            why=_ONE,
            start="mcp-proxy --port {port} -- {command}",
        ),
        Dialect(
            "supergateway",
            _command,
            suffix=".txt",
            carries=("ls",),
            why=_ONE,
            start="npx -y supergateway --stdio '{command}' --outputTransport streamableHttp --stateful --port {port}",
        ),
        Dialect(
            "direct",
            _common,
            carries=_HTTP_ONLY,
            why="without a gateway, clients reach HTTP servers only",
        ),
    )
}
"""`direct` is no gateway: each client speaks to the server itself, which is how the checks are checked."""
