"""The configuration that each kind of gateway reads, and what it can carry. Data and plain functions; must not: start anything."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

Servers = Mapping[str, Mapping[str, Any]]
"""The common form: `command` and `args`, or `url`, by the name of the server."""


class GatewayDialect(Struct, frozen=True):
    """One kind of gateway. `carries` are the tags of the servers it can have behind it, `why` the reason where it is not all."""

    name: str
    write: Callable[[Servers], str]
    suffix: str = ".json"
    carries: tuple[str, ...] | None = None
    why: str = ""
    start: str = ""
    """The command that starts it as its documentation says, with `{config}`, `{port}`, and for gateways of one server `{command}`."""
    path: str = "/mcp"
    """Where clients connect. With `{server}`, each server has an address of its own."""
    register: str = ""
    """The path that takes each member of the configuration in a POST, for a gateway that is configured through its API."""
    headers: Mapping[str, str] = {}
    """What its clients send beside `--header`: the key that the configuration sets."""
    is_transparent: bool = False
    """Whether it passes bytes on: then a client and a server of two eras don't meet."""


def _common(servers: Servers) -> str:
    return json.dumps({"mcpServers": servers}, indent=2)


def _pactgate(servers: Servers) -> str:
    return json.dumps({"mcpServers": servers, "rateLimits": {"enabled": False}}, indent=2)


def _typed(servers: Servers) -> str:
    """1MCP and TBXark's proxy want the transport of a URL said."""
    told = {name: {**entry, **({"type": "http"} if "url" in entry else {})} for name, entry in servers.items()}
    return json.dumps({"mcpServers": told}, indent=2)


_LITELLM_KEY: Final = "sk-gateway-profile-5e7a3c41f0b24d68"
"""It does not start without a key, and takes no well-known one."""


def _litellm(servers: Servers) -> str:
    """YAML, of which JSON is a part."""
    told = {
        name: {"transport": "http", **entry} if "url" in entry else {"transport": "stdio", **entry}
        for name, entry in servers.items()
    }
    return json.dumps({"mcp_servers": told, "general_settings": {"master_key": _LITELLM_KEY}}, indent=2)


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


def _nginx(servers: Servers) -> str:
    """A location for each server, without buffering, so that event streams pass."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"    location = /{name} {{ proxy_pass {entry['url']}; }}\n" for name, entry in servers.items())
    return (
        "daemon off; master_process off; pid {config}.pid; error_log stderr error;\nevents {}\nhttp {\n  access_log off;\n"
        + "".join(f"  {kind}_temp_path {{config}}.{kind};\n" for kind in kinds)
        + '  server {\n    listen 127.0.0.1:{port}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;\n'
        + f"{places}  }}\n}}\n"
    )


def _command(servers: Servers) -> str:
    """The command of the one server, as a shell reads it."""
    entry = next(iter(servers.values()))
    return shlex.join([entry["command"], *entry["args"]])


_HTTP_ONLY: Final = ("lh", "mh", "dh", "pg")
_ONE: Final = "it has one stdio server behind it"

DIALECTS: Final[Mapping[str, GatewayDialect]] = {
    dialect.name: dialect
    for dialect in (
        GatewayDialect("common", _common),
        GatewayDialect("pactgate", _pactgate, start="pactgate serve --config {config} --port {port}"),
        GatewayDialect("fastmcp", _common, start="fastmcp run {config} --transport http --port {port}"),
        GatewayDialect("1mcp", _typed, start="1mcp serve --config {config} --port {port}"),
        GatewayDialect(
            "litellm",
            _litellm,
            suffix=".yaml",
            carries=_HTTP_ONLY,
            why="its stdio servers are off by default",
            start="env LITELLM_SALT_KEY=any litellm --config {config} --host 127.0.0.1 --port {port}",
            path="/mcp/",
            headers={"x-litellm-api-key": f"Bearer {_LITELLM_KEY}"},
        ),
        GatewayDialect("agentgateway", _agentgateway, suffix=".yaml", start="agentgateway -f {config}"),
        GatewayDialect(
            "docker",
            _docker,
            suffix=".yaml",
            carries=_HTTP_ONLY,
            why="its stdio servers are container images",
            start="docker mcp gateway run --transport streaming --port {port} --catalog {config}",
        ),
        GatewayDialect(
            "contextforge",
            _contextforge,
            carries=_HTTP_ONLY,
            why="it has HTTP servers behind it",
            start="mcpgateway --host 127.0.0.1 --port {port}",
            path="/mcp/",
            register="/gateways",
        ),
        GatewayDialect(
            "mcp-proxy",
            _command,
            suffix=".txt",
            carries=("ls",),
            why=_ONE,
            start="mcp-proxy --port {port} -- {command}",
        ),
        GatewayDialect(
            "supergateway",
            _command,
            suffix=".txt",
            carries=("ls",),
            why=_ONE,
            start='supergateway --stdio "{command}" --outputTransport streamableHttp --stateful --port {port}',
        ),
        GatewayDialect(
            "nginx",
            _nginx,
            suffix=".conf",
            carries=_HTTP_ONLY,
            why="it has HTTP servers behind it",
            start="nginx -c {config}",
            path="/{server}",
            is_transparent=True,
        ),
        GatewayDialect(
            "direct",
            _common,
            carries=_HTTP_ONLY,
            why="without a gateway, clients reach HTTP servers only",
            is_transparent=True,
        ),
    )
}
"""`direct` is no gateway: each client speaks to the server itself, which is how the checks are checked."""
