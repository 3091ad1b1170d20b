"""Every setting as a documented field: its name in files, default, range and one sentence. The reference page and the JSON
Schema are made from these structs and from nothing else, and the loader checks files against them.

To add a section: a struct, here or in a file of its own, and a field of `Sections`. A type's `extra` says what the loader does
with a text beyond its bounds: `expand` fills in variables, `secret` masks it (or the parts a function
of it gives) in everything written, `check` names a rule from `checks`.
Must not: hold a setting no code reads. Enforces S4/F4, D18 (defaults) and D20.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from pactgate.config import value_checks
from pactgate.config.documented import Documented
from pactgate.config.problems import ConfigProblem
from pactgate.config.sections.audit import AuditSection
from pactgate.config.sections.cache import Cache
from pactgate.config.sections.capture import Capture
from pactgate.config.sections.limits import Categories, Limits, Timeouts
from pactgate.config.sections.rate_limits import RateLimits
from pactgate.config.server_settings import ServerConfig, Servers
from pactgate.core.failures import Plane, WireSettings

Secret = Annotated[
    str, Meta(min_length=1, max_length=500, extra={"expand": True, "secret": True, "check": value_checks.check_token})
]
Role = Annotated[str, Meta(max_length=50, pattern=r"^[a-z][a-z0-9_-]*$")]
TokenName = Annotated[str, Meta(max_length=50, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
AllowedHost = Annotated[str, Meta(max_length=255, extra={"check": value_checks.check_allowed_host})]
AllowedOrigin = Annotated[str, Meta(max_length=255, extra={"check": value_checks.check_origin})]

Shown = Literal["jsonrpc_error", "tool_result"]


class ListenSection(Documented, frozen=True, kw_only=True):
    """Where callers reach the gateway."""

    host: Annotated[
        str,
        Meta(
            min_length=1, max_length=255, description="Address to listen on.", extra={"check": value_checks.check_host}
        ),
    ] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 takes a free one.")] = 7411
    allowed_hosts: Annotated[
        tuple[AllowedHost, ...],
        Meta(
            max_length=100,
            description="Names in the Host header to accept beside the address itself, as `gateway.example`.",
        ),
    ] = ()
    allowed_origins: Annotated[
        tuple[AllowedOrigin, ...],
        Meta(
            max_length=100,
            description="Origins of web pages that may call, as `https://app.example`; others are refused.",
        ),
    ] = ()


class Discovery(Documented, frozen=True, kw_only=True):
    """When servers are asked what they offer."""

    discovery_interval_ms: Annotated[
        int,
        Meta(
            ge=1000,
            le=86400000,
            description="Milliseconds a list is believed before it is asked for again. Change notices of a server count at once.",
        ),
    ] = 60000


class Naming(Documented, frozen=True, kw_only=True):
    """How tools are called in lists."""

    exposed: Annotated[
        Literal["double_underscore", "dot"],
        Meta(
            description="`files__read` (accepted by every client) or `files.read`. Both are always understood in calls."
        ),
    ] = "double_underscore"


class ResponseSection(Documented, frozen=True, kw_only=True):
    """What goes back to the caller of a tool."""

    max_response_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=104857600,
            description="Bytes of one answer. Longer texts are cut; longer structured content is kept for a while, to be read in pages.",
        ),
    ] = 1048576


class WireSection(Documented, frozen=True, kw_only=True):
    """Which failures of a tool call the model sees, as a tool result, instead of only the client."""

    argument_errors: Annotated[Shown, Meta(description="Arguments that do not fit the tool, or break a limit.")] = (
        "jsonrpc_error"
    )
    timeouts: Annotated[Shown, Meta(description="Calls that took too long.")] = "jsonrpc_error"

    def planes(self) -> WireSettings:
        """The same in the words of the failure table."""
        return WireSettings(argument_errors=_PLANES[self.argument_errors], timeouts=_PLANES[self.timeouts])


_PLANES: Final[dict[Shown, Plane]] = {"jsonrpc_error": Plane.ERROR, "tool_result": Plane.RESULT}


class Token(Documented, frozen=True, kw_only=True):
    """One bearer token and what its holder may do."""

    token: Annotated[Secret, Meta(description="The token itself, best as `${VARIABLE}`.")]
    roles: Annotated[
        tuple[Role, ...], Meta(max_length=20, description="Roles of its holder; `admin` may manage the gateway.")
    ] = ()

    def __repr__(self) -> str:
        return f"Token(roles={self.roles!r})"


class Auth(Documented, frozen=True, kw_only=True):
    """Who may call."""

    anonymous: Annotated[
        bool | None,
        Meta(
            description="Whether callers without a token are served. Left out: only on loopback, and while there are no tokens."
        ),
    ] = None
    tokens: Annotated[
        dict[TokenName, Token], Meta(max_length=1000, description="Tokens by the name of their holder.")
    ] = {}


class Sessions(Documented, frozen=True, kw_only=True):
    """Sessions of legacy callers over HTTP."""

    idle_timeout_ms: Annotated[
        int, Meta(ge=1000, le=86400000, description="Milliseconds after which an unused session ends.")
    ] = 1800000
    max_sessions: Annotated[int, Meta(ge=1, le=1000000, description="Sessions at one time.")] = 10000
    max_per_caller: Annotated[int, Meta(ge=1, le=1000000, description="Sessions of one caller at one time.")] = 1000


class Log(Documented, frozen=True, kw_only=True):
    """What is written to stderr."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="Least important lines to write.")
    ] = "info"
    format: Annotated[
        Literal["auto", "text", "json"], Meta(description="`auto` is `text` on a terminal and `json` elsewhere.")
    ] = "auto"


