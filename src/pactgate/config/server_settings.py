"""The settings of one server: as a file has them, and as the gateway has them.

A server is a program, an address, a file of Python tools or a REST API; the structs here have the settings of all of them, and
`server_entries` checks that an entry is exactly one. Must not: check whether a server exists. Enforces S0/ECO-100 and S0/ECO-101 (ranges).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from pactgate.config import value_checks
from pactgate.config.sections import Folder, doc, ignored
from pactgate.config.sections.effects import Effects
from pactgate.config.sections.limits import Isolation, ToolPattern
from pactgate.config.sections.network import ServerProxy, ServerTls
from pactgate.config.sections.openapi import is_url
from pactgate.config.sections.rest import RestSettings
from pactgate.config.sections.sign_in import SignIn
from pactgate.config.selectors import matches

Command = Annotated[
    str, Meta(min_length=1, max_length=1000, extra={"expand": True, "check": value_checks.check_program})
]
Argument = Annotated[str, Meta(max_length=32768, extra={"expand": True, "check": value_checks.check_argument})]

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
ExtensionMethod = Annotated[str, Meta(min_length=1, max_length=200, extra={"check": value_checks.check_extension})]
Title = Annotated[str, Meta(min_length=1, max_length=100)]
Description = Annotated[str, Meta(max_length=500)]

Transport = Literal["auto", "streamable-http", "sse"]
ClientTransport = Literal["auto", "streamable-http", "sse", "stdio", "http", "streamableHttp"]


class ServerSettings(RestSettings, frozen=True, kw_only=True):
    """The settings a file and the gateway share."""

    command: Annotated[
        Command | None,
        doc("Program to start; it speaks MCP on stdin and stdout. No shell reads it."),
    ] = None
    args: Annotated[tuple[Argument, ...], doc("Arguments of the program, one string each.", max_length=256)] = ()
    env: Annotated[
        dict[EnvName, EnvValue],
        doc(
            "Environment variables of the program, in addition to HOME, LANG, LC_ALL, LOGNAME, PATH, SHELL, TMPDIR, TZ, USER and those "
            "that package runners need. No others of the gateway's own environment are passed on.",
            max_length=200,
        ),
    ] = {}
    cwd: Annotated[Folder | None, doc("Folder the program starts in.")] = None
    effects: Annotated[
        Effects | None,
        doc("What the program may do, and nothing else. Default: whatever its user may."),
    ] = None
    url: Annotated[Url | None, doc("URL of a server that is reached over HTTP.")] = None
    headers: Annotated[
        dict[HeaderName, HeaderValue],
        doc("Headers sent with every request over HTTP, credentials among them.", max_length=50),
    ] = {}
    auth: Annotated[SignIn | None, doc("How the gateway signs in to the server at `url`.")] = None
    proxy: ServerProxy = None
    tls: ServerTls = None
    tools: Annotated[
        Folder | None,
        doc("Python file whose functions marked with `@tool` are served by a process that runs in its folder."),
    ] = None
    python: Annotated[
        Folder | None,
        doc(
            "Python interpreter that runs `tools`, as `.venv/bin/python`, with the packages of its environment. Default: what a block "
            "`# /// script` (PEP 723) in the file asks for, by `uv`; else the gateway's own."
        ),
    ] = None
    undeclared_effects: Annotated[
        Literal["report", "refuse"],
        doc("What happens when one of `tools` has an undeclared effect: `report` it, or also `refuse` it in Python."),
    ] = "report"
    enabled: Annotated[bool, doc("Whether the server is used; a disabled one is never started or called.")] = True
    start: Annotated[
        Literal["eager", "lazy"],
        doc(
            "When a program is started: `eager` with the gateway, `lazy` at its first call. A lazy one is listed as it listed itself "
            "last, and is ended when nobody has used it for `idleTimeoutMs`."
        ),
    ] = "eager"
    idle_timeout_ms: Annotated[
        int, doc("Milliseconds without a call after which a lazy server is ended.", ge=1000, le=86400000)
    ] = 300000
    era: Annotated[
        Literal["auto", "legacy", "modern"],
        doc("Protocol era of the server: `legacy` opens with a handshake, `modern` does not, `auto` finds out."),
    ] = "auto"
    isolation: Isolation = None
    max_sessions_per_client: Annotated[
        int,
        doc(
            "Sessions of its own that one client may have with the server (see `isolation`); for one more, its longest "
            "unused one ends.",
            ge=1,
            le=24,
        ),
    ] = 16
    include_tools: Annotated[
        Annotated[tuple[ToolPattern, ...], Meta(max_length=1000)] | None,
        doc("Tools of the server to serve, by its own names or patterns; all others do not exist here. Default: all."),
    ] = None
    exclude_tools: Annotated[
        tuple[ToolPattern, ...],
        doc(
            "Tools of the server that do not exist here, by its own names or patterns. `disabledTools` is the same.",
            max_length=1000,
        ),
    ] = ()
    extensions: Annotated[
        tuple[ExtensionMethod, ...],
        doc(
            "Methods outside the protocol that clients may use at `/mcp/{serverId}`, by name or pattern (`com.example/*`). "
            "All others are refused.",
            max_length=100,
        ),
    ] = ()
    connection_timeout_ms: Annotated[
        int, doc("Milliseconds one attempt to connect may take, handshake included.", ge=1000, le=60000)
    ] = 10000
    request_timeout_ms: Annotated[int, doc("Milliseconds one request to this server may take.", ge=1000, le=300000)] = (
        60000
    )
    max_retries: Annotated[
        int, doc("Attempts to connect after the first has failed. Calls are never repeated.", ge=0, le=10)
    ] = 3
    name: Annotated[Title | None, doc("Name for people.")] = None
    description: Annotated[Description | None, doc("What the server is for.")] = None


class ServerEntry(ServerSettings, frozen=True, kw_only=True):
    """One server: a program to start (`command`), an address to call (`url`), a file of Python tools (`tools`) or a REST API
    (`endpoints`, `openapi`)."""

    transport: Annotated[
        ClientTransport,
        doc(
            "Transport of `url`: `streamable-http`, `sse` (the older HTTP+SSE), or `auto`, which tries in that "
            "order. Clients' spellings `http` and `streamableHttp` are understood, and `stdio` beside a command."
        ),
    ] = "auto"
    type: Annotated[
        Literal["stdio", "http", "sse", "streamable-http", "streamableHttp"] | None,
        doc("Other clients' key for `transport`; `http` means `auto`."),
    ] = None
    env_file: Annotated[
        Folder | None,
        doc("File of `NAME=VALUE` lines: further environment variables of the program; those in `env` go before them."),
    ] = None
    disabled: Annotated[bool | None, doc("Other clients' key for the opposite of `enabled`.")] = None
    disabled_tools: Annotated[
        tuple[ToolPattern, ...], doc("Other clients' key for `excludeTools`.", max_length=1000)
    ] = ()
    auto_approve: Annotated[Any, ignored("Tools a client calls without asking its user.")] = None
    always_allow: Annotated[Any, ignored("The same in other clients.")] = None
    trust: Annotated[Any, ignored("The same, for all tools of a server.")] = None
    timeout: Annotated[
        Any,
        ignored("Seconds in some clients, milliseconds in others; use `requestTimeoutMs`. Gives a warning."),
    ] = None
    gallery: Annotated[Any, ignored("Where an editor found the server.")] = None
    version: Annotated[Any, ignored("Which release an editor installed.")] = None
    dev: Annotated[Any, ignored("An editor's settings for developing the server.")] = None


class ServerConfig(ServerSettings, frozen=True, kw_only=True):
    """One server as the gateway has it. Exactly one of `command`, `url`, `tools`, `endpoints`, `openapi` and `unresolved` is set."""

    id: str
    transport: Transport = "auto"
    written: tuple[str, ...] = ()
    """The command line or address as the file has it, before variables are filled in: who the server is, for the lock file."""
    unresolved: str | None = None
    """What is missing in the environment. The entry has no other settings then, and the server can't be connected."""

    def serves(self, tool: str) -> bool:
        """Whether the operator wants a tool of the server, by its own name."""
        if any(matches(pattern, tool) for pattern in self.exclude_tools):
            return False
        return self.include_tools is None or any(matches(pattern, tool) for pattern in self.include_tools)

    @property
    def identity(self) -> tuple[str, ...]:
        """Who the server is. An entry that comes from no file has no variables."""
        if self.written:
            return self.written
        if self.command is not None:
            return (self.command, *self.args)
        return tuple(part for part in (self.url, self.tools, self.openapi, self.base_url) if part is not None)

    @property
    def address(self) -> str | None:
        """The address of a remote server: its `url`, the base URL of its API, or the URL of its document."""
        urls = (self.url, self.base_url, *(endpoint.base_url for endpoint in self.endpoints or ()))
        if self.openapi is not None and is_url(self.openapi):
            urls = (*urls, self.openapi)
        return next((url for url in urls if url is not None), None)

    @property
    def may_have_caller_sessions(self) -> bool:
        """Whether callers may have sessions of their own with this server."""
        return self.is_per_caller or self.isolation == "session" or (self.isolation is None and self.url is not None)

    @property
    def is_per_caller(self) -> bool:
        """Whether every call goes out with a grant of its caller, so never in the session that all share."""
        return self.auth is not None and self.auth.is_per_caller

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
