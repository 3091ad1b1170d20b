"""Shows a running configuration and plans a change of it: paths, values, revisions.

A change is made on the whole tree of settable values and validated like a file, so that it is refused for the same reasons, all
at once. Servers are defined in the operator's file only: of an entry only `enabled`, `requestTimeoutMs` and `maxRetries` can be
changed (D13). Must not: apply or write anything, or show a secret, a command or an address.
Enforces the validation of S2/MCP-006's `config_set`.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pactgate.config.load import check_together, kind_of
from pactgate.config.model import Config, Sections
from pactgate.config.problems import SHOWN_PROBLEMS, ConfigFindings, Path, nearest, show, spell
from pactgate.config.server_settings import ServerConfig, ServerSettings
from pactgate.config.validate import Validation
from pactgate.core.failures import ErrorCode, GatewayFailure, Kind
from pactgate.core.masking import Mask

SETTABLE: Final = ("naming", "categories", "timeouts", "limits", "rateLimits", "response", "wire", "cache", "log")
SERVERS: Final = "mcpServers"
SERVER_SETTABLE: Final = ("enabled", "requestTimeoutMs", "maxRetries")
_SERVER_SHOWN: Final = (*SERVER_SETTABLE, "connectionTimeoutMs", "era", "transport", "name", "description")
_AT_START: Final = (
    "listen",
    "sessions",
    "console",
    "state",
    "audit",
    "log",
    "discovery",
    "cache",
    "limits",
    "telemetry",
)
"""Sections that, in part or whole, take effect at the next start."""
_ATTRIBUTES: Final = dict(zip(Sections.__struct_encode_fields__, Sections.__struct_fields__, strict=True))
_STEP: Final = re.compile(r"""\.?(?:(?P<plain>[A-Za-z0-9_$-]+)|\[(?P<quoted>"(?:[^"\\]|\\.)*")\])""")
_MAX_PATH_CHARS: Final = 500
_REVISION_CHARS: Final = 12
_HIDDEN: Final = "***"


def read_path(text: str) -> Path:
    """`limits.maxArraySize`, `rateLimits.tools["files.*"].rpm`: as problems and the reference page spell them."""
    parts: list[str | int] = []
    at = 0
    while at < len(text) <= _MAX_PATH_CHARS:
        step = _STEP.match(text, at)
        if step is None or (text[at] == "." and not parts):
            break
        parts.append(step["plain"] if step["quoted"] is None else json.loads(step["quoted"]))
        at = step.end()
    if not parts or at != len(text):
        message = f"{show(text)} is not the name of a setting."
        raise _refused(message, 'Write it as limits.maxArraySize or rateLimits.tools["files.*"].rpm.')
    return tuple(parts)


def shown(config: Config) -> dict[str, Any]:
    """The whole configuration without secrets, and without the commands and addresses of servers."""
    mask = Mask(config.secrets)
    view = {name: msgspec.to_builtins(getattr(config, attribute)) for name, attribute in _ATTRIBUTES.items()}
    for holder in view["auth"]["tokens"].values():
        for entry in (holder, *holder["tokens"]):
            entry["token"] = _HIDDEN if entry["token"] else None
    for name in ("key", "previousKey"):
        view["state"][name] = _HIDDEN if view["state"][name] else None
    view[SERVERS] = _servers(config, _SERVER_SHOWN)
    masked: dict[str, Any] = _masked(view, mask)
    return masked


def revision(config: Config) -> str:
    """A short hash of what is shown. It is the same after a restart."""
    text = msgspec.json.encode(shown(config), order="deterministic")
    return hashlib.sha256(text).hexdigest()[:_REVISION_CHARS]


def value_at(config: Config, path: Path) -> Any:
    value: Any = shown(config)
    for depth, part in enumerate(path):
        if not isinstance(value, dict) or part not in value:
            raise _unknown(path[: depth + 1], value)
        value = value[part]
    return value


def is_settable(path: Path) -> bool:
    if path[0] == SERVERS:
        return len(path) == 3 and path[2] in SERVER_SETTABLE
    return path[0] in SETTABLE


def plan(config: Config, path: Path, value: Any) -> Config:
    """The configuration with one value changed, valid as a whole; None restores the default. Raises every problem."""
    _require_settable(config, path)
    tree = _tree(config)
    _put(tree, path, copy.deepcopy(value))
    found = ConfigFindings("")
    reading = Validation(found, {})
    servers = {
        id_: reading.take(entry, kind_of(ServerSettings), (SERVERS, id_)) for id_, entry in tree.pop(SERVERS).items()
    }
    settings = reading.take(tree, kind_of(Sections))
    check_together(settings, found)
    if found.problems:
        raise _invalid(path, found)
    sections = msgspec.convert(settings, Sections)
    return replace(
        config,
        servers={id_: _with(server, servers[id_]) for id_, server in config.servers.items()},
        **{_ATTRIBUTES[name]: getattr(sections, _ATTRIBUTES[name]) for name in SETTABLE},
    )


