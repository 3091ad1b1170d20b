"""What can be said about one server: in a file, and as the gateway knows it.

A server is a program, an address, a file of Python tools or a REST API; the structs here have the settings of all of them, and
`servers` sees to it that an entry is exactly one. Must not: look whether a server exists. Enforces S0/ECO-100 and S0/ECO-101 (ranges).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from pactgate.config import value_checks
from pactgate.config.sections.effects import Effects
from pactgate.config.sections.limits import Isolation
from pactgate.config.sections.network import ServerProxy, ServerTls
from pactgate.config.sections.openapi import is_url
from pactgate.config.sections.rest import RestSettings

Command = Annotated[
    str, Meta(min_length=1, max_length=1000, extra={"expand": True, "check": value_checks.check_program})
]
Argument = Annotated[str, Meta(max_length=500, extra={"expand": True, "check": value_checks.check_argument})]
Folder = Annotated[str, Meta(min_length=1, max_length=500, extra={"expand": True, "check": value_checks.check_program})]
Url = Annotated[str, Meta(min_length=1, max_length=2000, extra={"expand": True, "check": value_checks.check_url})]
EnvName = Annotated[str, Meta(min_length=1, max_length=200, extra={"check": value_checks.check_env_name})]
EnvValue = Annotated[
    str, Meta(max_length=32768, extra={"expand": True, "secret": True, "check": value_checks.check_env_value})
]
HeaderName = Annotated[str, Meta(min_length=1, max_length=200, extra={"check": value_checks.check_header_name})]
HeaderValue = Annotated[
    str, Meta(max_length=8192, extra={"expand": True, "secret": True, "check": value_checks.check_header_value})
]
ServerId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=value_checks.SERVER_ID_MAX,
        pattern=value_checks.SERVER_ID,
        extra={"check": value_checks.check_server_id},
    ),
]
Title = Annotated[str, Meta(min_length=1, max_length=100)]
Description = Annotated[str, Meta(max_length=500)]

Transport = Literal["auto", "streamable-http", "sse"]
ClientTransport = Literal["auto", "streamable-http", "sse", "stdio", "http", "streamableHttp"]


class ServerSettings(RestSettings, frozen=True, kw_only=True):
    """What both a file and the gateway say about one server."""

    command: Annotated[
        Command | None,
        Meta(
            description="Program to start; it speaks MCP on stdin and stdout. No shell reads it. A server has this, `url` or `tools`."
        ),
    ] = None
    args: Annotated[
        tuple[Argument, ...], Meta(max_length=20, description="Arguments of the program, one text each.")
    ] = ()
    env: Annotated[
        dict[EnvName, EnvValue],
        Meta(max_length=200, description="Environment variables of the program, beside the few every program needs."),
    ] = {}
    cwd: Annotated[
        Folder | None,
        Meta(
            description="Folder the program starts in; a relative one starts at the folder of the configuration file."
        ),
    ] = None
    effects: Annotated[
        Effects | None,
        Meta(
            description="What the program may do beside answering, and nothing else. Left out: whatever its user may."
        ),
    ] = None
    url: Annotated[
        Url | None, Meta(description="Address of a server that is reached over HTTP, with http or https.")
    ] = None
    headers: Annotated[
        dict[HeaderName, HeaderValue],
        Meta(max_length=50, description="Headers sent with every request over HTTP, credentials among them."),
    ] = {}
    proxy: ServerProxy = None
    tls: ServerTls = None
    tools: Annotated[
        Folder | None,
        Meta(
            description="Python file whose functions marked with `@tool` are served, from a process of its own that loads it again "
            "when it changes; a relative one starts at the folder of the configuration file. Its folder is where it runs."
        ),
    ] = None
    undeclared_effects: Annotated[
        Literal["report", "refuse"],
        Meta(
            description="What happens when one of `tools` does something it does not declare: `report` records it, "
            "`refuse` prevents it as well, as far as Python sees it."
        ),
    ] = "report"
    enabled: Annotated[
        bool, Meta(description="A server that is not enabled is never started, called or looked up.")
    ] = True
    era: Annotated[
        Literal["auto", "legacy", "modern"],
        Meta(
            description="Protocol era of the server: `legacy` opens with a handshake, `modern` does not, `auto` asks."
        ),
    ] = "auto"
    isolation: Isolation = None
    connection_timeout_ms: Annotated[
        int, Meta(ge=1000, le=60000, description="Milliseconds one attempt to connect may take, handshake included.")
    ] = 10000
    request_timeout_ms: Annotated[
        int, Meta(ge=1000, le=300000, description="Milliseconds one request to this server may take.")
    ] = 60000
    max_retries: Annotated[
        int, Meta(ge=0, le=10, description="Attempts to connect after the first has failed. Calls are never repeated.")
    ] = 3
    name: Annotated[Title | None, Meta(description="Name for people.")] = None
    description: Annotated[Description | None, Meta(description="What the server is for.")] = None


class ServerEntry(ServerSettings, frozen=True, kw_only=True):
    """One server: a program to start (`command`), an address to call (`url`), a file of Python tools (`tools`) or a REST API
    (`endpoints`, `openapi`)."""

    transport: Annotated[
        ClientTransport,
        Meta(
            description="How `url` is spoken to: `streamable-http`, `sse` (the older HTTP+SSE), or `auto`, which tries in that order. "
            "Clients' spellings `http` and `streamableHttp` are understood, and `stdio` beside a command."
        ),
    ] = "auto"
    type: Annotated[
        Literal["stdio", "http", "sse", "streamable-http", "streamableHttp"] | None,
        Meta(description="Clients' word for `transport`; `http` means `auto`."),
    ] = None
    disabled: Annotated[bool | None, Meta(description="Clients' word for the opposite of `enabled`.")] = None
    auto_approve: Annotated[
        Any,
        Meta(
            description="A client's list of tools to call without asking: the client's decision.",
            extra={"ignored": True},
        ),
    ] = None
    always_allow: Annotated[Any, Meta(description="The same in other clients.", extra={"ignored": True})] = None
    trust: Annotated[Any, Meta(description="The same, for all tools of a server.", extra={"ignored": True})] = None
    timeout: Annotated[
        Any,
        Meta(
            description="Seconds in some clients, milliseconds in others; use `requestTimeoutMs`. Gives a warning.",
            extra={"ignored": True},
        ),
    ] = None
    gallery: Annotated[Any, Meta(description="Where an editor found the server.", extra={"ignored": True})] = None
    version: Annotated[Any, Meta(description="Which release an editor installed.", extra={"ignored": True})] = None
    dev: Annotated[
        Any, Meta(description="An editor's settings for developing the server.", extra={"ignored": True})
    ] = None


class ServerConfig(ServerSettings, frozen=True, kw_only=True):
    """One server as the gateway knows it. Exactly one of `command`, `url`, `tools`, `endpoints` and `openapi` is set."""

    id: str
    transport: Transport = "auto"

    @property
    def address(self) -> str | None:
        """Where a server that is no program of ours is reached: its `url`, the base URL of its API, or where its document is."""
        urls = (self.url, self.base_url, *(endpoint.base_url for endpoint in self.endpoints or ()))
        if self.openapi is not None and is_url(self.openapi):
            urls = (*urls, self.openapi)
        return next((url for url in urls if url is not None), None)

    def __repr__(self) -> str:
        return f"ServerConfig(id={self.id!r})"


_SERVER_SHAPE: Final = {
    "oneOf": [
        {"required": [key], "properties": {key: {"type": kind}}, "title": f"a server with {key}"}
        for key, kind in (
            ("command", "string"),
            ("url", "string"),
            ("tools", "string"),
            ("endpoints", "array"),
            ("openapi", "string"),
        )
    ]
}
Servers = dict[ServerId, Annotated[ServerEntry, Meta(extra_json_schema=_SERVER_SHAPE)]]
