"""The sections of the configuration. Each setting is a documented field: its name in files, default, range and one sentence.
The reference page and the JSON Schema are generated from these structs, and the loader validates files against them.

To add a section: a struct, here or in a file of its own, and a field of `Sections`. A type's `extra` says what the loader does
with a string: `expand` fills in variables, `secret` masks it (or the parts a function returns) in all output, `check` is a
function of `value_checks`, `is_path` makes it absolute, so that nothing depends on where the gateway was started.
Must not: have a setting no code reads. Enforces S4/F4, D18 (defaults) and D20.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Final, Literal

from msgspec import field

from pactgate.config import value_checks
from pactgate.config.definition_lock import Pins, lock_path
from pactgate.config.oauth_client import DOCUMENT_PATH
from pactgate.config.problems import ConfigProblem
from pactgate.config.sections import Folder, Section, doc, ignored
from pactgate.config.sections.audit import AuditSection
from pactgate.config.sections.auth import Auth
from pactgate.config.sections.cache import Cache
from pactgate.config.sections.capture import Capture
from pactgate.config.sections.console import ConsoleSection
from pactgate.config.sections.limits import Categories, Limits, Timeouts
from pactgate.config.sections.listen import ListenSection
from pactgate.config.sections.lock import LockSection
from pactgate.config.sections.permissions import Callers, Permissions
from pactgate.config.sections.rate_limits import RateLimits
from pactgate.config.sections.state import StateSection
from pactgate.config.sections.telemetry import Telemetry
from pactgate.config.sections.views import Views
from pactgate.config.server_settings import ServerConfig, Servers
from pactgate.core.failures import Plane, WireSettings

Shown = Literal["jsonrpc_error", "tool_result"]


class Discovery(Section, frozen=True, kw_only=True):
    """When the lists of servers are refreshed."""

    discovery_interval_ms: Annotated[
        int, doc("Milliseconds before a list is refreshed; `list_changed` refreshes it at once.", ge=1000, le=86400000)
    ] = 60000
    first_list_wait_ms: Annotated[
        int,
        doc(
            "Milliseconds that a list waits for servers which have neither connected nor failed since they were started; for "
            "each server at most its own connectionTimeoutMs. 0: a list has the servers that are connected.",
            ge=0,
            le=60000,
        ),
    ] = 60000


class Naming(Section, frozen=True, kw_only=True):
    """The names of tools in lists."""

    exposed: Annotated[
        Literal["double_underscore", "dot"],
        doc("`files__read` (accepted by every client) or `files.read`. Calls may use both."),
    ] = "double_underscore"


class ResponseSection(Section, frozen=True, kw_only=True):
    """Results of tool calls."""

    max_response_bytes: Annotated[
        int, doc("Bytes of one result; longer text is cut, longer JSON is paged.", ge=1024, le=104857600)
    ] = 1048576


class WireSection(Section, frozen=True, kw_only=True):
    """Which failures of a tool call are tool results, which the model sees, instead of JSON-RPC errors."""

    argument_errors: Annotated[Shown, doc("Invalid arguments, or arguments beyond a limit.")] = "jsonrpc_error"
    timeouts: Annotated[Shown, doc("Calls that timed out.")] = "jsonrpc_error"

    def planes(self) -> WireSettings:
        """The same as the failure table has it."""
        return WireSettings(argument_errors=_PLANES[self.argument_errors], timeouts=_PLANES[self.timeouts])


_PLANES: Final[dict[Shown, Plane]] = {"jsonrpc_error": Plane.ERROR, "tool_result": Plane.RESULT}


class Sessions(Section, frozen=True, kw_only=True):
    """Sessions of legacy clients over HTTP."""

    idle_timeout_ms: Annotated[int, doc("Milliseconds after which an unused session ends.", ge=1000, le=86400000)] = (
        1800000
    )
    max_sessions: Annotated[int, doc("Sessions at one time.", ge=1, le=1000000)] = 10000
    max_per_caller: Annotated[int, doc("Sessions of one client at one time.", ge=1, le=1000000)] = 1000


class Log(Section, frozen=True, kw_only=True):
    """Log lines on stderr."""

    level: Annotated[Literal["debug", "info", "warning", "error"], doc("Lowest level to write.")] = "info"
    format: Annotated[Literal["auto", "text", "json"], doc("`auto` is `text` on a terminal and `json` elsewhere.")] = (
        "auto"
    )


class Sections(Section, frozen=True, kw_only=True):
    """The settings of the gateway itself. The struct of a section says what it is for."""

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
    callers: Callers = {}
    permissions: Permissions = ()
    views: Views = {}
    sessions: Sessions = Sessions()
    state: StateSection = StateSection()
    console: ConsoleSection = ConsoleSection()
    audit: AuditSection = AuditSection()
    lock: LockSection = LockSection()
    log: Log = Log()
    telemetry: Telemetry = Telemetry()


class ConfigFile(Sections, frozen=True, kw_only=True):
    """A configuration of Pactgate, or one of a client."""

    mcp_servers: Annotated[
        Servers, doc("The servers by id: 1 to 50 letters a-z, digits and hyphens, a letter first.", max_length=256)
    ] = {}
    servers: Annotated[Servers, doc("The same under the key of VS Code.", max_length=256)] = {}
    env_file: Annotated[
        Folder | None,
        doc(
            "File of `NAME=VALUE` lines whose variables can be used as `${NAME}`; those of the environment go before them. "
            "Keep it readable by its owner alone."
        ),
    ] = None
    schema: Annotated[Any, ignored("Where an editor finds the schema of this file.")] = field(
        name="$schema", default=None
    )
    inputs: Annotated[Any, ignored("Prompts of an editor; `${input:...}` is not supported here.")] = None
    global_shortcut: Annotated[Any, ignored("Setting of a desktop client.")] = None
    preferences: Annotated[Any, ignored("Setting of a desktop client.")] = None


class Config(Sections, frozen=True, kw_only=True):
    """The whole configuration, validated. `secrets` are masked in all output, longest first."""

    servers: dict[str, ServerConfig] = {}
    secrets: tuple[str, ...] = ()
    unresolved: tuple[ConfigProblem, ...] = ()
    """What enabled servers miss in the environment."""
    secret_files: tuple[str, ...] = ()
    """Files that secrets were read from; the configuration is reloaded when one changes."""
    warnings: tuple[ConfigProblem, ...] = ()
    rule_places: tuple[str, ...] = ()
    """Where each of the `permissions` stands: file, line and column."""
    origins: dict[str, str] = {}
    """Where each setting comes from that is not the default: file and line, the command line, or the environment."""
    file: str | None = None
    key_file: str | None = None
    """Where the API keys are. None where there is no configuration file to have keys of its own."""
    has_key_file: bool = False
    """Whether that file exists, or is named in the configuration: clients need a token or key then."""

    credential_file: str | None = None
    """Where the credentials of sign-ins at servers are. None where there is no configuration file to keep them beside."""
    pins: Pins | None = None
    """What the lock file says, unless `lock.mode` is off."""

    @property
    def watched_files(self) -> tuple[str, ...]:
        """Files beside the configuration file whose change is a change of the configuration."""
        if self.file is None or self.lock.mode == "off":
            return self.secret_files
        return (*self.secret_files, str(lock_path(self.file)))

    @property
    def private_paths(self) -> tuple[str, ...]:
        """The gateway's own files, which a confined program does not see: this file, secrets, keys, socket, audit log, captures."""
        tls = self.listen.tls
        kept = self.credential_file
        own = (self.key_file, self.listen.socket, None if tls is None else tls.key, kept, kept and f"{kept}.key")
        paths = (self.file, *self.secret_files, *own, self.audit.file, self.capture.dir)
        return tuple(os.path.abspath(path) for path in paths if path is not None)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the gateway."""
        return self.listen.tcp_port is None or value_checks.is_loopback(self.listen.host)

    @property
    def allows_anonymous(self) -> bool:
        """Whether a client without a token is served (D18)."""
        if self.auth.anonymous is not None:
            return self.auth.anonymous
        return self.is_loopback and not self.has_credentials

    @property
    def public_base(self) -> str | None:
        """Where browsers reach the gateway, as the operator says; None where nobody did."""
        resource = self.auth.resource
        return None if resource is None else resource.rstrip("/").removesuffix("/mcp")

    @property
    def client_document(self) -> str:
        """The client id metadata document that the gateway publishes; empty where no authorization server could read it."""
        base = self.public_base or ""
        return f"{base}{DOCUMENT_PATH}" if base.startswith("https://") else ""

    @property
    def exchanged_issuers(self) -> frozenset[str]:
        """The identity providers whose tokens are exchanged for those of servers."""
        auths = (server.auth for server in self.servers.values())
        return frozenset(auth.exchange.issuer for auth in auths if auth is not None and auth.exchange is not None)

    @property
    def has_console(self) -> bool:
        """Whether the console is served. Beyond loopback only where every client needs a token or key."""
        wished = self.console.enabled
        return self.is_loopback if wished is None else wished and (self.is_loopback or not self.allows_anonymous)

    @property
    def has_credentials(self) -> bool:
        """Whether there are tokens or keys that clients can have."""
        return bool(self.auth.tokens or self.auth.issuers) or self.has_key_file

    @property
    def has_several_principals(self) -> bool:
        """Whether clients can be told apart, so that each gets a share of its own."""
        others = self.allows_anonymous + (self.listen.socket is not None)
        return self.has_key_file or bool(self.auth.issuers) or len(self.auth.tokens) + others > 1

    @property
    def needs_token(self) -> bool:
        """Whether a token has to be generated and printed, because clients need one and none is configured."""
        return not self.allows_anonymous and not self.has_credentials and self.listen.tcp_port is not None

    def __repr__(self) -> str:
        return f"Config(file={self.file!r}, servers={list(self.servers)!r})"


ELSEWHERE: Final = {
    "mcp_servers": "Write it as mcpServers.",
    "headersHelper": "Put the headers in headers, as ${NAME} where they are secret.",
    "enabled_tools": "Write it as includeTools.",
    "disabled_tools": "Write it as excludeTools.",
    "<<": "Merge keys are not part of YAML 1.2; write the values out.",
}
"""Keys of client files that must not be ignored silently, and what to write instead."""
