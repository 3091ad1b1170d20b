"""Normalizes one entry of `mcpServers`: keys of other clients become ours, and contradictions are problems.

Takes values that have passed `validate`, and those of the file, because an invalid command is still a command. Must not: check whether a
server exists or answers. Enforces S4/UNDECIDED-2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pactgate.config.endpoint_checks import check_endpoints
from pactgate.config.problems import ConfigFindings, Path, show
from pactgate.config.sections.effects import check_effects
from pactgate.config.sections.network import check_tls
from pactgate.config.sections.openapi import OPENAPI_ONLY, check_credential_names
from pactgate.config.sections.sign_in import check_sign_in
from pactgate.config.server_settings import ServerConfig
from pactgate.config.validate import CREDENTIAL_NAME, PLAIN_HEADERS

_TRANSPORTS: Final = {
    "stdio": "auto",
    "http": "auto",
    "auto": "auto",
    "sse": "sse",
    "streamable-http": "streamable-http",
    "streamableHttp": "streamable-http",
}
_KINDS: Final = {
    "command": "a command to start",
    "url": "the url of a server that runs already",
    "tools": "a file of Python tools",
    "endpoints": "endpoints of a REST API",
    "openapi": "the OpenAPI document of a REST API",
}
"""The kinds of servers by their key: each server has exactly one."""
_REST_ONLY: Final = ("baseUrl", "allowedHosts", "followRedirects", "emptyResponse", "nonJson", "outputValidation")
_OWN_KEYS: Final = {
    "args": ("command",),
    "env": ("command", "tools"),
    "cwd": ("command", "tools"),
    "effects": ("command", "tools"),
    "python": ("tools",),
    "undeclaredEffects": ("tools",),
    "auth": ("url",),
    "start": ("command",),
    "idleTimeoutMs": ("command",),
    "isolation": ("command", "url"),
    "maxSessionsPerClient": ("command", "url"),
    "extensions": ("command", "url"),
    **dict.fromkeys(("headers", "proxy", "tls"), ("url", "endpoints", "openapi")),
    **dict.fromkeys(_REST_ONLY, ("endpoints", "openapi")),
    **dict.fromkeys(OPENAPI_ONLY, ("openapi",)),
}
"""Keys that are allowed only with these kinds."""
_WORDS: Final = {"stdio": ("command",), "auto": tuple(_KINDS)}
_BODY_HEADERS: Final = frozenset({"content-type"})
_VARIABLE: Final = re.compile(r"(?<!\$)\$\{((?:file:|env:)?[^}:]*)")
_KNOWN: Final = frozenset(ServerConfig.__struct_encode_fields__)


class _Entry(NamedTuple):
    """One entry: its valid values, and all that were given."""

    values: dict[str, Any]
    given: dict[str, Any]
    path: Path
    found: ConfigFindings

    def problem(self, key: str, message: str, hint: str) -> None:
        self.found.add((*self.path, key), message, hint)

    def is_given(self, key: str) -> bool:
        return self.given.get(key) is not None


def settle(
    server_id: str, values: dict[str, Any], given: dict[str, Any], path: Path, found: ConfigFindings
) -> dict[str, Any]:
    """The entry, ready to become a `ServerConfig`."""
    entry = _Entry(values, given, path, found)
    _check_kind(entry)
    settled = {key: value for key, value in values.items() if key in _KNOWN}
    settled["excludeTools"] = [*values.get("excludeTools", ()), *values.get("disabledTools", ())]
    settled["written"] = _written(given)
    settled |= {"id": server_id, "transport": _transport(entry), "enabled": _enabled(entry)}
    if headers := values.get("headers"):
        own = PLAIN_HEADERS - {"user-agent"} if values.get("endpoints") is None else _BODY_HEADERS
        settled["headers"] = _sendable(headers, (*path, "headers"), found, own)
    if values.get("endpoints") is not None:
        check_endpoints(values, settled.get("headers", {}), (*path, "endpoints"), found)
    if values.get("openapi") is not None:
        check_credential_names(values, path, found)
        # The schemas of a document are not the operator's promise, so a response that breaks them is passed on, and that is said.
        settled.setdefault("outputValidation", "warn")
    if auth := values.get("auth"):
        check_sign_in(auth, values.get("headers") or {}, (*path, "auth"), found)
    check_tls(values.get("tls") or {}, (*path, "tls"), found)
    check_effects(values.get("effects") or {}, (*path, "effects"), found)
    _warn_of_arguments(entry)
    if "timeout" in given:
        message = "This is ignored, because clients disagree about its unit."
        found.warn((*path, "timeout"), message, "Use requestTimeoutMs.")
    return settled


def _written(given: dict[str, Any]) -> tuple[str, ...]:
    """Who the server is: what is started or called, and who vouches for the gateway there."""
    args, auth = given.get("args"), given.get("auth")
    parts = [given.get(key) for key in ("command", "url", "tools", "python", "openapi", "baseUrl")]
    parts.append(auth.get("issuer") if isinstance(auth, dict) else None)
    return tuple(str(part) for part in (*parts[:1], *(args if isinstance(args, list) else ()), *parts[1:]) if part)


def _check_kind(entry: _Entry) -> None:
    kinds = [key for key in _KINDS if entry.is_given(key)]
    if len(kinds) != 1:
        has = f"has {' and '.join(kinds)}" if kinds else f"has none of {', '.join(_KINDS)}"
        message = f"This server {has}."
        entry.found.add(entry.path, message, f"Give it {', or '.join(_KINDS.values())}.")
        return
    kind = kinds[0]
    for key, owners in _OWN_KEYS.items():
        # An empty `effects` is a declaration: nothing is allowed.
        is_given = entry.values.get(key) or (key == "effects" and key in entry.values)
        if is_given and kind not in owners:
            entry.problem(key, f"{key} belongs to {' or '.join(owners)}, and this server has {kind}.", "Remove it.")
    _check_isolation(entry, kind)
    if "idleTimeoutMs" in entry.values and entry.values.get("start", "eager") != "lazy":
        entry.problem("idleTimeoutMs", "idleTimeoutMs has no effect: the server is not lazy.", "Set start to lazy.")
    for key in ("type", "transport"):
        word = entry.values.get(key, "auto")
        if kind not in _WORDS.get(word, ("url",)):
            entry.problem(key, f"{show(word)} can't be used with {kind}.", "Remove it.")


def _check_isolation(entry: _Entry, kind: str) -> None:
    """All clients share one session with a command by default, and with any server where the file says so."""
    isolation = entry.values.get("isolation")
    if "maxSessionsPerClient" in entry.values and (isolation == "shared" or (kind == "command" and isolation is None)):
        message = "maxSessionsPerClient has no effect: all clients share one session."
        entry.problem("maxSessionsPerClient", message, "Remove it, or set isolation to session.")
    if isolation == "shared" and (entry.values.get("auth") or {}).get("who") in ("user", "exchange"):
        message = "Clients with grants of their own can't share a session."
        entry.problem("isolation", message, "Remove it, or set who of auth to shared.")


def _warn_of_arguments(entry: _Entry) -> None:
    """Warn about credentials on a command line, which every user of the machine sees in the list of processes."""
    args = entry.given.get("args")
    if entry.given.get("command") is None or not isinstance(args, list):
        return
    for at, argument in enumerate(args):
        if not isinstance(argument, str):
            continue
        flag, equals, _ = argument.partition("=")
        has_value = bool(equals) or (at + 1 < len(args) and not str(args[at + 1]).startswith("-"))
        is_flag = flag.startswith("-") and has_value and CREDENTIAL_NAME.search(flag)
        if is_flag or any(
            name.startswith("file:") or CREDENTIAL_NAME.search(name) for name in _VARIABLE.findall(argument)
        ):
            message = "Every user of this machine can see this in the list of processes, and it looks like a secret."
            hint = "Give it to the server in env, if the server reads one of its variables."
            entry.found.warn((*entry.path, "args", at), message, hint, at_value=True)
            return


def _transport(entry: _Entry) -> str:
    by_type, by_transport = (_TRANSPORTS[entry.values.get(key, "auto")] for key in ("type", "transport"))
    if "auto" not in (by_type, by_transport) and by_type != by_transport:
        entry.problem("type", "type and transport contradict each other.", "Keep transport.")
    return by_transport if by_type == "auto" else by_type


def is_enabled(values: Mapping[str, Any]) -> bool:
    """Whether an entry is to be used: `disabled` is how other clients say that it is not."""
    enabled, disabled = values.get("enabled"), values.get("disabled")
    return enabled is not False if disabled is None else disabled is False


def _enabled(entry: _Entry) -> bool:
    enabled, disabled = entry.values.get("enabled"), entry.values.get("disabled")
    if disabled is not None and enabled is disabled:
        entry.problem("disabled", "enabled and disabled contradict each other.", "Keep enabled.")
    return is_enabled(entry.values)


def _sendable(headers: dict[str, str], path: Path, found: ConfigFindings, own: frozenset[str]) -> dict[str, str]:
    """The headers to send: each once, and none the transport writes."""
    sent: dict[str, str] = {}
    seen: dict[str, str] = {}
    for name, value in headers.items():
        folded = name.casefold()
        first = seen.setdefault(folded, name)
        if first != name:
            found.add((*path, name), f"This is the same header as {first}.", "Keep one of them.")
        elif folded in own:
            found.warn((*path, name), "This is ignored: the gateway writes this header itself.", "Remove it.")
        else:
            sent[name] = value
    return sent