def needs_restart(before: Config, after: Config) -> tuple[str, ...]:
    """The sections with differences that take effect at the next start."""
    sections = [name for name in _AT_START if _at_start(before, name) != _at_start(after, name)]
    if before.auth.tokens and not after.auth.tokens and after.auth.anonymous is None:
        # Taking the last token away must not let everybody in; what clients need instead is decided at the start.
        sections.append("auth")
    elif before.auth.keys != after.auth.keys:
        sections.append("auth.keys")
    return tuple(sections)


def is_same_file(one: Config, other: Config) -> bool:
    """Whether two configurations come from equal files; flags of the command line may differ."""
    return one.servers == other.servers and all(
        getattr(one, attribute) == getattr(other, attribute)
        for name, attribute in _ATTRIBUTES.items()
        if name not in ("listen", "log")
    )


def _at_start(config: Config, section: str) -> Any:
    """The part of a section that takes effect at the next start."""
    if section == "listen":
        return replace(config.listen, allowed_hosts=(), allowed_origins=())
    if section == "log":
        return config.log.format
    if section == "cache":
        return replace(config.cache, tools={}, default_ttl_ms=0)
    if section == "limits":
        limits = config.limits
        return (
            limits.max_request_bytes,
            limits.max_upstream_frame_bytes,
            limits.max_in_flight,
            limits.max_in_flight_per_server,
            limits.max_queued_per_server,
        )
    return getattr(config, section)


def _servers(config: Config, names: tuple[str, ...]) -> dict[str, Any]:
    facts = {id_: msgspec.to_builtins(server) for id_, server in config.servers.items()}
    return {id_: {name: server[name] for name in names} for id_, server in facts.items()}


def _masked(value: Any, mask: Mask) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {key: _masked(item, mask) for key, item in value.items()}
    return [_masked(item, mask) for item in value] if isinstance(value, list | tuple) else value


def _tree(config: Config) -> dict[str, Any]:
    """All settable values, defaults included."""
    tree = {name: msgspec.to_builtins(getattr(config, _ATTRIBUTES[name])) for name in SETTABLE}
    return {**tree, SERVERS: _servers(config, SERVER_SETTABLE)}


def _put(tree: dict[str, Any], path: Path, value: Any) -> None:
    table: Any = tree
    for depth, part in enumerate(path[:-1]):
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise _unknown(path[: depth + 2], None)
    if value is None:
        table.pop(path[-1], None)
    else:
        table[path[-1]] = value


def _with(server: ServerConfig, given: Mapping[str, Any]) -> ServerConfig:
    fresh = ServerSettings()
    return replace(
        server,
        enabled=given.get("enabled", fresh.enabled),
        request_timeout_ms=given.get("requestTimeoutMs", fresh.request_timeout_ms),
        max_retries=given.get("maxRetries", fresh.max_retries),
    )


def _require_settable(config: Config, path: Path) -> None:
    first = path[0]
    if first == SERVERS and len(path) > 1 and path[1] not in config.servers:
        known = ", ".join(config.servers) or "none"
        raise GatewayFailure(Kind.UNKNOWN_SERVER, f"There is no server {show(path[1])}. There are: {known}.")
    if is_settable(path):
        return
    if first not in _ATTRIBUTES and first != SERVERS:
        raise _unknown(path[:1], shown(config))
    what = (
        f"Of a server only {', '.join(SERVER_SETTABLE)} can be changed; the rest is set in the operator's file"
        if first == SERVERS
        else f"{first} can't be changed while running; it is set in the operator's file"
    )
    raise GatewayFailure(
        Kind.PERMISSION_DENIED,
        f"{spell(path)}: {what}. Settable are {', '.join(SETTABLE)} and {SERVERS}.ID.enabled.",
        details={"path": spell(path), "settable": list(SETTABLE)},
    )


def _unknown(path: Path, table: Any) -> GatewayFailure:
    known = list(table) if isinstance(table, dict) else []
    close = nearest(str(path[-1]), known)
    hint = f'Did you mean "{close}"?' if close else f"Known here: {', '.join(known[:30]) or 'nothing'}."
    return _refused(f"Unknown setting {spell(path)}.", hint, code=ErrorCode.NOT_FOUND)


def _refused(message: str, hint: str, code: ErrorCode | None = None) -> GatewayFailure:
    return GatewayFailure(Kind.INVALID_ARGUMENTS, f"{message} {hint}", code=code)


def _invalid(path: Path, found: ConfigFindings) -> GatewayFailure:
    problems = found.problems[:SHOWN_PROBLEMS]
    hidden = len(found.problems) - len(problems)
    more = f" And {hidden} more." if hidden else ""
    return GatewayFailure(
        Kind.INVALID_ARGUMENTS,
        f"{spell(path)} was not changed. " + " ".join(str(problem) for problem in problems) + more,
        details={
            "problems": [
                {"path": problem.path, "message": problem.message, "hint": problem.hint} for problem in problems
            ]
        },
    )