class Sections(Documented, frozen=True, kw_only=True):
    """The settings of the gateway itself. What a section is for is said by its struct."""

    listen: ListenSection = ListenSection()
    naming: Naming = Naming()
    discovery: Discovery = Discovery()
    categories: Categories = {}
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
    rate_limits: RateLimits = RateLimits()
    response: ResponseSection = ResponseSection()
    wire: WireSection = WireSection()
    cache: Cache = Cache()
    capture: Capture = Capture()
    auth: Auth = Auth()
    sessions: Sessions = Sessions()
    audit: AuditSection = AuditSection()
    log: Log = Log()


class ConfigFile(Sections, frozen=True, kw_only=True):
    """A configuration of Pactgate, or one of a client."""

    mcp_servers: Annotated[
        Servers,
        Meta(
            max_length=256,
            description="The servers behind the gateway, by id: 1 to 50 letters a-z, digits and hyphens, a letter first.",
        ),
    ] = {}
    servers: Annotated[Servers, Meta(max_length=256, description="The same under the name VS Code gives it.")] = {}
    schema: Annotated[
        Any, Meta(description="Where an editor finds the schema of this file.", extra={"ignored": True})
    ] = field(name="$schema", default=None)
    inputs: Annotated[
        Any,
        Meta(
            description="Questions an editor asks; `${input:...}` itself can't be answered here.",
            extra={"ignored": True},
        ),
    ] = None
    global_shortcut: Annotated[Any, Meta(description="A desktop client's own.", extra={"ignored": True})] = None
    preferences: Annotated[Any, Meta(description="A desktop client's own.", extra={"ignored": True})] = None


class Config(Sections, frozen=True, kw_only=True):
    """The whole configuration, valid. `secrets` are to be masked in everything written, longest first."""

    servers: dict[str, ServerConfig] = {}
    secrets: tuple[str, ...] = ()
    warnings: tuple[ConfigProblem, ...] = ()
    file: str | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the gateway."""
        return value_checks.is_loopback(self.listen.host)

    @property
    def allows_anonymous(self) -> bool:
        """Whether a caller without a token is served (D18)."""
        if self.auth.anonymous is not None:
            return self.auth.anonymous
        return self.is_loopback and not self.auth.tokens

    @property
    def needs_token(self) -> bool:
        """Whether a token has to be made and printed, because callers need one and none is configured."""
        return not self.allows_anonymous and not self.auth.tokens

    def __repr__(self) -> str:
        return f"Config(file={self.file!r}, servers={list(self.servers)!r})"


ELSEWHERE: Final = {
    "serverUrl": "Write it as url.",
    "httpUrl": "Write it as url.",
    "mcp_servers": "Write it as mcpServers.",
    "envFile": "Put the variables in env, as ${NAME} where they are secret.",
    "headersHelper": "Put the headers in headers, as ${NAME} where they are secret.",
    "includeTools": "Tools can't be chosen here yet; hiding them silently would be worse than saying so.",
    "excludeTools": "Tools can't be hidden here yet, and showing them in spite of this would be worse than saying so.",
    "disabledTools": "Tools can't be hidden here yet, and showing them in spite of this would be worse than saying so.",
    "<<": "Merge keys are not part of YAML 1.2; write the values out.",
}
"""Keys of client files that mean something we can't silently leave out, and what to write instead."""
